"""Flushes subnormal numbers to zero: some processors need a hundred cycles for each of them.

Training makes many of them: Adam's averages fade for rarely filled columns, and so do the differences
between policies that agree. They are too small to change even the last digit of a weight.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from llvmlite import ir
from numba.core import types

from evenhand.bandits.kernels.simd import declared, intrinsic
from evenhand.jit import jit

_LONG, _WORD = ir.IntType(64), ir.IntType(32)


def _read_x86(builder: Any) -> Any:
    slot = builder.alloca(_WORD)
    _call(builder, "llvm.x86.sse.stmxcsr", builder.bitcast(slot, ir.IntType(8).as_pointer()))
    return builder.zext(builder.load(slot), _LONG)


def _write_x86(builder: Any, word: Any) -> None:
    slot = builder.alloca(_WORD)
    builder.store(builder.trunc(word, _WORD), slot)
    _call(builder, "llvm.x86.sse.ldmxcsr", builder.bitcast(slot, ir.IntType(8).as_pointer()))


def _read_arm(builder: Any) -> Any:
    return builder.call(declared(builder, "llvm.aarch64.get.fpcr", ir.FunctionType(_LONG, [])), [])


def _write_arm(builder: Any, word: Any) -> None:
    _call(builder, "llvm.aarch64.set.fpcr", word)


def _call(builder: Any, name: str, argument: Any) -> None:
    builder.call(declared(builder, name, ir.FunctionType(ir.VoidType(), [argument.type])), [argument])


class Unit(NamedTuple):
    """How a processor reads and writes its floating-point control word, and the bits that flush to zero."""

    read: Callable[[Any], Any]
    write: Callable[[Any, Any], None]
    bits: int


X86, ARM = Unit(_read_x86, _write_x86, 0x8040), Unit(_read_arm, _write_arm, 1 << 24)
HERE = {"x86_64": X86, "amd64": X86, "aarch64": ARM, "arm64": ARM}.get(platform.machine().lower())
_BITS = HERE.bits if HERE else 0


@intrinsic
def _control(typing: Any) -> Any:
    """Return the control word of the processor's floating-point unit."""

    def made(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return HERE.read(builder) if HERE else ir.Constant(_LONG, 0)

    return types.int64(), made


@intrinsic
def _set_control(typing: Any, word: Any) -> Any:
    """Write the control word of the processor's floating-point unit; each thread has its own."""

    def made(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        if HERE:
            HERE.write(builder, given[0])
        return context.get_dummy_value()

    return types.void(types.int64), made


@jit()
def _flush() -> Any:
    before = _control()
    _set_control(before | _BITS)
    return before


@jit()
def _restore(before: int) -> None:
    _set_control(before)


@contextmanager
def flushed_to_zero() -> Iterator[None]:
    """Flush subnormal numbers to zero in this thread inside the `with` block, if the processor can."""
    before = _flush()
    try:
        yield
    finally:
        _restore(before)
