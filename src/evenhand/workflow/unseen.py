"""What `predict` and `audit` say of categories that a model never met in training."""

from __future__ import annotations

from typing import NamedTuple

from evenhand.wording import listed, people

_EXAMPLES = 5  # values named of a column


class Unseen(NamedTuple):
    """Categories that training never met, over all chunks, in constant memory.

    >>> strange = Unseen({}, {})
    >>> strange.add({"job": {"cook": 2, "clerk": 1}})
    >>> strange.people
    {'job': 3}
    """

    people: dict[str, int]  # by column
    examples: dict[str, list[str]]  # by column, the first few values

    def add(self, found: dict[str, dict[str, int]]) -> None:
        """Count the people of a chunk; `found` has how many have each value, by column."""
        for column, values in found.items():
            self.people[column] = self.people.get(column, 0) + sum(values.values())
            known = self.examples.setdefault(column, [])
            known += [value for value in values if value not in known][: _EXAMPLES - len(known)]

    def notes(self) -> list[str]:
        """Return a sentence a column."""
        return [
            f"{people(count)} with a value of {column!r} that was never seen in training, such as "
            f"{listed(self.examples[column])}: it counts as none of those that were."
            for column, count in self.people.items()
        ]
