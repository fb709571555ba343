"""What GradientBandit and CooperativeBandits share: the training run, and reading policies out."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from evenhand.arrays import Codes, Floats
from evenhand.bandits import kernels
from evenhand.bandits.contexts import as_rows
from evenhand.bandits.doors import Callback, Doors, all_finite
from evenhand.bandits.fitting import (
    check_options,
    check_reward,
    options_of,
    people_met,
    remedy_of,
    warn_if_collapsed,
    warn_of_terms,
    within,
)
from evenhand.bandits.kernels.structs import People, Rows
from evenhand.bandits.scaling import Scaling, on_one_scale
from evenhand.bandits.training import Run, Training, TrainingDivergedError
from evenhand.metrics.collapse import LOOKED_AT, SHORT
from evenhand.network import Network
from evenhand.rewards import Reward, pack_terms
from evenhand.rewards.term import Setting


class Later:
    """In place of a callback: a fit then trains nothing, and leaves here what it would have trained with."""

    told: tuple[Any, People]

    def __call__(self, step: int, model: Any) -> None:
        """Never called: nothing is trained."""


class PolicyLearner(Doors):
    """One softmax policy per group, trained from rewards. Subclasses say which groups there are."""

    hidden: int
    estimator: str
    optimizer: str
    learning_rate: float | str
    schedule: str
    epochs: float | str
    steps: int | None
    batch_size: int
    weight_decay: float
    order: str
    importance_clip: float
    standardize: bool
    checkpoint_every: int
    random_state: Any

    # What a subclass may turn on.
    divergence_weight: float = 0.0
    cooperation: str = "acting"
    shared_start: bool = True

    def _reward(self) -> Reward:
        raise NotImplementedError

    # Training ------------------------------------------------------------------------------------------

    def _begin(self, n_features: int, n_groups: int) -> None:
        check_options(self)
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        pack_terms(self._reward(), self.divergence_weight, len(self.classes_))  # checks the reward first
        self._training = Training.begin(
            n_features=n_features, n_hidden=self.hidden, n_actions=len(self.classes_), n_groups=n_groups,
            seed=seed, shared_start=self.shared_start,
        )  # fmt: skip

    def _train(
        self, X: Any, people: People, *, decays: bool, callback: Callback = None, total: Codes | None = None
    ) -> Self:
        """Fit, with a schedule that `decays` over all epochs, or meet these people once.

        That is in their order, unless they are a part of one fit's `total`, by group.
        """
        if isinstance(callback, Later):
            callback.told = X, people
            return self
        # Learning that goes on has no scale to go by: it takes rows as they come.
        scaling, rows = on_one_scale(X, decays and self.standardize)
        run = self._ready_to_run(rows, people, decays=decays, total=total)
        training = run.training

        def checkpoint(step: int) -> bool | None:
            self._publish(scaling)
            stop = callback(step, self) if callback is not None else None
            self._training = training  # what goes on is on the scale of its rows
            return stop

        watched = None if callback is None else checkpoint
        try:
            training.run(*run[1:5], remedy=run.remedy, checkpoint=watched)
        except TrainingDivergedError:
            if not run.options.horizon:
                self._publish()  # what was learned before this call
            elif hasattr(self, "policies_"):
                del self.policies_  # a fit that failed leaves no model
            raise
        return self._has_run(run, scaling, self._looked_at(run))

    def _ready_to_run(self, rows: Rows, people: People, *, decays: bool, total: Codes | None = None) -> Run:
        """Return the training run with all that it needs, checked."""
        check_options(self)
        self._check_policies()
        training, reward = self._training, self._reward()
        reward = check_reward(reward, training.policies.b2.shape, people)
        if len(people.actions) and not len(people.propensities):
            people = self._own_propensities(rows, people)
        n_people, horizon = len(people.groups), 0
        met = np.bincount(people.groups, minlength=len(training.policies.b2))
        sizes = training.rates.counts[:, -1] + met if total is None else total
        if decays or total is not None:
            horizon = self._total_steps(n_people if decays else int(sizes.sum()))
        n_steps = horizon if decays else n_people
        if total is not None:
            n_steps = min(n_people, within(horizon, training.step))
        terms = pack_terms(
            reward, self.divergence_weight, len(self.classes_), n_steps=horizon, group_sizes=sizes
        )
        if horizon and not training.step:
            warn_of_terms(reward, Setting(self.divergence_weight, len(self.classes_), horizon, sizes))
        order = self.order if horizon else "file"
        options = options_of(self, terms, n_steps=n_steps, horizon=horizon, order=order)
        return Run(training, rows, people, terms, options, remedy_of(self, options.learning_rate))

    def _looked_at(self, run: Run) -> Floats | None:
        """Return what the policies say now about some people of the run, if a collapse is to be warned of.

        There is no warning of the published reward: it is there to be reproduced, collapses and all.
        """
        training, people, options = run.training, run.people, run.options
        whole = not len(people.actions) and training.step == options.horizon >= SHORT
        if not whole or self._reward().get("kl") is not None:
            return None
        n = min(len(people.labels), LOOKED_AT)
        found: Floats = self._all_probabilities(run.rows, n)[np.arange(n), people.groups[:n]]
        return found

    def _has_run(self, run: Run, scaling: Scaling | None, own: Floats | None) -> Self:
        """Show what the run has made of the policies; `own` is what `_looked_at` found."""
        if own is not None:
            warn_if_collapsed(self, own, run.people)
        self._publish(scaling)
        return self

    def _publish(self, scaling: Scaling | None = None) -> None:
        """Show the training run as the fitted model, its policies folded for rows as they come."""
        if scaling is not None:
            self._training = self._training.goes_on_with(scaling.folded(self._training.policies))
        self.policies_ = self._training.policies
        self.n_steps_ = self._training.step
        self.history_ = {name: np.array(column) for name, column in self._training.history.items()}

    def _total_steps(self, n_people: int) -> int:
        return people_met(self.epochs, n_people) if self.steps is None else int(self.steps)

    def _own_propensities(self, rows: Rows, people: People) -> People:
        """Return a log that this very policy made, with the probabilities it took its actions with."""
        everyone = np.arange(len(people.actions))
        shown = self._all_probabilities(rows, len(everyone))
        return people._replace(propensities=shown[everyone, people.groups, people.actions])

    # Reading policies out ------------------------------------------------------------------------------

    def check_loaded(self) -> None:
        """Raise if this model, read from a file, is damaged."""
        if hasattr(self, "policies_"):
            self._check_policies()
            self._training.check_history()
            pack_terms(self._reward(), self.divergence_weight, len(self.classes_))  # raises if it is damaged

    def _check_policies(self) -> None:
        """Refuse a model whose arrays do not fit together: none of a stranger's must reach a loop."""
        n_groups = len(getattr(self, "groups_", ("everyone",)))
        self._training.check(self.n_features_in_, len(self.classes_), n_groups)

    def _all_probabilities(self, rows: Rows, n_people: int) -> Floats:
        self._check_policies()
        policies: Network = self._training.policies
        out = np.empty((n_people, *policies.b2.shape))
        kernels.probabilities(policies, rows, out)
        return all_finite(out)

    def _by_group(self, X: Any) -> Floats:
        check_is_fitted(self, "policies_")
        X = self._contexts(X, reset=False)
        return self._all_probabilities(as_rows(X), X.shape[0])
