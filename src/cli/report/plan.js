"use strict";
// Plan: a graph as it is drawn, and what its runs say of it: where each node stands, which share of the nodes' time it
// takes, and the critical path of the median run.
//
// Columns are lanes, with host nodes in the first. A node stands below all that it follows and below the node before it
// in its lane, so that reading downwards is reading in the order of time.

class Plan {
  constructor(profile, graph) {
    this.profile = profile;
    this.graph = graph;
    this.nodes = profile.graphs[graph].nodes;
    this.#layOut();
    this.#readTimes();
    this.path = this.medianRun < 0 ? [] : this.#criticalPath();
    this.onPath = new Set(this.path);
  }

  #layOut() {
    const {lanes} = this.profile.graphs[this.graph];
    const used =
        [...new Set(this.nodes.map(node => lanes[node.lane] === undefined ? -1 : node.lane))].sort((a, b) => a - b);
    this.columns = used.map(lane => lane < 0 ? "host" : `${Words.name(lanes[lane].kind, 20)} ${lane}`);
    const column = new Map(used.map((lane, at) => [lane, at])), filled = used.map(() => 0);
    this.places = [];      // of each node {column, row}
    this.laneBefore = [];  // of each node the one before it in its lane, or -1
    const lastOf = used.map(() => -1);
    this.nodes.forEach((node, at) => {
      const own = column.get(lanes[node.lane] === undefined ? -1 : node.lane);
      let row = filled[own];
      for (const other of node.after)
        if (other < at) row = Math.max(row, this.places[other].row + 1);
      filled[own] = row + 1;
      this.places.push({column: own, row});
      this.laneBefore.push(used[own] < 0 ? -1 : lastOf[own]);
      lastOf[own] = at;
    });
    this.height = filled.reduce((most, rows) => Math.max(most, rows), 0);
    this.byRow =
        this.places.map((place, at) => at)
            .sort((a, b) => this.places[a].row - this.places[b].row || this.places[a].column - this.places[b].column);
  }

  #readTimes() {
    const {profile, graph} = this;
    this.totals = this.nodes.map(
        (node, at) => profile.properSpansOf(graph, at).reduce((sum, span) => sum + profile.duration(span), 0));
    this.counts = this.nodes.map((node, at) => profile.properSpansOf(graph, at).length);
    this.total = this.totals.reduce((sum, us) => sum + us, 0);
    this.runs = profile.runsOf(graph);
    const median = this.medianRun = profile.medianRun(graph);  // its span
    this.times = new Map();                                    // of the nodes in the median run: {begin, end}
    if (median < 0) return;
    for (const span of profile.spansOfRun(graph, profile.run[median])) {
      const node = profile.node[span];
      if (node < 0) continue;
      const time = this.times.get(node) ?? {begin: Infinity, end: -Infinity};
      this.times.set(
          node, {begin: Math.min(time.begin, profile.begin[span]), end: Math.max(time.end, profile.end[span])});
    }
  }
  share(node) { return this.total > 0 ? this.totals[node] / this.total : 0; }
  // The share that is drawn as the strongest.
  get strongest() { return this.totals.reduce((most, us) => Math.max(most, us), 0) / (this.total || 1); }

  // From the node that ended last, always to the one that it waited for: of those that it follows and the one before it
  // in its lane, the one that ended last.
  #criticalPath() {
    let node = -1;
    for (const [at, time] of this.times)
      if (node < 0 || time.end > this.times.get(node).end) node = at;
    const path = [], seen = new Set();
    while (node >= 0 && !seen.has(node)) {
      seen.add(node);
      path.push(node);
      let before = -1;
      for (const other of this.#timedBefore(node)) {
        if (!seen.has(other) && (before < 0 || this.times.get(other).end > this.times.get(before).end)) before = other;
      }
      node = before;
    }
    return path.reverse();
  }
  // What a node follows; through nodes that had nothing to do, and so have no times.
  #timedBefore(node) {
    const found = [], seen = new Set([node]), open = [node];
    while (open.length > 0) {
      const at = open.pop();
      for (const other of [...this.nodes[at].after, this.laneBefore[at]]) {
        if (this.nodes[other] === undefined || seen.has(other)) continue;
        seen.add(other);
        if (this.times.has(other)) found.push(other);
        else open.push(other);
      }
    }
    return found;
  }
}
