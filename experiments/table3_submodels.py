"""Table 3: CCB's submodels: each group's policy for everybody, and the policies exchanged.

python experiments/table3_submodels.py [--full] [--seeds 5]
"""

from __future__ import annotations

from common import run, show

if __name__ == "__main__":
    show(run(__doc__, methods=["CCB"]), "table3_submodels")
