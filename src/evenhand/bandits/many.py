"""Many models of the same people: a grid of parameters, each point fitted as it would be by itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import joblib
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from evenhand import checks
from evenhand.bandits.base import Later, PolicyLearner
from evenhand.bandits.cuda import train_all
from evenhand.bandits.kernels.structs import People, Rows
from evenhand.bandits.scaling import Scaling, on_one_scale
from evenhand.bandits.training import Run
from evenhand.cuda import ENGINES


def fit_many(
    estimator: Any,
    grid: Mapping[str, Any] | Iterable[Mapping[str, Any]],
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    sensitive_features: Any = None,
    engine: str = "cpu",
    n_jobs: int = 1,
) -> list[Any]:
    """Fit an estimator at every point of a grid, and return the fitted models in the grid's order.

    Parameters
    ----------
    estimator : estimator
        `CooperativeBandits`, `GradientBandit`, or any other classifier. It is copied, never fitted itself.
    grid : dict or list of dict
        The values of each parameter, as for scikit-learn's `ParameterGrid`, whose order the models have.
    X, y : array-like
        Contexts, one row per person, and labels.
    sample_weight : array-like, optional
        How many people each person stands for.
    sensitive_features : array-like, optional
        Each person's group.
    engine : {'cpu', 'cuda'}
        Where models are trained. On the CPU they are what separate fits give, bit for bit. 'cuda' trains
        `CooperativeBandits` and `GradientBandit` on a GPU, all at once, on the same random numbers in single
        precision; it needs `pip install 'evenhand[cuda]'`, and knows every reward but `Custom`.
    n_jobs : int
        How many models the CPU trains at a time, in threads; -1 for one per core.

    Returns
    -------
    list of estimators
        One per point; `get_params` says which. `engine_` of those from a GPU is 'cuda'.

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
    """
    checks.one_of("engine", engine, ENGINES)
    # Every point is checked before the first is fitted.
    models = [clone(estimator).set_params(**point) for point in ParameterGrid(grid)]
    given = {"sample_weight": sample_weight, "sensitive_features": sensitive_features}
    given = {name: value for name, value in given.items() if value is not None}
    if engine == "cuda":
        return _at_once(models, X, y, given)
    fits = (joblib.delayed(model.fit)(X, y, **given) for model in models)
    # Threads: the training loop releases the interpreter lock, and nothing has to be copied.
    fitted: list[Any] = joblib.Parallel(n_jobs=n_jobs, prefer="threads")(fits)
    return fitted


def _at_once(models: list[Any], X: Any, y: Any, given: dict[str, Any]) -> list[Any]:
    """Fit networks on a GPU."""
    others = [type(model).__name__ for model in models if not isinstance(model, PolicyLearner)]
    if others:
        raise ValueError(
            f"Got {others[0]} for engine='cuda', but expected CooperativeBandits or GradientBandit."
        )
    ready = ready_together(models, X, y, given)
    train_all([run for run, _ in ready])
    looks = (joblib.delayed(model._looked_at)(run) for model, (run, _) in zip(models, ready, strict=True))
    seen = joblib.Parallel(n_jobs=-1, prefer="threads")(looks)
    # Not in threads: warnings come from the user's own call.
    for model, (run, scaling), own in zip(models, ready, seen, strict=True):
        has_run_on_gpu(model, run, scaling, own)
    return models


def has_run_on_gpu(model: Any, run: Run, scaling: Scaling | None, own: Any = None) -> None:
    """Make a model of what a GPU has trained, and let it say so; `own` is what `_looked_at` found."""
    model._has_run(run, scaling, own)
    model.engine_ = "cuda"


def ready_together(
    models: list[Any], X: Any, y: Any, given: dict[str, Any]
) -> list[tuple[Run, Scaling | None]]:
    """Return networks' training runs, ready to begin; people are checked once for all that see them alike."""
    seen: dict[str, tuple[Any, People, Scaling | None, Rows]] = {}
    ready = []
    for model in models:
        alike = repr((model.class_weight, model.standardize))
        if alike not in seen:
            later = Later()
            model.fit(X, y, **given, callback=later)
            contexts, people = later.told
            seen[alike] = model, people, *on_one_scale(contexts, model.standardize)
        first, people, scaling, rows = seen[alike]
        vars(model).update({name: value for name, value in vars(first).items() if name.endswith("_")})
        model._begin(model.n_features_in_, len(getattr(model, "groups_", ("everyone",))))
        ready.append((model._ready_to_run(rows, people, decays=True), scaling))
    return ready
