"""Table 1: every method's best by lowest discrimination, beside the published numbers.

python experiments/table1_discrimination.py [--full] [--seeds 5]
"""

from __future__ import annotations

from common import run, show

if __name__ == "__main__":
    show(run(__doc__), "table1_discrimination")
