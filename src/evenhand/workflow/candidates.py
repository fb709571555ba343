"""The models to choose from: every λ, with and without parity; trained, measured, and kept on disk."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import joblib

from evenhand.atomic import try_writing, write_text
from evenhand.bandits.cautions import Caution, kept, warn
from evenhand.bandits.cooperative import CooperativeBandits
from evenhand.bandits.deciding import GroupPolicies
from evenhand.bandits.fitting import people_met
from evenhand.bandits.many import fit_many
from evenhand.boosting import CooperativeBoosting, CooperativeEnsemble
from evenhand.code_version import code_version
from evenhand.metrics.answers import Answers
from evenhand.metrics.asking import respond
from evenhand.metrics.measures import Measure, measure
from evenhand.progress import Progress
from evenhand.rewards import Likelihood, LogRatio, Parity
from evenhand.tables.preprocessing import Part, Parts
from evenhand.workflow.defaults import POLICIES
from evenhand.workflow.persistence import load, save

CURVE_POINTS = 40
_CURVE_PEOPLE = 4_000


Pair = tuple[float, bool]  # λ, and whether there is parity
Networks = Mapping[Pair, tuple[CooperativeBandits, dict[str, Any]]]


@dataclass(frozen=True)
class Settings:
    """The settings that all models of an exploration share."""

    weights: Sequence[float]
    parity_bound: float
    epochs: float | str
    seed: int
    policies: str = POLICIES[0]

    @property
    def pairs(self) -> list[Pair]:
        """Every λ without parity, then with it."""
        return [(weight, parity) for parity in (False, True) for weight in self.weights]


@dataclass(frozen=True)
class Candidate:
    """One trained model and its measures on the validation part."""

    divergence_weight: float
    parity: bool  # whether its reward has the parity term
    model: GroupPolicies  # takes preprocessed features
    validation: dict[str, Measure]
    curve: dict[str, Any] = field(default_factory=dict)  # `steps`, and `series` per measure, in training
    policies: str = POLICIES[0]
    beside: tuple[Candidate, ...] = ()  # for 'both': the networks and the trees, each alone

    @property
    def name(self) -> str:
        """The name in tables, such as 'λ = 1, with parity'."""
        return f"λ = {self.divergence_weight:g}" + (", with parity" if self.parity else "")

    @property
    def family(self) -> str:
        """The name that it shares with the models that differ only in λ."""
        kind = "networks and trees" if self.policies == "both" else self.policies
        return kind + (", with parity" if self.parity else "")


class TrainedSoFar:
    """The trained models of one exploration, in a folder; `say` is called if the folder can't be written.

    `depends_on` holds everything that a model depends on besides its settings, as JSON values: the data, the
    split, and so on. Models that were trained with other values, or by other code, are not used.
    """

    def __init__(
        self, folder: Path, say: Callable[[str], None], settings: Settings, *depends_on: Any
    ) -> None:
        self.folder, self.say, self._settings = folder, say, settings
        shared = (settings.policies, settings.epochs, settings.seed)
        everything = json.dumps([code_version(__name__), *shared, *depends_on], default=str)
        self._key = hashlib.sha256(everything.encode()).hexdigest()[:16]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            try_writing(folder / "model.skops")
        except OSError as error:
            say(f"If this run is killed, its trained models are lost: {folder} can't be written ({error}).")

    def read(self, weight: float, parity: bool) -> tuple[Any, dict[str, Any]] | None:
        """Return a model and its measures; None if it has to be trained."""
        path = self._path(weight, parity)
        if not path.is_file():
            return None
        try:
            return load(path), json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        except (ValueError, OSError):  # damaged: train it again
            return None

    def keep(self, weight: float, parity: bool, model: Any, measured: dict[str, Any]) -> None:
        """Save a trained model; do nothing if the folder can't be written."""
        path = self._path(weight, parity)
        try:
            # The model is written last, so that every saved model has its measures.
            write_text(path.with_suffix(".json"), json.dumps(measured))
            save(model, path)
        except OSError:
            return

    def missing(self) -> list[Pair]:
        """Return λ and parity of the models that are still to be trained."""
        return [pair for pair in self._settings.pairs if self.read(*pair) is None]

    def together(self) -> tuple[list[Pair], Path]:
        """Return the networks to train on a stream, and the file for their state: a killed run's, or new."""
        every = self._settings.pairs
        state = self._state(every)
        if state.is_file():
            return every, state
        missing = self.missing()
        return missing, self._state(missing)

    def _state(self, pairs: list[Pair]) -> Path:
        name = hashlib.sha256(repr((pairs, self._settings.parity_bound)).encode()).hexdigest()[:8]
        return self.folder / f"{self._key}-{name}-networks.skops"

    def _path(self, weight: float, parity: bool) -> Path:
        bound = f"-parity-{self._settings.parity_bound!r}" if parity else ""  # others don't depend on it
        return self.folder / f"{self._key}-{weight!r}{bound}.skops"


@contextmanager
def kept_until_done(folder: Path, *also_after: type[Exception]) -> Iterator[Path]:
    """Yield a folder for `TrainedSoFar`; remove it when the block ends, with or without an error.

    It is kept if work can continue from it: after a kill, when disk or memory ran out, or `also_after`. After
    any other error it is removed only if it was new: a slip must not cost the models of an earlier run.
    """
    kept_after: tuple[type[Exception], ...] = (OSError, MemoryError, *also_after)
    earlier = folder.is_dir()
    try:
        yield folder
    except kept_after:
        raise
    except Exception:
        if not earlier:
            shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


def train_all(
    parts: Parts,
    settings: Settings,
    *,
    jobs: int,
    before: TrainedSoFar | None,
    networks: Networks | None = None,
) -> Iterator[Candidate]:
    """Train every λ with and without parity, several at a time; yield those trained `before` first.

    `networks` holds fitted networks and their curves. By default, each is fitted on the training part in
    memory.
    """
    found = {pair: None if before is None else before.read(*pair) for pair in settings.pairs}
    pending = [pair for pair, earlier in found.items() if earlier is None]
    if before is not None and len(pending) < len(found):
        before.say(f"Resumed with {len(found) - len(pending)} of {len(found)} models trained before.")
    for pair, earlier in found.items():
        if earlier is not None:
            yield _candidate(settings, *pair, *earlier)
    given = networks or {}
    work = (joblib.delayed(_train)(parts, settings, *pair, given.get(pair)) for pair in pending)
    # Threads, since the training loop releases the interpreter lock: nothing has to be copied.
    fits = joblib.Parallel(n_jobs=jobs, prefer="threads", return_as="generator_unordered")
    for cautions, *trained in fits(work):
        if before is not None:
            before.keep(*trained)
        for caution in cautions:
            warn(*caution)  # not in threads, so that it points to the user's own call
        yield _candidate(settings, *trained)


def networks_on_gpu(
    parts: Parts, settings: Settings, before: TrainedSoFar | None, tell: Progress
) -> Networks:
    """Train the networks of every λ and parity that were not trained before, all at once."""
    pairs = settings.pairs if before is None else before.missing()
    if not pairs:
        return {}
    models = [model_for(parts, settings, "networks", *pair) for pair in pairs]
    grid = [{name: [getattr(model, name)] for name in ("divergence_weight", "reward")} for model in models]
    X, y, s, _, w = parts.train
    found = {}
    fitted = fit_many(models[0], grid, X, y, w, sensitive_features=s, engine="cuda", progress=tell)
    for pair, model in zip(pairs, fitted, strict=True):
        curve = Curve(parts)
        curve(model.n_steps_, model)
        found[pair] = model, curve.found
    return found


def answers_of(model: GroupPolicies, part: Part, parts: Parts) -> Answers:
    """Return what each group's policy says about the people of a part."""
    answers = respond(
        model, part.X, sensitive_features=part.s, y=part.y, pos_label=parts.pos_label, change_columns=False
    )
    return replace(answers, min_group=parts.min_group, threshold=parts.threshold, weights=part.w)


def model_for(parts: Parts, settings: Settings, policies: str, weight: float, parity: bool) -> Any:
    """Return a model that is not fitted yet."""
    reward = Likelihood() + LogRatio()
    if parity:
        bar = parts.threshold  # for the positive label, which may be the first of the two
        if bar is not None and parts.pos_label == min(parts.train.y):
            bar = 1 - bar
        reward = reward + Parity(bound=settings.parity_bound, min_group=parts.min_group, threshold=bar)
    every = max(100, people_met(settings.epochs, len(parts.train.y)) // CURVE_POINTS)
    # The preprocessor has standardised the columns already.
    networks = CooperativeBandits(epochs=settings.epochs, standardize=False, checkpoint_every=every)
    trees = CooperativeBoosting()
    kinds: dict[str, Any] = {
        "both": CooperativeEnsemble(bandits=networks, boosting=trees), "networks": networks, "trees": trees
    }  # fmt: skip
    return kinds[policies].set_params(divergence_weight=weight, reward=reward, random_state=settings.seed)


class Curve:
    """A model's measures during training, on some people of the validation part."""

    def __init__(self, parts: Parts) -> None:
        few = slice(_CURVE_PEOPLE)
        X, y, s, contexts, w = parts.validation
        self._parts = parts
        self._watched = Part(X[few], y[few], s[few], contexts[few], None if w is None else w[few])
        names = ("accuracy", "discrimination", "flip_rate")
        self.found: dict[str, Any] = {"steps": [], "series": {name: [] for name in names}}

    def __call__(self, step: int, model: GroupPolicies) -> None:
        """Add the measures at a step."""
        found = measure(answers_of(model, self._watched, self._parts), intervals=False)
        self.found["steps"].append(int(step))
        for name, values in self.found["series"].items():
            values.append(found[name]["value"])


def _train(
    parts: Parts, settings: Settings, weight: float, parity: bool,
    networks: tuple[CooperativeBandits, dict[str, Any]] | None,
) -> tuple[list[Caution], float, bool, Any, dict[str, Any]]:  # fmt: skip
    """Return warnings, λ, whether there is parity, the trained model, and its measures."""
    model = model_for(parts, settings, settings.policies, weight, parity)
    watch, train = Curve(parts), parts.train
    curve = watch.found
    with kept() as cautions:
        if networks is None:
            model.fit(train.X, train.y, train.w, sensitive_features=train.s, callback=watch)
        elif settings.policies == "networks":
            model, curve = networks
        else:
            given = {"sensitive_features": train.s, "callback": watch}
            model.fit_trees(networks[0], train.X, train.y, train.w, **given)
    alone = {} if settings.policies != "both" else {"networks": model.bandits_, "trees": model.boosting_}

    def validated(model: GroupPolicies) -> dict[str, Measure]:
        return measure(answers_of(model, parts.validation, parts), intervals=False)

    beside = {policies: validated(part) for policies, part in alone.items()}
    measured = {"validation": validated(model), "curve": curve, "beside": beside}
    return cautions, weight, parity, model, measured


def _candidate(
    settings: Settings, weight: float, parity: bool, model: Any, measured: dict[str, Any]
) -> Candidate:
    parts = {"networks": "bandits_", "trees": "boosting_"}
    beside = tuple(
        Candidate(weight, parity, getattr(model, parts[policies]), validation, policies=policies)
        for policies, validation in measured["beside"].items()
    )
    found = measured["validation"], measured["curve"], settings.policies
    return Candidate(weight, parity, model, *found, beside)
