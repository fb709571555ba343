"""`evenhand fit`: from a table to a fair model, its card, and a picture of what fairness cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from evenhand.checks import number, one_of
from evenhand.cli import options
from evenhand.cli.console import (
    JobFailedError,
    command_line,
    on_stdout,
    print_json,
    print_table,
    progress,
    say,
    warn,
)
from evenhand.report.render import in_numbers, interval
from evenhand.report.summarise import made, summary_of
from evenhand.tables.preprocessing import Part, prepare
from evenhand.tables.splits import split
from evenhand.workflow.deployed import Deployed
from evenhand.workflow.notes import on_bounds, on_columns, on_groups
from evenhand.workflow.output import card_for, card_path, write
from evenhand.workflow.resuming import Unfinished
from evenhand.workflow.study import study_of
from evenhand.workflow.table import (
    PERSON_NUMBER,
    check_groups,
    check_written,
    describe,
    kinds_of,
    open_table,
    source_of,
)
from evenhand.workflow.tradeoff import (
    CRITERIA,
    PARITY_BOUND,
    WEIGHTS,
    Candidate,
    bounds_of,
    choose,
    in_words,
    said_by_group,
    train_all,
)

EXAMPLES = (
    "[bold]Examples[/]\n\n"
    "evenhand fit people.csv --label income --sensitive sex -o model.skops --report report.html\n\n"
    "evenhand fit people.csv --label hired --sensitive sex --sensitive race --max-discrimination 0.02 "
    "--max-flip 0.01"
)
_TABLE = ("accuracy", "discrimination", "flip_rate", "positive_rate")


def run(
    data: Annotated[Path, typer.Argument(help="A CSV or Parquet file, one person a row.")],
    label: options.Label = None,
    sensitive: options.Sensitive = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The model file.")] = Path("model.skops"),
    positive: options.Positive = None,
    drop: options.Drop = None,
    categorical: options.Categorical = None,
    criterion: Annotated[
        str | None,
        typer.Option(
            help="Choose by 'even' (accuracy − discrimination − flip rate), 'delta' (accuracy − "
            "discrimination), 'discrimination' or 'accuracy'. Default: even; accuracy if there are bounds."
        ),
    ] = None,
    max_discrimination: Annotated[
        float | None, typer.Option(min=0, max=1, help="Only models that discriminate at most so much.")
    ] = None,
    max_flip: Annotated[
        float | None, typer.Option(min=0, max=1, help="Only models under which at most this share flips.")
    ] = None,
    weights: Annotated[str, typer.Option(help="The divergence weights λ to try, by commas.")] = ",".join(
        map("{:g}".format, WEIGHTS)
    ),
    epochs: Annotated[
        str,
        typer.Option(
            help="How often each person is met in training; 'auto' is 20 times, but at least 20,000 and at "
            "most 400,000 people in all."
        ),
    ] = "auto",
    seed: options.Seed = 0,
    jobs: Annotated[int, typer.Option(help="Models trained at a time; -1 is one a core.")] = -1,
    report: options.Report = None,
    summary: options.Summary = None,
    encoding: options.Encoding = "utf-8",
    as_json: options.Json = False,
) -> None:
    """Train fair models on your own table, show what fairness costs, and save the one you choose.

    70 % of the people train, 15 % choose, 15 % test. The model file holds the preprocessing too; its card,
    in Markdown and JSON, lies beside it. Killed, the same command goes on from the models trained so far.
    """
    grid, times = _weights(weights), _epochs(epochs)
    if jobs == 0:
        raise ValueError("Got --jobs 0, but expected 1 or more, or -1 for one a core.")
    by = criterion or ("even" if max_discrimination is None and max_flip is None else "accuracy")
    one_of("--criterion", by, CRITERIA)
    cards = [card_path(output, kind) for kind in ("md", "json")]
    check_written(output, *cards, report, summary, inputs=[data])
    dataset = open_table(
        data, label=label, sensitive=sensitive, positive=positive, drop=drop, categorical=categorical,
        encoding=encoding,
    )  # fmt: skip
    source = source_of(dataset)
    rows = split(dataset, seed=seed, stratify="both")
    dataset.notes.extend([*on_columns(dataset), *on_groups(dataset, rows)])
    if not as_json:  # there, the notes are in the document
        describe(dataset)
    check_groups(dataset, rows.train)
    parts = prepare(dataset, rows)
    bound = PARITY_BOUND if max_discrimination is None else max_discrimination / 2
    found: list[Candidate] = []
    unfinished = Unfinished(output, dataset.fingerprint, bound, times, seed)
    with progress("Training", 2 * len(grid)) as advance:
        for candidate in train_all(
            parts, weights=grid, parity_bound=bound, epochs=times, seed=seed, jobs=jobs, unfinished=unfinished
        ):
            found.append(candidate)
            advance(candidate.name, 1)
    found.sort(key=lambda candidate: (candidate.parity, candidate.divergence_weight))
    try:
        chosen = choose(found, criterion=by, max_discrimination=max_discrimination, max_flip=max_flip)
    except JobFailedError:
        unfinished.clear()
        _show_what_was_trained(found, dataset.notes, by, as_json)
        raise
    say("Measuring on the test part …")
    tested = dataset.row_numbers[rows.test].tolist()
    measured = study_of(dataset, parts, found, chosen, tested, seed=seed, epochs=times)
    best = next(model for model in measured["models"] if model["chosen"])
    bounds = bounds_of(max_discrimination, max_flip)
    broken = on_bounds(bounds, best["metrics"])
    measured["notes"] += [*broken, PERSON_NUMBER]
    how = made(command_line(), seeds=[seed], data=[source])
    whole = summary_of("fit", f"{dataset.name}: {dataset.label.name}", [measured], how)
    study = whole["studies"][0]
    kept = [f"Kept on the validation part, as asked: {in_words(bounds)}."] if bounds else []
    card = card_for(
        dataset, parts, chosen, by, bounds=[*kept, *broken], metrics=best["metrics"], groups=study["groups"],
        source=source, made=how,
    )  # fmt: skip
    deployed = Deployed(
        parts.preprocessor, chosen.model, kinds_of(dataset), str(dataset.label.name),
        dataset.sensitive_columns, dataset.pos_label, json.loads(json.dumps(card, default=str)),
    )  # fmt: skip
    written = write(deployed, card, whole, output, report, summary)
    unfinished.clear()
    if as_json:
        print_json(
            {"chosen": chosen.name, "criterion": by, "bounds": bounds, "test": best["metrics"],
             "groups": study["groups"], "models": _entries(found, chosen), "notes": [*dataset.notes, *broken],
             "written": {k: str(v) for k, v in written.items()}}
        )  # fmt: skip
        return
    _show(found, chosen, best["metrics"], written)
    for note in broken:
        warn(note)
    same = _most_given(chosen, parts.test)
    if same > 0.99:
        warn(f"the chosen model gives {100 * same:.1f} % of people the same answer.")


def _weights(text: str) -> list[float]:
    try:
        given = [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"Got --weights {text!r}, but expected numbers by commas, such as 0,1,10.") from None
    return sorted({number("--weights", weight, low=0) for weight in given})


def _epochs(text: str) -> float | str:
    if text == "auto":
        return text
    try:
        given = float(text)
    except ValueError:
        raise ValueError(f"Got --epochs {text!r}, but expected 'auto' or a number, such as 20.") from None
    return number("--epochs", given, low=0, open_low=True)


def _most_given(chosen: Candidate, part: Part) -> float:
    """Return the share of people who get the commonest answer."""
    said, own = said_by_group(chosen.model, part)
    decided = said[np.arange(len(own)), own].argmax(1)
    return float(np.bincount(decided).max() / len(own))


def _entries(found: list[Candidate], chosen: Candidate | None) -> list[dict[str, Any]]:
    return [
        {"name": candidate.name, "chosen": candidate is chosen, "validation": candidate.validation}
        for candidate in found
    ]


def _show_what_was_trained(found: list[Candidate], notes: list[str], by: str, as_json: bool) -> None:
    """Show the trade-off where no model keeps the bounds: what else could be asked for stands there."""
    if as_json:
        print_json({"chosen": None, "criterion": by, "models": _entries(found, None), "notes": notes})
    else:
        _show_trade_off(found, None)


def _show_trade_off(found: list[Candidate], chosen: Candidate | None) -> None:
    names = [name for name in _TABLE if name in found[0].validation]
    rows = [
        [candidate.name, *(in_numbers(candidate.validation[name], name) for name in names)]
        for candidate in found
    ]
    titles = ["", *(name.replace("_", " ") for name in names)]
    marked = None if chosen is None else found.index(chosen)
    print_table("What fairness costs (validation part)", titles, rows, marked=marked)


def _show(found: list[Candidate], chosen: Candidate, test: dict[str, Any], written: dict[str, Path]) -> None:
    _show_trade_off(found, chosen)
    on_stdout().print()
    rows = [
        [name.replace("_", " "), in_numbers(test[name], name), interval(test[name], name)] for name in test
    ]
    print_table(f"Chosen: {chosen.name} (test part)", ["", "value", "95 % interval"], rows)
    on_stdout().print()
    for what, path in written.items():
        on_stdout().print(f"{what.replace('_', ' '):12} {path}", soft_wrap=True, markup=False)
