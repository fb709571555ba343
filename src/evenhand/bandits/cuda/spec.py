"""What a kernel is compiled for: the shape of policies and rows, the reward terms and the optimiser."""

from __future__ import annotations

import math
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from evenhand.bandits.kernels.structs import Options, People
from evenhand.rewards.registry import TERMS

KNOWN = (
    "correctness",
    "likelihood",
    "kl",
    "log_ratio",
    "agreement",
    "jensen_shannon",
    "rates",
)  # to rewards.cu and rates.cu
PARTS = ("memory", "layers", "rates", "rewards", "optimisers")
MOST_COLUMNS = 64  # in a row that is prefetched; longer rows are read when they are needed
MOST_WEIGHTS = 128  # of such a row that a lane keeps in registers
MOST_DEALT = 16  # weights of a tail, which half a warp shares
NOWHERE, POLICIES, GRADIENT, MOMENTS = range(4)  # what is in shared memory; each includes those before it
RESERVED = 1024  # bytes of shared memory that the driver reserves in each block
OWN = 1024  # bytes, at most, for the other shared variables of a kernel that updates weights in batches
REGISTERS = 65_536  # of a multiprocessor
LARGE = 8  # people; with batches of at least this size, the weights are updated rarely
MOST_HELD = 32  # groups with a bounded rate: one bit each


class Spec(NamedTuple):
    """The compile-time constants of a kernel, with their names in the source."""

    G: int  # groups
    K: int  # labels
    H: int  # hidden units
    U: int  # hidden units per lane
    S: int  # parts of a warp that share the columns of a row
    NNZ: int  # columns of a row; 0: any number
    PLACED: int
    TAIL: int = 0  # units beyond the warp's lanes; each lane takes one weight of them
    WARPS: int = 1  # per model; all but one only help to update the weights
    MATES: int = 1  # the largest number of models that share a block
    BLOCKS: int = 1  # per multiprocessor, at least: this limits the registers of each block
    EXPECTED: int = 0
    LISTENS: int = 0
    OPT: int = 0  # 0: plain ascent after each person, 1: in batches, 2: Adam, 3: joint Adam
    WEIGHTED: int = 0
    GAINS: int = 0  # 0: none, 1: 1 for the correct label, 2: a table
    LIKELIHOOD: int = 0
    KLD: int = 0  # 0: none, otherwise 1 + the divergence's code
    LOG_RATIO: int = 0
    AGREEMENT: int = 0
    JENSEN_SHANNON: int = 0
    T: int = 0  # bounded terms; next, as bits, those that bound rates given the label, and overall
    BY_LABEL: int = 0
    OVERALL: int = 0

    @property
    def kept(self) -> int:
        """The number of stored logits: with two labels, only half their difference."""
        return 1 if self.K == 2 else self.K

    @property
    def width(self) -> int:
        """The number of hidden units, padded to fill the last lane."""
        return -(-self.H // self.U) * self.U

    @property
    def pitch(self) -> int:
        """The number of pairs from one row to the next: even, since two pairs are copied at once."""
        return self.NNZ + self.NNZ % 2

    @property
    def ahead(self) -> bool:
        """Whether a row is read into registers one person ahead: this is worth it for long rows."""
        return self.OPT > 0 or self.TAIL > 0 or self.NNZ // self.S * self.U * self.G >= 48

    def elements(self, n_features: int) -> int:
        """Return the number of weights of a group's policy in the kernels' layout."""
        return (n_features + 2 + self.kept) * self.width + self.kept

    def moments(self, n_features: int) -> int:
        """Return the size of the optimiser's state, in numbers."""
        each = (0, 0, 2 * self.G, (1 if self.G == 2 else self.G) + 3)[self.OPT]
        return _fours(self.elements(n_features) * each)

    def policies(self, n_features: int) -> int:
        """Return the size of all policies together, in numbers."""
        return _fours(self.elements(n_features) * self.G)

    def shared_bytes(self, n_features: int) -> int:
        """Return the shared memory that one model needs in training, in bytes."""
        size, batches = self.policies(n_features), self.OPT > 0
        near = size if batches else _fours((n_features + 1) * self.width * self.G)
        numbers = 2 * self.pitch * (2 if self.ahead else 4)  # a ring of rows: column numbers and values
        numbers += near * (self.PLACED >= POLICIES) + batches * size * (self.PLACED >= GRADIENT)
        numbers += batches * self.moments(n_features) * (self.PLACED >= MOMENTS)
        return 4 * numbers

    def source(self, kernel: str) -> str:
        """Return the source of a kernel, 'train' or 'judge', with these constants."""
        numbers = self._asdict() | {"AHEAD": int(self.ahead)}
        return "".join(f"#define {name} {value}\n" for name, value in numbers.items()) + _text(kernel)

    def for_judging(self) -> Spec:
        """Return the part of the spec that matters for scoring checkpoints."""
        return Spec(*self[: Spec._fields.index("WARPS")])


@cache
def _text(kernel: str) -> str:
    folder = files(__package__)
    return "".join(folder.joinpath(f"{part}.cu").read_text(encoding="utf-8") for part in (*PARTS, kernel))


def _fours(count: int) -> int:
    return -(-count // 4) * 4


def layout(n_groups: int, n_hidden: int, most_columns: int, *, adam: bool = False) -> dict[str, int]:
    """Return how a warp divides hidden units and the columns of a row (at most `most_columns`)."""
    parts = 1 if n_hidden > 32 else 2 if n_hidden > 8 else 4
    tail = n_hidden - 32 if 0 < (n_hidden - 32) * n_groups <= MOST_DEALT else 0
    if adam and n_groups & (n_groups - 1):  # the order of a tail's sums would depend on the group
        tail = 0
    units = math.ceil((n_hidden - tail) * parts / 32)
    columns = -(-most_columns // parts) * parts
    if 0 < columns <= MOST_COLUMNS and columns // parts * units * n_groups <= MOST_WEIGHTS:
        return {"H": n_hidden, "U": units, "S": parts, "TAIL": tail, "NNZ": columns}
    return {"H": n_hidden, "U": math.ceil(n_hidden / 32), "S": 1, "TAIL": 0, "NNZ": 0}


def check_supported(policies: Any, terms: Any) -> None:
    """Raise if a reward has a term that only the CPU supports, or bounds a rate for more than 32 groups."""
    n_groups = len(policies.W2)
    unknown = [term.name for term, there in zip(TERMS, terms.active, strict=True) if there]
    unknown = [name for name in unknown if name not in KNOWN]
    if unknown:
        raise ValueError(
            f"Got a reward with the term {unknown[0]!r} for engine='cuda', but it runs on the CPU only: "
            "expected engine='cpu', or a reward of the other terms."
        )
    if len(terms.rates.bound) and n_groups > MOST_HELD:
        raise ValueError(
            f"Got {n_groups} groups and a bounded rate for engine='cuda', but expected at most {MOST_HELD} "
            "groups there: use engine='cpu'."
        )


def spec_of(
    policies: Any, people: People, terms: Any, options: Options, *, most_columns: int, room: int
) -> Spec:
    """Return the spec of one training run; `room` is the largest shared memory of a block, in bytes."""
    n_groups, n_actions, n_hidden = policies.W2.shape
    n_bounded = len(terms.rates.bound)
    direct = options.batch_size == 1 and not options.adam and options.weight_decay == 0
    # Moments are read once per batch. With large batches, memory is better spent on more models.
    large = options.batch_size >= LARGE or not options.adam
    gains = terms.correctness.gains
    mask = terms.rates.mask
    spec = Spec(
        G=n_groups,
        K=n_actions,
        **layout(n_groups, n_hidden, most_columns, adam=options.adam),
        PLACED=GRADIENT if large else MOMENTS,
        WARPS=1 if not options.adam else 2 if large else 4,
        EXPECTED=int(options.expected),
        LISTENS=int(options.mutual and n_groups > 1 and terms.listens),
        OPT=3 if options.apart > 0 else 2 if options.adam else 0 if direct else 1,
        WEIGHTED=int(len(people.weights) > 0),
        GAINS=0 if not gains.any() else 1 if np.array_equal(gains, np.eye(n_actions)) else 2,
        LIKELIHOOD=int(terms.likelihood.clip > 0),
        KLD=1 + terms.kl.kind if terms.kl.weight > 0 else 0,
        LOG_RATIO=int(terms.log_ratio.weight > 0),
        AGREEMENT=int(terms.agreement.weight > 0),
        JENSEN_SHANNON=int(terms.jensen_shannon.weight > 0),
        T=n_bounded,
        BY_LABEL=sum(1 << t for t in range(n_bounded) if mask[t, :-1].any()),
        OVERALL=sum(1 << t for t in range(n_bounded) if mask[t, -1].any()),
    )
    n_features = policies.W1.shape[1]
    own = 0 if direct else OWN
    while spec.PLACED and spec.shared_bytes(n_features) + own > room:
        spec = spec._replace(PLACED=spec.PLACED - 1)
    if not spec.PLACED and 4 * spec.policies(n_features) >= 2**32:  # too large for 32-bit offsets
        spec = spec._replace(**layout(n_groups, n_hidden, MOST_COLUMNS + 1))
    if spec.PLACED == MOMENTS and 2 * (spec.shared_bytes(n_features) + own + RESERVED) > room + RESERVED:
        spec = spec._replace(WARPS=8)  # only one model fits on a multiprocessor
    needed = 255 if n_groups * n_actions > 4 else 96 if direct else 160
    most = REGISTERS // (32 * spec.WARPS * needed)
    most = most // 4 * 4 if most > 4 and direct else most
    each = spec.shared_bytes(n_features) + own
    blocks = max(1, min((room + RESERVED) // (each + RESERVED), most))
    mates = min(room // each, most) if direct and each else 1
    return spec._replace(BLOCKS=blocks) if mates <= blocks else spec._replace(MATES=mates)
