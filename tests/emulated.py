"""CUDA kernels without a device: compiled to PTX by NVRTC, or as C++ where every lane is a warp of its own."""

import ctypes
import importlib.util
import shutil
import subprocess
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import numpy as np

CXX = shutil.which("c++") or shutil.which("g++")
SHIM = """
#include <algorithm>
#include <cmath>
using std::fabs; using std::fmin; using std::rint;
#define __device__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
struct uint4 { unsigned x, y, z, w; };
struct { unsigned x; } threadIdx, blockIdx;
template <class Each> unsigned halves(unsigned a, unsigned b, Each each) {
  return each(a & 0xffff, b & 0xffff) | each(a >> 16, b >> 16) << 16;
}
unsigned __vmaxu2(unsigned a, unsigned b) { return halves(a, b, [](unsigned x, unsigned y) { return std::max(x, y); }); }
unsigned __vminu2(unsigned a, unsigned b) { return halves(a, b, [](unsigned x, unsigned y) { return std::min(x, y); }); }
unsigned __vcmpne2(unsigned a, unsigned b) { return halves(a, b, [](unsigned x, unsigned y) { return x != y ? 0xffffu : 0u; }); }
int __ffs(unsigned bits) { return __builtin_ffs(bits); }
bool __any_sync(unsigned, bool value) { return value; }
template <class T> T __shfl_sync(unsigned, T value, int) { return value; }
"""
LOOP = """
extern "C" void every_lane(long long lanes, ARGUMENTS) {
  for (long long at = 0; at < lanes; at++) {
    blockIdx.x = at / 32; threadIdx.x = at % 32;
    KERNEL(NAMES);
  }
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


class Pretended(Numpy):
    """A device on which nothing is computed: models stay as they begin."""

    cuda = SimpleNamespace(
        Stream=nullcontext,
        Device=lambda: SimpleNamespace(
            attributes={"MaxSharedMemoryPerBlockOptin": 232_448, "MultiProcessorCount": 4},
            mem_info=(10**9, 10**9),
        ),
    )

    def zeros(self, shape, kind):
        return np.zeros(shape, kind).view(_Sent)

    def asarray(self, array):
        return np.array(array).view(_Sent)


def emulated(source, kernel, folder):
    """Return a kernel that runs on the CPU, lane after lane, and is called as CuPy's are."""
    start = source.index("(", source.index(f" {kernel}(\n")) + 1
    arguments = source[start : source.index(")", start)]
    names = ", ".join(one.split()[-1] for one in arguments.split(","))
    loop = LOOP.replace("ARGUMENTS", arguments).replace("KERNEL", kernel).replace("NAMES", names)
    path = Path(folder, "kernel.cpp")
    path.write_text(SHIM + source + loop)
    how = ["-O1", "-w", "-std=c++17", "-shared", "-fPIC", "-ffp-contract=off"]
    subprocess.run([CXX, *how, str(path), "-o", str(path.with_suffix(".so"))], check=True)
    every_lane = ctypes.CDLL(str(path.with_suffix(".so"))).every_lane

    def as_c(one):
        if one.ndim:
            assert one.flags.c_contiguous
            return ctypes.c_void_p(one.ctypes.data)
        kind = {"int64": ctypes.c_int64, "int32": ctypes.c_int32, "float64": ctypes.c_double}
        return kind[str(one.dtype)](one.item())

    return lambda blocks, threads, given: every_lane(
        ctypes.c_int64(blocks[0] * threads[0]), *map(as_c, given)
    )
