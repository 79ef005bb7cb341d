"use strict";
// Profile: the profile's JSON as columns. A span is its place in them. Indices that lead nowhere become -1, and a span
// never ends before it begins, so that nobody else needs to ask. Times are in microseconds.

const kKinds = ["upload", "download", "kernel", "host", "submit", "wait", "run"];
const kRunKind = kKinds.indexOf("run"), kWaitKind = kKinds.indexOf("wait");

class Profile {
  #runs = null;  // of each graph: the spans of each run
  #engines = null;

  constructor(json) {
    this.length = json.length_us;
    this.lostSpans = json.lost_spans;
    this.lostGraphs = json.lost_graphs;
    this.devices = json.devices;
    this.graphs = json.graphs;
    this.pipelines = json.pipelines;
    this.texts = json.texts.map(text => Words.name(text));
    this.#readSpans(json.spans, json.columns);
    this.#indexNodes();
    this.#markProper();
    this.#indexWholeRuns();
    this.#nameGraphs();
    [this.first, this.last] = this.size > 0 ? this.extentOf(this.begin.keys()) : [0, Math.max(this.length, 1)];
    this.last = Math.max(this.last, this.first + 0.001);
  }

  #readSpans(rows, columns) {
    const size = this.size = rows.length;
    const column = name => columns.indexOf(name);
    const numbers = (name, array) => {
      const at = column(name);
      for (let span = 0; span < size; ++span) array[span] = rows[span][at];
      return array;
    };
    this.begin = numbers("begin_us", new Float64Array(size));
    this.end = numbers("end_us", new Float64Array(size));
    this.run = numbers("run", new Float64Array(size));
    this.executable = numbers("executable", new Float64Array(size));
    this.node = numbers("node", new Int32Array(size));
    this.slot = numbers("slot", new Int32Array(size));
    this.device = numbers("device", new Int32Array(size));
    this.name = numbers("name", new Int32Array(size));
    this.track = numbers("track", new Int32Array(size));
    this.kind = new Uint8Array(size);
    this.graph = new Int32Array(size);  // place in `graphs`, or -1
    const kind = column("kind"), places = new Map(this.graphs.map((graph, at) => [graph.executable, at]));
    for (let span = 0; span < size; ++span) {
      this.kind[span] = Math.max(0, kKinds.indexOf(rows[span][kind]));
      const graph = this.graph[span] = places.get(this.executable[span]) ?? -1;
      const nodes = graph < 0 ? 0 : this.graphs[graph].nodes.length;
      if (!(this.node[span] >= 0 && this.node[span] < nodes)) this.node[span] = -1;
      if (!(this.device[span] >= 0 && this.device[span] < this.devices.length)) this.device[span] = -1;
      if (!(this.end[span] >= this.begin[span])) this.end[span] = this.begin[span];
    }
  }

  // Which spans each node has, in the order in which they begin.
  #indexNodes() {
    this.firstNode = [];  // of each graph: the number of its first node among all
    let nodes = 0;
    for (const graph of this.graphs) {
      this.firstNode.push(nodes);
      nodes += graph.nodes.length;
    }
    this.nodeStarts = new Int32Array(nodes + 1);
    const numbered = span => this.firstNode[this.graph[span]] + this.node[span];
    for (let span = 0; span < this.size; ++span)
      if (this.node[span] >= 0) ++this.nodeStarts[numbered(span) + 1];
    for (let node = 0; node < nodes; ++node) this.nodeStarts[node + 1] += this.nodeStarts[node];
    const next = this.nodeStarts.slice();
    this.nodeSpans = new Int32Array(this.nodeStarts[nodes]);
    for (let span = 0; span < this.size; ++span)
      if (this.node[span] >= 0) this.nodeSpans[next[numbered(span)]++] = span;
  }

  // Which spans are a node itself, as their name says: not an iteration of a loop, not a region that begins with the
  // node. Of a node that has only such spans, they count.
  #markProper() {
    this.proper = new Uint8Array(this.size).fill(1);
    this.graphs.forEach((graph, at) => graph.nodes.forEach(({name}, node) => {
      const spans = this.spansOf(at, node), shown = Words.name(name), own = span => this.nameOf(span) === shown;
      if (spans.some(own))
        for (const span of spans) this.proper[span] = own(span) ? 1 : 0;
    }));
  }
  // The spans of whole runs of each graph, the shortest first.
  #indexWholeRuns() {
    this.wholeRuns = this.graphs.map(() => []);
    for (let span = 0; span < this.size; ++span)
      if (this.kind[span] === kRunKind && this.graph[span] >= 0) this.wholeRuns[this.graph[span]].push(span);
    for (const runs of this.wholeRuns) runs.sort((a, b) => this.duration(a) - this.duration(b));
  }
  #nameGraphs() {
    const times = new Map();
    for (const {name} of this.graphs) times.set(name, (times.get(name) ?? 0) + 1);
    this.graphNames = this.graphs.map(
        ({name, executable}) => (Words.name(name, 60) || "graph") + (times.get(name) > 1 ? " #" + executable : ""));
  }

  // The spans of a node, as a part of an array: not to be changed.
  spansOf(graph, node) {
    const number = this.firstNode[graph] + node;
    return this.nodeSpans.subarray(this.nodeStarts[number], this.nodeStarts[number + 1]);
  }
  // The spans of a run: of nodes, launches, waits and the run itself.
  spansOfRun(graph, run) {
    if (this.#runs === null) {
      this.#runs = this.graphs.map(() => new Map());
      for (let span = 0; span < this.size; ++span) {
        if (this.graph[span] < 0 || this.run[span] < 0) continue;
        const runs = this.#runs[this.graph[span]], spans = runs.get(this.run[span]);
        if (spans === undefined) runs.set(this.run[span], [span]);
        else spans.push(span);
      }
    }
    return graph < 0 ? [] : this.#runs[graph].get(run) ?? [];
  }
  runsOf(graph) { return this.wholeRuns[graph] ?? []; }
  // The run of median length, the shorter of two, or -1.
  medianRun(graph) {
    const runs = this.runsOf(graph);
    return runs.length === 0 ? -1 : runs[(runs.length - 1) >> 1];
  }
  // Without iterations, and the region that begins with it.
  properSpansOf(graph, node) { return this.spansOf(graph, node).filter(span => this.proper[span]); }
  // The span of a node in a run, the last if there are several; -1: none.
  spanIn(graph, run, node) {
    let found = -1;
    for (const span of this.spansOfRun(graph, run)) {
      if (this.node[span] !== node) continue;
      if (found < 0 || this.proper[span] > this.proper[found] ||
          (this.proper[span] === this.proper[found] && this.end[span] > this.end[found]))
        found = span;
    }
    return found;
  }

  duration(span) { return this.end[span] - this.begin[span]; }
  nameOf(span) { return this.texts[this.name[span]] ?? ""; }
  trackOf(span) { return this.texts[this.track[span]] ?? ""; }
  kindOf(span) { return kKinds[this.kind[span]]; }
  // The plan's node of a span, or null.
  nodeOf(span) { return this.node[span] < 0 ? null : this.graphs[this.graph[span]].nodes[this.node[span]]; }
  // A graph's name, with its number where another has the same name.
  graphName(graph) { return this.graphNames[graph]; }
  // From the first begin to the last end.
  extentOf(spans) {
    let first = Infinity, last = -Infinity;
    for (const span of spans) {
      first = Math.min(first, this.begin[span]);
      last = Math.max(last, this.end[span]);
    }
    return [first, last];
  }
  // Whether spans of a kind were at work, as a Series of 0 and 1: those of a device, of the host (-1) or, for null, of
  // all.
  busy(device, kind) {
    const begins = [], ends = [];
    for (let span = 0; span < this.size; ++span) {
      if (this.kind[span] === kind && (device === null || this.device[span] === device)) {
        begins.push(this.begin[span]);
        ends.push(this.end[span]);
      }
    }
    return new Series(begins, ends, 1, 1);
  }
  // What can be busy, and was: {device, kind, name, series, share}; the share is of the time from the first span to the
  // last.
  get engines() {
    if (this.#engines !== null) return this.#engines;
    this.#engines = [];
    const add = (device, kind, name) => {
      const series = this.busy(device, kKinds.indexOf(kind));
      if (series.times.length > 0)
        this.#engines.push({device, kind, name, series, share: series.mean(this.first, this.last)});
    };
    this.devices.forEach((device, at) => {
      for (const kind of ["kernel", "upload", "download"]) add(at, kind, Words.name(device.name, 40));
    });
    add(-1, "host", "host");
    return this.#engines;
  }
  get busiestEngine() {
    return this.engines.reduce((best, engine) => best === null || engine.share > best.share ? engine : best, null);
  }
  // How much of something the runs in flight of a graph hold, of which each holds `weight`.
  inFlight(graph, weight = 1) {
    const runs = this.runsOf(graph);
    return new Series(runs.map(span => this.begin[span]), runs.map(span => this.end[span]), weight);
  }
}
