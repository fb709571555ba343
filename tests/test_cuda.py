"""A GPU that is missing or too old is said, with what to do."""

import sys
from types import SimpleNamespace

import pytest

from evenhand.checks import JobFailedError
from evenhand.cuda import check_engine


def with_device(monkeypatch, device, version=lambda: (12, 9)):
    cuda = SimpleNamespace(Device=device, nvrtc=SimpleNamespace(getVersion=version))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=cuda))


def test_no_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ImportError, match=r"engine='cuda' needs: pip install 'evenhand\[cuda\]'"):
        check_engine("cuda")


def test_no_device(monkeypatch):
    def device():
        raise OSError("no driver")

    with_device(monkeypatch, device)
    with pytest.raises(JobFailedError, match=r"found no CUDA device \(no driver\); use engine='cpu'\."):
        check_engine("cuda")


@pytest.mark.parametrize("capability, told", [("75", "7.5"), ("120", None), ("80", None)])
def test_an_old_device(capability, told, monkeypatch):
    with_device(monkeypatch, lambda: SimpleNamespace(compute_capability=capability))
    if told is None:
        assert check_engine("cuda") == "cuda"
        return
    with pytest.raises(JobFailedError, match=f"compute capability {told}, but needs 8.0 or higher"):
        check_engine("cuda")


def test_a_driver_without_a_compiler(monkeypatch):
    def version():
        raise RuntimeError("CuPy failed to load libnvrtc.so.12")

    with_device(monkeypatch, lambda: SimpleNamespace(compute_capability="90"), version)
    with pytest.raises(
        JobFailedError, match=r"found no NVRTC.*: pip install 'evenhand\[cuda\]' \(CuPy failed"
    ):
        check_engine("cuda")
