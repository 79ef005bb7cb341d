"use strict";
// Builds the page from what the document holds. window.report is for tests of the page.

// Shows a range of time with a margin.
function showAround(view, begin, end) {
  const margin = Math.max((end - begin) * 0.1, 0.05);
  view.show(begin - margin, end + margin);
}

function fillHeader(profile, about) {
  const title = Words.name(about.file, 80) || "profile";
  document.title = title + " · Penstock report";
  document.getElementById("title").replaceChildren(element("bdi", {className: "name"}, title));
  const runs = profile.kind.reduce((count, kind) => count + (kind === kRunKind), 0);
  const facts = [
    ["Length", Words.time(profile.length)],
    [
      "Devices", profile.devices.map(device => Words.name(device.name, 30)).join(", ") || "none",
      profile.devices
          .map(
              device => `${Words.name(device.name, 60)}: ${Words.name(device.description, 100)}, ${
                  Words.bytes(device.memory_bytes)}`)
          .join("\n")
    ],
    ["Graphs", Words.count(profile.graphs.length)], ["Runs", Words.count(runs)], ["Spans", Words.count(profile.size)]
  ];
  if (profile.lostSpans > 0)
    facts.push(["Lost spans", Words.count(profile.lostSpans), "Older spans, which were no longer kept"]);
  if (profile.lostGraphs > 0)
    facts.push(["Lost graphs", Words.count(profile.lostGraphs), "Graphs that were no longer kept"]);
  document.getElementById("facts").append(...facts.map(
      ([name, value, more = ""]) => element(
          "div", {title: more, className: name.startsWith("Lost") ? "lost" : ""}, element("dt", {}, name),
          element("dd", {}, element("bdi", {}, value)))));
}

function fillLegend(profile) {
  const used = new Set(profile.kind);
  document.getElementById("legend").append(
      ...kKinds.filter((kind, at) => used.has(at)).map(kind => element("span", {}, swatch(kind), kKindNames[kind])));
}

function planPanel(panel) {
  const choice = element("select", {}), words = element("p", {"aria-live": "polite"});
  const canvas = element("canvas", {
    id: "plan",
    tabIndex: 0,
    role: "application",
    "aria-label": "The graph: arrows walk from node to node, Enter shows the node in the timeline"
  });
  panel.append(
      element("div", {className: "plan-head"}, element("label", {}, "Graph ", choice), words),
      element("div", {className: "plan"}, canvas));
  return {canvas, choice, words};
}

// Print is always light, and holds all panels.
function preparePrint(surfaces, panels) {
  const turn = printing => {
    document.documentElement.classList.toggle("printing", printing);
    if (printing) panels.fillAll();
    Colours.read();
    for (const surface of surfaces()) surface.redrawNow();
  };
  addEventListener("beforeprint", () => turn(true));
  addEventListener("afterprint", () => turn(false));
}

function start() {
  const byId = id => document.getElementById(id), read = id => JSON.parse(byId(id).textContent);
  Colours.read();
  const profile = new Profile(read("profile")), findings = read("findings");
  fillHeader(profile, read("about"));
  fillLegend(profile);
  const tracks = new Tracks(profile), view = new View(profile.first, profile.last), selection = new Selection();
  const timeline = new Timeline(
      {
        canvas: byId("timeline"),
        scroller: byId("scroller"),
        spacer: byId("spacer"),
        tip: byId("tip"),
        status: byId("status")
      },
      profile, tracks, view, selection);
  timeline.canvas.setAttribute(
      "aria-label", `Timeline, ${Words.many(profile.size, "span")} in ${Words.many(tracks.rows.length, "row")}`);
  const minimap = new Minimap(byId("minimap"), profile, view, timeline);
  const search = new Search(
      {query: byId("query"), hits: byId("hits"), previous: byId("previous-hit"), next: byId("next-hit")}, profile,
      timeline, selection);
  new Keys(
      {help: byId("help"), list: byId("keys"), asks: byId("ask-help")}, timeline, view, selection, search, profile);
  const panels = new Panels({tabs: byId("tabs"), panels: byId("panels")});
  let planView = null;
  const actions = {
    showRange: (begin, end) => showAround(view, begin, end),
    select: span => selection.set(span, true),
    showGraph: graph => {
      panels.show("graph");
      planView.show(graph);
    },
    // Of a click in the graph: the node's span in the median run, or else its first.
    showSpanOf: (graph, node) => {
      planView.show(graph, node);
      const median = planView.plan.medianRun, spans = profile.spansOf(graph, node);
      const span = median < 0 ? -1 : profile.spanIn(graph, profile.run[median], node);
      if (span >= 0 || spans.length > 0) selection.set(span >= 0 ? span : spans[0], true);
    },
    showNode: (graph, node) => {
      panels.show("graph");
      planView.show(graph, node);
      planView.canvas.focus();
    },
  };
  const rows = nodeRows(profile);
  new Details(byId("details"), profile, rows, selection, actions);
  panels.add(
      "findings", findings.length === 0 ? "Findings" : `Findings (${findings.length})`,
      panel => panel.append(...findingsPanel(findings, actions)));
  panels.add("nodes", "Nodes", panel => panel.append(...nodesPanel(rows, actions)));
  panels.add("graph", "Graph", panel => {
    if (profile.graphs.length === 0) {
      panel.append(element("p", {className: "quiet plan-head"}, "No graph is recorded."));
      return;
    }
    planView = new PlanView(planPanel(panel), profile, {showNode: actions.showSpanOf});
    const span = selection.span;
    if (span >= 0 && profile.graph[span] >= 0) planView.show(profile.graph[span], profile.node[span]);
    else planView.show(0);
  });
  panels.add("engines", "Engines", panel => panel.append(...enginesPanel(profile, view)));
  panels.add("pipelines", "Pipelines", panel => panel.append(...pipelinesPanel(profile, actions)));
  panels.add("memory", "Memory", panel => panel.append(...memoryPanel(profile)));
  panels.add("submission", "Submission", panel => panel.append(...submissionPanel(profile, actions)));
  panels.show(findings.length > 0 ? "findings" : "nodes");
  selection.onChange(span => {
    if (span >= 0 && planView !== null && profile.graph[span] >= 0)
      planView.show(profile.graph[span], profile.node[span]);
  });

  const tellRange = () => {
    byId("range").textContent = `${Words.time(view.span)} shown`;
  };
  view.onChange(tellRange);
  tellRange();
  byId("zoom-in").addEventListener("click", () => view.zoom(1 / 1.5));
  byId("zoom-out").addEventListener("click", () => view.zoom(1.5));
  byId("fit").addEventListener("click", () => view.all());
  const surfaces = () => [timeline.surface, minimap.surface, ...(planView === null ? [] : [planView.surface])];
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    Colours.read();
    for (const surface of surfaces()) surface.redraw();
  });
  preparePrint(surfaces, panels);
  for (const surface of surfaces()) surface.redrawNow();
  performance.mark("report drawn");
  window.report = {profile, tracks, view, selection, timeline, planView: () => planView};
}

start();
