"""Fits many models to the same people: one for each point of a parameter grid."""

from __future__ import annotations

import copy
import warnings
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from threading import Event
from typing import Any, NamedTuple

from joblib import Parallel, delayed  # scikit-learn's would change the process's warning filters in threads
from sklearn import config_context, get_config
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import ParameterGrid

from evenhand.bandits.base import Choice, PolicyLearner
from evenhand.bandits.cautions import Caution, each_once, kept, warn
from evenhand.bandits.cuda import asked_of, train_all, train_and_select
from evenhand.bandits.cuda.spec import check_supported
from evenhand.bandits.kernels.structs import People, Rows
from evenhand.bandits.scaling import Scaling, on_one_scale
from evenhand.bandits.splits import Crowd, Task, scouted, tasks_of
from evenhand.bandits.training import Run, TrainingDivergedError
from evenhand.checks import jobs, one_of
from evenhand.cuda import ENGINES, check_engine
from evenhand.metrics.networks import Frozen
from evenhand.metrics.selection import Best, Criterion, criterion_of
from evenhand.progress import Progress, or_nothing


def fit_many(
    estimator: Any,
    grid: Mapping[str, Any] | Iterable[Mapping[str, Any]],
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    sensitive_features: Any = None,
    cv: Any = None,
    select: str | Criterion | None = None,
    pos_label: Any = None,
    on_divergence: str = "raise",
    engine: str = "cpu",
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> list[Any]:
    """Fit an estimator at every point of a parameter grid.

    Parameters
    ----------
    estimator : estimator
        `CooperativeBandits`, `GradientBandit`, or any other classifier. It is cloned, not fitted itself.
    grid : dict or list of dict
        The values of each parameter, as for scikit-learn's `ParameterGrid`.
    X, y : array-like
        Contexts, one row per person, and labels.
    sample_weight : array-like, optional
        The number of people each person represents.
    sensitive_features : array-like, str or list of str, optional
        Each person's group, or the names of columns of X that hold it.
    cv : int, splitter or iterable, optional
        Splits of the people, as for scikit-learn's `cross_validate`; with a splitter that needs groups, pass
        `list(splitter.split(X, y, groups))`. Every grid point is fitted on the first part of every split. By
        default, every point is fitted once, on everybody.
    select : {'discrimination', 'delta', 'bounded'} or `evenhand.protocol.Criterion`, optional
        Score each model on the second part of its split, every `checkpoint_every` steps, and return the best
        checkpoint instead of the last one. 'discrimination': the one with the lowest discrimination. 'delta':
        the highest accuracy minus discrimination. 'bounded': the highest accuracy among those with a
        discrimination of at most 0.05; if there are none, the lowest discrimination. `history_` and
        `n_steps_` remain those of the whole training. Without groups, discrimination is 0.
    pos_label : label, optional
        The positive label, whose rates `select` compares between groups; the second of two labels by default.
    on_divergence : {'raise', 'warn'}
        What happens if the training of a model diverges. 'raise' raises `TrainingDivergedError`. With 'warn',
        that model is returned unfitted, and a `FitFailedWarning` names it.
    engine : {'cpu', 'cuda'}
        Where models are trained. On the CPU, they equal those of separate fits, bit for bit. 'cuda' trains
        all `CooperativeBandits` or `GradientBandit` models at once on a GPU, with the same random numbers but
        in single precision, and scores their checkpoints there. It needs `pip install 'evenhand[cuda]'` and
        a GPU of compute capability 8.0 or higher. It supports all rewards except `Custom`, and no
        `sample_weight` together with `select`.
    n_jobs : int
        The number of models that the CPU trains at a time, in threads; -1 for one per core.
    progress : Progress, optional
        Where to show progress, such as `evenhand.progress.to_stderr()`; nowhere by default.

    Returns
    -------
    list of estimators
        The fitted models, split by split, each split in the order of scikit-learn's `ParameterGrid`. Models
        from a GPU have `engine_` set to 'cuda'. With `select`, `selected_` has the step and the scores of the
        returned checkpoint.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand import CooperativeBandits, fit_many
    >>> rng = np.random.default_rng(0)
    >>> s, X = rng.choice(["f", "m"], 300), rng.normal(size=(300, 3))
    >>> y = X[:, 0] + 0.5 * (s == "m") > 0
    >>> grid = {"divergence_weight": [0, 20], "random_state": [0, 1, 2]}
    >>> models = fit_many(CooperativeBandits(steps=1000), grid, X, y, sensitive_features=s)
    >>> [(model.divergence_weight, model.random_state) for model in models][:4]
    [(0, 0), (0, 1), (0, 2), (20, 0)]

    Two splits, and the best of five checkpoints of each model:

    >>> plain = CooperativeBandits(steps=1000, checkpoint_every=200, random_state=0)
    >>> grid = {"divergence_weight": [0, 20]}
    >>> models = fit_many(plain, grid, X, y, sensitive_features=s, cv=2, select="delta")
    >>> len(models), sorted(models[0].selected_)
    (4, ['accuracy', 'delta', 'discrimination', 'flip_rate', 'positive_rate', 'step'])
    """
    one_of("engine", engine, ENGINES)
    progress = or_nothing(progress)
    one_of("on_divergence", on_divergence, ("raise", "warn"))
    criterion, n_jobs = None if select is None else criterion_of(select), jobs(n_jobs)
    # Set the parameters of every point before the first fit. Points share no random state.
    points = list(ParameterGrid(list(grid) if isinstance(grid, Iterator) else grid))
    models = [
        clone(estimator).set_params(**{name: clone(value, safe=False) for name, value in point.items()})
        for point in points
    ]
    if engine == "cuda" or criterion is not None:
        _check_learners(models, f"select={select!r}" if engine == "cpu" else f"engine={engine!r}")
    if criterion is not None and cv is None:
        raise ValueError(f"Got select={select!r}, but no cv; expected splits, whose second parts it scores.")
    if criterion is None and pos_label is not None:
        raise ValueError(f"Got pos_label={pos_label!r}, but no select; only select uses it.")
    check_engine(engine)
    given = {"sample_weight": sample_weight, "sensitive_features": sensitive_features}
    given = {name: value for name, value in given.items() if value is not None}
    if cv is None:
        tasks = [Task(models, Crowd(X, y, given, {}))]
    else:
        everybody = Crowd.to_split(X, y, given)
        tasks = list(tasks_of(models, everybody, cv, criterion is not None, pos_label))
    with each_once():
        if engine == "cuda":
            errors = _at_once(tasks, criterion, progress)
        else:
            errors = _one_by_one(tasks, criterion, n_jobs, progress, stops=on_divergence == "raise")
    _settle(tasks, points, errors, raises=on_divergence == "raise")
    return [model for task in tasks for model in task.models]


def _settle(
    tasks: list[Task], points: list[dict[str, Any]], errors: list[Exception | None], raises: bool
) -> None:
    """Raise the first error, or replace the models that failed by unfitted ones, and warn about them."""
    failed = []
    places = ((task, at) for task in tasks for at in range(len(task.models)))
    for (task, at), error in zip(places, errors, strict=False):  # training stopped at an error to raise
        if error is None:
            continue
        if raises:
            task.note(error, f" with {points[at]}")
            raise error
        task.models[at] = clone(task.models[at])
        failed.append(f"{points[at]}{task.place}: {error}")
    if failed:
        text = f"{len(failed)} of {len(errors)} models are not fitted, because their training diverged:"
        warnings.warn("\n".join([text, *failed]), FitFailedWarning, stacklevel=3)


def _check_learners(models: list[Any], what_for: str) -> None:
    others = [type(model).__name__ for model in models if not isinstance(model, PolicyLearner)]
    if others:
        raise ValueError(
            f"Got {others[0]} for {what_for}, but expected CooperativeBandits or GradientBandit."
        )


class Fitted(NamedTuple):
    """What there is to say after a fit: the kind of model, the error if it diverged, and warnings."""

    name: str
    error: Exception | None
    cautions: list[Caution]


def _one_by_one(
    tasks: list[Task], criterion: Criterion | None, n_jobs: int, progress: Progress, stops: bool
) -> list[Exception | None]:
    """Fit models on the CPU; return an error for each that diverged, up to the first one if it `stops`."""
    # Threads: the training loop releases the GIL, and the models that are fitted are the ones returned.
    stopped, errors = Event(), []
    config = get_config()  # threads begin with scikit-learn's own
    fits = (delayed(_fit)(model, task, criterion, stopped, config) for task in tasks for model in task.models)
    with progress.stage("Models", sum(len(task.models) for task in tasks)) as done:
        results: Iterator[Fitted] = Parallel(n_jobs, require="sharedmem", return_as="generator")(fits)
        try:
            for name, error, cautions in results:
                for caution in cautions:
                    warn(*caution)  # not in threads, so that it points to the user's own call
                errors.append(error)
                if stops and error is not None:
                    break
                done(name)
        finally:
            stopped.set()
            with suppress(Exception):  # of fits that were under way
                deque(results, maxlen=0)  # joblib warns of results that nobody takes
    return errors


def _fit(
    model: Any, task: Task, criterion: Criterion | None, stopped: Event, config: dict[str, Any]
) -> Fitted:
    name = type(model).__name__
    if stopped.is_set():
        return Fitted(name, None, [])
    people = task.people
    with config_context(**config), task.named(), kept() as cautions:
        try:
            if criterion is None or task.judged is None:
                model.fit(people.X, people.y, **people.given)
            else:
                model.fit(people.X, people.y, **people.given, callback=Choice(task.judged, criterion))
        except TrainingDivergedError as error:
            return Fitted(name, error, cautions)
    return Fitted(name, None, cautions)


def _at_once(tasks: list[Task], criterion: Criterion | None, progress: Progress) -> list[Exception | None]:
    """Fit networks on a GPU; return an error for each that diverged."""
    ready, asked = [], []
    for task in tasks:
        with task.named():
            mine = list(map(Together(task.people).ready, task.models))
        ready += mine
        if task.judged is not None:
            asked += asked_of(task.judged, [scaling for _, scaling in mine])
    runs = [run for run, _ in ready]
    best: list[Best[Frozen] | None] = [None] * len(runs)
    if criterion is None:
        errors = train_all(runs, progress)
    else:
        watched = train_and_select(runs, asked, criterion, progress)
        errors = [each.error for each in watched]
        best = [each.best.get(criterion.name) for each in watched]
    models = [model for task in tasks for model in task.models]
    found = [each for each in zip(models, ready, best, errors, strict=True) if each[-1] is None]
    looks = (delayed(model._looked_at)(*one, chosen) for model, one, chosen, _ in found)
    seen = Parallel(-1, require="sharedmem")(looks)
    # Not in threads, so that warnings point to the user's own call.
    for (model, one, chosen, _), own in zip(found, seen, strict=True):
        has_run_on_gpu(model, *one, own, chosen)
    return errors


def has_run_on_gpu(
    model: Any, run: Run, scaling: Scaling | None, own: Any = None, best: Best[Frozen] | None = None
) -> None:
    """Publish what a GPU has trained as a fitted model, or its best checkpoint.

    `own` is the result of `_looked_at`.
    """
    model._has_run(run, scaling, own, best)
    model.engine_ = "cuda"


class Together:
    """Makes models of the same people ready to train; models that check them alike share one checked copy."""

    def __init__(self, people: Crowd) -> None:
        self.people = people
        self._seen: dict[str, tuple[Any, People, Scaling | None, Rows]] = {}

    def ready(self, model: Any) -> tuple[Run, Scaling | None]:
        """Return a run that is ready to start, and the scale of its rows; raise if it can't be trained."""
        alike = repr((type(model), model.class_weight, model.standardize))
        if alike not in self._seen:
            scout, (contexts, met) = scouted(model, self.people)
            self._seen[alike] = scout, met, *on_one_scale(contexts, model.standardize)
        first, met, scaling, rows = self._seen[alike]
        fitted = {name: value for name, value in vars(first).items() if name.endswith("_")}
        vars(model).update(copy.deepcopy(fitted))
        model._begin(model.n_features_in_, len(getattr(model, "groups_", ("everyone",))))
        run = model._ready_to_run(rows, met, decays=True)
        check_supported(run.training.policies, run.terms)
        return run, scaling
