"""A policy: a model that decides, with its version. It reads contexts and answers with probabilities."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evenhand.arrays import Array, Codes, Floats
from evenhand.decisions.contexts import as_texts, parsed, plain, plain_column, plain_rows, shown
from evenhand.decisions.fingerprint import fingerprint
from evenhand.groups import EVERYONE, codes_of
from evenhand.tables.plain_rows import PlainRows
from evenhand.tables.preprocessing import computable, encode
from evenhand.wording import listed
from evenhand.workflow.deployed import Deployed
from evenhand.workflow.persistence import load, save

_MOST_MET = 10_000  # spellings of groups that are remembered
_MANY = 8  # from this many people on, arrays are faster than lists
_MOST_TOLD = 300  # characters in an error: the input may be a megabyte


class Read(NamedTuple):
    """People as a policy reads them: the features and groups of those it can decide about."""

    features: Any
    groups: Codes
    reasons: list[str]  # why not, one per person; '' for the others


class Policy:
    """A fitted model, as the loop uses it: an estimator or a `Deployed`."""

    def __init__(self, model: Any, version: int = 1) -> None:
        inner = _inside(model)
        if not hasattr(inner, "classes_") or not hasattr(inner, "predict_proba"):
            raise ValueError(
                f"Got a {type(model).__name__}, but expected a fitted model of evenhand's that decides: "
                "CooperativeBandits, CooperativeEnsemble, or what evenhand.load reads."
            )
        self.model, self.version = model, version
        self.classes = {str(name): name for name in inner.classes_.tolist()}
        self.groups = {str(name): name for name in np.asarray(getattr(inner, "groups_", [EVERYONE])).tolist()}
        self.actions: list[str] = list(self.classes)
        self._order: list[str] = list(self.groups)
        self._place = {name: at for at, name in enumerate(self._order)}
        self._plain_rows: PlainRows | None = None
        self._met: dict[str, str] = {}  # spellings of groups, with the groups' names
        self._unread: set[str] = set()  # and of what is no group
        self._names = np.array([*self.groups.values(), None], dtype=object)[:-1]

    # People in -----------------------------------------------------------------------------------------

    def take(self, contexts: Sequence[Any]) -> tuple[Any, list[str]]:
        """Return the part of contexts that the model reads, as plain values and as text."""
        if isinstance(self.model, Deployed):
            values = self._columns(contexts)
            return values, as_texts(values)
        table = _table(contexts) if len(contexts) >= _MANY else None
        together = None if table is None else plain_rows(table)
        values = together or [self._numbers(context) for context in contexts]
        return values if table is None else table, as_texts(values)

    def _numbers(self, context: Any) -> Any:
        try:
            if type(context) is list and {int, float}.issuperset(map(type, context)):
                numbers = list(map(float, context))  # as NumPy would, but faster
            else:
                numbers = np.asarray(context, dtype=np.float64).tolist()
        except (TypeError, ValueError, OverflowError):
            numbers = None
        if not isinstance(numbers, list) or any(isinstance(number, list) for number in numbers):
            raise ValueError(f"Got the context {shown(context)}, but expected one row of numbers.")
        return plain(numbers)

    def _columns(self, contexts: Sequence[Any]) -> list[Any]:
        names = sorted(self.model.columns)  # in the order of the log, which need not sort them again
        for context in contexts:
            if type(context) is not dict and not isinstance(context, Mapping):
                got = type(context).__name__
                raise ValueError(f"Got a context of {got}, but expected a dict of columns.")
            if not self.model.columns.keys() <= context.keys():
                lacking = [name for name in self.model.columns if name not in context]
                raise ValueError(f"Got a context without {listed(lacking, most=5)}, but the model needs it.")
        table = [plain_column([context[name] for context in contexts], name) for name in names]
        return [dict(zip(names, row, strict=True)) for row in zip(*table, strict=True)]

    def named(self, groups: Sequence[Any], contexts: Sequence[Any]) -> Sequence[str]:
        """Return the name of each person's group, read from the context's sensitive columns if not given.

        Raise if both are there and contradict each other.
        """
        if {*map(type, groups)} == {str} and self.groups.keys() >= {*groups}:
            found = groups
        else:
            found = [self._named(group, context) for group, context in zip(groups, contexts, strict=True)]
        if isinstance(self.model, Deployed) and self.model.sensitive:
            for group, context in zip(found, contexts, strict=True):
                also = self._said_in(context)
                if also not in (None, group):
                    raise ValueError(
                        f"Got the group {group!r}, but the context's {listed(self.model.sensitive)} "
                        f"is that of {also!r}; expected the same group in both."
                    )
        return found

    def _said_in(self, context: Any) -> str | None:
        """Return the group that a context's own sensitive columns say, if they say one."""
        told = [context.get(name) for name in self.model.sensitive]
        if any(value is None for value in told):
            return None
        if len(told) == 1 and isinstance(told[0], str) and told[0] in self.groups:
            return told[0]
        values = shown(told)
        if values in self._unread:  # reading a table is slow
            return None
        try:
            return self._named(None, context)
        except (ValueError, TypeError):  # a value that is no group of the model contradicts nothing
            if len(self._unread) < _MOST_MET:
                self._unread.add(values)
            return None

    def _named(self, group: Any, context: Any) -> str:
        if isinstance(group, str) and group in self.groups:
            return group
        if not isinstance(self.model, Deployed):
            if group is None and len(self.groups) > 1:
                raise ValueError(f"Got no group, but expected one of {listed(list(self.groups), most=10)}.")
            try:
                code = codes_of(None if group is None else [group], 1, self._names)[0]
            except ValueError as error:
                raise ValueError(str(error)[:_MOST_TOLD]) from None
            return self._order[int(code)]
        if not self.model.sensitive:
            return next(iter(self.groups))
        told = context
        if group is not None:
            told = group if isinstance(group, Mapping) else {self.model.sensitive[0]: group}
        missing = [name for name in self.model.sensitive if name not in told]
        if missing:
            raise ValueError(
                f"Got no group, but expected one of {listed(list(self.groups), most=10)}, "
                f"or {listed(missing)} in the context."
            )
        values = repr([told[name] for name in self.model.sensitive])
        found = self._met.get(values)
        if found is None:  # reading a table is slow
            found = self._read_group(told)
            if len(self._met) < _MOST_MET and len(values) < _MOST_TOLD:
                self._met[values] = found
        return found

    def _read_group(self, told: Mapping[str, Any]) -> str:
        row = pd.DataFrame({name: [told[name]] for name in self.model.sensitive}, dtype=object)
        reasons = np.full(1, "", dtype=object)
        codes = self.model._group_codes(row, reasons)
        if reasons[0]:
            raise ValueError(f"Got {str(reasons[0])[:_MOST_TOLD]}.")
        return self._order[int(codes[0])]

    def read(self, texts: Sequence[str], groups: Sequence[str]) -> Read:
        """Return the features of logged contexts, without those that are not valid."""
        return self.features(parsed(texts), groups)

    def features(self, contexts: Sequence[Any], groups: Sequence[str]) -> Read:
        """Return the features of plain contexts, without those that are not valid."""
        codes = np.array([self._place[group] for group in groups], dtype=np.int64)
        read = self._encoded if isinstance(self.model, Deployed) else self._fitting
        features, reasons = read(contexts)
        good = _computable(features)
        for at in np.flatnonzero(reasons == "")[~good]:
            reasons[at] = "a number too large to compute with"
        return Read(features[good], codes[reasons == ""], [str(why)[:_MOST_TOLD] for why in reasons])

    def _encoded(self, contexts: Sequence[Any]) -> tuple[Any, Array]:
        if self._plain_rows is None:
            self._plain_rows = PlainRows(self.model.columns, self.model.preprocessor)
        features = self._plain_rows.encode(contexts)
        if features is not None:
            return features, np.full(len(contexts), "", dtype=object)
        frame = pd.DataFrame(contexts, columns=list(self.model.columns), dtype=object)
        rows, _, reasons = self.model.read(frame, need_group=False)
        scored = reasons == ""
        return encode(self.model.preprocessor, rows[scored]) if scored.any() else np.zeros((0, 0)), reasons

    def _fitting(self, contexts: Sequence[Any]) -> tuple[Floats, Array]:
        wanted, gaps = self.model.n_features_in_, self.model.__sklearn_tags__().input_tags.allow_nan
        reasons: Array = np.full(len(contexts), "", dtype=object)
        table = _table(contexts)
        if table is not None and table.shape[1] == wanted and (gaps or not np.isnan(table).any()):
            return table, reasons
        for at, context in enumerate(contexts):
            if len(context) != wanted:
                reasons[at] = f"a context of {len(context)} numbers, expected {wanted}"
            elif not gaps and np.isnan(np.array(context, dtype=np.float64)).any():
                reasons[at] = "a context with a missing value, expected finite numbers"
        fitting = [contexts[at] for at in np.flatnonzero(reasons == "").tolist()]
        return np.array(fitting, dtype=np.float64).reshape(-1, wanted), reasons

    # Answers and learning ------------------------------------------------------------------------------

    def probabilities(self, features: Any) -> Floats:
        """Return every group's probabilities, (people, groups, actions), without exploration."""
        if features.shape[0] == 0:
            return np.zeros((0, len(self.groups), len(self.actions)))
        inner = _inside(self.model)
        if hasattr(inner, "probabilities_by_group"):
            said = np.asarray(inner.probabilities_by_group(features), dtype=np.float64)
        else:
            said = np.asarray(inner.predict_proba(features), dtype=np.float64)[:, None]
        return np.asarray(said / said.sum(axis=2, keepdims=True))

    @property
    def n_features(self) -> int:
        """The number of features of a person."""
        return int(_inside(self.model).n_features_in_)

    def warm_up(self) -> None:
        """Load the compiled code before anybody waits for it, since that takes a while."""
        self.probabilities(np.zeros((1, self.n_features)))

    def learner(self) -> Any:
        """Return a copy of the model, and the part of the copy that learns."""
        model = copy.deepcopy(self.model)
        inner = _inside(model)
        part = getattr(inner, "bandits_", inner)  # in an ensemble, only the networks learn
        if not hasattr(part, "update"):
            raise ValueError(
                f"Got a {type(inner).__name__}, which decides but can't learn from a log; expected "
                "CooperativeBandits, CooperativeEnsemble or GradientBandit."
            )
        return model, part

    def fingerprint(self) -> str:
        """Return the model's fingerprint."""
        return fingerprint(self.model)


def _inside(model: Any) -> Any:
    """Return the estimator, without the preprocessing that a `Deployed` has around it."""
    return model.model if isinstance(model, Deployed) else model


def _table(contexts: Sequence[Any]) -> Floats | None:
    """Return contexts as one table, quickly; None if they are not numbers, or differ in length."""
    try:
        table: Floats = np.asarray(contexts, dtype=np.float64) + 0.0  # -0 becomes 0, as in the log
    except (TypeError, ValueError, OverflowError):
        return None
    return table if table.ndim == 2 else None


def _computable(features: Any) -> Any:
    if isinstance(features, np.ndarray):
        return computable(np.nan_to_num(features, nan=0.0))  # the model judges gaps itself
    return computable(features)


def to_bytes(model: Any) -> bytes:
    """Return a model as a skops file."""
    with tempfile.TemporaryDirectory() as folder:
        return save(model, Path(folder) / "model.skops").read_bytes()


def of_bytes(content: bytes, version: int) -> Policy:
    """Return the policy that a skops file holds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.skops"
        path.write_bytes(content)
        return Policy(load(path), version)
