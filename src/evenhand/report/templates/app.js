"use strict";
(() => {
  const page = JSON.parse(document.getElementById("data").textContent);
  // Okabe and Ito's colours, told apart by shape as well.
  const COLOURS = {
    light: ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8c8c8c"],
    dark: ["#56b4e9", "#e69f00", "#2bbf91", "#cc79a7", "#ff7f3f", "#5b8fd9", "#a6a6a6"],
  };
  const SHAPES = ["circle", "square", "diamond", "triangle-up", "cross", "star", "x", "triangle-down", "pentagon", "hourglass"];
  const PER_PAGE = 25;
  const ROW = 29; // pixels of a legend's row
  const MANY = 6; // models, from where on only one has bars
  const PAPER = 640; // pixels across a sheet between its margins
  const FEW = 4; // features shown before the rest is unfolded
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const colourOf = (number) => COLOURS[dark.matches ? "dark" : "light"][number % 7];
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  // Plotly reads a few tags in its texts; data must stay text.
  const plain = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
  const linesOf = (text, most) => String(text).split(" ").reduce((lines, word) => {
    const longer = `${lines.at(-1)} ${word}`.trim();
    return longer.length > most ? [...lines, word] : [...lines.slice(0, -1), longer];
  }, [""]).filter(Boolean);
  // Three digits, however small the number: a gap of 0.0002 is not nothing.
  const digits = (value) => (value && Math.abs(value) < 1e-4 ? value.toExponential(1) : String(Number(value.toPrecision(3))));
  const share = (name) => page.shares.includes(name);
  const shown = (name, measure) => {
    if (!measure || measure.value === null) return "–";
    const write = (value) => (share(name) ? `${(100 * value).toFixed(1)}\u00a0%` : name === "gap" && value < 0.1 ? digits(value) : value.toFixed(page.digits));
    const known = measure.low !== null && measure.low !== undefined;
    return write(measure.value) + (known ? ` (${write(measure.low)} to ${write(measure.high)})` : "");
  };
  const element = (kind, text, name) => {
    const made = document.createElement(kind);
    if (text !== undefined) made.textContent = text;
    if (name) made.className = name;
    return made;
  };

  const layout = (xTitle, yTitle) => ({
    font: { family: css("--font"), color: css("--ink"), size: 13 },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 58, r: 12, t: 8, b: 84 },
    xaxis: { title: { text: xTitle, standoff: 8 }, gridcolor: css("--line"), zerolinecolor: css("--line"), rangemode: "tozero" },
    yaxis: { title: { text: yTitle }, gridcolor: css("--line"), zerolinecolor: css("--line") },
    legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom", x: 0, font: { size: 12 } },
    hoverlabel: { bgcolor: css("--card"), bordercolor: css("--line"), font: { color: css("--ink") }, align: "left" },
    hovermode: "closest",
  });
  const config = { responsive: true, displaylogo: false, displayModeBar: false };

  // The legend takes as many rows as its entries need: draw it, and make room for what it takes below the axis.
  const draw = (box, traces, shape) => {
    box.dataset.height = box.dataset.height || box.clientHeight;
    const drawn = (legend) => {
      shape.height = Number(box.dataset.height) + Math.max(0, legend - ROW);
      box.style.height = `${shape.height}px`;
      shape.margin.b = 56 + legend;
      Plotly.react(box, traces, shape, config);
      const entries = [...box.querySelectorAll(".legend .traces")].map((entry) => entry.getBoundingClientRect());
      if (!entries.length) return 0;
      const tall = Math.max(...entries.map((at) => at.bottom)) - Math.min(...entries.map((at) => at.top));
      return Math.max(ROW, Math.ceil(tall) + 10);
    };
    const legend = drawn(ROW);
    if (legend !== ROW) drawn(legend);
  };

  const errorBars = (models, name) => {
    const known = models.map((model) => model.metrics[name] || {});
    return {
      type: "data", symmetric: false, thickness: 1.5, width: 0,
      array: known.map((m) => (m.high == null ? 0 : m.high - m.value)),
      arrayminus: known.map((m) => (m.low == null ? 0 : m.value - m.low)),
    };
  };
  const at = (models, name) => models.map((model) => (model.metrics[name] || {}).value ?? null);
  const told = (model) => {
    const lines = Object.keys(page.shown).filter((name) => model.metrics[name])
      .map((name) => `${page.shown[name]} ${shown(name, model.metrics[name])}`);
    return `<b>${plain(model.name)}</b><br>${lines.join("<br>")}<extra></extra>`;
  };

  const study = (box, data) => {
    const find = (role) => box.querySelector(`[data-role="${role}"]`);
    const trade = box.querySelector('[data-plot="trade"]');
    const points = data.points || [];
    const families = [...new Set([...data.models, ...points].map((model) => model.family))];
    const sliding = families.filter((family) => data.models.filter((m) => m.family === family && m.divergence_weight !== null).length > 1);
    const upwards = data.upwards || "accuracy";
    let axis = "discrimination";
    let highlighted = data.models.find((model) => model.chosen) || null;

    // Bars of many models hide the points: then only the ringed one has its bars, the rest have theirs in the table.
    const many = !points.length && data.models.length > MANY;

    const drawTrade = () => {
      if (!trade) return;
      const risingBy = (models) => [...models].sort((a, b) => a.metrics.discrimination.value - b.metrics.discrimination.value);
      const grids = families.flatMap((family, i) => {
        const tried = points.filter((point) => point.family === family);
        const front = axis === "discrimination" ? risingBy(tried.filter((point) => point.front)) : [];
        const common = { name: plain(family), legendgroup: plain(family), showlegend: false, type: "scatter" };
        return [
          { ...common, x: at(front, axis), y: at(front, upwards), mode: "lines", hoverinfo: "skip", line: { color: colourOf(i) + "b0", width: 1.5, shape: "hv" } },
          { ...common, x: at(tried, axis), y: at(tried, upwards), mode: "markers", hovertemplate: tried.map(told),
            marker: { color: colourOf(i), symbol: SHAPES[i % SHAPES.length], size: 5, opacity: tried.map((point) => (point.front ? 0.8 : 0.3)) } },
        ];
      });
      const bars = (models, color) => ({ error_x: { ...errorBars(models, axis), color }, error_y: { ...errorBars(models, upwards), color } });
      const chosen = families.map((family, i) => {
        const models = data.models.filter((model) => model.family === family);
        const colour = colourOf(i);
        return {
          name: plain(family), legendgroup: plain(family), x: at(models, axis), y: at(models, upwards), mode: "markers", type: "scatter",
          marker: { color: colour, symbol: SHAPES[i % SHAPES.length], size: points.length ? 12 : 10, line: { color: css("--card"), width: points.length ? 1.5 : 0 } },
          ...(many ? {} : bars(models, colour + "99")),
          hovertemplate: models.map(told),
        };
      });
      const traces = points.length ? [...grids, ...chosen] : chosen;
      if (axis === "discrimination") {
        const front = risingBy(data.models.filter((model) => model.front));
        // With grid points every family has a front of its own.
        if (!points.length) traces.unshift({
          name: "Pareto front", x: at(front, axis), y: at(front, upwards), mode: "lines", type: "scatter", hoverinfo: "skip",
          line: { color: css("--soft"), width: 1.5, dash: "dot", shape: "hv" },
        });
        if (data.published.length) {
          const methods = [...new Set(data.published.map((entry) => entry.method))];
          traces.push({
            name: plain(methods.length === 1 ? `published ${methods[0]}` : "published"), x: at(data.published, axis), y: at(data.published, upwards), mode: "markers", type: "scatter",
            marker: { color: css("--ink"), symbol: "circle-open", size: 11, line: { width: 1.6 } },
            hovertemplate: data.published.map((p) => `<b>published ${plain(p.method)}</b>, by ${plain(p.criterion)}<br>${page.shown[upwards]} ${shown(upwards, p.metrics[upwards])}<br>discrimination ${shown("discrimination", p.metrics.discrimination)}<extra></extra>`),
          });
        }
      }
      if (highlighted) {
        traces.unshift({
          name: "its interval", x: at([highlighted], axis), y: at([highlighted], upwards), mode: "markers", type: "scatter",
          hoverinfo: "skip", showlegend: false, marker: { opacity: 0 }, ...(many ? bars([highlighted], css("--soft")) : {}),
        });
        traces.push({
          name: "highlighted", x: at([highlighted], axis), y: at([highlighted], upwards), mode: "markers", type: "scatter",
          hoverinfo: "skip", showlegend: false, marker: { color: "rgba(0,0,0,0)", symbol: "circle", size: 24, line: { color: css("--ink"), width: 2.5 } },
        });
      }
      const shape = layout(page.shown[axis] + " (lower is fairer)", page.shown[upwards]);
      // Room left of zero: there lie the points that matter most.
      // All points and all bars that may be drawn are in the picture; grid points that no one would choose may leave it.
      const spots = [...data.models, ...points.filter((point) => point.front), ...(axis === "discrimination" ? data.published : [])];
      const drawn = many ? data.models.filter((m) => m.chosen || m === highlighted || sliding.includes(m.family)) : data.models;
      const values = (name) => [
        ...spots.map((m) => (m.metrics[name] || {}).value), ...drawn.flatMap((m) => [(m.metrics[name] || {}).low, (m.metrics[name] || {}).high]),
      ].filter((value) => value != null);
      const farthest = Math.max(0.01, ...values(axis));
      shape.xaxis.range = [-0.04 * farthest, 1.08 * farthest];
      const low = Math.min(...values(upwards)), high = Math.max(...values(upwards));
      const room = Math.max(0.008, 0.08 * (high - low));
      shape.yaxis.range = [low - room, high + room];
      if (share(axis)) shape.xaxis.tickformat = ".1~%";
      draw(trade, traces, shape);
    };

    const slide = find("slide");
    const setUpSlider = () => {
      if (!slide || !sliding.length) return;
      const family = find("family"), weight = find("weight"), said = find("said");
      slide.hidden = false;
      sliding.forEach((name) => family.append(new Option(name, name)));
      // The numbers are of the test part: nothing is chosen by them here.
      const chosen = highlighted;
      family.value = chosen && sliding.includes(chosen.family) ? chosen.family : sliding[0];
      const along = () => data.models.filter((m) => m.family === family.value && m.divergence_weight !== null)
        .sort((a, b) => a.divergence_weight - b.divergence_weight);
      const say = () => {
        const models = along();
        const model = models[Number(weight.value)];
        highlighted = model;
        const text = `λ = ${model.divergence_weight}: ` + [upwards, "discrimination", "flip_rate", "positive_rate"]
          .filter((name) => model.metrics[name]).map((name) => `${page.shown[name]} ${shown(name, model.metrics[name])}`).join(", ") + ".";
        weight.setAttribute("aria-valuetext", `λ = ${model.divergence_weight}`);
        said.textContent = text;
        drawTrade();
      };
      const begin = () => {
        const models = along();
        weight.max = String(models.length - 1);
        weight.value = String(Math.max(0, models.indexOf(highlighted)));
        say();
      };
      family.addEventListener("change", begin);
      weight.addEventListener("input", say);
      begin();
      highlighted = chosen || highlighted;
    };

    box.querySelectorAll("[data-axis]").forEach((button) => button.addEventListener("click", () => {
      axis = button.dataset.axis;
      box.querySelectorAll("[data-axis]").forEach((other) => other.setAttribute("aria-pressed", String(other === button)));
      find("against").textContent = page.shown[axis];
      drawTrade();
    }));

    const curves = box.querySelector('[data-plot="curves"]');
    const drawCurves = () => {
      if (!curves) return;
      const dashes = ["solid", "dash", "dot", "dashdot", "longdash"];
      const traces = data.convergence.flatMap((curve, i) => Object.entries(curve.series).map(([name, values], j) => ({
        name: plain(`${curve.name}: ${page.shown[name] || name}`), x: curve.steps, y: values, mode: "lines", type: "scatter",
        line: { color: colourOf(data.convergence.length > 1 ? i : j), dash: dashes[(data.convergence.length > 1 ? j : i + j) % dashes.length], width: 2 },
      })));
      const names = [...new Set(data.convergence.flatMap((curve) => Object.keys(curve.series)))];
      const shape = layout(data.convergence[0].counted || "people seen in training", names.length === 1 ? plain(page.shown[names[0]] || names[0]) : "on the validation part");
      shape.showlegend = true;
      draw(curves, traces, shape);
    };

    const rates = box.querySelector('[data-plot="groups"]');
    const drawGroups = () => {
      if (!rates) return;
      const kinds = [["base_rate", "in the data", css("--soft"), css("--card")], ["positive_rate", "decided", colourOf(0), colourOf(0)]]
        .filter(([name]) => data.groups[0] && data.groups[0][name]);
      const traces = kinds.map(([name, title, colour, fill], kind) => {
        const found = data.groups.map((row) => row[name]);
        return {
          // Side by side, so that the bars of one do not cover the other.
          name: title, type: "scatter", mode: "markers", x: found.map((m) => m.value), y: data.groups.map((_, i) => i + (kinds.length > 1 ? 0.3 * kind - 0.15 : 0)),
          marker: { color: fill, symbol: "circle", size: 10, line: { color: colour, width: 2 } },
          error_x: { type: "data", symmetric: false, thickness: 1.5, width: 0, color: colour, array: found.map((m) => (m.high ?? m.value) - m.value), arrayminus: found.map((m) => m.value - (m.low ?? m.value)) },
          hovertemplate: data.groups.map((row, i) => `${plain(row.group)}: ${shown("positive_rate", found[i])} ${title}<extra></extra>`),
        };
      });
      const shape = layout(`share of ${plain(data.pos_label)}`, "");
      shape.xaxis.tickformat = ".0%";
      const ends = kinds.flatMap(([name]) => data.groups.map((row) => row[name].high ?? row[name].value ?? 0));
      shape.xaxis.range = [-0.02, 1.04 * Math.max(0.05, ...ends)];
      shape.yaxis.tickvals = data.groups.map((_, i) => i);
      const names = data.groups.map((row) => linesOf(row.group, Math.max(16, rates.clientWidth / 24)));
      shape.yaxis.ticktext = names.map((lines) => lines.map(plain).join("<br>"));
      shape.xaxis.nticks = 6;
      shape.xaxis.tickangle = 0;
      shape.yaxis.zeroline = false;
      shape.yaxis.automargin = true;
      shape.yaxis.range = [data.groups.length - 0.4, -0.6];
      shape.margin.l = 20;
      rates.dataset.height = 110 + Math.max(34, 18 * Math.max(...names.map((lines) => lines.length))) * data.groups.length;
      draw(rates, traces, shape);
    };

    const table = find("people");
    const setUpPeople = () => {
      if (!table) return;
      const persons = data.persons, search = find("search"), only = find("only");
      const columns = [
        { title: "person", key: (row) => row.person }, { title: "group", key: (row) => row.group },
        ...(persons.rows.some((row) => row.label) ? [{ title: "label", key: (row) => row.label }] : []),
        ...persons.groups.map((group, i) => ({ title: `as ${group}`, key: (row) => row.probabilities[i], group: i })),
        { title: "gap", key: (row) => row.gap }, { title: "who", key: null },
      ];
      persons.rows.forEach((row) => {
        row.text = [row.person, row.group, row.label, ...row.decisions, row.flips ? "changes" : "",
          ...row.features.map((value, i) => `${persons.columns[i]} ${value}`)].join(" ").toLowerCase();
      });
      const head = element("tr");
      let sorted = null, down = true, first = 0;
      const heads = columns.map((column) => {
        const cell = element("th");
        cell.scope = "col";
        if (!column.key) cell.textContent = column.title;
        else {
          const button = element("button", column.title);
          button.type = "button";
          button.addEventListener("click", () => {
            down = sorted === column ? !down : ["gap"].includes(column.title) || column.group !== undefined;
            sorted = column;
            first = 0;
            heads.forEach((other) => other.removeAttribute("aria-sort"));
            cell.setAttribute("aria-sort", down ? "descending" : "ascending");
            show();
          });
          cell.append(button);
        }
        head.append(cell);
        return cell;
      });
      table.tHead.append(head);

      const cellOf = (row, column) => {
        if (column.group !== undefined) {
          const own = persons.groups[column.group] === row.group;
          const mine = row.decisions[persons.groups.indexOf(row.group)];
          const decided = row.decisions[column.group];
          const cell = element("td");
          cell.append(element("bdi", decided, own ? "own" : decided !== mine ? "differs" : ""));
          const likely = row.probabilities[column.group];
          if (likely !== null) cell.append(element("small", (100 * likely).toFixed(1) + " %"));
          return cell;
        }
        if (column.title === "who") {
          const cell = element("td", undefined, "who"), more = element("details"), first = element("summary");
          const known = row.features.map((value, i) => [persons.columns[i], value]).filter(([, value]) => value !== null);
          known.forEach(([name, value], i) => {
            const box = i < FEW ? first : more;
            if (i) box.append(" · ");
            box.append(element("bdi", name), " ", element("b", String(value)));
          });
          more.prepend(first);
          cell.append(known.length > FEW ? more : first.textContent);
          return cell;
        }
        const value = column.title === "gap" ? (row.gap === null ? "–" : digits(row.gap)) : String(column.key(row));
        const cell = element(column.title === "person" ? "th" : "td", undefined, column.title === "gap" ? "number" : "");
        if (column.title === "person") cell.scope = "row";
        cell.append(element("bdi", value));
        return cell;
      };

      const show = () => {
        const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
        let rows = persons.rows.filter((row) => (!only.checked || row.flips) && words.every((word) => row.text.includes(word)));
        if (sorted) {
          const order = (a, b) => (typeof a === "number" ? a - b : String(a).localeCompare(String(b)));
          rows = [...rows].sort((a, b) => (down ? -1 : 1) * order(sorted.key(a), sorted.key(b)));
        }
        first = Math.min(first, Math.max(0, Math.ceil(rows.length / PER_PAGE) - 1) * PER_PAGE);
        const part = rows.slice(first, first + PER_PAGE);
        table.tBodies[0].replaceChildren(...part.map((row) => {
          const line = element("tr");
          columns.forEach((column) => line.append(cellOf(row, column)));
          return line;
        }));
        find("count").textContent = `${rows.length.toLocaleString("en")} of ${persons.rows.length.toLocaleString("en")} listed`;
        find("page").textContent = rows.length ? `${first + 1} to ${first + part.length}` : "nobody";
        find("back").disabled = first === 0;
        find("next").disabled = first + PER_PAGE >= rows.length;
      };
      [search, only].forEach((input) => input.addEventListener("input", () => { first = 0; show(); }));
      find("back").addEventListener("click", () => { first -= PER_PAGE; show(); });
      find("next").addEventListener("click", () => { first += PER_PAGE; show(); });
      show();
    };

    setUpSlider();
    drawTrade();
    drawCurves();
    drawGroups();
    setUpPeople();
    const drawTwins = setUpTwins(box, data.twins, { element, plain, css, colourOf, layout, draw, linesOf });
    return () => [drawTrade, drawCurves, drawGroups, drawTwins].forEach((again) => again());
  };

  const redraw = [...document.querySelectorAll("[data-study]")].map((box) => study(box, page.studies[Number(box.dataset.study)]));
  markScrolling(document);
  // Paper is narrower than most windows, and figures don't shrink by themselves.
  const widen = (size) => document.querySelectorAll(".plot").forEach((box) => Plotly.relayout(box, size));
  addEventListener("beforeprint", () => widen({ autosize: false, width: PAPER }));
  addEventListener("afterprint", () => widen({ autosize: true, width: null }));
  dark.addEventListener("change", () => redraw.forEach((again) => again()));
  document.documentElement.dataset.ready = still.matches ? "still" : "yes";
})();
