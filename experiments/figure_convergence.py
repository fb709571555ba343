"""The convergence figure: accumulated reward against steps, four data sets, published and cured.

    python experiments/figure_convergence.py [--full]        # writes results/convergence.html

The published reward is that of the models chosen by delta; a line that falls is a policy whose divergence costs more
than its right answers earn.
"""

from __future__ import annotations

import plotly.graph_objects as go
from common import run
from plotly.subplots import make_subplots

if __name__ == "__main__":
    results = run(__doc__, methods=["CCB", "CCB cured"])
    names = list(dict.fromkeys(curve["dataset"] for curve in results.curves))
    figure = make_subplots(rows=1, cols=len(names), subplot_titles=names)
    for curve in results.curves:
        line = go.Scatter(x=curve["step"], y=curve["reward"], name=f"{curve['method']}, {curve['dataset']}")
        figure.add_trace(line, row=1, col=names.index(curve["dataset"]) + 1)
    figure.update_layout(xaxis_title="steps", yaxis_title="accumulated reward", template="plotly_white")
    figure.write_html(results.out / "convergence.html")
    for curve in results.curves:
        print(
            f"{curve['method']} on {curve['dataset']}: {curve['reward'][-1]:,.0f} after {curve['step'][-1]:,.0f}"
        )
    print(results.out / "convergence.html")
