"""Tables 5 and 6: predicting who fails a course, by gender and by race. The students are simulated: the paper's
own are private. Only their numbers are the paper's; the differences from its results say nothing about people.

    python experiments/table5_table6_education.py [--full] [--seeds 5]
"""

from __future__ import annotations

from common import run, show

if __name__ == "__main__":
    results = run(__doc__, datasets=("education",))
    show(results, "table5_education_gender")
    print()
    show(results, "table6_education_race")
