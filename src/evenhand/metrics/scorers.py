"""The metrics as scikit-learn scorers: greater is better, so differences are negated.

With scikit-learn's metadata routing enabled, `sensitive_features` is passed to the scorer, and to the model's
`predict` if that takes it: `cross_validate(..., scoring=SCORERS, params={"sensitive_features": s})`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from sklearn.utils.metadata_routing import MetadataRequest

from evenhand.checks import one_of
from evenhand.metrics import group, scores
from evenhand.metrics.asking import answer, respond
from evenhand.metrics.individual import consistency, flip_rate, metric_free_gap

# Takes a model, X, y, the groups, and the metric's own arguments.
Score = Callable[[Any, Any, Any, Any, dict[str, Any]], float]


class Scorer:
    """A metric of a fitted model: `scorer(model, X, y, sensitive_features=...)`.

    Parameters
    ----------
    name : str
        One of `SCORERS`.
    arguments : dict
        Further arguments of the metric.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> model = DummyClassifier(strategy="constant", constant=1).fit([[1], [2]], [0, 1])
    >>> scorer("accuracy")(model, [[1], [2], [3], [4]], [1, 1, 1, 0], sensitive_features=list("ffmm"))
    0.75
    """

    def __init__(self, name: str, arguments: dict[str, Any]):
        self.name = one_of("name", name, _SCORES)
        self._arguments = arguments
        self._metadata_request = MetadataRequest(owner=repr(self))
        self.set_score_request(sensitive_features=True)

    def __call__(self, estimator: Any, X: Any, y: Any, sensitive_features: Any = None) -> float:
        """Return the metric of a fitted model on these people, negated if lower is better."""
        sign, score = _SCORES[self.name]
        return sign * score(estimator, X, y, sensitive_features, self._arguments)

    def set_score_request(self, *, sensitive_features: bool | str | None = True) -> Self:
        """Set whether, or under which name, `sensitive_features` is routed to this scorer."""
        self._metadata_request.score.add_request(param="sensitive_features", alias=sensitive_features)
        return self

    def get_metadata_routing(self) -> MetadataRequest:
        """Return this scorer's request for scikit-learn's metadata routing."""
        return self._metadata_request

    def __repr__(self) -> str:
        given = "".join(f", {name}={value!r}" for name, value in self._arguments.items())
        return f"scorer({self.name!r}{given})"


def scorer(name: str, **arguments: Any) -> Scorer:
    """Return a metric as a scorer.

    Parameters
    ----------
    name : str
        One of `SCORERS`.
    **arguments
        Further arguments of the metric: `pos_label`, `divergence`, `k`, ...

    Examples
    --------
    >>> scorer("metric_free_gap", divergence="hellinger")
    scorer('metric_free_gap', divergence='hellinger')
    """
    return Scorer(name, arguments)


def _of_decisions(metric: Callable[..., float]) -> Score:
    def score(model: Any, X: Any, y: Any, groups: Any, arguments: dict[str, Any]) -> float:
        decided = answer(model, X, sensitive_features=groups).decisions
        return metric(y, decided, sensitive_features=groups, **arguments)

    return score


def _of_scores(metric: Callable[..., float]) -> Score:
    def score(model: Any, X: Any, y: Any, groups: Any, arguments: dict[str, Any]) -> float:
        said = answer(model, X, sensitive_features=groups)
        if said.scores is None:
            raise ValueError(f"{metric.__name__} needs probabilities, but the model gives none.")
        return metric(y, said.scores, labels=said.labels, **arguments)

    return score


def _gap(model: Any, X: Any, y: Any, groups: Any, arguments: dict[str, Any]) -> float:
    said = respond(model, X, sensitive_features=groups)
    if said.probabilities_by_group is None:
        raise ValueError(said.note or "metric_free_gap needs probabilities, but the model gives none.")
    return metric_free_gap(said.probabilities_by_group, said.own, **arguments).mean


def _flips(model: Any, X: Any, y: Any, groups: Any, arguments: dict[str, Any]) -> float:
    said = respond(model, X, sensitive_features=groups)
    if said.decisions_by_group is None:
        raise ValueError(f"flip_rate can't be measured: {said.note}")
    return flip_rate(said.decisions_by_group, said.own)


def _consistency(model: Any, X: Any, y: Any, groups: Any, arguments: dict[str, Any]) -> float:
    return consistency(answer(model, X, sensitive_features=groups).decisions, X=X, **arguments)


_SCORES: dict[str, tuple[int, Score]] = {
    "accuracy": (1, _of_decisions(group.accuracy)),
    "balanced_accuracy": (1, _of_decisions(group.balanced_accuracy)),
    "auc": (1, _of_scores(scores.auc)),
    "calibration_error": (-1, _of_scores(scores.calibration_error)),
    "discrimination": (-1, _of_decisions(group.discrimination)),
    "impact_ratio": (1, _of_decisions(group.impact_ratio)),
    "delta": (1, _of_decisions(group.delta)),
    "equal_opportunity_difference": (-1, _of_decisions(group.equal_opportunity_difference)),
    "equalized_odds_difference": (-1, _of_decisions(group.equalized_odds_difference)),
    "consistency": (1, _consistency),
    "metric_free_gap": (-1, _gap),
    "flip_rate": (-1, _flips),
}

SCORERS: dict[str, Scorer] = {name: scorer(name) for name in _SCORES}
