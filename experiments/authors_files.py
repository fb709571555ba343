"""What can be known of the authors' files, which are not public any more: rows, columns, test parts.

    python experiments/authors_files.py            # writes results/authors/files.csv

Their repository names each file's size in bytes. A file holds the features as 8-byte numbers, label and group of
everybody, and the row numbers of the people who train or validate; what is left over are the headers of its eight arrays,
some 250 bytes each. That fixes the number of columns. Their lists of neighbours have one line per test person, and an
accuracy in the published tables must be a whole number of test people, divided by their number.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from evenhand.datasets import Dataset, load, load_german
from evenhand.protocol.compare import published
from evenhand.tables.preprocessing import make_preprocessor

# Bytes and test people, as their repository states them (Health: a fifth).
FILES = {
    "adult": (37_506_490, 15_060),
    "compas": (500_498, 1_057),
    "german": (512_486, 200),
    "health": (119_566_566, 23_029),
}
CONSTANT = {"german": ("ALFR", "table1_discrimination")}  # a published constant classifier: the label's share


def columns_of(dataset: Dataset) -> int:
    return int(make_preprocessor(dataset.contexts).fit_transform(dataset.contexts).shape[1])


def whole(accuracies: pd.Series, people: int) -> str:
    """Return how many of the accuracies, given to four digits, a test part of so many people can have.

    >>> whole(pd.Series([0.6254, 0.4768]), 1057), whole(pd.Series([0.6254, 0.4768]), 792)
    ('2 of 2', '0 of 2')
    """
    can = [
        any(round(right / people, 4) == one for right in (int(one * people), int(one * people) + 1))
        for one in accuracies
    ]
    return f"{sum(can)} of {len(can)}"


def main() -> None:
    rows = []
    tables = published()
    for name, (size, test) in FILES.items():
        ours = load(name, rows="published")
        people = len(ours)
        numbers = size / 8 - 2 * people - (people - test)
        columns = int(numbers // people)
        row = {"dataset": name, "people": people, "test_people": test, "columns": columns,
               "bytes_left_over": round(8 * (numbers - columns * people)), "our_columns": columns_of(ours)}  # fmt: skip
        theirs = tables.loc[tables["dataset"] == name, "accuracy"].drop_duplicates()
        row |= {"fit_test_people": whole(theirs, test), "fit_15_percent": whole(theirs, round(0.15 * people))}
        if name == "german":
            row["with_personal_status"] = columns_of(load_german(rows="published", personal_status=True))
            paper = tables.set_index(["method", "table", "dataset"])["accuracy"]
            row["constant_published"] = paper[(*CONSTANT[name], name)]
            row["constant_last_200"] = float((ours.label[-test:] == ours.pos_label).mean())
        rows.append(row)
    out = Path("results/authors")
    out.mkdir(parents=True, exist_ok=True)
    table = pd.DataFrame(rows)
    table.to_csv(out / "files.csv", index=False)
    print(table.to_string(index=False))


if __name__ == "__main__":
    main()
