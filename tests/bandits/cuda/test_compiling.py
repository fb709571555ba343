"""The kernels compile for every kind of term, optimiser, row and shape, without a device."""

import pytest

from emulated import LIBRARY, ptx
from evenhand.bandits.cuda.spec import Spec

PLAIN = Spec(G=2, K=2, H=40, U=2, S=1, NNZ=14, PLACED=3, BLOCKS=6, GAINS=1, KLD=1)
PULLS = {"LOG_RATIO": 1, "AGREEMENT": 1, "JENSEN_SHANNON": 1}
CHANGES = [
    {},
    {"U": 1, "TAIL": 8, "NNZ": 13, "MATES": 7, "BLOCKS": 1},
    {"U": 1, "TAIL": 8, "NNZ": 13, "OPT": 3, "WARPS": 2, "EXPECTED": 1, "LISTENS": 1, "LOG_RATIO": 1},
    {"H": 10, "U": 1, "S": 2, "LIKELIHOOD": 1, "EXPECTED": 1, "KLD": 0},
    {
        "OPT": 3,
        "WARPS": 4,
        "EXPECTED": 1,
        "LISTENS": 1,
        "T": 1,
        "OVERALL": 1,
        "LIKELIHOOD": 1,
        "GAINS": 0,
        **PULLS,
    },
    {
        "OPT": 2,
        "WARPS": 4,
        "PLACED": 2,
        "T": 2,
        "OVERALL": 1,
        "BY_LABEL": 2,
        "WEIGHTED": 1,
        "KLD": 2,
        **PULLS,
    },
    {
        "G": 3,
        "K": 4,
        "NNZ": 0,
        "OPT": 1,
        "PLACED": 1,
        "LISTENS": 1,
        "GAINS": 2,
        "KLD": 3,
        "T": 1,
        "BY_LABEL": 1,
        **PULLS,
    },
    {"G": 1, "H": 5, "U": 1, "S": 4, "NNZ": 16, "PLACED": 0, "KLD": 4},
]


@pytest.mark.skipif(LIBRARY is None, reason="nvidia-cuda-nvrtc-cu12 is not installed")
@pytest.mark.parametrize("kernel", ["train", "judge"])
@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_every_specialisation_compiles(changes, kernel):
    spec = PLAIN._replace(**changes)
    source = (spec if kernel == "train" else spec.for_judging()).source(kernel)
    failed, text = ptx(source, "--use_fast_math")
    assert not failed, text
    assert f".entry {kernel}(" in text
