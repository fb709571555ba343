"""CUDA kernels without a device: compiled to PTX by NVRTC, or as C++ that emulates one (emulated.hpp)."""

import ctypes
import importlib.util
import itertools
import re
import shutil
import subprocess
import tempfile
import weakref
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np

import evenhand.cuda
from evenhand.bandits.cuda import fleet, packing, waves

HOW = [
    "-O1", "-w", "-std=c++17", "-shared", "-fPIC", "-ffp-contract=off", "-fsanitize=alignment,bounds",
    "-fsanitize-undefined-trap-on-error",
]  # fmt: skip
CXX = shutil.which("c++") or shutil.which("g++")
HEADER = Path(__file__).with_suffix(".hpp")
NUMBERS = itertools.count()
LAUNCH = """
extern "C" const char* launch(unsigned x, unsigned y, unsigned size, size_t bytes, bool backwards, ARGUMENTS) {
  return emulated::launch({x, y}, size, bytes, backwards, [=] { KERNEL(NAMES); });
}
"""


def nvrtc():
    found = importlib.util.find_spec("nvidia")
    for folder in [] if found is None else found.submodule_search_locations:
        for path in sorted(Path(folder, "cuda_nvrtc", "lib").glob("libnvrtc.so.*")):
            return ctypes.CDLL(str(path))
    return None


LIBRARY = nvrtc()


def ptx(source, *options):
    """Return whether compiling failed, and the PTX or the compiler's words."""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    LIBRARY.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None)
    given = [b"--gpu-architecture=compute_80", b"--std=c++17", *(option.encode() for option in options)]
    failed = LIBRARY.nvrtcCompileProgram(program, len(given), (ctypes.c_char_p * len(given))(*given))
    kind = "ProgramLog" if failed else "PTX"
    getattr(LIBRARY, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(LIBRARY, f"nvrtcGet{kind}")(program, text)
    return failed, text.value.decode()


class Numpy:
    """NumPy in CuPy's place."""

    asnumpy = staticmethod(np.asarray)

    def __getattr__(self, name):
        return getattr(np, name)


class _Sent(np.ndarray):
    """An array that has an address, as CuPy's have."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)


class _Stream(nullcontext):
    def synchronize(self):
        pass


class Pretended(Numpy):
    """A device on which nothing is computed: models stay as they begin. What it holds is counted."""

    def __init__(self, memory=10**9):
        self.memory = self.free = self.least = memory
        self.cuda = SimpleNamespace(Stream=_Stream, Device=self._device)

    def _device(self):
        attributes = {
            "MaxSharedMemoryPerBlockOptin": 232_448, "MultiProcessorCount": 4, "compute_capability": "90"
        }  # fmt: skip
        return SimpleNamespace(attributes=attributes, mem_info=(self.free, self.memory))

    def get_default_memory_pool(self):
        return SimpleNamespace(free_bytes=lambda: 0)

    def _held(self, array):
        held = array.view(_Sent)
        self._used(held.nbytes)
        weakref.finalize(held, self._used, -held.nbytes)
        return held

    def _used(self, count):
        self.free -= count
        self.least = min(self.least, self.free)

    def zeros(self, shape, kind):
        return self._held(np.zeros(shape, kind))

    def asarray(self, array):
        return self._held(np.array(array))


def pretend(monkeypatch, memory=10**9):
    """Let models be trained on such a device; every decision is counted as group 0's, and as right."""
    device = Pretended(memory)

    def count(grid, block, told, shared_mem):
        for judged in np.asarray(told[0]).view(packing.JUDGED):
            ctypes.c_uint32.from_address(int(judged["counts"])).value = int(judged["n"])

    kernels = {"judge": count, "train": lambda *told, **how: None}
    for module in (fleet, waves, evenhand.cuda):
        monkeypatch.setattr(module, "cupy", lambda: device)
    monkeypatch.setattr(fleet, "compiled", lambda name, spec: kernels[name])
    monkeypatch.setattr(fleet, "_multiprocessors", lambda: 4)
    return device


def as_calls(source):
    """Return a source in which every instruction in PTX is a call by its name."""
    nested = r"\([^()]*\)"
    for _ in range(3):
        nested = rf"\((?:[^()]|{nested})*\)"

    def call(found):
        name = re.search(r'"([\w.]+).*?"', found.group())
        operands = re.findall(rf'"[=\w]+"({nested})', found.group()[name.end() :])
        return f"{name.group(1).replace('.', '_')}({', '.join(operands)})"

    source = re.sub(rf"\basm(?: volatile)?{nested}", call, source)
    return re.sub(
        r"extern __shared__ \S+ float (\w+)\[\];", r"float* \1 = (float*)emulated::shared_memory;", source
    )


def emulate(monkeypatch, memory=10**9, backwards=False):
    """Let models be trained on a device that computes: the kernels run on the CPU, thread by thread."""
    device = pretend(monkeypatch, memory)
    monkeypatch.setattr(
        fleet, "compiled", lambda kernel, spec: emulated(spec.source(kernel), kernel, backwards)
    )
    return device


@cache
def _workshop():
    """Return a folder to compile kernels in, with the header, which is compiled once for all of them."""
    folder = tempfile.TemporaryDirectory()  # deleted when Python ends
    header = Path(shutil.copy(HEADER, folder.name))
    subprocess.run([CXX, *HOW, "-x", "c++-header", str(header), "-o", f"{header}.gch"], check=True)
    return folder


@cache
def _built(source, kernel):
    """Return the function that runs a kernel on the CPU."""
    start = source.index("(", re.search(rf"\b{kernel}\(", source).start()) + 1
    arguments = source[start : source.index(")", start)]
    names = ", ".join(re.findall(r"(\w+)(?:,|$)", arguments))
    launch = LAUNCH.replace("ARGUMENTS", arguments).replace("KERNEL", kernel).replace("NAMES", names)
    path = Path(_workshop().name, f"kernel{next(NUMBERS)}.cpp")
    path.write_text(f'#include "{HEADER.name}"\n{as_calls(source)}{launch}')
    subprocess.run([CXX, *HOW, str(path), "-o", str(path.with_suffix(".so"))], check=True)
    run = ctypes.PyDLL(str(path.with_suffix(".so"))).launch  # holds Python's lock: one block runs at a time
    run.restype = ctypes.c_char_p
    return run


def emulated(source, kernel, backwards=False):
    """Return a kernel that runs on the CPU, and is called as CuPy's are."""
    run = _built(source, kernel)

    def as_c(one):
        if one.ndim:
            assert one.flags.c_contiguous
            return ctypes.c_void_p(one.ctypes.data)
        kind = {"int64": ctypes.c_int64, "int32": ctypes.c_int32, "float64": ctypes.c_double}
        return kind[str(one.dtype)](one.item())

    def launched(grid, block, given, shared_mem=0):
        size = (ctypes.c_uint(each) for each in (*grid, 1)[:2])
        (threads,) = block
        problem = run(
            *size, ctypes.c_uint(threads), ctypes.c_size_t(shared_mem), backwards, *map(as_c, given)
        )
        assert problem is None, problem.decode()

    return launched
