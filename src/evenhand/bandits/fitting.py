"""Prepares a training run: checks of parameters, options as numbers, warnings, and remedies to suggest."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from evenhand import checks
from evenhand.arrays import Codes
from evenhand.bandits.cautions import warn
from evenhand.bandits.kernels.loop import ORDERS
from evenhand.bandits.kernels.optimisers import SCHEDULES
from evenhand.bandits.kernels.structs import Options, People
from evenhand.metrics.collapse import ALIKE_FROM, WRONG_FROM, CollapseWarning, one_decision
from evenhand.rewards import Reward
from evenhand.rewards.compiling import try_custom
from evenhand.rewards.registry import stiffness
from evenhand.rewards.term import Setting

# Policies move jointly if the weight of cooperation is at least this large. With a smaller weight, the pull
# hardly hides the gradient of the labels, and a small group learns better with its own Adam.
JOINT_FROM = 5.0
# With more than 400,000 steps, tables overfit (experiments/tried.py); with fewer than 20,000, policies learn
# too little from small tables.
EPOCHS, LEAST, MOST = 20, 20_000, 400_000
RATE = 0.01


def check_epochs(epochs: Any) -> float | str:
    """Return 'auto' or the number of epochs; an error says what is expected."""
    return "auto" if epochs == "auto" else checks.number("epochs", epochs, low=0, high=1e9, open_low=True)


def people_met(epochs: float | str, n_people: int) -> int:
    """Return the number of steps of a fit. 'auto' is 20 epochs, within limits, but at least one epoch.

    >>> people_met("auto", 700), people_met("auto", 5_000), people_met("auto", 80_000), people_met(3, 700)
    (20000, 100000, 400000, 2100)
    """
    if epochs == "auto":
        return min(max(EPOCHS * n_people, LEAST), max(MOST, n_people))
    return max(1, round(float(epochs) * n_people))


def sizes_of(total: Any, groups: Any) -> Codes:
    """Return the number of people per group in all pieces of a fit; raise if a group has none."""
    for name in groups.tolist():
        checks.integer(f"total[{name!r}]", dict(total).get(name, 0))
    return np.array([total[name] for name in groups.tolist()], dtype=np.int64)


def within(horizon: int, step: int) -> int:
    """Return the number of steps left in a fit in pieces; raise if there are none."""
    if step >= horizon:
        raise ValueError(
            f"Got more people, but the fit has taken all {horizon:,} steps that `total` and `epochs` or "
            "`steps` allow."
        )
    return horizon - step


def step_size(learning_rate: float | str, n_features: int) -> float:
    """Return the learning rate; 'auto' is 0.01 / √features.

    Adam moves all weights by about the same amount, so with more features a step changes a policy more.

    >>> step_size("auto", 100), step_size(0.1, 100)
    (0.001, 0.1)
    """
    return RATE / math.sqrt(n_features) if learning_rate == "auto" else float(learning_rate)


def check_options(learner: Any) -> None:
    """Raise if a parameter of the estimator is invalid."""
    checks.integer("hidden", learner.hidden)
    checks.one_of("estimator", learner.estimator, ("expected", "sampled"))
    checks.one_of("cooperation", learner.cooperation, ("mutual", "acting"))
    checks.one_of("optimizer", learner.optimizer, ("sgd", "adam", "joint_adam"))
    checks.one_of("schedule", learner.schedule, SCHEDULES)
    checks.one_of("order", learner.order, ORDERS)
    if learner.learning_rate != "auto":
        checks.number("learning_rate", learner.learning_rate, low=0, open_low=True)
    checks.number("divergence_weight", learner.divergence_weight, low=0)
    checks.number("importance_clip", learner.importance_clip, low=0, open_low=True)
    check_epochs(learner.epochs)
    if learner.steps is not None:
        checks.integer("steps", learner.steps)
    checks.integer("batch_size", learner.batch_size)
    checks.number("weight_decay", learner.weight_decay, low=0)
    checks.integer("checkpoint_every", learner.checkpoint_every)


def check_reward(reward: Reward, shape: tuple[int, ...], people: People) -> Reward:
    """Check that the reward fits the people, try a `Custom` function, and return the terms that count.

    Raise if a log lacks the labels that a term needs, and warn if no term uses the labels. For a log, the
    logged rewards replace the terms for correct labels; its labels are only used for rates. `shape` is the
    number of groups and of actions.
    """
    logged, labelled = len(people.actions) > 0, bool((people.labels >= 0).any())
    if not labelled and any(term.needs_labels for term in reward.terms):
        raise ValueError(
            f"Got the reward {', '.join(reward.names)} for logged feedback, but a log has no labels: "
            "expected terms that need none (parity, log_ratio, jensen_shannon, agreement, kl), or labels and "
            "the actions that reveal them, fit_logged(…, labels=…, reveals=…)."
        )
    if not logged and not any(term.reads_labels for term in reward.terms):
        warn(
            f"No term of the reward {reward} uses the label: nothing is learned from y. "
            "Add Likelihood() or Correctness()."
        )
    own = reward.get("custom")
    if own is not None:
        own.check(shape[1])
        try_custom(own.function, *shape, logged, labelled)
    return Reward(tuple(term for term in reward.terms if not (logged and term.of_labels)))


def warn_of_terms(reward: Reward, setting: Setting) -> None:
    """Emit the warnings of all reward terms."""
    for caution in (term.caution(setting) for term in reward.terms):
        if caution is not None:
            warn(caution)


def options_of(learner: Any, terms: Any, *, n_steps: int, horizon: int, order: str) -> Options:
    """Return the estimator's parameters as the numbers that the training loop reads."""
    training = learner._training
    return Options(
        expected=learner.estimator == "expected",
        mutual=learner.cooperation == "mutual",
        adam=learner.optimizer != "sgd",
        apart=_apart(learner, stiffness(terms)),
        learning_rate=step_size(learner.learning_rate, learner.n_features_in_),
        schedule=SCHEDULES.index(learner.schedule),
        horizon=horizon,
        end=training.step + n_steps,
        batch_size=int(learner.batch_size),
        weight_decay=float(learner.weight_decay),
        order=ORDERS.index(order),
        origin=training.step,
        importance_clip=float(learner.importance_clip),
        interval=int(learner.checkpoint_every),
        seed=np.uint64(training.seed),
    )


def _apart(learner: Any, pull: float) -> float:
    """Return the share of the learning rate for the policies' differences; 0 if policies move separately."""
    n_groups = len(learner._training.policies.b2)
    listen = learner.cooperation == "mutual" and n_groups > 1 and pull >= JOINT_FROM
    jointly = learner.optimizer == "joint_adam" and learner.shared_start and listen
    return 1.0 / (1.0 + pull) if jointly else 0.0


def remedy_of(learner: Any, rate: float) -> str:
    """Return advice for the error that is raised if training diverges."""
    remedy, own = f"Lower learning_rate (now {rate:g})", learner._reward().get("custom")
    if learner.divergence_weight:
        remedy += f" or divergence_weight (now {learner.divergence_weight:g})"
    if own is not None:
        remedy += (
            f", check that {getattr(own.function, '__name__', 'your function')!r} returns finite rewards"
        )
    return f"{remedy}." if learner.standardize else f"{remedy}, or scale the columns of X to unit variance."


def warn_if_collapsed(learner: Any, own: Any, people: People, *, selected: bool) -> None:
    """Warn if nearly everybody gets the same decision, unless more than 80 % of them have that label.

    `own` has the probabilities of each person's own policy, for the first people of the run; `selected` says
    whether the policies are those of a selected checkpoint.
    """
    reward, n = learner._reward(), len(own)
    action = one_decision(own, ALIKE_FROM)
    wrong = np.mean(people.labels[:n] != action)
    if action is None or wrong < WRONG_FROM:
        return
    alike = np.sum(own.argmax(1) == action)
    causes = []
    if selected:
        causes.append("a criterion of select that prefers such a checkpoint")
    if not learner.standardize:
        causes.append("columns of X on very different scales (scale them to unit variance)")
    if learner.divergence_weight:
        causes.append(f"a large divergence_weight (now {learner.divergence_weight:g})")
    if reward.get("likelihood") is None:
        causes.append("a reward without Likelihood(), which learns rare labels")
    causes.append("features that carry no information about the label")
    warn(
        f"{type(learner).__name__} decides {learner.classes_.tolist()[action]!r} for {alike} of {n} people, "
        f"but {wrong:.0%} of them have another label. Possible causes: {', '.join(causes)}.",
        CollapseWarning,
    )
