"""evenhand: metric-free individual fairness with cooperative contextual bandits."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from evenhand.version import __version__

if TYPE_CHECKING:  # for type checkers and editors; at run time, each name is loaded when it is first used
    from evenhand.auditing import Audit, Certificate, FlipSearch, Twins, audit, certify, search_flips, twins
    from evenhand.bandits import CooperativeBandits, GradientBandit, TrainingDivergedError
    from evenhand.bandits.deciding import NoGroupsWarning
    from evenhand.bandits.many import fit_many
    from evenhand.boosting import CooperativeBoosting, CooperativeEnsemble
    from evenhand.decisions.deciding import Decision
    from evenhand.decisions.errors import ConflictError, LogUnavailableError, WrongLogError
    from evenhand.decisions.judging import Judgement
    from evenhand.decisions.loop import DecisionLoop
    from evenhand.decisions.replaying import Replay
    from evenhand.metrics.collapse import CollapseWarning
    from evenhand.rewards import (
        KL,
        Agreement,
        Correctness,
        Custom,
        EqualizedOdds,
        EqualOpportunity,
        JensenShannon,
        Likelihood,
        LogRatio,
        Parity,
        Reward,
    )
    from evenhand.tables.tabular import tabular
    from evenhand.workflow.choosing import NoModelWithinBoundsError
    from evenhand.workflow.deployed import Deployed
    from evenhand.workflow.exploring import explore
    from evenhand.workflow.frontier import Frontier
    from evenhand.workflow.leaks import LeakWarning
    from evenhand.workflow.persistence import load, save

_HOMES = {
    "evenhand.auditing": (
        "Audit", "Certificate", "FlipSearch", "Twins", "audit", "certify", "search_flips", "twins",
    ),
    "evenhand.bandits": ("CooperativeBandits", "GradientBandit", "TrainingDivergedError"),
    "evenhand.boosting": ("CooperativeBoosting", "CooperativeEnsemble"),
    "evenhand.bandits.deciding": ("NoGroupsWarning",),
    "evenhand.bandits.many": ("fit_many",),
    "evenhand.decisions.deciding": ("Decision",),
    "evenhand.decisions.errors": ("ConflictError", "LogUnavailableError", "WrongLogError"),
    "evenhand.decisions.judging": ("Judgement",),
    "evenhand.decisions.loop": ("DecisionLoop",),
    "evenhand.decisions.replaying": ("Replay",),
    "evenhand.metrics.collapse": ("CollapseWarning",),
    "evenhand.rewards": (
        "KL", "Agreement", "Correctness", "Custom", "EqualOpportunity", "EqualizedOdds",
        "JensenShannon", "Likelihood", "LogRatio", "Parity", "Reward",
    ),
    "evenhand.tables.tabular": ("tabular",),
    "evenhand.workflow.choosing": ("NoModelWithinBoundsError",),
    "evenhand.workflow.deployed": ("Deployed",),
    "evenhand.workflow.exploring": ("explore",),
    "evenhand.workflow.frontier": ("Frontier",),
    "evenhand.workflow.leaks": ("LeakWarning",),
    "evenhand.workflow.persistence": ("load", "save"),
}  # fmt: skip
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}
_MODULES = (
    "auditing", "bandits", "baselines", "boosting", "datasets", "decisions", "metrics", "progress",
    "protocol", "report", "rewards", "tables", "workflow",
)  # fmt: skip

__all__ = [
    "KL",
    "Agreement",
    "Audit",
    "Certificate",
    "CollapseWarning",
    "ConflictError",
    "CooperativeBandits",
    "CooperativeBoosting",
    "CooperativeEnsemble",
    "Correctness",
    "Custom",
    "Decision",
    "DecisionLoop",
    "Deployed",
    "EqualOpportunity",
    "EqualizedOdds",
    "FlipSearch",
    "Frontier",
    "GradientBandit",
    "JensenShannon",
    "Judgement",
    "LeakWarning",
    "Likelihood",
    "LogRatio",
    "LogUnavailableError",
    "NoGroupsWarning",
    "NoModelWithinBoundsError",
    "Parity",
    "Replay",
    "Reward",
    "TrainingDivergedError",
    "Twins",
    "WrongLogError",
    "__version__",
    "audit",
    "certify",
    "explore",
    "fit_many",
    "load",
    "save",
    "search_flips",
    "tabular",
    "twins",
]

if (
    find_spec("sqlalchemy") is None
):  # `import *` and `dir` leave out what can't be loaded; using such a name says why
    for _name in ("Decision", "DecisionLoop", "Judgement", "Replay"):
        __all__.remove(_name)


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        try:
            value = getattr(import_module(_HOME_OF[name]), name)
        except ModuleNotFoundError as error:
            if error.name == "sqlalchemy":
                raise ModuleNotFoundError(
                    f"evenhand.{name} needs {error.name}: pip install 'evenhand[serve]'.", name=error.name
                ) from None
            raise
        globals()[name] = value
        return value
    if name in _MODULES:
        return import_module(f"evenhand.{name}")
    raise AttributeError(f"module 'evenhand' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
