"""Encode people given as dicts of plain values, without pandas, which needs milliseconds for one person."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from evenhand.arrays import Floats
from evenhand.tables.columns import CATEGORY, NUMBER
from evenhand.tables.csv_format import MISSING_MARKS
from evenhand.tables.matching import known_categories, met, read_contexts
from evenhand.tables.preprocessing import encode, places_of_categories

Values = Mapping[str, Any]  # None, text, numbers and truth values per column, as in JSON

_NUMBERS = {int, float, type(None)}
_VALUES = {*_NUMBERS, str, bool}
_EXACT = 1 << 53  # larger whole numbers are left to pandas
_MOST_MET = 10_000  # remembered spellings of a column's categories
_LONGEST = 200  # characters of a remembered spelling
_PROBES = 40
_DATES = {
    "ISO8601": r"(?P<y>\d{4})-(?P<m>\d\d)-(?P<d>\d\d)",
    "%Y/%m/%d": r"(?P<y>\d{4})/(?P<m>\d\d)/(?P<d>\d\d)",
    "%d.%m.%Y": r"(?P<d>\d\d)\.(?P<m>\d\d)\.(?P<y>\d{4})",
    "%m/%d/%Y": r"(?P<m>\d\d)/(?P<d>\d\d)/(?P<y>\d{4})",
    "%d/%m/%Y": r"(?P<d>\d\d)/(?P<m>\d\d)/(?P<y>\d{4})",
}
_EPOCH = date(1970, 1, 1).toordinal()


class _NotPlainError(Exception):
    """A value that only pandas can read as intended."""


class PlainRows:
    """Encodes people bit for bit as `read_contexts` and `encode` do, or says that it can't.

    Parameters
    ----------
    kinds : dict
        What `kinds_of_columns` returned.
    preprocessor : ColumnTransformer
        What `make_preprocessor` returned, fitted.
    """

    def __init__(self, kinds: Mapping[str, str], preprocessor: Any) -> None:
        self._kinds, self._preprocessor = dict(kinds), preprocessor
        steps = {name: (step, list(names)) for name, step, names in preprocessor.transformers_ if len(names)}
        pipeline, self._numeric = steps.get("numbers", (None, []))
        if pipeline is not None:
            self._imputer, self._scaler = pipeline[1], pipeline[2]
            self._gaps = [] if self._imputer.indicator_ is None else self._imputer.indicator_.features_
        begin = len(self._numeric) + (len(self._gaps) if self._numeric else 0)
        places, self._width = places_of_categories(preprocessor, begin)
        self._columns = [
            _Categories(name, known_categories(preprocessor, name), *found) for name, found in places.items()
        ]
        fits = [kinds.get(name, CATEGORY) != CATEGORY for name in self._numeric]
        fits += [kinds.get(name) == CATEGORY for name in places]
        self._agrees = all(fits) and self._agree()

    def encode(self, people: Sequence[Values]) -> Any:
        """Return people's features, or None if pandas must read them."""
        try:
            return self._encode(people) if self._agrees else None
        except _NotPlainError:
            return None

    def _encode(self, people: Sequence[Values]) -> Any:
        features = np.zeros((len(people), self._width), dtype=np.float32)
        if self._numeric:
            numbers = np.array([self._numbers(name, people) for name in self._numeric]).T.astype(np.float32)
            gaps = np.isnan(numbers)
            numbers[gaps] = np.broadcast_to(self._imputer.statistics_, numbers.shape)[gaps]
            scaled = np.hstack([numbers, gaps[:, self._gaps]])
            scaled -= self._scaler.mean_.astype(np.float32)
            scaled /= self._scaler.scale_.astype(np.float32)
            features[:, : scaled.shape[1]] = scaled
        for column in self._columns:
            places = np.array([column.place(person.get(column.name)) for person in people], dtype=np.int64)
            there = np.flatnonzero(places >= 0)
            features[there, places[there]] = 1
        return sparse.csr_array(features) if self._preprocessor.sparse_output_ else features

    def _numbers(self, name: str, people: Sequence[Values]) -> Floats:
        kind, values = self._kinds[name], [person.get(name) for person in people]
        if kind != NUMBER:
            values = [_day(value, kind) for value in values]
        if not _NUMBERS.issuperset(map(type, values)):
            raise _NotPlainError
        try:
            numbers = np.array(values, dtype=np.float64)
        except OverflowError:
            raise _NotPlainError from None
        if (np.abs(numbers) > _EXACT).any():
            raise _NotPlainError
        return numbers

    def _agree(self) -> bool:
        """Return whether pandas and scikit-learn give the same bits: their versions may round differently."""
        rng = np.random.default_rng(0)
        tried: dict[str, list[Any]] = {
            name: [None, "never met", *known_categories(self._preprocessor, name)]
            if kind == CATEGORY
            else [None, *(rng.normal(*self._about(name), _PROBES).tolist() if kind == NUMBER else [])]
            for name, kind in self._kinds.items()
        }
        people = [
            {name: values[at % len(values)] for name, values in tried.items()}
            for at in range(max(map(len, tried.values())))
        ]
        frame = pd.DataFrame(people, columns=list(self._kinds), dtype=object)
        reasons = np.full(len(frame), "", dtype=object)
        wanted = encode(self._preprocessor, read_contexts(frame, self._kinds, self._preprocessor, reasons))
        return not (reasons != "").any() and same_features(self._encode(people), wanted)

    def _about(self, name: str) -> tuple[float, float]:
        at = self._numeric.index(name)
        return float(self._scaler.mean_[at]), float(self._scaler.scale_[at])


class _Categories:
    """A column of categories: which feature is 1 for a value."""

    def __init__(self, name: str, known: dict[str, str], places: dict[str, int], others: int) -> None:
        self.name, self._known = name, known
        self._places, self._else = places, others  # unseen ones share the feature of rare ones
        self._met: dict[str, int] = {}

    def place(self, value: Any) -> int:
        """Return the feature's number, -1 if there is none."""
        if type(value) not in _VALUES:
            raise _NotPlainError
        text = value if type(value) is str else "missing" if value is None else str(value)
        found = self._met.get(text)
        if found is None:
            category = met(text, self._known, "missing" if text in MISSING_MARKS else text)
            found = self._places.get(category, self._else)
            if len(self._met) < _MOST_MET and len(text) <= _LONGEST:
                self._met[text] = found
        return found


def _day(value: Any, how: str) -> float | None:
    """Return a date that is written in full as days since 1970."""
    if value is None:
        return None
    found = re.fullmatch(_DATES[how], value, re.ASCII) if type(value) is str and how in _DATES else None
    if found and 1678 <= int(found["y"]) <= 2261:
        with suppress(ValueError):
            return float(date(int(found["y"]), int(found["m"]), int(found["d"])).toordinal() - _EPOCH)
    raise _NotPlainError


def same_features(one: Any, other: Any) -> bool:
    """Return whether two tables of features are the same, bit for bit."""
    if sparse.issparse(one) != sparse.issparse(other) or one.shape != other.shape or one.dtype != other.dtype:
        return False
    if not sparse.issparse(one):
        return bool(one.tobytes() == np.ascontiguousarray(other).tobytes())
    return all(
        np.array_equal(getattr(one, part), getattr(other, part)) for part in ("indptr", "indices", "data")
    )
