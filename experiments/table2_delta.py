"""Table 2: every method's best by highest accuracy − discrimination, beside the published numbers.

python experiments/table2_delta.py [--full] [--seeds 5]
"""

from __future__ import annotations

from common import run, show

if __name__ == "__main__":
    show(run(__doc__), "table2_delta")
