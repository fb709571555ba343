"""Rawlsian: a worse candidate is never preferred (Joseph, Kearns, Morgenstern and Roth 2016)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from evenhand.arrays import Codes, Floats
from evenhand.baselines._base import VARIANTS, Baseline, Callback, dense, two_columns, wants_to_stop
from evenhand.baselines._chaining import choose_from_chains, play_rounds
from evenhand.checks import integer, number, one_of
from evenhand.metrics.bootstrap import generator


class Rawlsian(Baseline):
    """Interval chaining over one ridge regression per group.

    Each round presents one candidate per group, who gets an interval: the ridge estimate of their own group's
    arm, plus and minus w = √(xᵀV⁻¹x) · (√(d·log((1 + t/λ)/δ)) + √λ) in round t. V = λI + Σxxᵀ sums over the
    people of the group chosen so far. The top chain consists of the interval with the highest upper end, and
    of those that overlap with it, directly or through others. One of its candidates is chosen at random. The
    reward is their label (1 if positive), and only their group's arm learns.

    The people of each group are presented in a random order, which is drawn again after the last one. So
    every round has a candidate from every group, and people from smaller groups are presented more often.

    Parameters
    ----------
    regularization : float
        λ, the ridge penalty.
    delta : float
        δ in (0, 1]: the share of intervals that may miss. A smaller δ makes them wider.
    variant : {'literature', 'authors'}
        'literature' is the algorithm of Joseph et al., as above. 'authors' follows the code of Hu and
        Rangwala (2020), which ignores whom it chooses and learns from every candidate's label. Each arm is
        then a ridge regression on the people of its group, in the order of the rows, repeated as often as
        needed. δ only affects `intervals`.
    n_rounds : int, optional
        The number of rounds; by default the number of people, or twice that (two epochs) for 'authors'. A
        round is a step.
    fit_intercept : bool
        Whether to add a constant feature, which is penalised like the others.
    checkpoint_every : int
        The number of rounds between two calls of the callback.
    random_state : int, RandomState or None
        Draws who is presented and who is chosen.

    Attributes
    ----------
    coef_ : array of shape (groups, features)
        The arms' ridge estimates; with `fit_intercept`, the constant comes last.
    selected_ : array of shape (n_steps_,)
        The row of the person chosen in each round; empty for 'authors'.

    Notes
    -----
    There can be only two labels: qualified and unqualified. `predict_proba` returns the estimate of the
    person's own group's arm, clipped to [0, 1]. The decision is positive above 0.5.

    Examples
    --------
    >>> X, y, s = [[0.0], [1.0], [2.0], [3.0]] * 5, ["no", "no", "yes", "yes"] * 5, ["f", "f", "m", "m"] * 5
    >>> model = Rawlsian(random_state=0).fit(X, y, sensitive_features=s)
    >>> model.predict([[2.5]], sensitive_features=["m"])
    array(['yes'], dtype='<U3')
    """

    _two_labels_only = True

    def __init__(
        self,
        regularization: float = 1.0,
        *,
        delta: float = 0.5,
        variant: str = "literature",
        n_rounds: int | None = None,
        fit_intercept: bool = True,
        checkpoint_every: int = 1000,
        random_state: Any = None,
    ) -> None:
        self.regularization = regularization
        self.delta = delta
        self.variant = variant
        self.n_rounds = n_rounds
        self.fit_intercept = fit_intercept
        self.checkpoint_every = checkpoint_every
        self.random_state = random_state

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, callback: Callback = None) -> Self:
        """Play the rounds; see `Baseline.fit`."""
        penalty = number("regularization", self.regularization, low=0, open_low=True)
        delta = number("delta", self.delta, low=0, high=1, open_low=True)
        every = integer("checkpoint_every", self.checkpoint_every)
        chooses = one_of("variant", self.variant, VARIANTS) == "literature"
        X, labels, codes = self._admit(X, y, sensitive_features)
        rows = self._contexts(X)
        usual = len(rows) if chooses else 2 * len(rows)
        n_rounds = usual if self.n_rounds is None else integer("n_rounds", self.n_rounds)
        rng = generator(self.random_state)
        presented = _line_up(codes, len(self.groups_), n_rounds, rng if chooses else None)
        draws = rng.random(n_rounds)

        n_groups, n_features = len(self.groups_), rows.shape[1]
        self.coef_ = np.zeros((n_groups, n_features))
        self.precision_inverse_ = np.repeat(np.eye(n_features)[None] / penalty, n_groups, axis=0)
        selected = np.empty(n_rounds if chooses else 0, dtype=np.int64)
        rewards = labels.astype(np.float64)
        sums = _Sums(n_groups, n_features, penalty)
        for start in range(0, n_rounds, every):
            stop = min(start + every, n_rounds)
            if chooses:
                state = (self.coef_, self.precision_inverse_, selected)
                play_rounds(rows, rewards, presented, draws, start, stop, penalty, delta, *state)
            else:
                self.coef_, self.precision_inverse_ = sums.add(rows, rewards, presented[start:stop])
            self.n_steps_ = stop
            self.selected_ = selected[:stop]
            if wants_to_stop(callback, stop, self):
                break
        return self

    def intervals(self, X: Any, *, sensitive_features: Any = None) -> tuple[Floats, Floats]:
        """Return the lower and upper end of each person's interval, as in the next round."""
        X = self._rows(X)
        codes = self._codes(sensitive_features, X.shape[0])
        rows = self._contexts(X)
        spread = np.empty(len(rows))
        for code, inverse in enumerate(self.precision_inverse_):
            own = rows[codes == code]
            spread[codes == code] = np.sqrt(np.einsum("ij,jk,ik->i", own, inverse, own, optimize=True))
        penalty, step = float(self.regularization), self.n_steps_ + 1
        confidence = np.sqrt(rows.shape[1] * np.log((1 + step / penalty) / self.delta)) + np.sqrt(penalty)
        estimate, width = self._estimates(X, codes), spread * confidence
        return estimate - width, estimate + width

    def select(self, pool: Any, k: int, *, sensitive_features: Any = None, random_state: Any = None) -> Codes:
        """Choose k people of a pool, each drawn from the top chain of those left; return their rows.

        Parameters
        ----------
        pool : array of shape (people, features)
            The candidates.
        k : int
            The number of people to choose.
        sensitive_features : array, optional
            The candidates' groups.
        random_state : int, RandomState or None
            Draws the people.

        Examples
        --------
        >>> X, y, s = [[0.0], [1.0]] * 500, [0, 1] * 500, ["f", "m"] * 500
        >>> model = Rawlsian(fit_intercept=False, random_state=0).fit(X, y, sensitive_features=s)
        >>> model.select([[-9.0], [1.0], [0.9]], 1, sensitive_features=["m", "m", "m"], random_state=0)
        array([1])
        """
        lower, upper = self.intervals(pool, sensitive_features=sensitive_features)
        if integer("k", k) > len(lower):
            raise ValueError(f"Got k={k}, but expected at most the {len(lower)} people of the pool.")
        return np.asarray(choose_from_chains(lower, upper, generator(random_state).random(k)))

    def _probabilities(self, X: Any, codes: Codes) -> Floats:
        return two_columns(np.clip(self._estimates(X, codes), 0, 1))

    def _estimates(self, X: Any, codes: Codes) -> Floats:
        return np.asarray((self._contexts(X) @ self.coef_.T)[np.arange(X.shape[0]), codes])

    def _contexts(self, X: Any) -> Floats:
        rows = dense(X)
        return np.ascontiguousarray(np.c_[rows, np.ones(len(rows))] if self.fit_intercept else rows)


class _Sums:
    """The sums of each arm's ridge regression: V = λI + Σxxᵀ and Σxy."""

    def __init__(self, n_groups: int, n_features: int, penalty: float) -> None:
        self.precision = np.repeat(penalty * np.eye(n_features)[None], n_groups, axis=0)
        self.products = np.zeros((n_groups, n_features))

    def add(self, rows: Floats, rewards: Floats, presented: Codes) -> tuple[Floats, Floats]:
        """Add the people of some rounds; return the arms' estimates and V⁻¹."""
        for arm, people in enumerate(presented.T):
            self.precision[arm] += rows[people].T @ rows[people]
            self.products[arm] += rewards[people] @ rows[people]
        inverse: Floats = np.asarray(np.linalg.inv(self.precision), dtype=np.float64)
        return np.einsum("gij,gj->gi", inverse, self.products), inverse


def _line_up(codes: Codes, n_groups: int, n_rounds: int, rng: np.random.Generator | None) -> Codes:
    """Return who is presented in each round, (rounds, groups): each group's people in random order.

    Without a generator, they are in the order of their rows.
    """
    presented = np.empty((n_rounds, n_groups), dtype=np.int64)
    for code in range(n_groups):
        people = np.flatnonzero(codes == code)
        turns = -(-n_rounds // len(people))
        orders = [people if rng is None else rng.permutation(people) for _ in range(turns)]
        presented[:, code] = np.concatenate(orders)[:n_rounds]
    return presented
