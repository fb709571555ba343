"""Vectors of eight numbers, for compiled loops over a small number of hidden units.

Compilers vectorise loops over long arrays, but not over twenty hidden units. Here vectors are explicit, and
LLVM maps them to the instructions of the machine. Like NumPy arrays, they can be added, subtracted,
multiplied and divided, with each other or with a number.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import extending
from numba.core import config, types
from numba.extending import models, overload, register_model

LANES = 8
_FLAGS = ("contract", "nsz")  # a product and a sum may become one instruction


def intrinsic(written: Callable[..., Any]) -> Callable[..., Any]:
    """Make an intrinsic; it is typed as Any, since callers pass other arguments than its definition has."""
    made: Callable[..., Any] = extending.intrinsic(written)
    return made


class Vector(types.Type):
    """The Numba type of a vector of eight numbers."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype
        super().__init__(name=f"Vector({dtype})")


@register_model(Vector)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Vector) -> None:
        eight = ir.VectorType(manager.lookup(kind.dtype).get_value_type(), LANES)
        super().__init__(manager, kind, eight)  # type: ignore[no-untyped-call]


def _place(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    """Return a pointer to eight numbers of an array, starting at a position in its memory."""
    held = context.make_array(kind)(context, builder, array)
    _check(context, builder, held, at, LANES)
    eight = ir.VectorType(context.get_value_type(kind.dtype), LANES)
    return builder.bitcast(builder.gep(held.data, [at]), eight.as_pointer())


def _check(context: Any, builder: Any, held: Any, at: Any, count: int) -> None:
    """Check bounds if Numba is set to do so."""
    if getattr(config, "BOUNDSCHECK", None):
        last = builder.add(at, ir.Constant(at.type, count))
        below = builder.icmp_signed("<", at, ir.Constant(at.type, 0))
        wrong = builder.or_(below, builder.icmp_signed(">", last, held.nitems))
        with builder.if_then(wrong, likely=False):
            context.call_conv.return_user_exc(builder, IndexError, ("a vector is out of bounds",))


def declared(builder: Any, name: str, kind: Any) -> Any:
    """Return an LLVM function, declared once per module."""
    return builder.module.globals.get(name) or ir.Function(builder.module, kind, name)


@intrinsic
def load(typing: Any, array: Any, at: Any) -> Any:
    """Return eight numbers of an array, starting at a position in its memory."""

    def made(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind, where = signature.args
        position = context.cast(builder, given[1], where, types.intp)
        return builder.load(
            _place(context, builder, kind, given[0], position), align=kind.dtype.bitwidth // 8
        )

    return Vector(array.dtype)(array, at), made


@intrinsic
def store(typing: Any, array: Any, at: Any, vector: Any) -> Any:
    """Write eight numbers to an array, starting at a position in its memory."""

    def made(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind, where, _ = signature.args
        position = context.cast(builder, given[1], where, types.intp)
        builder.store(
            given[2], _place(context, builder, kind, given[0], position), align=kind.dtype.bitwidth // 8
        )
        return context.get_dummy_value()

    return types.void(array, at, vector), made


@intrinsic
def read(typing: Any, array: Any, at: Any) -> Any:
    """Return the number at a position of an array's memory; negative positions don't count from the end."""

    def made(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind, where = signature.args
        held = context.make_array(kind)(context, builder, given[0])
        position = context.cast(builder, given[1], where, types.intp)
        _check(context, builder, held, position, 1)
        return builder.load(builder.gep(held.data, [position]))

    return array.dtype(array, at), made


@intrinsic
def prefetch(typing: Any, array: Any, at: Any) -> Any:
    """Prefetch what is at a position of an array's memory."""

    def made(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind, where = signature.args
        held = context.make_array(kind)(context, builder, given[0])
        place = builder.gep(held.data, [context.cast(builder, given[1], where, types.intp)])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        asked = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        fetch = declared(builder, "llvm.prefetch.p0", asked)
        read_kept_data = [ir.Constant(number, code) for code in (0, 3, 1)]
        builder.call(fetch, [builder.bitcast(place, byte), *read_kept_data])
        return context.get_dummy_value()

    return types.void(array, at), made


@intrinsic
def zeros(typing: Any, array: Any) -> Any:
    """Return eight zeros of an array's type."""

    def made(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return ir.Constant(context.get_value_type(signature.return_type), None)

    return Vector(array.dtype)(array), made


@intrinsic
def where_positive(typing: Any, test: Any, vector: Any) -> Any:
    """Return the vector's numbers where `test` is above zero, and zero elsewhere."""

    def made(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        zero = ir.Constant(given[0].type, None)
        return builder.select(builder.fcmp_ordered(">", given[0], zero), given[1], zero)

    return vector(test, vector), made


@intrinsic
def roots(typing: Any, vector: Any) -> Any:
    """Return the square root of each number."""

    def made(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind = given[0].type
        name = f"llvm.sqrt.v{LANES}{kind.element.intrinsic_name}"
        return builder.call(declared(builder, name, ir.FunctionType(kind, [kind])), given)

    return vector(vector), made


@intrinsic
def summed(typing: Any, vector: Any) -> Any:
    """Return the sum of the eight numbers, added in halves: the same on every machine."""

    def made(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        found, number = given[0], ir.IntType(32)
        for width in (4, 2, 1):
            low, high = (
                ir.Constant(ir.VectorType(number, width), list(range(start, start + width)))
                for start in (0, width)
            )
            none = ir.Constant(found.type, ir.Undefined)
            found = builder.fadd(
                builder.shuffle_vector(found, none, low), builder.shuffle_vector(found, none, high)
            )
        return builder.extract_element(found, ir.Constant(number, 0))

    return vector.dtype(vector), made


def _as_vector(context: Any, builder: Any, kind: Any, value: Any, dtype: Any) -> Any:
    """Return a vector unchanged, and a number as a vector that repeats it."""
    if isinstance(kind, Vector):
        return value
    number = context.cast(builder, value, kind, dtype)
    eight = ir.VectorType(number.type, LANES)
    none, first = ir.Constant(eight, ir.Undefined), ir.Constant(ir.IntType(32), 0)
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), LANES), None)
    return builder.shuffle_vector(builder.insert_element(none, number, first), none, lanes)


def _arithmetic(operation: Callable[..., Any], instruction: str) -> None:
    """Define an operation for two vectors, and for a vector and a number."""

    @intrinsic
    def computed(typing: Any, left: Any, right: Any) -> Any:
        kind = left if isinstance(left, Vector) else right

        def made(context: Any, builder: Any, signature: Any, given: Any) -> Any:
            pair = (
                _as_vector(context, builder, one, value, kind.dtype)
                for one, value in zip(signature.args, given, strict=True)
            )
            return getattr(builder, instruction)(*pair, flags=_FLAGS)

        return kind(left, right), made

    def apply(left: Any, right: Any) -> Any:
        return computed(left, right)

    @overload(operation, inline="always")
    def chosen(left: Any, right: Any) -> Any:
        return apply if isinstance(left, Vector) or isinstance(right, Vector) else None


for _operation, _instruction in (
    (operator.add, "fadd"), (operator.sub, "fsub"), (operator.mul, "fmul"), (operator.truediv, "fdiv"),
):  # fmt: skip
    _arithmetic(_operation, _instruction)
