"use strict";
// Counterparts: a figure of the columns that carry a difference, and one pair side by side.
const setUpTwins = (box, twins, { element, plain, css, colourOf, layout, draw, linesOf }) => {
  const find = (role) => box.querySelector(`[data-role="${role}"]`);
  const plot = box.querySelector('[data-plot="carriers"]');
  if (!twins || !plot) return () => {};
  const direction = find("direction"), pair = find("pair"), table = find("twins");
  const percent = (value, digits = 1) => `${(100 * value).toFixed(digits)}\u00a0%`;
  const chosen = () => twins.directions[Number(direction.value)];
  twins.directions.forEach((one, i) => direction.append(new Option(`${one.group}, counterparts in ${one.counterpart_group}`, i)));

  const drawBars = () => {
    const { columns, shares, clear } = chosen();
    // A long name without spaces would leave no room for the bars; the table has all of it.
    const most = Math.max(16, plot.clientWidth / 24);
    const names = columns.map((name) => linesOf(name, most).map((line) => (line.length > most ? `${line.slice(0, most - 1)}…` : line)));
    const kinds = [[true, "clearly above chance", colourOf(0), colourOf(0)], [false, "not clearly above chance", css("--card"), css("--soft")]];
    const traces = kinds.map(([wanted, title, fill, line]) => {
      const at = columns.map((_, i) => i).filter((i) => clear[i] === wanted);
      return {
        name: title, type: "bar", orientation: "h", y: at, x: at.map((i) => shares[i].value), width: 0.6,
        marker: { color: fill, line: { color: line, width: 1.5 } },
        error_x: {
          type: "data", symmetric: false, thickness: 1.5, width: 4, color: css("--ink"),
          array: at.map((i) => shares[i].high - shares[i].value), arrayminus: at.map((i) => shares[i].value - shares[i].low),
        },
        hovertemplate: at.map((i) => `${plain(columns[i])}: ${percent(shares[i].value)} (${percent(shares[i].low)} to ${percent(shares[i].high)})<extra></extra>`),
      };
    }).filter((trace) => trace.y.length);
    const shape = layout("share that the column carries", "");
    shape.barmode = "overlay";
    shape.showlegend = true;
    shape.xaxis.tickformat = ".0%";
    shape.xaxis.nticks = 6;
    shape.xaxis.tickangle = 0;
    shape.yaxis.tickvals = columns.map((_, i) => i);
    shape.yaxis.ticktext = names.map((lines) => lines.map(plain).join("<br>"));
    shape.yaxis.automargin = true;
    shape.yaxis.zeroline = false;
    shape.yaxis.range = [columns.length - 0.4, -0.6];
    shape.margin.l = 20;
    plot.dataset.height = 120 + names.reduce((sum, lines) => sum + Math.max(26, 18 * lines.length), 0);
    draw(plot, traces, shape);
  };

  const told = (decision, probability) => (probability === null ? decision : `${decision} (${percent(probability)})`);
  const showPair = () => {
    const { group, counterpart_group: other, pairs } = chosen(), one = pairs[Number(pair.value)];
    table.tHead.replaceChildren();
    table.tBodies[0].replaceChildren();
    if (!one) return;
    const line = (kind, cells, changed) => {
      const row = element("tr");
      cells.forEach((text, i) => {
        const cell = element(kind === "th" || i === 0 ? "th" : "td");
        cell.scope = kind === "th" ? "col" : "row";
        cell.append(element("bdi", text === null ? "missing" : String(text), changed && i === 2 ? "differs" : ""));
        row.append(cell);
      });
      return row;
    };
    const them = one.counterpart === null ? `as ${other}` : `counterpart ${one.counterpart}, ${other}`;
    table.tHead.append(line("th", ["column", `person ${one.person}, ${group}`, them, "decided after this step"]));
    table.tBodies[0].append(
      line("td", ["decision", told(one.decisions[0], one.probabilities[0]), told(one.decisions[1], one.probabilities[1]), ""]),
      ...one.steps.map((step) => line("td", [step.column, ...step.values, step.changed ? told(step.decision, step.probability) : ""], step.changed)),
    );
  };
  const begin = () => {
    pair.replaceChildren(...chosen().pairs.map((one, i) => new Option(one.counterpart === null ? `person ${one.person}` : `person ${one.person} and ${one.counterpart}`, i)));
    find("which").textContent = direction.selectedOptions[0].textContent;
    drawBars();
    showPair();
  };
  direction.addEventListener("change", begin);
  pair.addEventListener("change", showPair);
  begin();
  return drawBars;
};
