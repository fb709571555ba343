"""Models on disk, as skops files. Loading a file from a stranger runs no code.

skops is imported where it is used, because importing it takes longer than importing all of evenhand.
"""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from pickle import PicklingError
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.utils._metadata_requests import SIMPLE_METHODS

from evenhand.atomic import replacing
from evenhand.bandits.cooperative import CooperativeBandits
from evenhand.bandits.gradient import GradientBandit
from evenhand.bandits.kernels.structs import Moments
from evenhand.bandits.training import Training
from evenhand.baselines import ALFR, LFR, LR, OxonFairClassifier, Rawlsian
from evenhand.baselines._prototypes import Losses, Prototypes
from evenhand.boosting import CooperativeBoosting, CooperativeEnsemble
from evenhand.boosting.training import Boosted
from evenhand.boosting.trees import Trees
from evenhand.network import Network
from evenhand.rewards.rates import Rates
from evenhand.rewards.registry import SAVABLE
from evenhand.tables.tabular import TabularClassifier
from evenhand.version import __version__

# Listed one by one: with a whole package, a file could call any of its functions.
OWN_TYPES = (
    CooperativeBandits, CooperativeBoosting, CooperativeEnsemble, GradientBandit, Training, Moments, Rates,
    Network, Boosted, Trees,
    TabularClassifier, ALFR, LFR, LR, OxonFairClassifier, Rawlsian, Losses, Prototypes, *SAVABLE,
)  # fmt: skip
# `Deployed` is named, not imported, because its module imports this one. The dtype is the imputer's.
OWN_NAMES = ("evenhand.workflow.deployed.Deployed", "evenhand.tables.preprocessing.as_float32", "numpy.dtype")
MOST_BYTES = 1 << 30  # of an unpacked model
TRUSTED = frozenset(f"{kind.__module__}.{kind.__qualname__}" for kind in OWN_TYPES).union(OWN_NAMES)


class RefusedFileError(ValueError):
    """A model file was not loaded; the message says why."""


def save(model: Any, path: str | Path) -> Path:
    """Write a fitted model to a skops file.

    Parameters
    ----------
    model : estimator
        A fitted estimator, a pipeline that holds one, or a `Deployed`.
    path : str or Path
        The file, such as 'model.skops'. It appears whole or not at all.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ValueError
        If the model contains something that `load` would refuse, such as a function of your own.
    """
    _refuse_functions(model)
    # A metadata request refers to its estimator, a cycle that skops can't write: save requests separately.
    asked = {
        name: one.__dict__.pop("_metadata_request")
        for name, one in _with_fitted(model)
        if "_metadata_request" in getattr(one, "__dict__", {})
    }
    try:
        held = {"evenhand": __version__, "model": model, "requests": _as_plain(asked)}
        with replacing(path) as partial:
            _write(held, partial)
    finally:
        for name, one in _with_fitted(model):
            if name in asked:
                one._metadata_request = asked[name]
    return Path(path)


def _write(held: dict[str, Any], path: Path) -> None:
    import skops.io

    try:
        skops.io.dump(held, path)
        foreign = _foreign(skops.io.get_untrusted_types(file=path))
    except (TypeError, AttributeError, RecursionError, PicklingError) as error:
        raise _refusal(held["model"], f"an object that skops can't write ({error})") from error
    if foreign:
        raise _refusal(held["model"], f"the type {foreign[0]!r}")


def load(path: str | Path, *, max_bytes: int = MOST_BYTES) -> Any:
    """Read a model that `save` wrote; a file from a stranger runs no code.

    Only types of evenhand and types that skops trusts are built, and their arrays are checked.

    Parameters
    ----------
    path : str or Path
        The file.
    max_bytes : int, default 1 GiB
        The largest accepted size of the unpacked file.

    Returns
    -------
    estimator
        The model, as it was saved.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    IsADirectoryError
        If it is a folder.
    ValueError
        If the file is not a model, is damaged or too large, or holds any other type. Sizes and types are
        checked before anything is built.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"Got {str(path)!r}, which is a folder; expected a model saved by evenhand.")
    if not path.is_file():
        raise FileNotFoundError(
            f"Got {str(path)!r}, but there is no such file; expected a model saved by evenhand."
        )
    try:
        return _loaded(path, max_bytes)
    except RefusedFileError:
        raise
    except Exception as error:  # whatever a damaged file makes zip, JSON, NumPy, skops or scikit-learn raise
        raise RefusedFileError(
            f"{path.name} is not a model file, or is damaged; expected one saved by evenhand."
        ) from error


def _loaded(path: Path, max_bytes: int) -> Any:
    import skops.io

    _check_sizes(path, max_bytes)
    asked = skops.io.get_untrusted_types(file=path)
    foreign = _foreign(asked)
    if foreign:
        raise RefusedFileError(
            f"{path.name} holds the type {foreign[0]!r}, but expected evenhand's and scikit-learn's own "
            "estimators only: it was not loaded."
        )
    held = skops.io.load(path, trusted=asked)
    if not isinstance(held, dict) or "evenhand" not in held or "model" not in held:
        raise RefusedFileError(
            f"{path.name} is a skops file of something else; expected a model saved by evenhand."
        )
    _ask_again(held["model"], held.get("requests", {}))
    for _, part in _estimators(held["model"]):
        if hasattr(part, "check_loaded"):
            part.check_loaded()
    return held["model"]


def _check_sizes(path: Path, max_bytes: int) -> None:
    """Before unpacking, raise if a file states a size above the limit, or an array larger than its bytes."""
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        total = sum(member.file_size for member in members)
        if total > max_bytes:
            raise RefusedFileError(
                f"{path.name} holds {total:,} bytes, but expected at most {max_bytes:,}; --max-model-size, "
                "in Python `max_bytes` of `evenhand.load`, raises the limit."
            )
        for member in members:
            if member.filename.endswith(".npy"):
                with archive.open(member) as file:
                    _check_header(file, member.file_size)


def _check_header(file: Any, size: int) -> None:
    """Raise if an array states a size larger than its bytes, or holds Python objects."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(file)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize > size:
        raise ValueError("an array is larger than its file")


def _foreign(types: list[str]) -> list[str]:
    return sorted(set(types) - TRUSTED)


def _estimators(model: Any) -> list[tuple[str, Any]]:
    """Return the model, named '', and the estimators inside it, by scikit-learn's parameter names."""
    inside = model.get_params(deep=True) if isinstance(model, BaseEstimator) else {}
    return [("", model), *((name, one) for name, one in inside.items() if isinstance(one, BaseEstimator))]


def _with_fitted(model: Any) -> list[tuple[str, Any]]:
    """Return these estimators and those that they have fitted, such as `estimator_`."""
    found = _estimators(model)
    met = {id(one) for _, one in found}
    for name, one in found:  # grows while it is read: fitted estimators may have fitted others
        for attribute, part in getattr(one, "__dict__", {}).items():
            if attribute.endswith("_") and isinstance(part, BaseEstimator) and id(part) not in met:
                met.add(id(part))
                found.append((f"{name}__{attribute}", part))
    return found


def _as_plain(asked: dict[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return the metadata that each estimator requests in each method, as plain dicts."""
    plain: dict[str, dict[str, dict[str, Any]]] = {}
    for name, request in asked.items():
        for method in SIMPLE_METHODS:
            wanted = {
                key: value for key, value in getattr(request, method).requests.items() if value is not None
            }
            if wanted:
                plain.setdefault(name, {})[method] = wanted
    return plain


def _ask_again(model: Any, requests: dict[str, dict[str, dict[str, Any]]]) -> None:
    inside = dict(_with_fitted(model))
    with config_context(enable_metadata_routing=True):
        for name, by_method in requests.items():
            for method, wanted in by_method.items():
                getattr(inside[name], f"set_{method}_request")(**wanted)


def _refuse_functions(model: Any) -> None:
    for name, estimator in _estimators(model):
        reward = getattr(estimator, "reward", None)
        if "custom" in getattr(reward, "names", ()) or getattr(reward, "name", "") == "custom":
            parameter = f"{name}__reward" if name else "reward"
            remedy = f"Save its policies without the reward: model.set_params({parameter}=None) first."
            raise _refusal(model, "a function of your own in its reward", remedy)


def _refusal(
    model: Any,
    held: str,
    remedy: str = "Give labels and groups as text or numbers, and use pickle for a model with other parts.",
) -> ValueError:
    """Return the error that says what in a model can't be saved, and what to do about it."""
    if hasattr(model, "best_estimator_"):
        remedy = "For a search, save the best_estimator_."
    return ValueError(
        f"Got a model, {type(model).__name__}, that holds {held}, but a model file holds no code: expected "
        f"evenhand's and scikit-learn's own estimators only. {remedy}"
    )
