"""Our accuracies and AUC against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score

from evenhand.metrics.group import accuracy, balanced_accuracy
from evenhand.metrics.scores import auc


@given(st.integers(0, 2**32 - 1), st.integers(2, 4))
def test_accuracies_and_auc_equal_scikit_learns(seed: int, n_labels: int) -> None:
    rng = np.random.default_rng(seed)
    truth = np.concatenate([np.arange(n_labels), rng.integers(0, n_labels, 40)])
    decided = rng.integers(0, n_labels, len(truth))
    scores = rng.dirichlet(np.ones(n_labels), len(truth)).round(1)
    scores /= scores.sum(axis=1, keepdims=True)
    assert accuracy(truth, decided) == pytest.approx(accuracy_score(truth, decided))
    assert balanced_accuracy(truth, decided) == pytest.approx(balanced_accuracy_score(truth, decided))
    theirs = roc_auc_score(truth, scores[:, 1] if n_labels == 2 else scores, multi_class="ovr")
    assert auc(truth, scores) == pytest.approx(theirs)
    for label in range(n_labels):
        theirs = roc_auc_score(truth == label, scores[:, label])
        assert auc(truth, scores, pos_label=label) == pytest.approx(theirs)
