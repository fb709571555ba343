"""Models on disk: skops files. Loading one from a stranger runs no code.

skops is imported where it is used: it takes longer to import than all of evenhand.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from pickle import PicklingError
from typing import Any

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
from evenhand.network import Network
from evenhand.rewards.rates import Rates
from evenhand.rewards.registry import SAVABLE
from evenhand.tables.tabular import TabularClassifier
from evenhand.version import __version__

# Named one by one: a whole package would let a file call any function of it.
OWN_TYPES = (
    CooperativeBandits, GradientBandit, Training, Moments, Rates, Network,
    TabularClassifier, ALFR, LFR, LR, OxonFairClassifier, Rawlsian, Losses, Prototypes, *SAVABLE,
)  # fmt: skip
# What `evenhand fit` saves lies above this file: it is named, not imported. The dtype is the imputer's.
OWN_NAMES = ("evenhand.workflow.deployed.Deployed", "evenhand.tables.preprocessing.as_float32", "numpy.dtype")
TRUSTED = frozenset(f"{kind.__module__}.{kind.__qualname__}" for kind in OWN_TYPES).union(OWN_NAMES)


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
        If the model has a part that `load` would refuse, such as a function of your own.
    """
    _refuse_functions(model)
    # A request points back at its estimator, a circle that skops can't write: they travel beside the model.
    asked = {name: one.__dict__.pop("_metadata_request") for name, one in _with_requests(model)}
    try:
        held = {"evenhand": __version__, "model": model, "requests": _as_plain(asked)}
        with replacing(path) as partial:
            _write(held, partial)
    finally:
        for name, one in _estimators(model):
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


def load(path: str | Path) -> Any:
    """Read a model that `save` wrote; a file from a stranger runs no code.

    Only evenhand's own types and those that skops trusts are built.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    estimator
        The model, as it was saved.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is no model, is damaged, or holds any other type; nothing of it is built then.
    """
    import skops.io
    from skops.io.exceptions import UntrustedTypesFoundException

    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"Got {str(path)!r}, but there is no such file; expected a model saved by evenhand."
        )
    try:
        asked = skops.io.get_untrusted_types(file=path)
        foreign = _foreign(asked)
        if foreign:
            raise ValueError(
                f"{path.name} holds the type {foreign[0]!r}, but expected evenhand's and scikit-learn's own "
                "estimators only: it was not loaded."
            )
        held = skops.io.load(path, trusted=asked)
        if isinstance(held, dict) and "model" in held:
            _ask_again(held["model"], held.get("requests", {}))
    except (
        zipfile.BadZipFile,
        KeyError,
        EOFError,
        UntrustedTypesFoundException,
        UnicodeDecodeError,
        AttributeError,
        TypeError,
    ) as error:
        raise ValueError(
            f"{path.name} is no model file, or is damaged; expected one saved by evenhand."
        ) from error
    if not isinstance(held, dict) or "evenhand" not in held or "model" not in held:
        raise ValueError(
            f"{path.name} is a skops file of something else; expected a model saved by evenhand."
        )
    return held["model"]


def _foreign(types: list[str]) -> list[str]:
    return sorted(set(types) - TRUSTED)


def _estimators(model: Any) -> list[tuple[str, Any]]:
    """Return the model and the estimators inside it, by the names that scikit-learn's parameters have."""
    inside = model.get_params(deep=True) if isinstance(model, BaseEstimator) else {}
    return [("", model), *((name, one) for name, one in inside.items() if isinstance(one, BaseEstimator))]


def _with_requests(model: Any) -> list[tuple[str, Any]]:
    return [
        (name, one) for name, one in _estimators(model) if "_metadata_request" in getattr(one, "__dict__", {})
    ]


def _as_plain(asked: dict[str, Any]) -> dict[str, dict[str, dict[str, Any]]]:
    """Return who asked for which metadata in which method, as plain dicts."""
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
    inside = dict(_estimators(model))
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
    remedy: str = "Give labels and groups as text or numbers, and keep a model of other parts with pickle.",
) -> ValueError:
    """Return the error that says what in a model can't be saved, and what can be done about it."""
    if hasattr(model, "best_estimator_"):
        remedy = "Of a search, save the best_estimator_."
    return ValueError(
        f"Got a model, {type(model).__name__}, that holds {held}, but a model file holds no code: expected "
        f"evenhand's and scikit-learn's own estimators only. {remedy}"
    )
