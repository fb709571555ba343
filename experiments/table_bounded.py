"""Not in the paper: the highest accuracy with discrimination at most 0.05 on the validation part.

python experiments/table_bounded.py [--full] [--seeds 5]
"""

from __future__ import annotations

from common import run, show

if __name__ == "__main__":
    show(run(__doc__), "table_bounded")
