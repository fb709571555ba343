"""Search for the possible person whom two groups' policies treat most differently, and prove a bound."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, permutations, product
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logit, softmax

from evenhand.arrays import Flags, Floats
from evenhand.auditing.certificate.certificate import Certificate, Worst
from evenhand.auditing.certificate.climbing import any_people, climb
from evenhand.auditing.certificate.domain import Domain, possible_people
from evenhand.auditing.certificate.held import Held, Mixture, held_by, mixture
from evenhand.auditing.certificate.near import NearTree
from evenhand.auditing.certificate.people import CLOSE, People, real_people
from evenhand.auditing.certificate.tree import Tree
from evenhand.auditing.people import in_fewer_digits, with_values
from evenhand.checks import number
from evenhand.metrics.answers import decided_at
from evenhand.metrics.bootstrap import generator
from evenhand.metrics.divergence import total_variation
from evenhand.tables.columns import CATEGORY, NUMBER
from evenhand.wording import listed

_STARTS = 100  # the number of real people, and of random people, to start the search from
_ROUNDING = 1e-6  # policies use single precision, bounds double precision


def certify(
    model: Any,
    X: Any = None,
    *,
    ranges: Mapping[str, Any] | None = None,
    groups: Sequence[Any] | None = None,
    radius: float | None = None,
    tolerance: float = 0.001,
    time_limit: float = 60.0,
    random_state: Any = 0,
) -> Certificate:
    """Find the possible person whom two groups' policies treat most differently, and prove a bound.

    Possible people have any combination of the columns' values, whether or not a real person has it. They are
    split into boxes. Each box has a bound on how far apart the policies' probabilities are within it, and is
    dropped when nobody in it can be worse than the worst person found.

    Parameters
    ----------
    model : Deployed, CooperativeBandits, CooperativeBoosting, CooperativeEnsemble, or `tabular` around one
        A fitted model with a policy for each of two or more groups. It has two labels, or up to 6 if all its
        policies are networks.
    X : table of people, optional
        The ranges are its lowest and highest numbers. If a column has only whole numbers, only whole numbers
        are possible. The search starts from some of these people. A model without a preprocessor needs X.
    ranges : dict, optional
        Columns with other ranges, `{"age": (18, 70)}`, or fewer categories, `{"job": ["cook", "clerk"]}`.
        Other columns have the categories seen in training.
    groups : list, optional
        The groups to compare, each with every other; all by default.
    radius : float, optional
        Only people within this Gower distance of somebody in X are possible. The distance is the mean of the
        columns' differences: |difference| / range for numbers, 0 or 1 for categories.
    tolerance : float
        A bound within this distance of the gap found counts as certified.
    time_limit : float
        The time limit of the search in seconds. When it is reached, the step under way is finished, and the
        certificate has the bound proven so far. Compiling the search, which takes up to a minute once in
        every environment, does not count.
    random_state : int, RandomState, Generator or None
        The seed for the start of the search.

    Returns
    -------
    Certificate
        The worst person found, with the model's probabilities and decisions for them, and the proven bound.

    Raises
    ------
    TypeError
        If the model is of another kind.
    ValueError
        If the model can't be bounded (too many labels, fewer than two policies, trees with a radius, or a
        preprocessor that combines columns), or if a range is missing.

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
    if radius is not None:
        number("radius", radius, low=0, high=1, open_low=True)
        if X is None:
            raise ValueError("Got a radius but no X, but expected the real people whom others are near.")
    number("tolerance", tolerance, low=0, open_low=True)
    number("time_limit", time_limit, low=0)
    held = held_by(model, X, radius)
    names = _groups(held.policies, groups)
    about = held.contexts, held.kinds, held.categories, held.gaps
    given = possible_people(*about, ranges or {}, sides=2 if radius else 1)
    mixed = mixture(held.policies, given, held.encode)
    domain, real = mixed.domain, None
    if radius is not None and held.contexts is not None:
        real = real_people(domain, held.contexts, radius)
    starts = _starts(mixed, held, generator(random_state))
    trees = _trees(mixed, held, names, real, starts[0])
    began = time.monotonic()  # all loops are compiled by now
    ends = began + time_limit
    _seek(chain(*zip(*trees, strict=True)), starts, began + time_limit / 4)
    started = time.monotonic()
    # Half of the time left is for everybody, the other half for different decisions; then everybody again.
    for which, until in ((0, (started + ends) / 2), (1, ends), (0, ends)):
        _grow(trees[which], tolerance, until, _bound(trees[0]))
        for worse, flip in zip(*trees, strict=True):
            if flip.person is not None:
                worse.offer(flip.found, *flip.person)
    everybody = _bound(trees[0])  # it also holds for people with different decisions
    asked = domain, _told(held, trees[0]), model, real, tolerance
    worst, decided = (_finding(kind, min(_bound(kind), everybody), *asked) for kind in trees)
    boxes = sum(tree.split for kind in trees for tree in kind)
    return Certificate(
        worst, decided, held.policies.classes_.tolist()[asked[1].positive], list(names), given.in_words(),
        tolerance, time.monotonic() - began, boxes, radius, getattr(model, "sensitive_name", "") or "group",
    )  # fmt: skip


def _told(held: Held, trees: list[Tree]) -> Held:
    """Return `held` with the label to report: of more than two, the one whose probability differs most."""
    best = max(trees, key=lambda tree: tree.found)
    if best.person is None or not len(best.two.chosen):
        return held
    chosen, numbers = best.person
    said = softmax(best.two.said(best.two.units(chosen[None], numbers[None]))[0], axis=1)
    return held._replace(positive=int(np.abs(said[0] - said[1]).argmax()))


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


def _ends(mixed: Mixture) -> tuple[Floats, Floats, Flags]:
    low, high, whole = mixed.domain.ends()
    # For trees, all numbers in a piece of a range are the same.
    return low, high if mixed.networks.b1.size else low, whole


def _starts(mixed: Mixture, held: Held, rng: np.random.Generator) -> list[tuple[Flags, Floats]]:
    """Return the people to start from: possible ones drawn at random and, if they are known, real ones."""
    starts = [any_people(mixed.domain.first, *_ends(mixed), _STARTS, rng)]
    if held.contexts is not None:
        some = held.contexts.sample(min(_STARTS, len(held.contexts)), random_state=rng)
        starts.append(mixed.domain.people(some))
    return starts


def _trees(
    mixed: Mixture, held: Held, names: list[Any], real: People | None, drawn: tuple[Flags, Floats]
) -> tuple[list[Tree], list[Tree]]:
    """Return a tree for each pair of groups, and one for different decisions; nobody is searched for yet."""
    every = list(held.policies.groups_)
    boundary = 0.0 if held.threshold is None else float(logit(held.threshold))
    boundary *= 1 if held.positive else -1  # logits are for the second label
    trees: tuple[list[Tree], list[Tree]] = [], []
    for one, other in permutations(names, 2):
        at = every.index(one), every.index(other)
        for two, differently in product(mixed.of_labels(*at), (False, True)):
            if not trees[0]:
                mixed.check(two, at[0], drawn)
            many = len(two.chosen) > 0
            line = boundary if differently and not many else None
            about = two, mixed.domain.first, *_ends(mixed), line, differently and many, (one, other)
            trees[differently].append(Tree(*about) if real is None else NearTree(*about, people=real))
    return trees


def _seek(trees: Iterable[Tree], starts: list[tuple[Flags, Floats]], until: float) -> None:
    """Find the first people, within a time limit."""
    for tree in trees:
        if isinstance(tree, NearTree):
            tree.seek(until)
            continue
        for chosen, numbers in starts:
            climb(tree, chosen.copy(), numbers.copy(), until=until)


def _bound(trees: list[Tree]) -> float:
    return max(0.0, *(max(tree.bound, tree.dropped) for tree in trees))


def _grow(trees: list[Tree], tolerance: float, until: float, known: float) -> None:
    """Split where the bound is largest until all bounds, or a `known` one, are close enough or time is up."""
    while time.monotonic() < until:
        top = max(trees, key=lambda tree: tree.bound)
        enough = max(0.0, *(tree.found for tree in trees)) + tolerance
        if min(top.bound, known) <= enough:
            return
        top.grow(enough)
        top.look_again(until)


def _finding(
    trees: list[Tree], bound: float, domain: Domain, held: Held, model: Any, real: People | None,
    tolerance: float,
) -> Worst:  # fmt: skip
    """Return the worst person of all trees, with the model's own probabilities and decisions for them."""
    best = max(trees, key=lambda tree: tree.found)
    if best.person is None:
        nobody = bound <= 0
        return Worst(None, {}, {}, float("nan"), 0.0 if nobody else min(1.0, bound + _ROUNDING), nobody)
    chosen, numbers = best.person
    row = _in_few_digits(domain.rows(chosen[None], numbers[None]), domain, held, model, real)
    said = _said(held, model, row)[0]
    decided = decided_at(held.threshold, said, held.positive)
    labels, every = held.policies.classes_.tolist(), list(held.policies.groups_)
    at = [every.index(name) for name in best.groups]
    shown = {name: float(said[place, held.positive]) for name, place in zip(best.groups, at, strict=True)}
    gap = abs(shown[best.groups[0]] - shown[best.groups[1]])
    if len(labels) > 2:
        gap = float(total_variation(*said[at]))
    bound = min(1.0, max(bound + _ROUNDING, gap))
    near = None
    if real is not None and held.contexts is not None:
        who, _ = _nearest(real, domain, row)
        near = _person(domain, held.contexts.iloc[real.rows[who]])
    decisions = {name: labels[decided[place]] for name, place in zip(best.groups, at, strict=True)}
    certified = bound - gap <= tolerance + 10 * _ROUNDING
    return Worst(_person(domain, row.iloc[0]), shown, decisions, gap, bound, certified, near)


def _said(held: Held, model: Any, rows: pd.DataFrame) -> Floats:
    nameless = model is held.policies and not hasattr(model, "feature_names_in_")
    return np.asarray(model.probabilities_by_group(rows.to_numpy() if nameless else rows))


def _nearest(real: People, domain: Domain, row: pd.DataFrame) -> tuple[int, float]:
    (chosen,), (numbers,) = domain.people(row)
    return real.nearest(np.arange(len(real.rows)), np.flatnonzero(chosen), numbers)


def _in_few_digits(
    row: pd.DataFrame, domain: Domain, held: Held, model: Any, real: People | None
) -> pd.DataFrame:
    """Return a person with as few digits as the model, which uses single precision, treats the same.

    The model is asked about all numbers at once, each shortened alone, and then about all of them shortened.
    """

    def same(tried: pd.DataFrame) -> Flags:
        said = _said(held, model, tried)  # the last row is the person
        return np.asarray((said == said[-1]).all(axis=(1, 2)))

    shorter = in_fewer_digits(row)
    names = [name for name in shorter if shorter[name].nunique() > 1]
    if not names:
        return row
    values = shorter[names].to_numpy()
    digits = np.arange(len(values))
    alone = np.where(np.eye(len(names), dtype=np.bool_)[:, None], values, values[-1])
    possible = domain.rows(*domain.people(shorter))[names].to_numpy() == values
    alike = possible & same(with_values(row, names, alone.reshape(-1, len(names)))).reshape(len(names), -1).T
    # For each number of digits, the shortest numbers that are alike and have at least so many.
    enough = np.minimum.accumulate(np.where(alike, digits[:, None], digits[-1])[::-1])[::-1]
    tried = with_values(row, names, np.take_along_axis(values, enough, axis=0))
    known = _said(held, model, row)
    for at in np.flatnonzero(same(tried)).tolist():
        short = tried.iloc[[at]]
        near = real is None or _nearest(real, domain, short)[1] <= CLOSE
        if near and (_said(held, model, short) == known).all():
            return short
    return row


def _person(domain: Domain, row: pd.Series[Any]) -> pd.Series[Any]:
    """Return a person's values in the types of the columns: dates, and whole numbers as integers."""
    person = row[list(domain.columns)].astype(object)
    for name, kind in domain.kinds.items():
        if kind not in (NUMBER, CATEGORY) and not pd.isna(person[name]):
            person[name] = np.datetime64(round(person[name] * 86_400e3), "ms").item()  # days since 1970
        elif domain.columns[name][0].whole and not pd.isna(person[name]):
            person[name] = int(person[name])
    return person
