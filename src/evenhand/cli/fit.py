"""`evenhand fit`: from a table to a fair model, its card, and a picture of what fairness cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand.checks import MIN_GROUP, number, one_of
from evenhand.cli import console, options
from evenhand.workflow.defaults import CRITERIA, PARITY_BOUND, POLICIES, WEIGHTS

if TYPE_CHECKING:
    from evenhand.workflow.candidates import Candidate
    from evenhand.workflow.choosing import Choice, Wanted
    from evenhand.workflow.frontier import Frontier
    from evenhand.workflow.references import Reference

EXAMPLES = (
    "[bold]Examples[/]\n\n"
    "evenhand fit people.csv --label income --sensitive sex -o model.skops --report report.html\n\n"
    "evenhand fit people.csv --label hired --sensitive sex --sensitive race --max-discrimination 0.02 "
    "--max-flip 0.01"
)


Output = Annotated[Path, typer.Option("--output", "-o", help="Where to save the model.")]
Criterion = Annotated[
    str | None,
    typer.Option(
        help="What to choose by: 'even' (at most 1 % flips, then accuracy − discrimination − flip rate), "
        "'delta' (accuracy − discrimination), 'discrimination', 'accuracy', 'balanced_accuracy' or "
        "'balanced_even'. Default: 'accuracy' if you set bounds, otherwise 'even'; if a label is rare, with "
        "balanced accuracy."
    ),
]
MaxDiscrimination = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        help="Largest difference that you accept between the groups' shares of positive decisions.",
    ),
]
MaxFlip = Annotated[
    float | None,
    typer.Option(
        min=0,
        max=1,
        help="Largest share that you accept of people who would get a different decision in another group.",
    ),
]
Weights = Annotated[str, typer.Option(help="Divergence weights λ to try, separated by commas.")]
Epochs = Annotated[
    str,
    typer.Option(
        help="How many times networks see each person. 'auto' is 20 times, but between 20,000 and 400,000 "
        "people in all, counting repetitions; once, if there are more."
    ),
]
Policies = Annotated[
    str, typer.Option(help="Kind of policies: 'networks', boosted 'trees', or the mean of 'both'.")
]
BufferRows = Annotated[
    int | None,
    typer.Option(
        min=1000,
        help="People to hold in memory when a table is streamed. Default: 200,000. A folder of Parquet "
        "files, a Parquet file of more than 1,000,000 rows and a CSV file of more than 1 GiB are streamed; "
        "with this option, any Parquet or CSV file is."
    )
]  # fmt: skip
Threshold = Annotated[
    str | None,
    typer.Option(
        help="Decide for the positive label if its probability is at least this, in every group: a number, "
        "or 'balanced' for the highest balanced accuracy. Default: 0.5, unless a label is rare."
    ),
]
_WEIGHTS = ",".join(map("{:g}".format, WEIGHTS))
Engine = Annotated[
    str, typer.Option(help="Where to train networks: 'cpu', or 'cuda' for all of them at once on a GPU.")
]
Jobs = Annotated[int, typer.Option(help="Models to train at a time; -1 is one per core.")]


def run(
    data: options.Data,
    label: options.Label = None,
    sensitive: options.Sensitive = None,
    output: Output = Path("model.skops"),
    positive: options.Positive = None,
    drop: options.Drop = None,
    categorical: options.Categorical = None,
    unknown: options.Unknown = "drop",
    min_group: options.MinGroup = MIN_GROUP,
    merge_small: options.MergeSmall = None,
    criterion: Criterion = None,
    max_discrimination: MaxDiscrimination = None,
    max_flip: MaxFlip = None,
    threshold: Threshold = None,
    weight: options.Weight = None,
    weights: Weights = _WEIGHTS,
    policies: Policies = POLICIES[0],
    epochs: Epochs = "auto",
    buffer_rows: BufferRows = None,
    seed: options.Seed = 0,
    engine: Engine = "cpu",
    jobs: Jobs = -1,
    report: options.Report = None,
    summary: options.Summary = None,
    encoding: options.Encoding = "utf-8",
    decimal: options.Decimal = None,
    sheet: options.Sheet = None,
    map: options.Map = None,
    as_json: options.Json = False,
) -> None:
    """Train fair models on your table, show what fairness costs, and save the best one.

    Models are trained on 70 % of the people; one is chosen on 15 % and tested on the other 15 %. The model
    file includes the preprocessing. A model card is written next to it, in Markdown and JSON. If the command
    is killed, run it again: it keeps the models trained so far.
    """
    grid, times = [_number("--weights", text) for text in weights.split(",")], _number("--epochs", epochs)
    if jobs == 0:
        raise ValueError("Got --jobs 0, but expected 1 or more, or -1 for one per core.")
    if criterion is not None:
        one_of("--criterion", criterion, CRITERIA)
    one_of("--policies", policies, POLICIES)
    bar = threshold if threshold in (None, "balanced") else _number("--threshold", threshold)
    # Imported here: `evenhand fit --help` needs none of it.
    from evenhand.workflow.candidates import kept_until_done
    from evenhand.workflow.choosing import NoModelWithinBoundsError, Wanted
    from evenhand.workflow.exploring import explore
    from evenhand.workflow.table import check_written

    check_written(output, *_cards(output).values(), report, summary, inputs=[data])
    wanted = Wanted(max_discrimination=max_discrimination, max_flip=max_flip, criterion=criterion)
    unfinished = output.with_name(f".{output.name}.unfinished")
    with kept_until_done(unfinished, NoModelWithinBoundsError) as kept, console.cautions_as_notes():
        frontier = explore(
            data, label=label, sensitive=sensitive, positive=positive, drop=drop or (),
            categorical=categorical or (), encoding=encoding, decimal=decimal, sheet=sheet,
            map=options.changes(map), unknown=unknown, min_group=min_group, merge_small=merge_small,
            weights=grid, threshold=bar, weight=weight,
            parity_bound=PARITY_BOUND if max_discrimination is None else max_discrimination / 2,
            policies=policies, epochs=times, buffer_rows=buffer_rows, random_state=seed, engine=engine,
            n_jobs=jobs, resume=kept, progress=console.Notes(quiet=as_json), command=console.command_line(),
        )  # fmt: skip
        console.say("Measuring on the test part …")
        try:
            choice = frontier.choice(**wanted)
        except NoModelWithinBoundsError:
            _show_what_was_trained(frontier, wanted, as_json)
            console.note(f"The models stay in {unfinished} for a run with other bounds; delete it otherwise.")
            raise
        written = _write_model(choice, output)
    if report or summary:
        written |= console.write_report(frontier.summary(**wanted), report, summary)
    if as_json:
        console.print_json(
            {"chosen": choice.candidate.name, "criterion": choice.criterion, "bounds": choice.bounds,
             "threshold": frontier.parts.threshold,
             "test": choice.test, "groups": choice.groups, "models": _entries(frontier, choice.candidate),
             "references": _references(frontier), "notes": [*frontier.notes, *choice.notes],
             "written": written}
        )  # fmt: skip
    else:
        _show(frontier, choice, written)


def _number(option: str, text: str) -> Any:
    """Return an option's number; `--epochs` may be 'auto'."""
    epochs = option == "--epochs"
    if epochs and text == "auto":
        return text
    try:
        given = float(text)
    except ValueError:
        wanted = {
            "--epochs": "'auto' or a number, such as 20",
            "--threshold": "'balanced' or a number, such as 0.2",
            "--weights": "numbers separated by commas, such as 0,1,10",
        }
        raise ValueError(f"Got {option} {text!r}, but expected {wanted[option]}.") from None
    return number(option, given, low=0, open_low=option != "--weights")


def _cards(output: Path) -> dict[str, Path]:
    """Return where the model's card is written: beside the model, named like it."""
    stem = output.stem if output.suffix.lower() == ".skops" else output.name
    return {kind: output.with_name(f"{stem}.card.{kind}") for kind in ("md", "json")}


def _write_model(choice: Choice, output: Path) -> dict[str, Path]:
    """Write the model and its card; return the files by what they are."""
    from evenhand.atomic import write_text
    from evenhand.workflow.card import to_markdown

    card = choice.model.card
    written = {"model": choice.model.save(output)}
    for kind, path in _cards(output).items():
        text = to_markdown(card) if kind == "md" else json.dumps(card, indent=2)
        written[f"card_{kind}"] = write_text(path, text)
    return written


def _entries(frontier: Frontier, chosen: Candidate | None) -> list[dict[str, Any]]:
    return [
        {"name": one.name, "chosen": one is chosen, "validation": one.validation} for one in frontier.trained
    ]


def _references(frontier: Frontier) -> list[dict[str, Any]]:
    return [{"name": one.name, "validation": one.validation} for one in frontier.blind]


def _show_what_was_trained(frontier: Frontier, wanted: Wanted, as_json: bool) -> None:
    """Show the trade-off where no model keeps the bounds: it says what else could be asked for."""
    from evenhand.workflow.choosing import criterion_for

    if not as_json:
        return _show_trade_off(frontier, None)
    models = _entries(frontier, None)
    return console.print_json(
        {
            "chosen": None,
            "criterion": criterion_for(wanted, rare=frontier.rare),
            "models": models,
            "references": _references(frontier),
            "notes": frontier.notes,
        }
    )


def _show_trade_off(frontier: Frontier, chosen: Candidate | None) -> None:
    from evenhand.report.render import in_numbers
    from evenhand.workflow.drawing import columns

    names = [name for name in columns(frontier.rare) if name in frontier.trained[0].validation]
    every: list[Candidate | Reference] = [*frontier.trained, *frontier.blind]
    rows = [[one.name, *(in_numbers(one.validation[name], name) for name in names)] for one in every]
    titles = ["", *(name.replace("_", " ") for name in names)]
    marked = None if chosen is None else frontier.trained.index(chosen)
    told = "" if chosen is None else "; * is the chosen model"
    console.print_table(f"What fairness costs (validation part{told})", titles, rows, marked=marked)


def _show(frontier: Frontier, choice: Choice, written: dict[str, Path]) -> None:
    from evenhand.report.render import in_numbers, interval
    from evenhand.workflow.choosing import against_most_accurate

    _show_trade_off(frontier, choice.candidate)
    lost = against_most_accurate(frontier.trained, choice.candidate, rare=frontier.rare)
    if lost:
        console.show(f"\n{lost}")
    rows = [
        [name.replace("_", " "), in_numbers(found, name), interval(found, name)]
        for name, found in choice.test.items()
    ]
    console.on_stdout().print()
    console.print_table(f"Chosen: {choice.candidate.name} (test part)", ["", "value", "95 % interval"], rows)
    console.on_stdout().print()
    console.show_written(written)
    for note in choice.notes:
        console.warn(note)
    if choice.same_answer > 0.99:
        console.warn(f"the chosen model gives {100 * choice.same_answer:.1f} % of people the same decision.")
