"""What GradientBandit and CooperativeBandits share: the doors, the training run, and reading policies out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from evenhand.arrays import Codes, Floats
from evenhand.bandits import kernels
from evenhand.bandits.contexts import as_rows, name_bad_columns
from evenhand.bandits.fitting import (
    check_options,
    check_reward,
    options_of,
    people_met,
    remedy_of,
    warn_if_collapsed,
    warn_of_terms,
)
from evenhand.bandits.kernels.structs import People, Rows
from evenhand.bandits.offpolicy import chances, finite, one_each
from evenhand.bandits.sparse_input import check_sparse
from evenhand.bandits.training import Training, TrainingDivergedError
from evenhand.groups import sorted_unique
from evenhand.metrics.collapse import LOOKED_AT, SHORT
from evenhand.network import Network
from evenhand.rewards import Reward, pack_terms
from evenhand.rewards.term import Setting
from evenhand.wording import listed

Callback = Callable[[int, Any], bool | None] | None


class PolicyLearner(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """One softmax policy per group, trained from rewards. Subclasses say which groups there are."""

    hidden: int
    estimator: str
    optimizer: str
    learning_rate: float | str
    schedule: str
    epochs: float | str
    steps: int | None
    batch_size: int
    weight_decay: float
    order: str
    importance_clip: float
    checkpoint_every: int
    random_state: Any

    # What a subclass may turn on.
    divergence_weight: float = 0.0
    cooperation: str = "acting"
    shared_start: bool = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _reward(self) -> Reward:
        raise NotImplementedError

    # The doors -----------------------------------------------------------------------------------------

    def _contexts(self, X: Any, *, reset: bool) -> Any:
        check_sparse(X)
        name_bad_columns(X)
        return validate_data(self, X, accept_sparse="csr", dtype=np.float32, order="C", reset=reset)

    def _contexts_and_labels(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        check_sparse(X)
        name_bad_columns(X)
        _no_missing_labels(y)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float32, order="C", reset=reset)
        check_classification_targets(pd.unique(y))
        return X, y

    def _learn_classes(self, labels: Any) -> Codes:
        codes, found = pd.factorize(labels)  # hashing is quicker than np.unique's sorting
        order = np.argsort(found)
        self.classes_ = found[order]
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has one class only, {self.classes_[0]!r}, but expected at least two to tell apart."
            )
        ranks = np.empty(len(found), dtype=np.int64)
        ranks[order] = np.arange(len(found))
        return ranks[codes]

    def _known_codes(self, values: Any, what: str) -> Codes:
        values = np.asarray(values)
        at: Codes = np.searchsorted(self.classes_, values).clip(max=len(self.classes_) - 1)
        unknown = values[self.classes_[at] != values]
        if len(unknown):
            known = listed(self.classes_.tolist())
            raise ValueError(f"Got {what} {unknown[:1].tolist()[0]!r}, but fit saw only the classes {known}.")
        return at.astype(np.int64)

    # Training ------------------------------------------------------------------------------------------

    def _begin(self, n_features: int, n_groups: int) -> None:
        check_options(self)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        pack_terms(self._reward(), self.divergence_weight, len(self.classes_))  # checks the reward first
        self._training = Training.begin(
            n_features=n_features, n_hidden=self.hidden, n_actions=len(self.classes_), n_groups=n_groups,
            seed=seed, shared_start=self.shared_start,
        )  # fmt: skip

    def _forget(self) -> None:
        """Begin a fit with no policies: one that fails must not leave the old ones under new labels."""
        self.__dict__.pop("policies_", None)

    def _settle_classes(self, first: bool, classes: Any) -> None:
        """Take the classes of a first partial_fit or update; later ones may leave them out or repeat them."""
        if classes is None:
            if first:
                raise ValueError(
                    "Got no classes in the first call, but expected every class there will ever be."
                )
            return
        came = distinct_classes(classes)
        if first:
            self.classes_ = came
        elif came.tolist() != self.classes_.tolist():
            raise ValueError(
                f"Got classes={came.tolist()}, but expected those known so far, {self.classes_.tolist()}: "
                "a model has an action for these only."
            )

    def _train(self, X: Any, people: People, *, decays: bool, callback: Callback = None) -> Self:
        """Fit, with a schedule that `decays` over all epochs, or meet these people once in their order."""
        check_options(self)
        self._check_policies()
        rows, n_steps = as_rows(X), self._total_steps(X.shape[0]) if decays else X.shape[0]
        training, reward, logged = self._training, self._reward(), len(people.actions) > 0
        check_reward(reward, training.policies.b2.shape, logged=logged)
        if logged and not len(people.propensities):
            people = self._own_propensities(rows, people)
        met = np.bincount(people.groups, minlength=len(training.policies.b2))
        horizon, sizes = n_steps if decays else 0, training.rates.counts[:, -1] + met
        terms = pack_terms(
            reward, self.divergence_weight, len(self.classes_), n_steps=horizon, group_sizes=sizes
        )
        if decays:
            warn_of_terms(reward, Setting(self.divergence_weight, len(self.classes_), horizon, sizes))
        order = self.order if decays else "file"
        options = options_of(self, terms, n_steps=n_steps, decays=decays, order=order)

        def checkpoint(step: int) -> bool | None:
            self._publish()
            return callback(step, self) if callback is not None else None

        watched = None if callback is None else checkpoint
        try:
            remedy = remedy_of(self, options.learning_rate)
            training.run(rows, people, terms, options, remedy=remedy, checkpoint=watched)
        except TrainingDivergedError:
            if not decays:
                self._publish()  # what was learned before this call
            elif hasattr(self, "policies_"):
                del self.policies_  # a fit that failed leaves no model
            raise
        self._publish()
        if decays and not logged and training.step == options.end >= SHORT:
            n = min(len(people.labels), LOOKED_AT)
            own = self._all_probabilities(rows, n)[np.arange(n), people.groups[:n]]
            warn_if_collapsed(self, own, people)
        return self

    def _publish(self) -> None:
        self.policies_ = self._training.policies
        self.n_steps_ = self._training.step
        self.history_ = {name: np.array(column) for name, column in self._training.history.items()}

    def _total_steps(self, n_people: int) -> int:
        return people_met(self.epochs, n_people) if self.steps is None else int(self.steps)

    def _log(
        self, X: Any, actions: Any, rewards: Any, propensities: Any, groups: Codes, *, own: bool = False
    ) -> People:
        """Return feedback on actions taken; only a log of this policy's `own` may lack propensities."""
        if propensities is None and not own:
            raise ValueError(
                "Got no propensities, but expected the probability with which each action was taken: the "
                "log is another policy's."
            )
        n_people = X.shape[0]
        one_each("actions", actions, n_people)
        codes = self._known_codes(actions, "action")
        paid = finite("rewards", rewards, n_people)
        taken = np.zeros(0) if propensities is None else chances(propensities, n_people)
        labels = np.full(n_people, -1, dtype=np.int64)
        return People(groups, labels, codes, paid, taken)

    def _own_propensities(self, rows: Rows, people: People) -> People:
        """Return a log that this very policy made, with the probabilities it took its actions with."""
        everyone = np.arange(len(people.actions))
        shown = self._all_probabilities(rows, len(everyone))
        return people._replace(propensities=shown[everyone, people.groups, people.actions])

    # Reading policies out ------------------------------------------------------------------------------

    def check_loaded(self) -> None:
        """Raise if this model, read from a file, is damaged."""
        if hasattr(self, "policies_"):
            self._check_policies()

    def _check_policies(self) -> None:
        """Refuse a model whose arrays do not fit together: none of a stranger's must reach a loop."""
        n_groups = len(getattr(self, "groups_", ("everyone",)))
        self._training.check(self.n_features_in_, len(self.classes_), n_groups)

    def _all_probabilities(self, rows: Rows, n_people: int) -> Floats:
        self._check_policies()
        policies: Network = self._training.policies
        out = np.empty((n_people, *policies.b2.shape))
        kernels.probabilities(*policies, rows, out)
        if not np.isfinite(out).all():
            row = int(np.argmin(np.isfinite(out).all(axis=(1, 2))))
            raise ValueError(
                f"The policies give no finite probability in row {row}: its numbers are too large to compute "
                "with. Scale the columns of X to unit deviation, or leave such rows out."
            )
        return out

    def _by_group(self, X: Any) -> Floats:
        check_is_fitted(self, "policies_")
        X = self._contexts(X, reset=False)
        return self._all_probabilities(as_rows(X), X.shape[0])

    def _sample(self, probabilities: Floats, random_state: Any) -> tuple[Any, Floats]:
        draws = check_random_state(random_state).uniform(size=(len(probabilities), 1))
        codes = (probabilities.cumsum(1) < draws).sum(1).clip(max=probabilities.shape[1] - 1)
        return self.classes_[codes], probabilities[np.arange(len(codes)), codes]


def _no_missing_labels(y: Any) -> None:
    """Raise if labels are missing, of any type: scikit-learn names missing numbers only."""
    if y is not None:
        missing = int(np.sum(pd.isna(np.asarray(y, dtype=object))))
        if missing:
            raise ValueError(
                f"Input y contains NaN: {missing} labels are missing, but expected one per person."
            )


def distinct_classes(classes: Any) -> Any:
    """Return the classes a first partial_fit or update was given, sorted; fewer than two is an error."""
    found = sorted_unique(np.asarray(classes).astype(object))[0]
    if len(found) < 2:
        raise ValueError(f"Got classes={found.tolist()}, but expected at least two different ones.")
    return np.unique(np.asarray(classes))
