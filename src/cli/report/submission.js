"use strict";
// Submission: how each graph was submitted, in words.

function submissionPanel(profile, {showRange, showGraph}) {
  if (profile.graphs.length === 0) return [element("p", {className: "quiet"}, "No graph is recorded.")];
  const left = profile.graphs.length - kRowsShown;
  return [
    ...profile.graphs.slice(0, kRowsShown).map((graph, at) => {
      const runs = profile.runsOf(at),
            way = (words, span) => button(
                `${words} ${Words.time(profile.duration(span))}`,
                () => showRange(profile.begin[span], profile.end[span]));
      return element(
          "section", {}, element("h3", {}, element("bdi", {}, profile.graphName(at))),
          element("p", {}, submissionWords(graph)),
          graph.report.loops.length === 0 ?
              null :
              element(
                  "ul", {},
                  ...graph.report.loops.map(
                      loop => element(
                          "li", {}, "Loop ", named(loop.name),
                          `: ${Words.many(loop.iterations, "iteration")}` +
                              (loop.iteration_us > 0 ? `, ${Words.time(loop.iteration_us)} each.` : ".")))),
          graph.report.notes.length === 0 ?
              null :
              element("ul", {}, ...graph.report.notes.map(note => element("li", {}, Words.name(note, 600)))),
          element("p", {className: "ways"}, button("Its graph", () => showGraph(at)), ...(runs.length === 0 ? [] : [
                    way("Fastest run", runs[0]), way("Median run", profile.medianRun(at)),
                    way("Slowest run", runs[runs.length - 1])
                  ])));
    }),
    ...(left > 0 ? [element("p", {className: "quiet"}, `${Words.many(left, "graph")} more are not shown.`)] : [])
  ];
}
function submissionWords(graph) {
  const {report} = graph, words = [];
  const mode = {stream: "on streams", graph: "as graphs", auto: "on streams and as graphs in turn"}[report.mode];
  words.push(`${Words.many(graph.launches, "launch", "launches")} ${mode}, in ${Words.many(graph.slots, "slot")}.`);
  if (report.graphs > 0) {
    words.push(
        `${Words.many(report.graphs, "graph was", "graphs were")} instantiated, with ${
            Words.many(report.graph_nodes, "node")}, in ` +
        `${Words.time(report.instantiating_us)}, and launched ${Words.many(report.graph_launches, "time")}.`);
  }
  if (report.regions > 0)
    words.push(`${Words.many(report.regions, "resident region stands", "resident regions stand")} for ${
        Words.many(report.region_nodes, "node")}.`);
  if (report.captures > 0)
    words.push(`${Words.many(report.captures, "capture")} took ${Words.time(report.capturing_us)}.`);
  const changed = [[report.nodes_set, "given new parameters"], [report.nodes_switched, "switched on or off"]].filter(
      ([count]) => count > 0);
  if (changed.length > 0)
    words.push(`Nodes were ${changed.map(([count, what]) => `${what} ${Words.many(count, "time")}`).join(" and ")}.`);
  if (report.refreshes > 0)
    words.push(`The parameters of all nodes were copied ${Words.many(report.refreshes, "time")}.`);
  if (report.stream_us > 0 || report.graph_us > 0) {
    const median = us => us > 0 ? Words.time(us) : "an unknown time";
    words.push(
        `A run takes ${median(report.stream_us)} on streams and ${median(report.graph_us)} as graphs (medians).`);
  }
  return words.join(" ");
}
