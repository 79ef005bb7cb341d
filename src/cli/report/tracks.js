"use strict";
// Tracks: the rows of the timeline. A row is a group's title, a strip (a Series), or a track of spans; a track's spans
// stand in lanes of pairwise disjoint spans, the last of at most kMostLanes taking those that are left.
//
// A lane's arrays are sorted by begin: whoever draws it finds a time by binary search.

const kMostLanes = 24, kLaneHeight = 17, kLowLaneHeight = 8, kStripHeight = 30, kTitleHeight = 24;

const kTrackOrder = ["submit", "wait", "upload", "kernel", "download", "host", "run"];

class Lane {
  constructor(profile, spans) {
    const size = spans.length;
    this.spans = Int32Array.from(spans);
    this.begin = new Float64Array(size);
    this.end = new Float64Array(size);
    this.reach = new Float64Array(size);        // the latest end so far
    this.covered = new Float64Array(size + 1);  // the time of all spans before
    for (let at = 0; at < size; ++at) {
      const span = spans[at];
      this.begin[at] = profile.begin[span];
      this.end[at] = profile.end[span];
      this.reach[at] = Math.max(this.end[at], at === 0 ? -Infinity : this.reach[at - 1]);
      this.covered[at + 1] = this.covered[at] + this.end[at] - this.begin[at];
    }
    this.hits = null;  // how many spans before a place the search has found; null: none
  }
  // The place of the span at a time or, within `reach` of it, of the nearest; -1: none.
  placeAt(time, reach) {
    const after = firstAbove(this.begin, time);
    let best = -1, distance = reach;
    for (let at = Math.max(0, after - 2); at < Math.min(this.begin.length, after + 1); ++at) {
      const away = Math.max(this.begin[at] - time, time - this.end[at], 0);
      if (away <= distance) {
        best = at;
        distance = away;
      }
    }
    return best;
  }
}

function lanesOf(profile, spans) {
  spans.sort((a, b) => profile.begin[a] - profile.begin[b] || profile.end[b] - profile.end[a]);
  const lanes = [], ends = [];
  for (const span of spans) {
    let at = 0;
    while (at < lanes.length && at < kMostLanes - 1 && ends[at] > profile.begin[span]) ++at;
    if (at === lanes.length) {
      lanes.push([]);
      ends.push(0);
    }
    lanes[at].push(span);
    ends[at] = Math.max(ends[at], profile.end[span]);
  }
  return lanes.map(lane => new Lane(profile, lane));
}

// All rows in order, each with its group; a folded group has only its title.
class Tracks {
  #lanes;   // of all tracks
  #laneOf;  // of each span: its lane, and its place there
  #placeOf;

  constructor(profile) {
    this.profile = profile;
    this.groups = [];
    this.#addSpans();
    this.#indexLanes();
    this.layOut();
  }

  // Places the rows that are not folded away: `rows`, each with `top` and `height`; `height`: of all.
  layOut() {
    this.rows = [];
    let top = 0;
    for (const group of this.groups) {
      for (const row of [group, ...(group.folded ? [] : group.strips), ...(group.folded ? [] : group.tracks)]) {
        row.top = top;
        top += row.height;
        this.rows.push(row);
      }
    }
    this.height = top;
    this.tops = Float64Array.from(this.rows, row => row.top);
  }
  rowAt(y) { return y < 0 || y >= this.height ? -1 : firstAbove(this.tops, y) - 1; }
  // The place of a span: {row, lane, at}.
  find(span) {
    const lane = this.#lanes[this.#laneOf[span]];
    return {row: lane.row, lane, at: this.#placeOf[span]};
  }
  #indexLanes() {
    this.#lanes = this.groups.flatMap(group => group.tracks.flatMap(row => row.lanes));
    this.#laneOf = new Int32Array(this.profile.size);
    this.#placeOf = new Int32Array(this.profile.size);
    this.#lanes.forEach((lane, number) => lane.spans.forEach((span, at) => {
      this.#laneOf[span] = number;
      this.#placeOf[span] = at;
    }));
  }

  #addSpans() {
    const profile = this.profile;
    const launches = this.#group("Launches"),
          devices = profile.devices.map(
              device => this.#group(Words.name(device.name, 40), Words.name(device.description, 60)));
    const host = this.#group("Host"), runs = this.#group("Runs and slots");
    const tracks = new Map();
    for (let span = 0; span < profile.size; ++span) {
      const kind = profile.kindOf(span);
      const device = profile.device[span];
      const group = kind === "submit" || kind === "wait" ? launches :
          kind === "run"                                 ? runs :
          device < 0                                     ? host :
                                                           devices[device];
      const split = group === launches ? kind : "";
      // Launches of all graphs stand in one row, as one thread makes them; other tracks belong to a graph's slot.
      const owner = group === launches ? -1 : profile.graph[span];
      const key = this.groups.indexOf(group) + " " + owner + " " + split + " " + profile.track[span];
      let track = tracks.get(key);
      if (track === undefined)
        tracks.set(key, track = {
          group,
          graph: owner,
          kind,
          slot: owner < 0 ? -1 : profile.slot[span],
          track: profile.trackOf(span),
          spans: []
        });
      track.spans.push(span);
    }
    const natural = new Intl.Collator("en", {numeric: true});
    // Of a slot: uploads, kernels, downloads, as data flows.
    const all = [...tracks.values()].sort(
        (a, b) => a.graph - b.graph || a.slot - b.slot || kTrackOrder.indexOf(a.kind) - kTrackOrder.indexOf(b.kind) ||
            natural.compare(a.track, b.track));
    for (const track of all) track.group.tracks.push(this.#row(track));
    for (const {device, kind, series} of profile.engines) {
      const group = device < 0 ? host : devices[device];
      group.strips.push({
        type: "strip",
        group,
        label: kKindNames[kind] + " busy",
        about: "share of the time with at least one span",
        kind,
        series,
        most: 1,
        unit: "share",
        height: kStripHeight
      });
    }
    this.#addSlots(runs);
    this.groups = this.groups.filter(group => group.tracks.length + group.strips.length > 0);
  }
  #group(label, about = "") {
    const group = {type: "title", label, about, height: kTitleHeight, folded: false, strips: [], tracks: []};
    this.groups.push(group);
    return group;
  }
  #row(track) {
    const lanes = lanesOf(this.profile, track.spans);
    const laneHeight = lanes.length > 6 ? kLowLaneHeight : kLaneHeight;
    const row = {
      type: "track",
      group: track.group,
      label: this.#labelOf(track),
      about: track.track,
      lanes,
      laneHeight,
      count: track.spans.length,
      height: lanes.length * laneHeight + 3
    };
    for (const lane of lanes) lane.row = row;
    return row;
  }
  #labelOf(track) {
    if (track.kind === "wait") return "waits for a slot";
    let label =
        track.track.startsWith(track.group.label + " ") ? track.track.slice(track.group.label.length + 1) : track.track;
    if (label === "") label = track.graph < 0 ? "application" : "(no track)";
    label = label.replace(/ lane (\d+)$/, " $1");
    return track.graph < 0 || this.profile.graphs.length === 1 ? label :
                                                                 this.profile.graphName(track.graph) + ": " + label;
  }
  #addSlots(group) {
    this.profile.graphs.forEach((graph, at) => {
      const series = this.profile.inFlight(at);
      if (series.times.length === 0) return;
      const name = this.profile.graphs.length === 1 ? "" : this.profile.graphName(at) + ": ";
      group.strips.push({
        type: "strip",
        group,
        label: name + "slots in use",
        about: "of " + graph.slots,
        kind: "run",
        series,
        most: Math.max(graph.slots, series.most),
        unit: "slots",
        height: kStripHeight
      });
      const bytes = graph.slot_device_bytes + graph.slot_pinned_bytes;
      if (bytes > 0) {
        group.strips.push({
          type: "strip",
          group,
          label: name + "memory in use",
          about: "device and pinned memory of the slots in use",
          kind: "run",
          series: this.profile.inFlight(at, bytes),
          most: bytes * Math.max(graph.slots, series.most),
          unit: "bytes",
          height: kStripHeight
        });
      }
    });
  }
}
