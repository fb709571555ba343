"""Set before SciPy is imported, so that scikit-learn's array-API check runs rather than skips."""

import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")
