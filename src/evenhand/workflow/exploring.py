"""`explore`: from a table to the models that trade accuracy against fairness."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from evenhand.arrays import Codes
from evenhand.bandits.cautions import each_once
from evenhand.bandits.fitting import check_epochs
from evenhand.checks import MIN_GROUP, integer, jobs, number, one_of
from evenhand.cuda import check_engine
from evenhand.progress import Progress, or_nothing, to_stderr
from evenhand.tables.columns import Place
from evenhand.tables.dataset import Dataset
from evenhand.tables.files import Table, read_table
from evenhand.tables.load import load_table
from evenhand.tables.preprocessing import Parts, prepare
from evenhand.tables.splits import Split
from evenhand.tables.splits import split as split_people
from evenhand.workflow.candidates import Candidate, Settings, TrainedSoFar, networks_on_gpu, train_all
from evenhand.workflow.defaults import PARITY_BOUND, POLICIES, WEIGHTS
from evenhand.workflow.frontier import Frontier
from evenhand.workflow.leaks import LeakWarning, on_leaks
from evenhand.workflow.rare import settle_threshold
from evenhand.workflow.stream_training import train_networks
from evenhand.workflow.streamed import Stream, on_stream, pieces_for, streamed
from evenhand.workflow.table import check_groups, check_labels, on_columns, on_groups, on_labels

_NOT_IN_COMMAND = ("table", "n_jobs", "split", "resume", "progress", "verbose", "command")


def explore(
    table: Any,
    *,
    label: str | None = None,
    sensitive: str | Sequence[str] | None = None,
    positive: Any = None,
    drop: str | Sequence[str] = (),
    categorical: str | Sequence[str] = (),
    encoding: str = "utf-8",
    decimal: str | None = None,
    sheet: str | None = None,
    map: Mapping[Any, Any] | None = None,
    unknown: str = "drop",
    merge_small: str | None = None,
    min_group: int = MIN_GROUP,
    weight: str | None = None,
    weights: Sequence[float] = WEIGHTS,
    threshold: float | str | None = None,
    parity_bound: float = PARITY_BOUND,
    policies: str = POLICIES[0],
    epochs: float | str = "auto",
    buffer_rows: int | None = None,
    random_state: int = 0,
    engine: str = "cpu",
    n_jobs: int = -1,
    split: Sequence[Codes] | None = None,
    resume: str | Path | None = None,
    progress: Progress | None = None,
    verbose: bool = False,
    command: str | None = None,
) -> Frontier:
    """Train fair models on a table and measure what fairness costs.

    Models are trained on 70 % of the people; 15 % are used to choose one (validation), and 15 % to test it.
    The parts have about the same shares of labels and groups, and every label needs at least 7 people. For
    every divergence weight λ, one model is trained with parity and one without. `candidates` of the frontier
    lists the models; `choose` returns one that is ready for use. `evenhand fit` does the same.

    Parameters
    ----------
    table : str, Path, DataFrame or Dataset
        One row per person: a CSV, Parquet or Excel file; a folder of Parquet files; a DataFrame of pandas,
        Polars, Arrow, Dask or any other library that narwhals supports; or a data set such as
        `evenhand.datasets.load_adult()` returns.
    label : str, optional
        The column to predict. Guessed if None.
    sensitive : str or list of str, optional
        The sensitive column. With several, the groups are the combinations of values. Guessed if None.
    positive : object, optional
        The label that counts as the positive decision. With two labels, it is guessed. With more, there is
        none by default, and a difference between groups is the largest over the labels.
    drop : str or list of str
        Columns to leave out.
    categorical : str or list of str
        Columns whose numbers are codes, not amounts.
    encoding : str
        The encoding of a CSV file.
    decimal : {'.', ','}, optional
        The decimal sign in text. Guessed for a CSV file whose columns are not separated by commas.
    sheet : str, optional
        The sheet of an Excel file; by default the first.
    map : dict, optional
        New names for values: `{"yes": 1, "no": 0}` renames labels, `{"sex:0": "f"}` renames a value of
        another column. A value whose new name is None counts as missing.
    unknown : {'drop', 'keep'}
        People whose group is unknown (an empty cell, '?', 'unknown', 'N/A', ...) are left out, or kept as a
        group called 'unknown'.
    merge_small : str, optional
        The name of a group into which all groups with fewer than `min_group` people are merged.
    min_group : int
        Discrimination is the largest difference between groups, so a handful of people could determine it.
        Therefore, where groups are compared, a group of fewer people is filled up to this number with people
        who have the average rates of everybody, if at least two groups are large enough. Flips are counted
        among all people. `experiments/tiny_groups.py` compares such rules by the models they choose.
    weight : str, optional
        The column with sample weights: how many people each row stands for. Training, choosing and testing
        use these weights. The column is not a feature.
    weights : list of float
        The divergence weights λ to try.
    threshold : float or 'balanced', optional
        For two labels: the decision is the positive label if its probability is at least this, in every
        group. 'balanced' is the share of people with that label; for calibrated probabilities, it gives the
        highest balanced accuracy. By default, the more probable label is decided. But if a label is rare
        (below 20 %) and hardly anybody would get it, the default is 'balanced', and `notes` says so. The
        threshold is used to train parity, to choose a model and to decide. It rescales no probabilities.
    parity_bound : float
        The discrimination that the parity term tolerates. A good choice is half of the `max_discrimination`
        that you will ask for; `evenhand fit` uses that.
    policies : {'both', 'networks', 'trees'}
        The kind of policies: networks (`CooperativeBandits`), boosted trees (`CooperativeBoosting`), or the
        mean of both (`CooperativeEnsemble`). With 'both', networks and trees alone are also shown.
    epochs : float or 'auto'
        How often the training of networks visits each person. 'auto' is 20 times, but at least 20,000 and at
        most 400,000 visits in all; if there are more people than that, it is once.
    buffer_rows : int, optional
        The number of people to hold in memory of a table that is streamed; by default 200,000. Streamed are
        folders of Parquet files, Dask frames, CSV files of more than 1 GiB, and Parquet files, DuckDB
        relations and Arrow data sets of more than 1,000,000 rows. With `buffer_rows`, smaller ones are too.
        Networks learn from the whole training part, shuffled on disk. Trees, references, validation and test
        use about this many people each, or fewer, drawn at random.
    random_state : int
        The seed. The same seed gives the same split and the same models.
    engine : {'cpu', 'cuda'}
        Where to train networks. 'cuda' trains all of them at once on a GPU (`pip install 'evenhand[cuda]'`),
        which pays off with many weights. Trees are trained on the CPU. A streamed table needs 'cpu'.
    n_jobs : int
        The number of models to train at a time on the CPU; -1 is one per core.
    split : three arrays of int, optional
        The positions of the training, validation and test people among those that are not left out, in place
        of the random split.
    resume : path, optional
        A folder that keeps the trained models. If a call is killed, the same call with the same folder
        continues where it stopped. Models of other data, settings or code are not used. If the folder can't
        be written, nothing is kept, and `progress` says so. Delete the folder when you are done.
    progress : Progress, optional
        Where to report the progress of training; by default nowhere.
    verbose : bool
        Whether to report it on standard error, if `progress` is None.
    command : str, optional
        The command that the report and the model card name; by default this call.

    Returns
    -------
    Frontier
        The trained models, with their measures on the validation part.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame({"skill": rng.normal(size=300), "sex": rng.choice(["f", "m"], 300)})
    >>> people["hired"] = np.where(people["skill"] + (people["sex"] == "m") > 0.5, "yes", "no")
    >>> frontier = explore(people, label="hired", sensitive="sex", weights=[0, 20], epochs=10, n_jobs=1)
    >>> frontier.candidates["name"].tolist()
    ['λ = 0', 'λ = 20', 'λ = 0, with parity', 'λ = 20, with parity']
    >>> model = frontier.choose(max_flip=0.1)
    >>> model.decide(people.head(3)).decision.shape
    (3,)
    """
    given = {name: value for name, value in locals().items() if name not in _NOT_IN_COMMAND}
    settings = _checked(weights, parity_bound, policies, epochs, random_state, n_jobs)
    check_engine(engine)  # before anything is read
    if resume is not None and Path(resume).is_file():
        raise NotADirectoryError(f"Got resume={str(resume)!r}, which is a file; expected a folder.")
    if verbose and progress is None:
        progress = to_stderr()
    tell = or_nothing(progress)
    opened = _open(
        table, buffer_rows, split, settings.seed, resume, label=label, sensitive=sensitive,
        pos_label=positive, drop=drop, categorical=categorical, encoding=encoding, decimal=decimal,
        sheet=sheet, map=map, unknown=unknown, merge_small=merge_small, min_group=min_group, weight=weight,
    )  # fmt: skip
    with each_once(), opened as (dataset, place, rows, stream):
        if stream is not None and engine != "cpu":
            raise ValueError(f"Got engine={engine!r} for a table that is streamed, but expected 'cpu'.")
        leaks = on_leaks(dataset, rows)
        if progress is None:  # otherwise, `progress` gets all notes
            for text in leaks:
                warnings.warn(text, LeakWarning, stacklevel=2)
        notes = [*leaks, *dataset.notes, *on_columns(dataset), *on_groups(dataset, rows, min_group)]
        notes += [*on_labels(dataset, rows), *(on_stream(dataset, rows, settings) if stream else [])]
        for text in (repr(dataset), *(f"  {note}" for note in notes)):
            tell.say(text)
        check_labels(dataset, rows.train, place)
        check_groups(dataset, rows.train)
        fitted = None if stream is None else stream.preprocessor
        parts = prepare(dataset, rows, min_group=min_group, fitted=fitted)
        bar, said = settle_threshold(threshold, parts)
        parts, notes = replace(parts, threshold=bar), [*notes, *said]
        for note in said:
            tell.say(f"  {note}")
        before = None
        if resume is not None:
            given_rows = None if split is None else [part.tolist() for part in rows]
            of_stream = None if stream is None else (stream.key, stream.total.tolist(), stream.spool.buckets)
            before = TrainedSoFar(
                Path(resume), tell.say, settings, dataset.fingerprint, str(dataset.label.dtype),
                repr(dataset.pos_label), given_rows, min_group, bar, of_stream, engine,
            )  # fmt: skip
        trained = _trained(parts, settings, stream, before, engine, n_jobs, tell)
    return Frontier(
        dataset=dataset,
        notes=notes,
        trained=trained,
        parts=parts,
        test_rows=dataset.row_numbers[rows.test].tolist(),
        settings=settings,
        command=command or _call(table, given),
    )


def _trained(
    parts: Parts, settings: Settings, stream: Stream | None, before: TrainedSoFar | None, engine: str,
    n_jobs: int, tell: Progress,
) -> list[Candidate]:  # fmt: skip
    """Train all models; networks on a stream or a GPU are trained first, all together."""
    networks = None
    if stream is not None and settings.policies != "trees":
        pairs, state = (settings.pairs, None) if before is None else before.together()
        networks = train_networks(stream, parts, settings, pairs, jobs=n_jobs, tell=tell, state=state)
    if engine == "cuda" and settings.policies != "trees":
        networks = networks_on_gpu(parts, settings, before, tell)
    trained = []
    with tell.stage("Training", 2 * len(settings.weights)) as done:
        for candidate in train_all(parts, settings, jobs=n_jobs, before=before, networks=networks):
            trained.append(candidate)
            done(candidate.name)
    return sorted(trained, key=lambda one: (one.parity, one.divergence_weight))


@contextmanager
def _open(
    table: Any, buffer_rows: int | None, split: Sequence[Codes] | None, seed: int,
    folder: str | Path | None, *, encoding: str, decimal: str | None, sheet: str | None, **roles: Any,
) -> Iterator[tuple[Dataset, Place, Split, Stream | None]]:  # fmt: skip
    """Yield the data set, a function that says where a row is, the split, and the stream, if any."""
    pieces = None
    if split is None or buffer_rows is not None:
        pieces = pieces_for(table, buffer_rows, encoding=encoding, decimal=decimal, sheet=sheet)
    if pieces is not None:
        if split is not None:
            raise ValueError("Got a split for a table that is streamed, whose rows are drawn one by one.")
        found = streamed(pieces, seed=seed, buffer_rows=buffer_rows, folder=folder, **roles)
        with found as (dataset, rows, stream):
            yield dataset, pieces.place, rows, stream
        return
    if isinstance(table, Dataset):
        defaults = inspect.signature(load_table).parameters
        for name, value in roles.items():
            if name != "min_group" and value != defaults[name].default:
                called = "positive" if name == "pos_label" else name
                raise ValueError(f"Got {called}={value!r} with a Dataset, which knows its columns.")
        dataset, place = table, Table(table.contexts, f"the data set {table.name!r}").place
    else:
        source = read_table(table, encoding=encoding, decimal=decimal, sheet=sheet)
        dataset, place = load_table(source, **roles), source.place
    rows = split_people(dataset, seed=seed, stratify="both") if split is None else Split(*split)
    yield dataset, place, rows, None


def _checked(
    weights: Any, parity_bound: float, policies: str, epochs: float | str, random_state: int, n_jobs: int
) -> Settings:
    if isinstance(weights, str) or not isinstance(weights, Iterable):
        raise ValueError(f"Got weights={weights!r}, but expected a list of numbers, such as [0, 1, 10].")
    if not (grid := sorted({number("weights", weight, low=0) for weight in weights})):
        raise ValueError("Got no weights, but expected at least one.")
    jobs(n_jobs)
    return Settings(
        weights=grid,
        parity_bound=number("parity_bound", parity_bound, low=0, high=1),
        epochs=check_epochs(epochs),
        seed=integer("random_state", random_state, low=0),
        policies=one_of("policies", policies, POLICIES),
    )


def _call(table: Any, given: dict[str, Any]) -> str:
    """Return the call as it would be typed, without arguments left at their defaults."""
    defaults = inspect.signature(explore).parameters
    first = repr(str(table)) if isinstance(table, (str, Path)) else type(table).__name__
    named = [f"{key}={value!r}" for key, value in given.items() if repr(value) != repr(defaults[key].default)]
    return f"evenhand.explore({', '.join([first, *named])})"
