"""Short names for the array types in signatures."""

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]  # positions of labels, groups or people
Flags = npt.NDArray[np.bool_]
