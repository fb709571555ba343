"""The kernels compile for every kind of term, optimiser, row and shape, without a device."""

import ctypes
import importlib.util
from pathlib import Path

import pytest

from evenhand.bandits.cuda.spec import Spec

PLAIN = Spec(G=2, K=2, H=40, U=2, S=1, NNZ=14, PLACED=3, BLOCKS=6, GAINS=1, KLD=1)
PULLS = {"LOG_RATIO": 1, "AGREEMENT": 1, "JENSEN_SHANNON": 1}
CHANGES = [
    {},
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


def nvrtc():
    found = importlib.util.find_spec("nvidia")
    for folder in [] if found is None else found.submodule_search_locations:
        for path in sorted(Path(folder, "cuda_nvrtc", "lib").glob("libnvrtc.so.*")):
            return ctypes.CDLL(str(path))
    return None


LIBRARY = nvrtc()


def compiled(source):
    """Return the source as PTX, or the compiler's words."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    LIBRARY.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
    given = [b"--gpu-architecture=compute_80", b"--std=c++17", b"--use_fast_math"]
    failed = LIBRARY.nvrtcCompileProgram(program, len(given), (ctypes.c_char_p * len(given))(*given))
    kind = "ProgramLog" if failed else "PTX"
    getattr(LIBRARY, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(LIBRARY, f"nvrtcGet{kind}")(program, text)
    return failed, text.value.decode()


@pytest.mark.skipif(LIBRARY is None, reason="nvidia-cuda-nvrtc-cu12 is not installed")
@pytest.mark.parametrize("kernel", ["train", "judge"])
@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_every_specialisation_compiles(changes, kernel):
    spec = PLAIN._replace(**changes)
    failed, text = compiled((spec if kernel == "train" else spec.for_judging()).source(kernel))
    assert not failed, text
    assert f".entry {kernel}(" in text
