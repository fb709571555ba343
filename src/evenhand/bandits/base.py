"""The base class of GradientBandit and CooperativeBandits: training runs and predictions."""

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
from evenhand.metrics.networks import Frozen, freeze
from evenhand.metrics.selection import Best, Criterion, Judged, Selector
from evenhand.network import Network
from evenhand.rewards import Reward, pack_terms
from evenhand.rewards.term import Setting


class Later:
    """A callback that makes `fit` skip the training; `told` then holds the contexts and people."""

    told: tuple[Any, People]

    def __call__(self, step: int, model: Any) -> None:
        """Never called: nothing is trained."""


class Choice(Selector[Any]):
    """A callback that makes `fit` return to the best checkpoint by a criterion instead of the last one."""

    def __init__(self, judged: Judged, criterion: Criterion) -> None:
        super().__init__(judged, [criterion], freeze)

    @property
    def made(self) -> Best[Frozen]:
        """The best checkpoint."""
        (best,) = self.best.values()
        return best


class PolicyLearner(Doors):
    """Each group has its own softmax policy, trained from rewards. Subclasses define the groups."""

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

    # Subclasses may override these.
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
        """Fit for all epochs if the learning rate `decays`; otherwise train on these people once.

        A single pass keeps their order, unless they are one piece of a fit with `total` people per group.
        """
        if isinstance(callback, Later):
            callback.told = X, people
            return self
        # Online learning doesn't know the scale of later rows, so it never scales.
        scaling, rows = on_one_scale(X, decays and self.standardize)
        run = self._ready_to_run(rows, people, decays=decays, total=total)
        training = run.training

        def checkpoint(step: int) -> bool | None:
            self._publish(scaling)
            # Training changes its own arrays in place.
            self.policies_ = Network(*(part.copy() for part in self._training.policies))
            stop = callback(step, self) if callback is not None else None
            self._training = training  # training continues on the scaled rows
            return stop

        watched = None if callback is None else checkpoint
        try:
            training.run(*run[1:5], remedy=run.remedy, checkpoint=watched)
        except TrainingDivergedError:
            if run.options.horizon:
                self._forget()  # a fit that failed leaves no model
            else:
                self._show()  # go back to what was learned before this call
            raise
        best = callback.made if isinstance(callback, Choice) else None
        return self._has_run(run, scaling, self._looked_at(run, scaling, best), best)

    def _ready_to_run(self, rows: Rows, people: People, *, decays: bool, total: Codes | None = None) -> Run:
        """Check all inputs, and return a training run that is ready to start."""
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

    def _looked_at(
        self, run: Run, scaling: Scaling | None = None, best: Best[Frozen] | None = None
    ) -> Floats | None:
        """Return the policies' probabilities for some people of the run, if a collapse deserves a warning.

        The policies are those of the best checkpoint, if one was chosen. The published reward gets no
        warning: it exists to reproduce the paper, including its collapses.
        """
        training, people, options = run.training, run.people, run.options
        whole = not len(people.actions) and training.step == options.horizon >= SHORT
        if not whole or self._reward().get("kl") is not None:
            return None
        policies = None if best is None else best.kept.policies_
        if policies is not None and scaling is not None:
            policies = scaling.unfolded(policies)  # the rows of the run are scaled
        n = min(len(people.labels), LOOKED_AT)
        found: Floats = self._all_probabilities(run.rows, n, policies)[np.arange(n), people.groups[:n]]
        return found

    def _has_run(
        self, run: Run, scaling: Scaling | None, own: Floats | None, best: Best[Frozen] | None = None
    ) -> Self:
        """Publish the trained policies, or the best checkpoint, and warn if they collapsed.

        `own` is the result of `_looked_at`.
        """
        if own is not None:
            warn_if_collapsed(self, own, run.people, selected=best is not None)
        self._publish(scaling)
        if best is not None:
            self._goes_back_to(best)
        return self

    def _publish(self, scaling: Scaling | None = None) -> None:
        """Publish the training run as the fitted model. Its policies take unscaled rows."""
        self._forget_origin()
        if scaling is not None:
            self._training = self._training.goes_on_with(scaling.folded(self._training.policies))
        self._show()

    def _show(self) -> None:
        self.policies_ = self._training.policies
        self.n_steps_ = self._training.step
        self.history_ = {name: np.array(column) for name, column in self._training.history.items()}

    def _goes_back_to(self, best: Best[Frozen]) -> None:
        """Publish a checkpoint instead of the last policies; `selected_` holds its step and scores."""
        self._training = self._training.goes_on_with(best.kept.policies_)
        self._publish()
        self.selected_ = {"step": best.step, **best.scores.with_delta()}

    def _total_steps(self, n_people: int) -> int:
        return people_met(self.epochs, n_people) if self.steps is None else int(self.steps)

    def _own_propensities(self, rows: Rows, people: People) -> People:
        """Fill in the propensities of a log whose actions were drawn by this policy."""
        everyone = np.arange(len(people.actions))
        shown = self._all_probabilities(rows, len(everyone))
        return people._replace(propensities=shown[everyone, people.groups, people.actions])

    # Prediction ----------------------------------------------------------------------------------------

    def check_loaded(self) -> None:
        """Raise if this model, read from a file, is damaged."""
        if hasattr(self, "policies_"):
            self._check_policies()
            self._training.check_history()
            pack_terms(self._reward(), self.divergence_weight, len(self.classes_))  # raises if it is damaged

    def _check_policies(self) -> None:
        """Raise if the model's arrays do not fit together: compiled loops must not read untrusted ones."""
        n_groups = len(getattr(self, "groups_", ("everyone",)))
        self._training.check(self.n_features_in_, len(self.classes_), n_groups)

    def _all_probabilities(self, rows: Rows, n_people: int, policies: Network | None = None) -> Floats:
        self._check_policies()
        policies = self._training.policies if policies is None else policies
        out = np.empty((n_people, *policies.b2.shape))
        kernels.probabilities(policies, rows, out)
        return all_finite(out)

    def _by_group(self, X: Any) -> Floats:
        check_is_fitted(self, "policies_")
        X = self._contexts(X, reset=False)
        return self._all_probabilities(as_rows(X), X.shape[0])
