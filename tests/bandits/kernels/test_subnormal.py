from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from llvmlite import binding, ir

from evenhand import CooperativeBandits
from evenhand.bandits.kernels import subnormal
from evenhand.bandits.kernels.subnormal import ARM, X86, flushed_to_zero

SMALL, TINY = np.float32(1e-20), np.finfo(np.float32).tiny
here = pytest.mark.skipif(subnormal.HERE is None, reason="the processor is not known to flush to zero")


def product():
    return SMALL * SMALL


@here
def test_small_products_are_zero_in_this_thread_and_only_inside():
    with ThreadPoolExecutor(1) as elsewhere:
        assert 0 < elsewhere.submit(product).result() < TINY  # its thread has begun
        with flushed_to_zero():
            assert product() == 0
            there = elsewhere.submit(product).result()
        assert 0 < there < TINY
        assert 0 < product() < TINY


@here
def test_an_error_inside_leaves_the_processor_as_it_was():
    with pytest.raises(KeyError), flushed_to_zero():
        raise KeyError
    assert product() > 0


@here
@pytest.mark.parametrize("optimizer", ["adam", "joint_adam"])
def test_averages_that_fade_end_at_zero(optimizer):
    """A column that is filled once, for the first person, has averages that 1,500 batches without it fade."""
    X = np.random.default_rng(0).normal(size=(1500, 2)).astype(np.float32)
    X[:, 1] = 0
    X[0, 1] = 1
    model = CooperativeBandits(
        optimizer=optimizer, batch_size=1, order="file", epochs=1, standardize=False, random_state=0
    )
    model.fit(X, X[:, 0] > 0, sensitive_features=np.arange(1500) % 2)
    kept = model._training.moments.first.W1
    assert kept[..., 0, :].any()
    assert not kept[..., 1, :].any()
    assert not any(((np.abs(part) < TINY) & (part != 0)).any() for part in model._training.moments.second)


@pytest.mark.parametrize(
    ("unit", "machine", "instructions"),
    [(X86, "x86_64-linux-gnu", ("stmxcsr", "ldmxcsr")), (ARM, "aarch64-linux-gnu", ("mrs", "msr"))],
)
def test_each_kind_of_processor_gets_its_instructions(unit, machine, instructions):
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    try:
        target = binding.Target.from_triple(machine)
    except RuntimeError:
        pytest.skip(f"this llvmlite writes no code for {machine}")
    module = ir.Module()
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), []), "flush")
    builder = ir.IRBuilder(function.append_basic_block())
    before = unit.read(builder)
    unit.write(builder, builder.or_(before, ir.Constant(before.type, unit.bits)))
    builder.ret_void()
    written = target.create_target_machine().emit_assembly(binding.parse_assembly(str(module)))
    for instruction in instructions:
        assert instruction in written
