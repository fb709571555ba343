"""Features of a table larger than memory as numbers: amounts, and positions in growing category lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.compose import ColumnTransformer

from evenhand.arrays import Array, Codes, Floats
from evenhand.tables.columns import CATEGORY, Place, is_number
from evenhand.tables.matching import as_learned, met, plain_number, spellings
from evenhand.tables.preprocessing import as_float32, make_preprocessor, places_of_categories

_MOST = 1_000_000  # categories per column


class Coding:
    """Codes features as numbers and category positions, and collects statistics of the training part.

    Parameters
    ----------
    contexts : DataFrame
        Features of some people, as `tidy_columns` returns them. They show the columns and how categories are
        written.
    kinds : dict
        Each feature's kind.
    """

    def __init__(self, contexts: pd.DataFrame, kinds: dict[str, str]) -> None:
        self.kinds = kinds
        self._contexts = contexts[:0]
        self.categories = [name for name, kind in kinds.items() if kind == CATEGORY]
        self.numbers = [name for name in kinds if name not in self.categories]
        self._written = {name: spellings(contexts[name].cat.categories) for name in self.categories}
        self._books: dict[str, dict[str, int]] = {name: {} for name in self.categories}
        self._counts = {name: np.zeros(0, dtype=np.int64) for name in self.categories}
        self._known, self._mean, self._squares = np.zeros((3, len(self.numbers)))
        self.people = 0

    def code(self, rows: pd.DataFrame, place: Place) -> tuple[Floats, Codes]:
        """Return people's numbers and category positions; raise if a value is of the wrong kind."""
        reasons = np.full(len(rows), "", dtype=object)
        numbers = np.empty((len(rows), len(self.numbers)))
        for at, name in enumerate(self.numbers):
            numbers[:, at] = as_learned(rows[name], self.kinds[name], {}, reasons)
        if (reasons != "").any():
            wrong = int((reasons != "").argmax())
            raise ValueError(
                f"{place(rows.index[wrong])}, {reasons[wrong]}, judging by the rows that were drawn. Correct "
                "the value, drop the column, or name it in `categorical` if it holds codes."
            )
        codes = np.empty((len(rows), len(self.categories)), dtype=np.int64)
        for at, name in enumerate(self.categories):
            codes[:, at] = self._code(name, rows[name])
        return numbers, codes

    def _code(self, name: str, column: pd.Series[Any]) -> Codes:
        at, values = pd.factorize(column)
        book, written, numeric = self._books[name], self._written[name], is_number(column)
        places = []
        for value in map(str, values.tolist()):
            text = met(value, written, plain_number(value) if numeric else value)
            places.append(book.setdefault(text, len(book)))
        if (at < 0).any():
            places.append(book.setdefault("missing", len(book)))
        if len(book) > _MOST:
            raise ValueError(f"The column {name!r} has more than {_MOST:,} categories; expected fewer.")
        return np.asarray(places, dtype=np.int64)[at]

    def learn(self, numbers: Floats, codes: Codes) -> None:
        """Add people of the training part to the statistics."""
        self.people += len(codes)
        self._merge(as_float32(numbers).astype(np.float64))
        for at, name in enumerate(self.categories):
            found = np.bincount(codes[:, at], minlength=len(self._books[name]))
            found[: len(self._counts[name])] += self._counts[name]
            self._counts[name] = found

    def _merge(self, numbers: Floats) -> None:
        """Update means and sums of squared deviations (Chan, Golub and LeVeque 1979)."""
        there = ~np.isnan(numbers)
        known = there.sum(0)
        mean = np.where(there, numbers, 0.0).sum(0) / np.maximum(known, 1)
        squares = (np.where(there, numbers - mean, 0.0) ** 2).sum(0)
        apart, total = mean - self._mean, np.maximum(self._known + known, 1)
        self._squares += squares + apart**2 * self._known * known / total
        self._mean += apart * known / total
        self._known += known

    def names(self, name: str) -> Array:
        """Return a column's categories, in the order of their positions."""
        return np.array(list(self._books[name]), dtype=object)

    def contexts(self, numbers: Floats, codes: Codes) -> pd.DataFrame:
        """Return the features of coded people as a DataFrame."""
        columns: dict[str, Any] = {name: numbers[:, at] for at, name in enumerate(self.numbers)}
        for name, column in columns.items():
            whole = pd.api.types.is_integer_dtype(self._contexts[name]) and not np.isnan(column).any()
            columns[name] = column.astype(np.int64) if whole else column
        for at, name in enumerate(self.categories):
            columns[name] = pd.Series(self.names(name)[codes[:, at]]).astype("category")
        return pd.DataFrame(columns, columns=list(self.kinds))

    def preprocessor(self) -> ColumnTransformer:
        """Return the preprocessor that a fit on the whole training part would give.

        It is fitted on a few invented rows that have every category, and a missing number if training has
        one. The statistics of the training part then replace those of these rows.
        """
        listed = {name: self._ranked(name) for name in self.categories}
        n_rows = max(2, *map(len, listed.values())) if listed else 2
        rows: dict[str, list[Any]] = {
            name: [*found, *found[:1] * (n_rows - len(found))] for name, found in listed.items()
        }
        for name, count in zip(self.numbers, self._known, strict=True):
            rows[name] = [np.nan if count < self.people else 0.0, *[0.0 if count else np.nan] * (n_rows - 1)]
        frame = pd.DataFrame(rows, columns=list(self.kinds))
        fitted = make_preprocessor(frame).fit(frame)
        if self.numbers:
            _, imputer, scaler = (step for _, step in fitted.named_transformers_["numbers"].steps)
            share = self._known / self.people
            gaps = 1 - share[share < 1]
            imputer.statistics_ = self._mean.astype(imputer.statistics_.dtype)
            scaler.mean_ = np.concatenate([self._mean, gaps])
            scaler.var_ = np.concatenate([self._squares / self.people, gaps * (1 - gaps)])
            scaler.n_samples_seen_ = self.people
            # scikit-learn's rule for constant columns.
            n, eps = self.people, np.finfo(np.float64).eps
            constant = scaler.var_ <= n * eps * scaler.var_ + (n * scaler.mean_ * eps) ** 2
            scaler.scale_ = np.where(constant, 1.0, np.sqrt(scaler.var_))
        return fitted

    def _ranked(self, name: str) -> list[str]:
        """Return the training part's categories; if rare ones will share a feature, the others come twice."""
        counts = self._counts[name]
        found = sorted(zip(self.names(name)[counts > 0].tolist(), counts[counts > 0].tolist(), strict=True))
        names = [text for text, _ in found]
        most = make_preprocessor(self._contexts).transformers[1][1].max_categories
        if len(names) <= most:
            return names
        order = np.argsort([count for _, count in found], kind="mergesort")
        return [*names, *(names[at] for at in order[-(most - 1) :])]


class Encoder:
    """Applies a fitted preprocessor to coded people: the same features, in a tenth of the time."""

    def __init__(self, coding: Coding, preprocessor: ColumnTransformer) -> None:
        steps = preprocessor.named_transformers_
        self._numbers = steps["numbers"][1:] if coding.numbers else None
        self._sparse = preprocessor.sparse_output_
        begin = 0 if self._numbers is None else len(self._numbers[-1].mean_)
        places, self.width = places_of_categories(preprocessor, begin)
        self._columns = [
            np.array([own.get(text, others) for text in coding.names(name)])
            for name, (own, others) in places.items()
        ]

    def __call__(self, numbers: Floats, codes: Codes) -> Any:
        """Return the features as a float32 array, dense or sparse."""
        n = len(codes)
        dense = np.empty((n, 0), dtype=np.float32)
        if self._numbers is not None:
            dense = self._numbers.transform(as_float32(numbers))
        places = np.column_stack([own[codes[:, at]] for at, own in enumerate(self._columns)] or [codes])
        first = dense.shape[1]
        if not self._sparse:
            out = np.zeros((n, self.width), dtype=np.float32)
            out[:, :first] = dense
            rows, columns = np.nonzero(places >= 0)
            out[rows, places[rows, columns]] = 1
            return out
        values = np.ones((n, first + places.shape[1]), dtype=np.float32)
        values[:, :first] = dense
        indices = np.empty(values.shape, dtype=np.int32)
        indices[:, :first], indices[:, first:] = np.arange(first), places
        there = (indices >= 0) & (values != 0)
        starts = np.concatenate([[0], there.sum(1).cumsum()])
        return sparse.csr_array((values[there], indices[there], starts), shape=(n, self.width))
