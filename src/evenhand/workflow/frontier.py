"""The frontier: models that trade accuracy against fairness, and the choice of one for use."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import pandas as pd

from evenhand.atomic import write_text
from evenhand.metrics.measures import Measure, measure, value_of
from evenhand.tables.dataset import Dataset
from evenhand.tables.preprocessing import Parts
from evenhand.workflow import drawing
from evenhand.workflow.candidates import Candidate, Settings, answers_of
from evenhand.workflow.choosing import Choice, Wanted, bounds_of, choose, criterion_for
from evenhand.workflow.deployed import Deployed
from evenhand.workflow.rare import are_rare
from evenhand.workflow.references import Reference, references_for

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from evenhand.report.summary import Summary


@dataclass(eq=False, repr=False)
class Frontier:
    """Trained models, from the most accurate to the most even-handed; `evenhand.explore` returns it.

    Attributes
    ----------
    dataset : Dataset
        The table as it was read.
    notes : list of str
        What was guessed, left out or changed, and notes about columns and groups.
    trained : list of Candidate
        The models, sorted by parity and λ.
    parts : Parts
        The training, validation and test parts, preprocessed.
    test_rows : list of int
        The rows of the test people in the table, counted from 0.
    settings : Settings
        The settings that the models were trained with.
    command : str
        The call or command that made them.
    """

    dataset: Dataset
    notes: list[str]
    trained: list[Candidate]
    parts: Parts
    test_rows: list[int]
    settings: Settings
    command: str
    _choices: dict[tuple[str, float | None, float | None], Choice] = field(default_factory=dict, init=False)
    _tested: dict[str, dict[str, Measure]] = field(default_factory=dict, init=False)

    @cached_property
    def rare(self) -> bool:
        """Whether a label is rare; with two labels, whether fewer than 20 % of the people have one."""
        return are_rare(self.dataset.label, self.dataset.weights)

    @property
    def candidates(self) -> pd.DataFrame:
        """One row per model: its name, λ, whether it has parity, and its measures on the validation part."""
        return pd.DataFrame(
            [
                {"name": one.name, "divergence_weight": one.divergence_weight, "parity": one.parity}
                | _values(one.validation)
                for one in self.trained
            ]
        )

    @property
    def references(self) -> pd.DataFrame:
        """A logistic regression and boosted trees that never see the group, with the same measures."""
        return pd.DataFrame([{"name": one.name} | _values(one.validation) for one in self.blind])

    @cached_property
    def blind(self) -> list[Reference]:
        """The two reference models, trained when they are first needed."""
        return list(references_for(self.parts, self.settings.seed))

    @property
    def model(self) -> Deployed:
        """The model that `choose` returns without bounds."""
        return self.choose()

    def choose(
        self,
        max_discrimination: float | None = None,
        max_flip: float | None = None,
        criterion: str | None = None,
    ) -> Deployed:
        """Return the best model within the bounds, with its preprocessing and its card.

        The bounds and the criterion are applied to the validation part. The chosen model is then measured on
        the test part, and its card holds these numbers. If you try bounds until the test part looks good,
        its numbers are too optimistic.

        Parameters
        ----------
        max_discrimination : float, optional
            The largest accepted difference between groups in the share of positive decisions.
        max_flip : float, optional
            The largest accepted share of people who would get a different decision in another group.
        criterion : {'even', 'balanced_even', 'delta', 'discrimination', 'accuracy', \
'balanced_accuracy'}, optional
            What to choose by. 'even' is accuracy − discrimination − flip rate; without `max_flip`, among
            models with at most 1 % flips, if there are any. 'balanced_even' is the same with balanced
            accuracy, and 'delta' is accuracy − discrimination. The default is 'even', or 'accuracy' if there
            are bounds; if a label is rare (with two labels: below 20 %), 'balanced_even' or
            'balanced_accuracy'. Unless the criterion is 'accuracy', no model that is little better than a
            constant is chosen if another one clearly is better than that.

        Returns
        -------
        Deployed
            The chosen model. It takes rows of the table as they are; see `Deployed.decide`.

        Raises
        ------
        NoModelWithinBoundsError
            If no model keeps the bounds; the message names the nearest.
        """
        return self.choice(
            max_discrimination=max_discrimination, max_flip=max_flip, criterion=criterion
        ).model

    def choice(self, **wanted: Unpack[Wanted]) -> Choice:
        """Return the chosen model with how it was chosen and its measures on the test part; see `choose`."""
        most, flips = wanted.get("max_discrimination"), wanted.get("max_flip")
        by = criterion_for(wanted, rare=self.rare)
        if (by, most, flips) not in self._choices:
            labels = self.dataset.label.nunique()
            chosen = choose(
                self.trained, criterion=by, max_discrimination=most, max_flip=flips, n_labels=labels
            )
            self._choices[by, most, flips] = Choice.of(self, chosen, by, bounds_of(most, flips))
        return self._choices[by, most, flips]

    @property
    def shown(self) -> list[Candidate]:
        """The models; if they are the mean of networks and trees, then also each kind alone."""
        beside = [one for model in self.trained for one in model.beside]
        return [*self.trained, *sorted(beside, key=lambda one: one.policies)]

    def tested(self, candidate: Candidate | Reference) -> dict[str, Measure]:
        """Return a model's measures on the test part, with 95 % intervals; each is measured once."""
        key = f"{candidate.family}, {candidate.name}"
        if key not in self._tested:
            answers = answers_of(candidate.model, self.parts.test, self.parts)
            self._tested[key] = measure(answers)
        return self._tested[key]

    def plot(self) -> go.Figure:
        """Return the trade-off on the validation part as a Plotly figure."""
        return drawing.figure([*self.shown, *self.blind], drawing.upwards(self.rare))

    def summary(self, **wanted: Unpack[Wanted]) -> Summary:
        """Return the report's data as plain values: every model on the test part, the chosen one in detail.

        `summary`, `to_json` and `to_html` take the bounds and the criterion of `choose`.
        """
        # The report imports the workflow, and is needed only here.
        from evenhand.report.from_frontier import summary_of_frontier

        return summary_of_frontier(self, self.choice(**wanted))

    def to_json(self, path: str | Path | None = None, **wanted: Unpack[Wanted]) -> str:
        """Return the report's data as JSON, and write them to `path` if it is given.

        `evenhand report` turns such a file into a page.
        """
        from evenhand.report.summary import as_json

        text = as_json(self.summary(**wanted))
        if path is not None:
            write_text(path, text)
        return text

    def to_html(self, path: str | Path, **wanted: Unpack[Wanted]) -> Path:
        """Write the report, one page that opens offline; return its path."""
        from evenhand.report.render import write_html

        return write_html(self.summary(**wanted), path)

    def __repr__(self) -> str:
        best = self._best
        return f"<Frontier of {len(self.trained)} models for {self.dataset!r}; the most even: {best.name}>"

    def _repr_html_(self) -> str:
        every: list[Candidate | Reference] = [*self.trained, *self.blind]
        return drawing.html(every, repr(self.dataset), self._best, rare=self.rare)

    @property
    def _best(self) -> Candidate:
        by, labels = criterion_for({}, rare=self.rare), self.dataset.label.nunique()
        return choose(self.trained, criterion=by, n_labels=labels)


def _values(found: dict[str, Measure]) -> dict[str, float]:
    return {measured: value_of(found, measured) for measured in found}
