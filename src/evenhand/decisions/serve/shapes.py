"""The requests and answers of the service."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from evenhand.decisions.contexts import LONGEST_ID
from evenhand.decisions.deciding import Decision

MOST_PEOPLE = 1000  # in one request

Id = Annotated[str, Field(min_length=1, max_length=LONGEST_ID, examples=["application 7"])]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)  # "1" and true are not numbers


class Person(_Strict):
    """A person to decide about."""

    id: Id
    context: dict[str, str | int | float | bool | None] | list[int | float | None] = Field(
        description="The columns that the model reads, or for an estimator a row of numbers.",
        examples=[{"age": 41, "job": "clerk"}],
    )
    group: str | int | float | bool | dict[str, str | int | float | bool] | None = Field(None, examples=["f"])


class People(_Strict):
    """Several people to decide about together: all or none."""

    people: Annotated[list[Person], Field(min_length=1, max_length=MOST_PEOPLE)]


class Outcome(_Strict):
    """What a decision earned, or the label that was seen."""

    id: Id
    reward: float | None = None
    label: str | int | float | bool | None = None
    at: float | None = Field(None, description="Seconds since 1970; by default now.")


class Outcomes(_Strict):
    """Several outcomes to record together: all or none."""

    outcomes: Annotated[list[Outcome], Field(min_length=1, max_length=MOST_PEOPLE)]


class Rollback(_Strict):
    """Put the previous policy back in force."""

    note: str = Field(default="", max_length=1000, description="Who or why, for the log.")


class Promote(Rollback):
    """Put the candidate in force."""

    force: bool = Field(default=False, description="Even if it is not proven better; the log says so.")


class Answer(BaseModel):
    """The decision about a person. It is on disk."""

    id: str
    action: Any
    probability: float
    by_group: dict[str, dict[str, float]]
    group: str
    version: int
    at: float

    @classmethod
    def of(cls, found: Decision) -> dict[str, Any]:
        """Return a decision in the form of an answer."""
        by_group = {
            group: {str(action): chance for action, chance in said.items()}
            for group, said in found.by_group.items()
        }
        return {**vars(found), "by_group": by_group}


class Answers(BaseModel):
    """Decisions in the order of the people."""

    decisions: list[Answer]


class Status(BaseModel):
    """What was done with an outcome."""

    status: str


class Statuses(BaseModel):
    """What was done with each outcome, in their order."""

    statuses: list[str]


class Error(BaseModel):
    """What is wrong, and where."""

    where: str
    what: str


class Problem(BaseModel):
    """Why there is no answer."""

    detail: str | list[Error]
