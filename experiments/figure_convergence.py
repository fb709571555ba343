"""The convergence figure: accumulated reward against steps, where it rises, where it falls, and why.

    python experiments/figure_convergence.py             # writes results/convergence/; a minute

The paper shows it rising on all four data sets. The reward of a step is 1[a = y] − λ·KL: the sum rises while the share of
right answers exceeds λ·KL, and the first is at most 1. So λ decides, with how far apart the two policies have gone. The
authors' code has as many outputs as hidden units: most of its first actions are no label at all, and earn nothing.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from asking import asked
from plotly.subplots import make_subplots

from evenhand import CooperativeBandits
from evenhand.progress import Progress
from evenhand.protocol.reproduce import load_public
from evenhand.protocol.trial import Prepared, make_ready

DATASETS, LAMBDAS, HIDDEN = ("adult", "compas", "german", "health"), (0.1, 1, 10, 100), 20
DRAWN = (1, 10)  # of λ, in the documentation's figure
NARROW, WIDE = "two outputs", "as many outputs as hidden units"


def run(ready: Prepared, weight: float, outputs: str) -> pd.DataFrame:
    """Return the curve of Algorithm 1 by the authors' settings: Adam at 0.0001, two epochs in the file's order."""
    every = max(1, ready.X.shape[0] // 50)
    model = CooperativeBandits.published(
        weight, variant="authors", hidden=HIDDEN, checkpoint_every=every, random_state=0
    )
    labels = np.unique(ready.y).tolist()
    if outputs == NARROW:
        model.fit(ready.X, ready.y, sensitive_features=ready.s)
    else:
        classes = [*labels, *(f"no label {n}" for n in range(HIDDEN - len(labels)))]
        for _ in range(2):
            model.partial_fit(ready.X, ready.y, classes, sensitive_features=ready.s)
    curve = pd.DataFrame(
        {name: model.history_[name] for name in ("step", "reward", "mean_reward", "mean_divergence")}
    )
    return curve.assign(**{"lambda": weight, "outputs": outputs})


def words(curve: pd.DataFrame) -> dict[str, float]:
    """Return how much of the way the sum rises, and what the last tenth earns and pays on average."""
    last = curve[curve["step"] > 0.9 * curve["step"].max()]
    divergence = last["mean_divergence"].mean()
    return {
        "rises_on": float((curve["mean_reward"] > 0).mean()),
        "right_at_the_end": float(last["mean_reward"].mean() + curve["lambda"].iloc[0] * divergence),
        "divergence_at_the_end": float(divergence),
        "accumulated": float(curve["reward"].iloc[-1] / curve["step"].iloc[-1]),
    }


def drawing(curves: dict[tuple[str, float], pd.DataFrame]) -> str:
    """Return an SVG for the documentation: the sum of rewards with two outputs, where it rises and where it falls."""
    wide, tall, parts = 190, 130, []
    for row, weight in enumerate(DRAWN):
        for column, name in enumerate(DATASETS):
            curve = curves[name, weight]
            left, top = 10 + wide * column, 45 + (tall + 45) * row
            low, high = min(0.0, curve["reward"].min()), max(0.0, curve["reward"].max())
            x = left + (wide - 20) * curve["step"] / curve["step"].max()
            y = top + tall * (high - curve["reward"]) / (high - low)
            zero, last = top + tall * high / (high - low), curve["reward"].iloc[-1]
            line = " ".join(f"{a:.0f},{b:.0f}" for a, b in zip(x, y, strict=True))
            parts.append(
                f'<text x="{left}" y="{top - 10}">{name}, λ = {weight:g}</text>'
                f'<line x1="{left}" x2="{left + wide - 20}" y1="{zero:.0f}" y2="{zero:.0f}" stroke="#aaa"/>'
                f'<polyline points="{line}" fill="none" stroke="#5b7db1" stroke-width="2"/>'
                f'<text x="{left + wide - 20}" y="{top + tall + 15}" text-anchor="end">{last:,.0f} after {curve["step"].max():,} steps</text>'
            )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 780 385" font-family="sans-serif" font-size="11">'
        f'<rect width="780" height="385" fill="white"/><text x="10" y="18">Accumulated reward of the published algorithm, '
        f"two outputs; the grey line is 0.</text>{''.join(parts)}</svg>\n"
    )


def main() -> None:
    out = asked(__doc__, "results/convergence").out
    warnings.simplefilter("ignore")
    figure = make_subplots(rows=2, cols=len(DATASETS), subplot_titles=DATASETS, row_titles=(NARROW, WIDE))
    rows, curves = [], {}
    for column, name in enumerate(DATASETS, start=1):
        ready = make_ready(load_public(name, Progress()), 0, "published")
        for row, outputs in enumerate((NARROW, WIDE), start=1):
            for weight in LAMBDAS:
                curve = run(ready, weight, outputs)
                if outputs == NARROW:
                    curves[name, weight] = curve
                rows.append({"dataset": name, "outputs": outputs, "lambda": weight, **words(curve)})
                line = go.Scatter(
                    x=curve["step"], y=curve["reward"], name=f"λ = {weight:g}", showlegend=row + column == 2
                )
                figure.add_trace(line, row=row, col=column)
    figure.update_layout(template="plotly_white", title="Accumulated reward of the published algorithm")
    figure.write_html(out / "convergence.html")
    (out / "convergence.svg").write_text(drawing(curves))
    pd.DataFrame(rows).to_csv(out / "convergence.csv", index=False)
    print(pd.DataFrame(rows).round(4).to_string(index=False))


if __name__ == "__main__":
    main()
