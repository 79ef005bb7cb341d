"use strict";
// Details: what the selected span is, how fast it was, what it waited for, and the way to the same node in other runs.

class Details {
  // rows: of nodeRows
  constructor(place, profile, rows, selection, {showRange, showNode, select}) {
    Object.assign(this, {place, profile, rows, selection, showRange, showNode, select});
    selection.onChange(span => this.#show(span));
    this.#show(-1);
  }

  #show(span) {
    const focused = this.place.contains(document.activeElement);
    this.#fill(span);
    if (focused) this.place.focus();  // the button that had the focus is gone
  }
  #fill(span) {
    if (span < 0) {
      this.place.replaceChildren(...this.#overview());
      return;
    }
    const node = this.profile.nodeOf(span);
    this.place.replaceChildren(
        ...[element("h2", {}, named(this.profile.nameOf(span), 200)), this.#facts(span, node), this.#ways(span),
            node === null ? null : this.#waits(span, node),
            this.profile.kind[span] === kWaitKind && this.profile.device[span] < 0 ? this.#slotWait(span) : null,
            node === null ? null : this.#otherRuns(span)]
            .filter(Boolean));
    this.place.scrollTop = 0;
  }

  // What to look at first, while nothing is selected.
  #overview() {
    const {profile} = this, list = element("dl", {className: "facts"}), busiest = profile.busiestEngine;
    const say = (name, ...values) => list.append(element("dt", {}, name), element("dd", {}, ...values));
    if (busiest !== null)
      say("busiest", swatch(busiest.kind),
          `${busiest.name} ${kKindNames[busiest.kind]}, busy ${Words.share(busiest.share)}`);
    const longest = this.rows.filter(row => row.share > 0).sort((a, b) => b.share - a.share).slice(0, 3);
    longest.forEach(
        (row, at) =>
            say(at === 0 ? "most time" : "", button(named(row.name, 40), () => this.select(row.slowest)),
                `, ${Words.share(row.share)}`));
    const graphs = profile.graphs.map((graph, at) => at).filter(at => profile.medianRun(at) >= 0);
    graphs.sort((a, b) => profile.runsOf(b).length - profile.runsOf(a).length).slice(0, 3).forEach((graph, at) => {
      const runs = profile.runsOf(graph);
      say(at === 0 ? "median run" : "",
          button(
              element("bdi", {className: "name"}, profile.graphName(graph)),
              () => this.select(profile.medianRun(graph))),
          `, ${Words.time(profile.duration(profile.medianRun(graph)))} (slowest ${
              Words.time(profile.duration(runs[runs.length - 1]))})`);
    });
    return [
      element("h2", {}, "At a glance"), list,
      element(
          "p", {className: "quiet hint"},
          "Click a span for its details, or choose one with the arrow keys and Enter. The wheel zooms.")
    ];
  }

  #facts(span, node) {
    const {profile} = this, us = profile.duration(span), graph = profile.graph[span],
          list = element("dl", {className: "facts"});
    const say = (name, ...values) => list.append(element("dt", {}, name), element("dd", {}, ...values));
    const kind = kKindNames[profile.kindOf(span)];
    say("kind", swatch(profile.kindOf(span)),
        node === null || node.kind === kind ? kind : `${kind} (${Words.name(node.kind, 40)})`);
    if (node !== null && node.where !== "") say("line", element("code", {}, named(node.where, 120)));
    if (node !== null && node.where === "") say("line", "added by the planner");
    if (graph >= 0) say("graph", named(profile.graphs[graph].name));
    if (profile.run[span] >= 0)
      say("run", Words.count(profile.run[span]) + (profile.slot[span] >= 0 ? `, slot ${profile.slot[span]}` : ""));
    else if (profile.slot[span] >= 0) say("slot", String(profile.slot[span]));
    if (profile.trackOf(span) !== "") say("track", named(profile.trackOf(span)));
    say("begin", Words.moment(profile.begin[span], 0.1));
    say("duration", element("strong", {}, Words.time(us)));
    if (node !== null && profile.proper[span]) this.#sayBytes(say, span, node, us);
    if (node !== null && profile.proper[span] && node.flops > 0) {
      say("operations", Words.operations(node.flops));
      if (us > 0) say("computed at", Words.operations(node.flops / us * 1e6) + "/s");
    }
    return list;
  }
  // A copy moves what it writes; another node reads and writes at most what it declares.
  #sayBytes(say, span, node, us) {
    const {profile} = this, kind = profile.kindOf(span);
    const copy = kind === "upload" || kind === "download",
          bytes = copy ? node.written_bytes : node.read_bytes + node.written_bytes;
    if (bytes <= 0) return;
    say("bytes",
        copy ? Words.bytes(bytes) :
               `reads ≤ ${Words.bytes(node.read_bytes)}, writes ≤ ${Words.bytes(node.written_bytes)}`);
    if (us > 0) say("bandwidth", (copy ? "" : "≤ ") + Words.bandwidth(bytes, us));
  }

  #ways(span) {
    const {profile} = this, ways = element("p", {className: "ways"});
    ways.append(button("Zoom to it", () => this.showRange(profile.begin[span], profile.end[span])));
    const run = profile.spansOfRun(profile.graph[span], profile.run[span]);
    if (run.length > 1) {
      const [begin, end] = profile.extentOf(run);
      ways.append(button("Zoom to its run", () => this.showRange(begin, end)));
    }
    if (profile.node[span] >= 0)
      ways.append(button("In the graph", () => this.showNode(profile.graph[span], profile.node[span])));
    return ways;
  }

  // The nodes that it follows, and when each ended in the same run; the last of them is what it waited for.
  #waits(span, node) {
    const {profile} = this, graph = profile.graph[span], begin = profile.begin[span];
    if (node.after.length === 0)
      return this.#part("Waited for", element("p", {}, "nothing: it follows no node of its graph"));
    const ends = node.after.slice(0, 100).map(at => ({at, span: profile.spanIn(graph, profile.run[span], at)}));
    const last = ends.reduce(
        (best, end) => end.span >= 0 && (best < 0 || profile.end[end.span] > profile.end[best]) ? end.span : best, -1);
    const list = element("ul", {});
    for (const end of ends.sort(
             (a, b) => (b.span < 0 ? -1 : profile.end[b.span]) - (a.span < 0 ? -1 : profile.end[a.span]))) {
      const name = profile.graphs[graph].nodes[end.at]?.name ?? "";
      if (end.span < 0) {
        list.append(element("li", {}, named(name), " (no span in this run)"));
        continue;
      }
      const gap = begin - profile.end[end.span];
      list.append(element(
          "li", {}, button(named(name), () => this.selection.set(end.span, true)),
          gap === 0 ? ", which ended as this began" :
                      `, which ended ${Words.time(Math.abs(gap))} ${gap > 0 ? "before" : "after this began"}`,
          end.span === last && ends.length > 1 ? element("strong", {}, " (the last)") : ""));
    }
    return this.#part("Waited for", list);
  }
  // The run that held the slot until the wait ended.
  #slotWait(span) {
    const {profile} = this, until = profile.end[span];
    let holder = -1;
    for (const run of profile.runsOf(profile.graph[span])) {
      const freed = profile.slot[run] === profile.slot[span] && profile.begin[run] < until &&
          profile.end[run] > profile.begin[span];
      if (freed && (holder < 0 || Math.abs(profile.end[run] - until) < Math.abs(profile.end[holder] - until)))
        holder = run;
    }
    if (holder < 0) return null;
    return this.#part(
        "Waited for",
        element(
            "p", {}, `slot ${profile.slot[span]}, which `,
            button(`run ${Words.count(profile.run[holder])}`, () => this.selection.set(holder, true)), " held"));
  }

  #otherRuns(span) {
    const {profile} = this,
          spans = profile.spansOf(profile.graph[span], profile.node[span])
                      .filter(other => profile.proper[other] === profile.proper[span]);
    const at = spans.indexOf(span),
          sorted = Array.from(spans).sort((a, b) => profile.duration(a) - profile.duration(b));
    const ways = element("p", {className: "ways"});
    const way = (words, other) => {
      if (other !== undefined && other !== span) ways.append(button(words, () => this.selection.set(other, true)));
    };
    way("‹ Previous", spans[at - 1]);
    way("Next ›", spans[at + 1]);
    const length = other => Words.time(profile.duration(other));
    if (sorted.length > 2) {
      way("Fastest " + length(sorted[0]), sorted[0]);
      way("Median " + length(sorted[(sorted.length - 1) >> 1]), sorted[(sorted.length - 1) >> 1]);
      way("Slowest " + length(sorted[sorted.length - 1]), sorted[sorted.length - 1]);
    }
    return this.#part(
        "The same node elsewhere",
        element(
            "p", {},
            `${Words.many(spans.length, "time")} in all; this is number ${Words.count(at + 1)}, ` +
                `and ${Words.share(sorted.indexOf(span) / sorted.length)} of them were faster.`),
        ways);
  }
  #part(title, ...children) { return element("section", {}, element("h3", {}, title), ...children); }
}

function swatch(kind) {
  const made = element("i", {className: "swatch", "aria-hidden": "true"});
  made.style.background = kKindColours[kind];
  return made;
}
