"""`evenhand compress`: one group's policy of a saved model, for everyone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli import options
from evenhand.cli.console import print_json, show

EXAMPLES = "[bold]Example[/]\n\nevenhand compress model.skops --group Female -o single.skops"


def run(
    model: Annotated[Path, typer.Argument(help="A model saved by `evenhand fit`.")],
    group: Annotated[str, typer.Option(help="The group whose policy decides about everybody.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to save the new model.")],
    max_model_size: options.MaxModelSize = 1,
    as_json: options.Json = False,
) -> None:
    """Reduce a model to one group's policy, which then decides about everybody.

    The new model needs no sensitive column, so nobody's decision depends on their group. The report of
    `evenhand fit` compares the policies. To measure the one that you keep, audit it by the groups of a column
    (`evenhand audit people.csv --model single.skops --sensitive sex`).
    """
    from evenhand.workflow.deciding import open_model
    from evenhand.workflow.table import check_written

    check_written(output, inputs=[model])
    written = open_model(model, max_bytes=max_model_size << 30).compress(group).save(output)
    if as_json:
        print_json({"written": {"model": written}, "group": group})
    else:
        show(str(written))
