"""Reward terms, which add up to a reward: `Correctness() + LogRatio() + Parity(0.01)`.

A term whose `weight` is None uses the estimator's `divergence_weight`, the paper's λ.

To add a term:

1. Write one file here, with a frozen dataclass whose fields are the parameters. `likelihood.py` is the
   example of a plain `Term`, `log_ratio.py` of a `Pull`, which compares policies.
2. Give it a `name`, and a `check` that raises 'Got …, but expected …'.
3. Write its definition in NumPy, for all people at once. A plain term has `pack` (its parameters as a
   NamedTuple, with neutral values if the term is left out) and `rewards` (what it adds to r(a)). A `Pull`
   already packs its weight; it has `apart` (the cost of an action) and `heard` (the other policy's logit
   gradient).
4. Write the same for Numba, for one person, with `@jit(inline="always")`: `Lines(earn)`, or for a pull
   `PullLines(apart, total, heard)`. Their docstrings list the arguments of each function.
5. Set the flags that differ from their defaults in `Term` and `Pull`.
6. Add the class to `TERMS` in `registry.py`. This is all that `as_reward`, the estimators, the NumPy oracle,
   the compiled loop and saved models need. Export it below and in `evenhand/__init__.py`.
7. Add its name to `TERMS` in `tests/bandits/kernels/test_loop.py`, which compares step 4 with step 3 in every
   setting. If it ascends an objective, compare its gradient with that of autograd in `test_reward.py`, in the
   same folder.
8. Add a row to the table in `docs/rewards.md`, and a line to CHANGELOG.md.
"""

from evenhand.rewards.agreement import Agreement
from evenhand.rewards.correctness import Correctness
from evenhand.rewards.custom import Custom
from evenhand.rewards.jensen_shannon import JensenShannon
from evenhand.rewards.kl import KL
from evenhand.rewards.likelihood import Likelihood
from evenhand.rewards.log_ratio import LogRatio
from evenhand.rewards.rates import EqualizedOdds, EqualOpportunity, Parity, RateTerm
from evenhand.rewards.registry import as_reward, pack_terms
from evenhand.rewards.term import Reward, Term

__all__ = [
    "KL",
    "Agreement",
    "Correctness",
    "Custom",
    "EqualOpportunity",
    "EqualizedOdds",
    "JensenShannon",
    "Likelihood",
    "LogRatio",
    "Parity",
    "RateTerm",
    "Reward",
    "Term",
    "as_reward",
    "pack_terms",
]
