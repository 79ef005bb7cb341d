"use strict";
// Nodes: how often each ran, and how long it took.

// A row for each node with spans, and for each name of other spans.
function nodeRows(profile) {
  const rows = new Map(), nodes = [];
  for (let span = 0; span < profile.size; ++span) {
    const node = profile.node[span];
    const key = node >= 0 ? profile.firstNode[profile.graph[span]] + node + (profile.proper[span] ? "" : " part") :
                            profile.graph[span] + " " + profile.kind[span] + " " + profile.name[span];
    let row = rows.get(key);
    if (row === undefined) rows.set(key, row = {spans: [], first: span});
    row.spans.push(span);
  }
  let all = 0;
  for (const {spans, first} of rows.values()) {
    const times = Float64Array.from(spans, span => profile.duration(span)).sort();
    const total = times.reduce((sum, us) => sum + us, 0), node = profile.nodeOf(first), kind = profile.kindOf(first);
    const proper = profile.proper[first] === 1,
          counts = proper && kind !== "run" && kind !== "submit" && kind !== "wait";
    if (counts) all += total;
    nodes.push({
      first,
      kind,
      counts,
      total,
      count: spans.length,
      median: times[(times.length - 1) >> 1],
      most: times[times.length - 1],
      name: node === null ? profile.nameOf(first) :
          proper          ? Words.name(node.name, 200) :
                            profile.nameOf(first).replace(/ \d+$/, ""),
      where: node === null ? "" : node.where,
      graph: profile.graph[first] < 0 ? "" : profile.graphName(profile.graph[first]),
      slowest: spans.reduce((worst, span) => profile.duration(span) > profile.duration(worst) ? span : worst)
    });
  }
  for (const row of nodes) row.share = row.counts && all > 0 ? row.total / all : -1;
  return nodes;
}

function nodesPanel(rows, {select}) {
  const columns = [
    {
      title: "Name",
      value: row => row.name,
      show: row => button(
          element("bdi", {className: "name", title: row.name}, row.name.slice(0, 80) || "(no name)"),
          () => select(row.first))
    },
    {
      title: "Kind",
      value: row => row.kind,
      show: row => element("span", {className: "kind"}, swatch(row.kind), kKindNames[row.kind])
    },
    {title: "Graph", value: row => row.graph, show: row => row.graph},
    {
      title: "Line",
      value: row => row.where,
      show: row => row.where === "" ? "" : element("code", {}, named(row.where, 40))
    },
    {title: "Count", number: true, value: row => row.count, show: row => Words.count(row.count)},
    {title: "Total", number: true, value: row => row.total, show: row => Words.time(row.total)},
    {title: "Median", number: true, value: row => row.median, show: row => Words.time(row.median)},
    {
      title: "Slowest",
      number: true,
      value: row => row.most,
      show: row => button(Words.time(row.most), () => select(row.slowest))
    },
    {
      title: "Share",
      number: true,
      value: row => row.share,
      show: row => row.share < 0 ? "" : shareBar(row.share, row.kind)
    },
  ];
  if (rows.length === 0) return [element("p", {className: "quiet"}, "No spans are recorded.")];
  return [
    element("p", {className: "quiet"}, "Shares are of the time of all copies, kernels and host code together."),
    sortedTable(columns, rows, 8, "Nodes")
  ];
}
