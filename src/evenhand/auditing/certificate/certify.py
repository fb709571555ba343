"""The search for the possible person whom two groups' policies treat most differently, and its bound."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse
from scipy.special import logit

from evenhand.arrays import Floats
from evenhand.auditing.certificate.certificate import Certificate, Worst
from evenhand.auditing.certificate.domain import Domain, Encode, possible_people
from evenhand.auditing.certificate.mixture import Mixture, can_be_bounded, mixture
from evenhand.auditing.certificate.tree import Tree, any_people, climb
from evenhand.checks import number
from evenhand.frames import as_pandas
from evenhand.metrics.answers import decided_at
from evenhand.metrics.bootstrap import generator
from evenhand.metrics.counts import positive_label
from evenhand.metrics.gower import as_frame
from evenhand.tables.columns import CATEGORY, NUMBER
from evenhand.tables.matching import contexts_of, known_categories
from evenhand.tables.preprocessing import encode, told_missing
from evenhand.wording import listed

_STARTS = 100  # people, real ones and drawn ones each, from which worse ones are looked for
_ROUNDING = 1e-6  # policies compute in single precision, bounds in double


def certify(
    model: Any,
    X: Any = None,
    *,
    ranges: Mapping[str, Any] | None = None,
    groups: Sequence[Any] | None = None,
    tolerance: float = 0.001,
    time_limit: float = 60.0,
    random_state: Any = 0,
) -> Certificate:
    """Look for the possible person whom two groups' policies treat most differently, and bound it.

    Possible people have any combination of the columns' values, whether or not anybody has it. They are split
    into boxes; each box has a bound on how far apart the policies' probabilities are within it, and is
    dropped when nobody in it can be worse than the worst person found.

    Parameters
    ----------
    model : Deployed, CooperativeBandits, CooperativeBoosting, CooperativeEnsemble, or `tabular` around one
        Fitted, with two labels and a policy for each of two or more groups.
    X : table of people, optional
        Its lowest and highest numbers are the ranges. A column of whole numbers stays one. The search starts
        from some of these people. A model without a preprocessor needs X.
    ranges : dict, optional
        Columns with other ranges, `{"age": (18, 70)}`, or fewer categories, `{"job": ["cook", "clerk"]}`.
        Categories are otherwise those that training saw.
    groups : list, optional
        The groups to compare, each with every other; all by default.
    tolerance : float
        A bound that is this close to what was found counts as certified.
    time_limit : float
        Seconds; when they are over, the bound reached so far is given.
    random_state : int, RandomState, Generator or None
        Where the search starts.

    Returns
    -------
    Certificate
        The worst person found, with what the model says about them, and the proven bound.

    Raises
    ------
    TypeError
        If the model is of another kind.
    ValueError
        If it has more than two labels or fewer than two policies, or a range is missing.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame({"age": rng.integers(18, 70, 500), "job": rng.choice(["cook", "clerk"], 500)})
    >>> sex = rng.choice(["f", "m"], 500)
    >>> hired = np.where(people["age"] + 20 * (sex == "m") > 55, "yes", "no")
    >>> from evenhand import CooperativeBandits, tabular
    >>> model = tabular(CooperativeBandits(5.0, hidden=5, random_state=0))
    >>> found = certify(model.fit(people, hired, sensitive_features=sex), people)
    >>> found.certified, found.worst.gap <= found.worst.bound <= found.worst.gap + 0.0011
    (True, True)
    """
    began = time.monotonic()
    number("tolerance", tolerance, low=0, open_low=True)
    number("time_limit", time_limit, low=0)
    held = _held(model, X)
    names = _groups(held.policies, groups)
    given = possible_people(held.contexts, held.kinds, held.categories, held.gaps, ranges or {})
    mixed = mixture(held.policies, given, held.encode)
    domain = mixed.domain
    trees = _trees(mixed, held, names, generator(random_state), began + time_limit / 4)
    started = time.monotonic()  # loops are compiled by now
    # Half of the time for everybody, the other half for those decided differently, and what is left.
    for which, share in ((0, 0.5), (1, 1.0), (0, 1.0)):
        _grow(trees[which], tolerance, started + share * time_limit, _bound(trees[0]))
        for worse, flip in zip(*trees, strict=True):
            if flip.person is not None:
                worse.offer(flip.found, *flip.person)
    everybody = _bound(trees[0])  # holds for those decided differently, too
    worst, decided = (
        _finding(kind, min(_bound(kind), everybody), domain, held, model, tolerance) for kind in trees
    )
    boxes = sum(tree.split for kind in trees for tree in kind)
    return Certificate(
        worst, decided, held.policies.classes_.tolist()[held.positive], list(names), given.in_words(),
        tolerance, time.monotonic() - began, boxes,
    )  # fmt: skip


def worst_possible(
    model: Any, X: Any, asked: bool | Mapping[str, Any], random_state: Any
) -> Certificate | None:
    """Return the certificate that an audit was asked for: with options of `certify`, or with none."""
    if asked is False:
        return None
    options = {} if asked is True else dict(asked)
    return certify(model, X, **{"random_state": random_state, **options})


class _Held(NamedTuple):
    """What a certificate needs of a model."""

    policies: Any  # a CooperativeBandits, which is not imported for those who only audit
    encode: Encode
    kinds: dict[str, str]
    categories: dict[str, list[Any]]
    gaps: set[str]
    contexts: pd.DataFrame | None
    threshold: float | None
    positive: int


def _held(model: Any, X: Any) -> _Held:
    policies = getattr(model, "model", getattr(model, "estimator_", model))
    if not can_be_bounded(policies):
        raise TypeError(
            f"Got {type(policies).__name__}, but expected a fitted CooperativeBandits, CooperativeBoosting "
            "or CooperativeEnsemble, or a Deployed or tabular model around one: only their policies can be "
            "bounded."
        )
    labels = policies.classes_.tolist()
    if len(labels) != 2:
        raise ValueError(f"Got a model of {len(labels)} labels, but a certificate compares two.")
    positive = positive_label(labels, getattr(model, "pos_label", None))
    threshold, frame = getattr(model, "threshold", None), None if X is None else as_pandas(X)
    about = threshold, 1 if positive is None else positive
    prepared = getattr(model, "preprocessor", getattr(model, "preprocessor_", None))
    if prepared is None:
        if frame is None:
            raise ValueError(
                f"Got no X, but a bare {type(policies).__name__} needs it: the columns' ranges are X's."
            )
        return _bare(policies, as_frame(_dense(frame) if sparse.issparse(frame) else frame), *about)
    kinds = getattr(model, "columns", None) or model.columns_
    contexts = None if frame is None else contexts_of(frame, kinds, prepared)
    categories = {
        name: list(dict.fromkeys(known_categories(prepared, name).values()))
        for name, kind in kinds.items()
        if kind == CATEGORY
    }
    return _Held(
        policies, lambda rows: _dense(encode(prepared, rows)), kinds, categories, told_missing(prepared),
        contexts, *about,
    )  # fmt: skip


def _bare(policies: Any, table: pd.DataFrame, threshold: float | None, positive: int) -> _Held:
    """Return what is needed of a model that takes people's columns as they are."""
    table = table.rename(columns=str)
    words = getattr(policies, "categories_", None)
    if words is None:  # networks take numbers, and no gaps
        kinds = dict.fromkeys(table.columns, NUMBER)
        return _Held(
            policies, lambda rows: rows.to_numpy(np.float64), kinds, {}, set(), table, threshold, positive
        )
    from evenhand.boosting.columns import as_numbers

    table = table.assign(**{name: table[name].map(str) for name in words})
    kinds = {name: CATEGORY if name in words else NUMBER for name in table.columns}
    return _Held(
        policies, lambda rows: as_numbers(rows, words).to_numpy(np.float64), kinds,
        {name: known.tolist() for name, known in words.items()},
        {name for name, kind in kinds.items() if kind == NUMBER and table[name].isna().any()},
        table, threshold, positive,
    )  # fmt: skip


def _dense(features: Any) -> Floats:
    dense = features if isinstance(features, np.ndarray) else features.toarray()
    return np.asarray(dense, dtype=np.float64)


def _groups(policies: Any, groups: Sequence[Any] | None) -> list[Any]:
    known = list(policies.groups_)
    names = known if groups is None else list(groups)
    for name in names:
        if name not in known:
            raise ValueError(f"Got the group {name!r}, but the model knows {listed(known, most=10)}.")
    if len(set(names)) < 2:
        raise ValueError(
            f"Got {len(set(names))} group, but a certificate compares the policies of at least 2."
        )
    return names


def _trees(
    mixed: Mixture, held: _Held, names: list[Any], rng: np.random.Generator, until: float
) -> tuple[list[Tree], list[Tree]]:
    """Return a tree for each pair of groups, and one for those decided differently, with people to start."""
    domain = mixed.domain
    ends = [[getattr(option, end) for option in domain.options] for end in ("low", "high", "whole")]
    low, high, whole = np.array(ends[0]), np.array(ends[1]), np.array(ends[2])
    if not mixed.networks.b1.size:
        high = low  # any number of a piece of a range does for trees
    every = list(held.policies.groups_)
    boundary = 0.0 if held.threshold is None else float(logit(held.threshold))
    boundary *= 1 if held.positive else -1  # logits are those of the second label
    drawn = any_people(domain.first, low, high, whole, _STARTS, rng)
    starts = [drawn]
    if held.contexts is not None:
        starts.append(domain.people(held.contexts.sample(min(_STARTS, len(held.contexts)), random_state=rng)))
    trees: tuple[list[Tree], list[Tree]] = [], []
    for one, other in permutations(names, 2):
        at = every.index(one), every.index(other)
        two = mixed.two(*at)
        if not trees[0]:
            mixed.check(two, at[0], drawn)
        for kind, line in zip(trees, (None, boundary), strict=True):
            tree = Tree(two, domain.first, low, high, whole, line, (one, other))
            for chosen, numbers in starts:
                climb(tree, chosen.copy(), numbers.copy(), until=until)
            kind.append(tree)
    return trees


def _bound(trees: list[Tree]) -> float:
    return max(0.0, *(max(tree.bound, tree.dropped) for tree in trees))


def _grow(trees: list[Tree], tolerance: float, until: float, known: float) -> None:
    """Split where the bound is largest until all, or one `known`, are close enough, or the time is over."""
    while time.monotonic() < until:
        top = max(trees, key=lambda tree: tree.bound)
        enough = max(0.0, *(tree.found for tree in trees)) + tolerance
        if min(top.bound, known) <= enough:
            return
        top.grow(enough)
        top.look_again(until)


def _finding(
    trees: list[Tree], bound: float, domain: Domain, held: _Held, model: Any, tolerance: float
) -> Worst:
    """Return the worst person of all trees, with what the model itself says about them."""
    best = max(trees, key=lambda tree: tree.found)
    if best.person is None:
        nobody = bound <= 0
        return Worst(None, {}, {}, float("nan"), 0.0 if nobody else min(1.0, bound + _ROUNDING), nobody)
    chosen, numbers = best.person
    row = domain.rows(chosen[None], numbers[None])
    asked: Any = row.to_numpy() if model is held.policies and not _named(model) else row
    said = model.probabilities_by_group(asked)[0]
    decided = decided_at(held.threshold, said, held.positive)
    labels, every = held.policies.classes_.tolist(), list(held.policies.groups_)
    at = [every.index(name) for name in best.groups]
    shown = {name: float(said[place, held.positive]) for name, place in zip(best.groups, at, strict=True)}
    gap = abs(shown[best.groups[0]] - shown[best.groups[1]])
    bound = min(1.0, max(bound + _ROUNDING, gap))
    person = row.astype(object).iloc[0]
    for name, kind in domain.kinds.items():
        if kind not in (NUMBER, CATEGORY) and not pd.isna(person[name]):
            person[name] = np.datetime64(round(person[name] * 86_400e3), "ms").item()  # days since 1970
        elif domain.columns[name][0].whole and not pd.isna(person[name]):
            person[name] = int(person[name])
    decisions = {name: labels[decided[place]] for name, place in zip(best.groups, at, strict=True)}
    return Worst(person, shown, decisions, gap, bound, bound - gap <= tolerance + 10 * _ROUNDING)


def _named(model: Any) -> bool:
    return hasattr(model, "feature_names_in_")
