"""`evenhand audit`: whose decision would change with their group, under any model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.checks import MIN_GROUP
from evenhand.cli import options
from evenhand.cli.console import Notes, command_line, on_stdout, print_json
from evenhand.wording import printable

EXAMPLES = (
    "[bold]Examples[/]\n\n"
    "evenhand audit people.csv --model model.skops --report audit.html\n\n"
    "evenhand audit people.csv --label hired --sensitive sex --predictions decided\n\n"
    "evenhand audit people.csv --sensitive sex --predictions decided\n\n"
    "evenhand audit people.csv --model model.skops --twins\n\n"
    "evenhand audit people.csv --model model.skops --certify --time-limit 300\n\n"
    "evenhand audit people.csv --model model.skops --search --report audit.html\n\n"
    "evenhand audit people.csv --label hired --sensitive sex --predictions score --threshold 0.5 --json\n\n"
    "evenhand audit people.csv --sensitive sex --sensitive race --predictions selected --preset nyc-ll144"
)


def run(
    data: options.Data,
    label: options.Label = None,
    sensitive: options.Sensitive = None,
    model: Annotated[Path | None, typer.Option(help="A model saved by evenhand.")] = None,
    predictions: Annotated[
        str | None, typer.Option(help="The column with the decisions, or with scores, of any model.")
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="The lowest score that is a positive decision; 0.5 for probabilities."),
    ] = None,
    epsilon: Annotated[
        float,
        typer.Option(min=0, help="The smallest gap between the groups' probabilities that counts as large."),
    ] = 0.05,
    positive: options.Positive = None,
    drop: options.Drop = None,
    categorical: options.Categorical = None,
    weight: options.Weight = None,
    part: options.Part = "all",
    max_model_size: options.MaxModelSize = 1,
    unknown: options.Unknown = "drop",
    min_group: options.MinGroup = MIN_GROUP,
    merge_small: options.MergeSmall = None,
    seed: options.Seed = 0,
    preset: Annotated[
        str | None,
        typer.Option(help="Fill a rule's tables too: nyc-ll144 (New York's bias audit) or four-fifths."),
    ] = None,
    sex: Annotated[
        str | None, typer.Option(help="Of nyc-ll144: the sensitive column that is the sex.")
    ] = None,
    race: Annotated[
        str | None, typer.Option(help="Of nyc-ll144: the one that is the race/ethnicity.")
    ] = None,
    rate: Annotated[
        str, typer.Option(help="Of nyc-ll144: 'selection', or 'scoring' above the median.")
    ] = "selection",
    small: Annotated[
        float,
        typer.Option(min=0, max=1, help="Of --preset: categories of fewer people are shown, not compared."),
    ] = 0.02,
    report: options.Report = None,
    summary: options.Summary = None,
    encoding: options.Encoding = "utf-8",
    decimal: options.Decimal = None,
    sheet: options.Sheet = None,
    map: options.Map = None,
    twins: Annotated[
        bool,
        typer.Option(
            "--twins", help="Also find people whose counterpart in another group is decided differently."
        ),
    ] = False,
    edges: Annotated[
        list[str] | None,
        typer.Option(
            "--edges",
            help="An edge of a causal graph, like 'sex->hours', by which to make counterparts; repeatable. "
            "Implies --twins.",
        ),
    ] = None,
    certify: Annotated[
        bool,
        typer.Option(
            "--certify", help="Also look for the worst possible person, and bound how far policies differ."
        ),
    ] = False,
    radius: Annotated[
        float | None,
        typer.Option(
            max=1, help="For --certify: only people within this Gower distance of somebody in the file."
        ),
    ] = None,
    search: Annotated[
        bool,
        typer.Option(
            "--search", help="Also search for possible people whose decision changes with the group."
        ),
    ] = False,
    time_limit: Annotated[float, typer.Option(min=0, help="Seconds for --certify, and for --search.")] = 60,
    engine: Annotated[
        str, typer.Option(help="Where neighbours are searched: 'cpu', or 'cuda' for a GPU.")
    ] = "cpu",
    as_json: options.Json = False,
) -> None:
    """Measure how decisions treat people, groups, and people as members of other groups.

    Give a model that evenhand saved, or the column with the decisions of any other model. Without --label,
    decisions are compared between groups only, not with the true labels. The findings say what was measured;
    they give no verdict.
    """
    from evenhand.auditing.presets import PRESETS
    from evenhand.auditing.statutory import SMALL
    from evenhand.checks import one_of
    from evenhand.code_version import made
    from evenhand.cuda import check_engine
    from evenhand.report.from_audit import summary_of_audit
    from evenhand.report.persons import MOST_PERSONS
    from evenhand.report.render import write_html
    from evenhand.report.summary import write_summary
    from evenhand.tables.paths import bare_name
    from evenhand.workflow.file_audit import audit_file
    from evenhand.workflow.large_file import large_file
    from evenhand.workflow.table import PERSON_NUMBER, check_written

    check_engine(engine)
    check_written(report, summary, inputs=(data, model))
    if preset is not None:
        one_of("preset", preset, PRESETS)
    elif sex or race or rate != "selection" or small != SMALL:
        raise ValueError("Got --sex, --race, --rate or --small, which have no effect without --preset.")
    if radius is not None and not certify:
        raise ValueError("Got --radius, which has no effect without --certify.")
    asked: dict[str, Any] = {
        "predictions": predictions, "label": label, "sensitive": sensitive, "positive": positive,
        "drop": drop, "threshold": threshold, "epsilon": epsilon, "n_listed": MOST_PERSONS, "seed": seed,
        "unknown": unknown, "min_group": min_group, "weight": weight, "engine": engine,
        "twins": {"edges": edges} if edges else twins,
    }  # fmt: skip
    of_people: dict[str, Any] = {
        "model": model, "categorical": categorical, "map": options.changes(map), "merge_small": merge_small,
        "certify": certify and {"time_limit": time_limit, "radius": radius},
        "search": search and {"time_limit": time_limit},
    }  # fmt: skip
    large = large_file(data, of_people)
    done = (
        audit_file(
            data, **asked, **of_people, encoding=encoding, decimal=decimal, sheet=sheet, part=part,
            max_bytes=max_model_size << 30, progress=Notes(),
        )
        if large is None
        else large.audit(**asked)
    )  # fmt: skip
    filled = done.audit.statutory(preset, sex=sex, race=race, rate=rate, small=small) if preset else None
    whole = summary_of_audit(
        done.audit, name=bare_name(data), label=done.label, sensitive=done.sensitive,
        how=made(command_line(), seeds=[seed], data=[done.source]),
        model=str(model) if model else f"Column {predictions}", filled=filled,
    )  # fmt: skip
    whole["studies"][0]["notes"].append(PERSON_NUMBER)
    writes = (("summary", summary, write_summary), ("report", report, write_html))
    written = {what: str(write(whole, path)) for what, path, write in writes if path is not None}
    if as_json:
        tables = {"statutory": filled.to_dict()} if filled else {}
        print_json(done.audit.to_dict() | tables | {"written": written})
        return
    said = done.audit.summary() + (f"\n\n{filled.summary()}\n" if filled else "")
    on_stdout().print(printable(said), soft_wrap=True, markup=False)
    for what, path in written.items():
        on_stdout().print(f"{what:12} {path}", soft_wrap=True, markup=False)
