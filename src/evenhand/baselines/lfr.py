"""LFR: learning fair representations (Zemel, Wu, Swersky, Pitassi and Dwork 2013)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from evenhand.arrays import Codes, Floats
from evenhand.baselines._base import VARIANTS, Baseline, Callback, dense, two_columns, wants_to_stop
from evenhand.baselines._prototypes import Losses, People, Prototypes, assign, objective
from evenhand.checks import integer, number, one_of
from evenhand.metrics.bootstrap import generator

# L_z has a corner exactly where the groups are equal, and L-BFGS gets stuck there, far from the minimum. The
# corner is therefore rounded, first a lot, then hardly at all; benchmarks/lfr.py measures the effect.
SMOOTHINGS = (0.1, 0.001)


class LFR(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Baseline):  # type: ignore[misc]
    """A classifier on prototypes to which people of all groups are assigned equally often.

    Person x of group s belongs to prototype k with probability M_k = softmax(−d(x, v_k, α_s)). M gives the
    reconstruction x̂ = Σ M_k v_k and the prediction ŷ = Σ M_k w_k. L-BFGS-B minimises
    A_x·L_x + A_y·L_y + A_z·L_z over v, w in [0, 1] and α ≥ 0, with the exact gradient:

    - L_x is the mean over people of ‖x − x̂‖², summed over features;
    - L_y is the mean over people of the cross-entropy of ŷ;
    - L_z = Σ_k |mean of M_k in one group − in the other|; with more groups, the mean over their pairs.

    Parameters
    ----------
    n_prototypes : int
        The number of prototypes.
    reconstruction_weight, classifier_weight, parity_weight : float
        A_x, A_y and A_z.
    variant : {'literature', 'authors'}
        'literature' averages L_x and L_y over people, like Zemel et al. 'authors' sums them, like the code of
        Hu and Rangwala (2020): with n people, A_z then has n times less influence. Its prototypes and α are
        initialised uniformly in [0, 1], and α may become negative.
    distance : {'weighted', 'euclidean'}
        'weighted' is Σ_i α_i (x_i − v_i)², as in Zemel et al. Each group learns its own α, so predictions
        depend on the group. 'euclidean' is the distance of AIF360, not squared. It has no α, so predictions
        do not depend on the group.
    max_iter : int
        The largest number of iterations of L-BFGS-B. An iteration is a step.
    tol : float
        L-BFGS-B stops if no component of the projected gradient is larger.
    checkpoint_every : int
        The number of iterations between two calls of the callback.
    random_state : int, RandomState or None
        Draws the people near whom the prototypes start, and the initial w.

    Attributes
    ----------
    prototypes_ : Prototypes
        w as `label`, v as `place`, and α as `scale`.
    losses_ : Losses
        L_x, L_y and L_z at the end, without their weights; for 'authors', L_x and L_y are sums.
    objective_ : float
        The weighted sum of the losses.

    Notes
    -----
    There can be only two labels, as in the original. AIF360's objectives are the same with 'euclidean' and
    other weights: it also averages over features (A_x / features) and over prototypes (A_z / prototypes). Its
    older class adds the mean errors of the two groups instead of averaging over people.

    L_z has a corner where the groups are equal, and L-BFGS gets stuck there. In training, the corner is
    rounded, in two stages of half of the iterations each. `losses_` uses the exact L_z.

    Examples
    --------
    >>> X, y, s = [[0.0], [1.0], [5.0], [6.0]], ["no", "no", "yes", "yes"], ["f", "m", "f", "m"]
    >>> model = LFR(n_prototypes=2, random_state=0).fit(X, y, sensitive_features=s)
    >>> model.predict([[0.5], [5.5]], sensitive_features=["f", "f"])
    array(['no', 'yes'], dtype='<U3')
    """

    _two_labels_only = True

    def __init__(
        self,
        n_prototypes: int = 10,
        *,
        reconstruction_weight: float = 0.01,
        classifier_weight: float = 1.0,
        parity_weight: float = 1.0,
        variant: str = "literature",
        distance: str = "weighted",
        max_iter: int = 200,
        tol: float = 1e-4,
        checkpoint_every: int = 10,
        random_state: Any = None,
    ) -> None:
        self.n_prototypes = n_prototypes
        self.reconstruction_weight = reconstruction_weight
        self.classifier_weight = classifier_weight
        self.parity_weight = parity_weight
        self.variant = variant
        self.distance = distance
        self.max_iter = max_iter
        self.tol = tol
        self.checkpoint_every = checkpoint_every
        self.random_state = random_state

    @property
    def _uses_group(self) -> bool:
        return self.distance == "weighted"

    @property
    def _n_features_out(self) -> int:
        return len(self.prototypes_.label)

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, callback: Callback = None) -> Self:
        """Minimise the objective; see `Baseline.fit`."""
        integer("n_prototypes", self.n_prototypes)
        weights = Losses(
            number("reconstruction_weight", self.reconstruction_weight, low=0),
            number("classifier_weight", self.classifier_weight, low=0),
            number("parity_weight", self.parity_weight, low=0),
        )
        sums = one_of("variant", self.variant, VARIANTS) == "authors"
        one_of("distance", self.distance, ("weighted", "euclidean"))
        max_iter, tol = integer("max_iter", self.max_iter), number("tol", self.tol, low=0)
        every = integer("checkpoint_every", self.checkpoint_every)
        X, labels, codes = self._admit(X, y, sensitive_features)
        people = People.gather(X, labels, codes)
        many = len(labels) if sums else 1
        weights = Losses(many * weights.reconstruction, many * weights.classifier, weights.parity)
        weighted = self._uses_group
        self.prototypes_, self.n_steps_ = self._start(X, generator(self.random_state)), 0

        def on_step(found: Prototypes) -> bool:
            self.prototypes_ = found
            self.n_steps_ += 1
            return self.n_steps_ % every == 0 and wants_to_stop(callback, self.n_steps_, self)

        for smoothing, iterations in zip(SMOOTHINGS, (max_iter // 2, max_iter - max_iter // 2), strict=True):
            evaluate = partial(
                objective, people=people, weights=weights, weighted=weighted, smoothing=smoothing
            )
            if _descend(
                evaluate, self.prototypes_, iterations, tol, on_step, least_scale=None if sums else 0.0
            ):
                break
        self.objective_, _, means = objective(self.prototypes_, people, weights, weighted=weighted)
        self.losses_ = Losses(many * means.reconstruction, many * means.classifier, means.parity)
        if self.n_steps_ % every != 0:
            wants_to_stop(callback, self.n_steps_, self)
        self._warn_if_collapsed(self._probabilities(X, codes), "parity_weight")
        return self

    def transform(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """Return the representation M, (people, prototypes): the probability of each prototype."""
        X = self._rows(X)
        return self._assignments(X, self._codes(sensitive_features, X.shape[0]))

    def fit_transform(self, X: Any, y: Any, *, sensitive_features: Any = None) -> Floats:
        """Fit, and return the representation of the same people."""
        fitted = self.fit(X, y, sensitive_features=sensitive_features)
        return fitted.transform(X, sensitive_features=sensitive_features)

    def reconstruct(self, X: Any, *, sensitive_features: Any = None) -> Floats:
        """Return x̂, each person's features reconstructed from the prototypes."""
        representation = self.transform(X, sensitive_features=sensitive_features)
        return np.asarray(np.asarray(representation) @ self.prototypes_.place)

    def _start(self, X: Any, rng: np.random.Generator) -> Prototypes:
        n_people, n_features = X.shape
        if self.variant == "authors":
            shapes = (self.n_prototypes,), (self.n_prototypes, n_features), (len(self.groups_), n_features)
            return Prototypes(*(rng.uniform(0, 1, shape) for shape in shapes))
        drawn = rng.choice(n_people, self.n_prototypes, replace=n_people < self.n_prototypes)
        centre = np.asarray(X.mean(axis=0)).ravel()
        # near the centre, so that nobody belongs to one prototype only, and different even if drawn twice
        place = centre + (dense(X[drawn]) - centre) / 4 + 0.01 * rng.standard_normal((len(drawn), n_features))
        scale = np.full((len(self.groups_), n_features), 10 / n_features)
        return Prototypes(rng.uniform(0, 1, self.n_prototypes), place, scale)

    def _probabilities(self, X: Any, codes: Codes) -> Floats:
        guesses = self._assignments(X, codes) @ self.prototypes_.label
        return two_columns(np.clip(guesses, 0, 1))

    def _assignments(self, X: Any, codes: Codes) -> Floats:
        _, place, scale = self.prototypes_
        if not self._uses_group:
            return assign(X, place, None)
        representation = np.empty((X.shape[0], len(place)))
        for code in np.unique(codes):
            representation[codes == code] = assign(X[codes == code], place, scale[code])
        return representation


def _descend(
    evaluate: Callable[[Prototypes], tuple[float, Prototypes, Losses]],
    start: Prototypes,
    max_iter: int,
    tol: float,
    on_step: Callable[[Prototypes], bool],
    least_scale: float | None = 0.0,
) -> bool:
    """Run L-BFGS-B, and pass every iterate to `on_step`; return whether it stopped the training."""
    stopped = False

    def flat_objective(flat: Floats) -> tuple[float, Floats]:
        value, gradient, _ = evaluate(_unflatten(flat, start))
        return value, _flatten(gradient)

    def after_step(intermediate_result: OptimizeResult) -> None:
        nonlocal stopped
        stopped = on_step(_unflatten(intermediate_result.x, start))
        if stopped:
            raise StopIteration

    label, place, scale = (part.size for part in start)
    bounds = [(0.0, 1.0)] * label + [(None, None)] * place + [(least_scale, None)] * scale
    limits: dict[str, Any] = {"bounds": bounds, "options": {"gtol": tol, "maxiter": max_iter}}
    minimize(flat_objective, _flatten(start), method="L-BFGS-B", jac=True, callback=after_step, **limits)
    return stopped


def _flatten(parameters: Prototypes) -> Floats:
    return np.concatenate([part.ravel() for part in parameters])


def _unflatten(flat: Floats, like: Prototypes) -> Prototypes:
    label, place, scale = np.split(flat.copy(), np.cumsum([part.size for part in like])[:-1])
    return Prototypes(label, place.reshape(like.place.shape), scale.reshape(like.scale.shape))
