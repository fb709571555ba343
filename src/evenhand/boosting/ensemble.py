"""CooperativeEnsemble: networks and trees, trained with the same reward and combined in every group."""

from __future__ import annotations

import copy
from typing import Any, Self

from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from evenhand import checks
from evenhand.arrays import Floats
from evenhand.bandits.cooperative import CooperativeBandits
from evenhand.bandits.deciding import GroupPolicies, Labelled, Log
from evenhand.bandits.doors import Callback, all_finite
from evenhand.boosting.cooperative import CooperativeBoosting
from evenhand.boosting.training import Beside, log_of, mixed
from evenhand.frames import as_pandas
from evenhand.groups import groups_by_name
from evenhand.rewards import Reward, Term


class CooperativeEnsemble(GroupPolicies):
    """CooperativeBandits and CooperativeBoosting combined: each policy is the mean of their logits.

    Networks are better on some tables, and trees on others. Their mean is best or second best on nearly all.
    Both have the same reward. Rate terms such as `Parity` bound the decisions of the combined policies.

    Parameters
    ----------
    divergence_weight : float
        The paper's λ: the weight of all reward terms that have no weight of their own.
    reward : Reward, Term or str, optional
        Reward terms, or their names joined by '+'; by default `Likelihood() + LogRatio()`.
    share : float
        The weight of the trees in the mean, from 0 to 1.
    bandits : CooperativeBandits, optional
        The other parameters of the networks.
    boosting : CooperativeBoosting, optional
        The other parameters of the trees.
    class_weight : 'balanced' or dict, optional
        As for `CooperativeBandits`.
    random_state : int, RandomState instance or None
        The same seed gives the same policies.

    Attributes
    ----------
    classes_, groups_ : ndarray
        The labels, and the groups: the values of `sensitive_features`, or their combinations.
    bandits_ : CooperativeBandits
        The fitted networks.
    boosting_ : CooperativeBoosting
        The fitted trees.
    history_ : dict of ndarray
        The history of the trees.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> s = rng.choice(["f", "m"], 2000)
    >>> X = rng.normal(size=(2000, 3))
    >>> y = np.where(X[:, 0] + 0.5 * (s == "m") > 0, "yes", "no")
    >>> model = CooperativeEnsemble(random_state=0).fit(X, y, sensitive_features=s)
    >>> model.score(X, y, sensitive_features=s) > 0.85
    True
    """

    def __init__(
        self,
        divergence_weight: float = 20.0,
        *,
        reward: Reward | Term | str | None = None,
        share: float = 0.5,
        bandits: CooperativeBandits | None = None,
        boosting: CooperativeBoosting | None = None,
        class_weight: Any = None,
        random_state: Any = None,
    ) -> None:
        self.divergence_weight = divergence_weight
        self.reward = reward
        self.share = share
        self.bandits = bandits
        self.boosting = boosting
        self.class_weight = class_weight
        self.random_state = random_state

    def _fit(self, X: Any, given: Labelled, sensitive_features: Any, callback: Callback) -> Self:
        return self._learn("_fit", X, given, sensitive_features, callback)

    def _fit_logged(self, X: Any, log: Log, sensitive_features: Any, callback: Callback) -> Self:
        return self._learn("_fit_logged", X, log, sensitive_features, callback)

    def _learn(self, how: str, X: Any, given: Any, sensitive_features: Any, callback: Callback) -> Self:
        """Learn from labels or from a log; `how` is the name of the method, '_fit' or '_fit_logged'."""
        checks.number("share", self.share, low=0, high=1)
        self.__dict__.pop("boosting_", None)
        X = as_pandas(X)
        sensitive_features, self.sensitive_columns_ = groups_by_name(sensitive_features, X)
        X = self._features(X)
        bandits = CooperativeBandits() if self.bandits is None else clone(self.bandits)
        getattr(bandits.set_params(**self._shared()), how)(X, given, sensitive_features, None)
        self._take(bandits)
        return self._learn_beside(how, X, given, sensitive_features, callback)

    def fit_trees(
        self, bandits: CooperativeBandits, X: Any, y: Any, sample_weight: Any = None, *,
        sensitive_features: Any = None, callback: Callback = None,
    ) -> Self:  # fmt: skip
        """Use networks that are already fitted, for example on more people, and fit the trees beside them.

        Parameters
        ----------
        bandits : CooperativeBandits
            Fitted networks with the same features, labels and groups.
        X, y, sample_weight, sensitive_features, callback
            As for `fit`.
        """
        self.sensitive_columns_ = []
        self._take(bandits)
        given = Labelled(y, sample_weight)
        return self._learn_beside("_fit", self._features(X), given, sensitive_features, callback)

    def _shared(self) -> dict[str, Any]:
        names = ("divergence_weight", "reward", "class_weight", "random_state")
        return {name: getattr(self, name) for name in names}

    def _learn_beside(
        self, how: str, X: Any, given: Any, sensitive_features: Any, callback: Callback
    ) -> Self:
        """Fit the trees beside the fitted networks."""
        boosting = CooperativeBoosting() if self.boosting is None else clone(self.boosting)
        share = checks.number("share", self.share, low=0, high=1)
        beside = Beside(log_of(self.bandits_.probabilities_by_group(X)), share)

        def both(step: int, trees: CooperativeBoosting) -> bool | None:
            self.boosting_, self.history_ = trees, trees.history_
            return None if callback is None else callback(step, self)

        watched = None if callback is None else both
        getattr(boosting.set_params(**self._shared()), how)(X, given, sensitive_features, watched, beside)
        self.boosting_, self.history_ = boosting, boosting.history_
        return self

    def _take(self, bandits: CooperativeBandits) -> None:
        self.bandits_ = bandits
        for name in ("classes_", "groups_", "sensitive_names_", "n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)
            if hasattr(bandits, name):
                setattr(self, name, getattr(bandits, name))

    def check_loaded(self) -> None:
        """Raise if this model, read from a file, is damaged."""
        if hasattr(self, "boosting_"):
            for part in (self.bandits_, self.boosting_):
                part.check_loaded()
                if (*part.classes_, *part.groups_) != (*self.classes_, *self.groups_):
                    raise ValueError("The model is damaged: its parts know different labels or groups.")

    def _by_group(self, X: Any) -> Floats:
        check_is_fitted(self, "boosting_")
        X = self._features(X)
        beside = Beside(log_of(self.bandits_.probabilities_by_group(X)), self.share)
        return all_finite(mixed(self.boosting_.probabilities_by_group(X), beside))

    def compress(self, group: Any) -> CooperativeEnsemble:
        """Return a model with one group's policy for everybody. It needs no sensitive features."""
        check_is_fitted(self, "boosting_")
        return self._with(self.bandits_.compressed(group), self.boosting_.compress(group))

    def reversed(self) -> CooperativeEnsemble:
        """Return a model in which each group uses the next group's policy. Two groups swap policies."""
        check_is_fitted(self, "boosting_")
        return self._with(self.bandits_.reversed(), self.boosting_.reversed())

    def _with(self, bandits: CooperativeBandits, boosting: CooperativeBoosting) -> CooperativeEnsemble:
        model = copy.copy(self)
        model._take(bandits)
        model.boosting_ = boosting
        return model
