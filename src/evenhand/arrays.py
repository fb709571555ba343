"""Names for the kinds of arrays that signatures speak of."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]  # positions: of labels, groups, people
Flags = npt.NDArray[np.bool_]
