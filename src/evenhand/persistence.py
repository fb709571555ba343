"""Models on disk: skops files. Loading one from a stranger runs no code.

skops is imported where it is used: it takes longer to import than all of evenhand.
"""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from sklearn.pipeline import Pipeline

from evenhand import rewards
from evenhand.bandit import GradientBandit
from evenhand.baselines import ALFR, LFR, LR, Rawlsian
from evenhand.baselines._prototypes import Losses, Prototypes
from evenhand.cooperative import CooperativeBandits
from evenhand.kernels.structs import Moments, Rates
from evenhand.network import Network
from evenhand.training import Training
from evenhand.version import __version__

# Named one by one: a whole package would let a file call any function of it.
OWN_TYPES = (
    CooperativeBandits, GradientBandit, Training, Moments, Rates, Network,
    ALFR, LFR, LR, Rawlsian, Losses, Prototypes,
    rewards.Reward, rewards.Correctness, rewards.Likelihood, rewards.KL, rewards.LogRatio, rewards.Agreement,
    rewards.Parity, rewards.EqualOpportunity, rewards.EqualizedOdds,
)  # fmt: skip
# What `evenhand fit` saves lies above this file: it is named, not imported. The dtype is the imputer's.
OWN_NAMES = ("evenhand.deployed.Deployed", "evenhand.protocol.splits.as_float32", "numpy.dtype")
TRUSTED = frozenset(f"{kind.__module__}.{kind.__qualname__}" for kind in OWN_TYPES).union(OWN_NAMES)


def save(model: Any, path: str | Path) -> Path:
    """Write a fitted estimator, or a pipeline that holds one, to a skops file; return its path."""
    import skops.io

    _refuse_functions(model)
    path = Path(path)
    partial = path.with_name(path.name + ".partial")
    try:
        skops.io.dump({"evenhand": __version__, "model": model}, partial)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return path


def load(path: str | Path) -> Any:
    """Read a model written by `save`, trusting only evenhand's own types and those that skops itself trusts.

    A file that is no model, is damaged, or asks for any other type is refused, before anything is built.
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
        foreign = sorted(set(asked) - TRUSTED)
        if foreign:
            raise ValueError(
                f"{path.name} holds the type {foreign[0]!r}, but expected evenhand's and scikit-learn's own "
                "estimators only: it was not loaded."
            )
        held = skops.io.load(path, trusted=asked)
    except (
        zipfile.BadZipFile,
        KeyError,
        EOFError,
        UntrustedTypesFoundException,
        UnicodeDecodeError,
    ) as error:
        raise ValueError(
            f"{path.name} is no model file, or is damaged; expected one saved by evenhand."
        ) from error
    if not isinstance(held, dict) or "evenhand" not in held or "model" not in held:
        raise ValueError(
            f"{path.name} is a skops file of something else; expected a model saved by evenhand."
        )
    return held["model"]


def _refuse_functions(model: Any) -> None:
    for estimator in [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]:
        reward = getattr(estimator, "reward", None)
        if "custom" in getattr(reward, "names", ()) or getattr(reward, "name", "") == "custom":
            raise ValueError(
                "Got a model whose reward holds a function of your own, but a model file holds no code. "
                "Save its policies without the reward: model.set_params(reward=None) first."
            )
