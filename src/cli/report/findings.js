"use strict";
// Findings: what the doctor has found, each with its evidence, its fix and ways into the timeline and the graph.
//
// A finding has rule, share, gain (null: unknown) and gain_how, graph and node (places in the profile, -1: none) with
// graph_name and node_name, where, span, begin_us, end_us, evidence and fix; what is missing is not shown.

function findingsPanel(findings, actions) {
  if (findings.length === 0) return [element("p", {className: "quiet"}, "The report holds no findings.")];
  return [element("ol", {className: "findings"}, ...findings.map(finding => findingItem(finding, actions)))];
}

function findingItem(finding, {showRange, select, showNode}) {
  const text = (value, most) => Words.name(String(value ?? ""), most), ways = element("p", {className: "ways"});
  if (finding.end_us > finding.begin_us) {
    ways.append(button("Show in the timeline", () => showRange(finding.begin_us, finding.end_us)));
  }
  if (finding.span >= 0) ways.append(button("Select the span", () => select(finding.span)));
  if (finding.graph >= 0 && finding.node >= 0) {
    ways.append(button("In the graph", () => showNode(finding.graph, finding.node)));
  }
  const names = [finding.graph_name, finding.node_name, finding.where].filter(Boolean).map(name => named(String(name)));
  const share = `${Words.share(finding.share ?? 0)} of the time`;
  const gain = finding.gain > 0 ? `, expected gain ${Words.share(finding.gain)}` : "";
  return element(
      "li", {}, element("h3", {}, text(finding.rule, 120)),
      element("p", {className: "quiet"}, ...names.flatMap(name => [name, " · "]), share + gain),
      element("ul", {}, ...(finding.evidence ?? []).map(line => element("li", {}, text(line, 400)))),
      finding.fix ? element("p", {}, element("strong", {}, "Fix: "), text(finding.fix, 600)) : null,
      finding.gain_how ? element("p", {className: "quiet"}, "Gain: " + text(finding.gain_how, 400)) : null, ways);
}
