"""Whether there is a CUDA device to test on."""

import pytest

from evenhand.cuda import cupy


def _missing() -> str:
    try:
        cupy()
    except (ImportError, RuntimeError) as error:
        return str(error)
    return ""


MISSING = _missing()
needs_device = [pytest.mark.device, pytest.mark.skipif(bool(MISSING), reason=MISSING)]
