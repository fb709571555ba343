"""What GradientBandit and CooperativeBandits share: the doors, the training run, and reading policies out."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from evenhand import checks
from evenhand.bandits import kernels
from evenhand.bandits.contexts import as_rows, name_bad_columns
from evenhand.bandits.defaults import people_met, step_size
from evenhand.bandits.kernels.structs import Options, People, Rows
from evenhand.bandits.offpolicy import chances, finite, one_each
from evenhand.bandits.training import (
    COOPERATIONS,
    ESTIMATORS,
    OPTIMIZERS,
    ORDERS,
    SCHEDULES,
    Training,
    TrainingDivergedError,
)
from evenhand.groups import sorted_unique
from evenhand.metrics.collapse import ALIKE_FROM, LOOKED_AT, SHORT, WRONG_FROM, CollapseWarning, one_decision
from evenhand.network import Network
from evenhand.rewards import Reward, pack_terms
from evenhand.rewards.compiling import try_custom
from evenhand.rewards.registry import stiffness

# The weight of cooperation from which policies move jointly. Below it the pull hardly hides what the labels
# teach, and a small group is better served by an Adam of its own.
JOINT_FROM = 5.0
SHARPENS_FROM = 5.0  # the weight from which Agreement gave everybody one decision, on three tables


Callback = Callable[[int, Any], bool | None]
Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]


class PolicyLearner(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """One softmax policy a group, trained from rewards. Subclasses say which groups there are."""

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
    checkpoint_every: int
    random_state: Any

    # What a subclass may turn on.
    divergence_weight: float = 0.0
    cooperation: str = "acting"
    shared_start: bool = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _reward(self) -> Reward:
        raise NotImplementedError

    # The doors -----------------------------------------------------------------------------------------

    def _check_options(self) -> None:
        checks.integer("hidden", self.hidden)
        checks.one_of("estimator", self.estimator, ESTIMATORS)
        checks.one_of("cooperation", self.cooperation, COOPERATIONS)
        checks.one_of("optimizer", self.optimizer, OPTIMIZERS)
        checks.one_of("schedule", self.schedule, SCHEDULES)
        checks.one_of("order", self.order, ORDERS)
        if self.learning_rate != "auto":
            checks.number("learning_rate", self.learning_rate, low=0, open_low=True)
        checks.number("divergence_weight", self.divergence_weight, low=0)
        checks.number("importance_clip", self.importance_clip, low=0, open_low=True)
        if self.epochs != "auto":
            checks.number("epochs", self.epochs, low=0, open_low=True)
        if self.steps is not None:
            checks.integer("steps", self.steps)
        checks.integer("batch_size", self.batch_size)
        checks.number("weight_decay", self.weight_decay, low=0)
        checks.integer("checkpoint_every", self.checkpoint_every)

    def _contexts(self, X: Any, *, reset: bool) -> Any:
        name_bad_columns(X)
        return validate_data(self, X, accept_sparse="csr", dtype=np.float32, order="C", reset=reset)

    def _contexts_and_labels(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, Any]:
        name_bad_columns(X)
        _no_missing_labels(y)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float32, order="C", reset=reset)
        check_classification_targets(pd.unique(y))
        return X, y

    def _learn_classes(self, labels: Any) -> Codes:
        codes, found = pd.factorize(labels)  # hashing is quicker than np.unique's sorting
        order = np.argsort(found)
        self.classes_ = found[order]
        if len(self.classes_) < 2:
            raise ValueError(
                f"y has one class only, {self.classes_[0]!r}, but expected at least two to tell apart."
            )
        ranks = np.empty(len(found), dtype=np.int64)
        ranks[order] = np.arange(len(found))
        return ranks[codes]

    def _known_codes(self, values: Any, what: str) -> Codes:
        values = np.asarray(values)
        at: Codes = np.searchsorted(self.classes_, values).clip(max=len(self.classes_) - 1)
        unknown = values[self.classes_[at] != values]
        if len(unknown):
            known = ", ".join(repr(name) for name in self.classes_.tolist())
            raise ValueError(f"Got {what} {unknown[:1].tolist()[0]!r}, but fit saw only the classes {known}.")
        return at.astype(np.int64)

    # Training ------------------------------------------------------------------------------------------

    def _begin(self, n_features: int, n_groups: int) -> None:
        self._check_options()
        seed = int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))
        pack_terms(self._reward(), self.divergence_weight, len(self.classes_))  # checks the reward first
        self._training = Training.begin(
            n_features=n_features,
            n_hidden=self.hidden,
            n_actions=len(self.classes_),
            n_groups=n_groups,
            seed=seed,
            shared_start=self.shared_start,
        )

    def _forget(self) -> None:
        """Begin a fit with no policies: one that fails must not leave the old ones under new labels."""
        self.__dict__.pop("policies_", None)

    def _settle_classes(self, first: bool, classes: Any) -> None:
        """Take the classes of a first partial_fit or update; later ones may leave them out or repeat them."""
        if classes is None:
            if first:
                raise ValueError(
                    "Got no classes in the first call, but expected every class there will ever be."
                )
            return
        came = distinct_classes(classes)
        if first:
            self.classes_ = came
        elif came.tolist() != self.classes_.tolist():
            raise ValueError(
                f"Got classes={came.tolist()}, but expected those known so far, {self.classes_.tolist()}: "
                "a model has an action for these only."
            )

    def _train(
        self, rows: Rows, people: People, *, n_steps: int, decays: bool, order: str, callback: Callback | None
    ) -> Self:
        self._check_options()
        self._check_policies()
        training, reward = self._training, self._reward()
        if len(people.actions) and any(term.needs_labels for term in reward.terms):
            raise ValueError(
                f"Got the reward {', '.join(reward.names)} for logged feedback, but a log has no labels: "
                "expected terms that need none (parity, log_ratio, agreement, kl)."
            )
        if len(people.actions) and not len(people.propensities):
            people = self._own_propensities(rows, people)
        if not len(people.actions) and not any(
            term.of_labels or term.teaches_labels for term in reward.terms
        ):
            warnings.warn(
                f"No term of the reward {reward} looks at the label: nothing is learned from y. "
                "Add Likelihood() or Correctness().",
                stacklevel=3,
            )
        own, rate = reward.get("custom"), step_size(self.learning_rate, self.n_features_in_)
        function = None if own is None else own.function
        if function is not None:
            try_custom(function, *training.policies.b2.shape, len(people.actions) > 0)
        met = np.bincount(people.groups, minlength=len(training.policies.b2))
        terms = pack_terms(
            reward,
            self.divergence_weight,
            len(self.classes_),
            n_steps=n_steps if decays else 0,
            group_sizes=training.rates.counts[:, -1] + met,
        )
        if decays and len(met) > 1 and terms.agreement.weight >= SHARPENS_FROM:
            warnings.warn(
                f"Got Agreement with a weight of {terms.agreement.weight:g}: policies agree most where "
                "they are sure, and with such a weight everybody gets one decision. Give it one of at most "
                "1, or take LogRatio().",
                stacklevel=3,
            )
        options = Options(
            expected=self.estimator == "expected",
            mutual=self.cooperation == "mutual",
            adam=self.optimizer != "sgd",
            apart=self._apart(terms),
            learning_rate=rate,
            schedule=SCHEDULES.index(self.schedule),
            horizon=n_steps if decays else 0,
            end=training.step + n_steps,
            batch_size=int(self.batch_size),
            weight_decay=float(self.weight_decay),
            order=ORDERS.index(order),
            origin=training.step,
            importance_clip=float(self.importance_clip),
            interval=int(self.checkpoint_every),
            seed=np.uint64(training.seed),
        )
        remedy = f"Lower learning_rate (now {rate:g})"
        if self.divergence_weight:
            remedy += f" or divergence_weight (now {self.divergence_weight:g})"
        if function is not None:
            remedy += f", see that {getattr(function, '__name__', 'your function')!r} returns finite rewards"

        def checkpoint(step: int) -> bool | None:
            self._publish()
            return callback(step, self) if callback is not None else None

        try:
            training.run(
                rows,
                people,
                terms,
                options,
                remedy=f"{remedy}, or scale the columns of X to unit deviation.",
                checkpoint=None if callback is None else checkpoint,
            )
        except TrainingDivergedError:
            if not decays:
                self._publish()  # what was learned before this call
            elif hasattr(self, "policies_"):
                del self.policies_  # a fit that failed leaves no model
            raise
        self._publish()
        if decays and not len(people.actions) and training.step == options.end >= SHORT:
            self._warn_if_collapsed(rows, people)
        return self

    def _warn_if_collapsed(self, rows: Rows, people: People) -> None:
        """Warn when nearly all get one decision, unless nearly all have that label: there it can be right.

        The published reward is not warned of: it is there to be reproduced, collapses and all.
        """
        if self._reward().get("kl") is not None:
            return
        n = min(len(people.labels), LOOKED_AT)
        own = self._all_probabilities(rows, n)[np.arange(n), people.groups[:n]]
        action = one_decision(own, ALIKE_FROM)
        wrong = np.mean(people.labels[:n] != action)
        if action is None or wrong < WRONG_FROM:
            return
        alike = np.sum(own.argmax(1) == action)
        causes = ["columns of X on very different scales (scale them to unit deviation)"]
        if self.divergence_weight:
            causes.append(f"a large divergence_weight (now {self.divergence_weight:g})")
        if self._reward().get("likelihood") is None:
            causes.append("a reward without Likelihood(), which learns rare labels")
        causes.append("columns that say nothing about the label")
        warnings.warn(
            f"{type(self).__name__} decides {self.classes_.tolist()[action]!r} for {alike} of {n} people, "
            f"but {wrong:.0%} of them have another label. Likely causes: {', '.join(causes)}.",
            CollapseWarning,
            stacklevel=4,
        )

    def _publish(self) -> None:
        self.policies_ = self._training.policies
        self.n_steps_ = self._training.step
        self.history_ = {name: np.array(column) for name, column in self._training.history.items()}

    def _apart(self, terms: Any) -> float:
        """Return the share of the rate at which the policies' differences move; 0: each moves by itself."""
        # Agreement does not cancel in the policies' mean, as the log-ratio does: it is no part of the pull.
        pull = stiffness(terms)
        n_groups = len(self._training.policies.b2)
        listen = self.cooperation == "mutual" and n_groups > 1 and pull >= JOINT_FROM
        jointly = self.optimizer == "joint_adam" and self.shared_start and listen
        return 1.0 / (1.0 + pull) if jointly else 0.0

    def _total_steps(self, n_people: int) -> int:
        return people_met(self.epochs, n_people) if self.steps is None else int(self.steps)

    def _log(
        self, X: Any, actions: Any, rewards: Any, propensities: Any, groups: Codes, *, own: bool = False
    ) -> People:
        """Return feedback on actions taken; only a log of this policy's `own` may lack propensities."""
        if propensities is None and not own:
            raise ValueError(
                "Got no propensities, but expected the probability with which each action was taken: the "
                "log is another policy's."
            )
        n_people = X.shape[0]
        one_each("actions", actions, n_people)
        codes = self._known_codes(actions, "action")
        paid = finite("rewards", rewards, n_people)
        taken = np.zeros(0) if propensities is None else chances(propensities, n_people)
        labels = np.full(n_people, -1, dtype=np.int64)
        return People(groups, labels, codes, paid, taken)

    def _own_propensities(self, rows: Rows, people: People) -> People:
        """Return a log that this very policy made, with the probabilities it took its actions with."""
        everyone = np.arange(len(people.actions))
        shown = self._all_probabilities(rows, len(everyone))
        return people._replace(propensities=shown[everyone, people.groups, people.actions])

    # Reading policies out ------------------------------------------------------------------------------

    def _check_policies(self) -> None:
        """Refuse a model whose arrays do not fit together: none of a stranger's must reach a loop."""
        n_groups = len(getattr(self, "groups_", ("everyone",)))
        self._training.check(self.n_features_in_, len(self.classes_), n_groups)

    def _all_probabilities(self, rows: Rows, n_people: int) -> Floats:
        self._check_policies()
        policies: Network = self._training.policies
        out = np.empty((n_people, *policies.b2.shape))
        kernels.probabilities(*policies, rows, out)
        return out

    def _by_group(self, X: Any) -> Floats:
        check_is_fitted(self, "policies_")
        X = self._contexts(X, reset=False)
        return self._all_probabilities(as_rows(X), X.shape[0])

    def _sample(self, probabilities: Floats, random_state: Any) -> tuple[Any, Floats]:
        draws = check_random_state(random_state).uniform(size=(len(probabilities), 1))
        codes = (probabilities.cumsum(1) < draws).sum(1).clip(max=probabilities.shape[1] - 1)
        return self.classes_[codes], probabilities[np.arange(len(codes)), codes]


def _no_missing_labels(y: Any) -> None:
    """Raise if labels are missing, of any type: scikit-learn names missing numbers only."""
    if y is not None:
        missing = int(np.sum(pd.isna(np.asarray(y, dtype=object))))
        if missing:
            raise ValueError(
                f"Input y contains NaN: {missing} labels are missing, but expected one a person."
            )


def distinct_classes(classes: Any) -> Any:
    """Return the classes a first partial_fit or update was given, sorted; fewer than two is an error."""
    found = sorted_unique(np.asarray(classes).astype(object))[0]
    if len(found) < 2:
        raise ValueError(f"Got classes={found.tolist()}, but expected at least two different ones.")
    return np.unique(np.asarray(classes))
