"use strict";
// Timeline: the tracks over the range of time of a View. It turns the pointer's and the keyboard's doings into changes
// of that range, of the selection and of what is folded, and knows where things are; TimelinePainter draws them.

class Timeline {
  row = 0;  // the row that the keyboard is at
  // Places of the spans that the selected one waited for, and of those that waited for it.
  links = {before: [], after: []};
  sameRun = [];  // spans of the selected one's run
  drag = null;   // since the pointer was pressed: {x, y, begin, end, top, moved, range}
  hits = null;   // per span 1: the search has found it; null: there is no search

  constructor({canvas, scroller, spacer, tip, status}, profile, tracks, view, selection) {
    Object.assign(this, {canvas, scroller, spacer, tip, status, profile, tracks, view, selection});
    this.surface = new Surface(canvas, (context, width, height) => this.painter.draw(context, width, height));
    this.painter = new TimelinePainter(this);
    view.onChange(() => this.surface.redraw());
    selection.onChange((span, reveal) => this.#selected(span, reveal));
    scroller.addEventListener("scroll", () => this.surface.redraw());
    this.#listen();
    this.resize();
  }

  // After rows have been folded, or the window has another size.
  resize() {
    this.spacer.style.height = Math.max(0, this.tracks.height + kAxisHeight + 12 - this.scroller.clientHeight) + "px";
    this.surface.redraw();
  }
  get gutter() { return Math.round(Math.min(210, this.surface.width * 0.3)); }
  x(time) { return this.gutter + (time - this.view.begin) / this.view.span * (this.surface.width - this.gutter); }
  time(x) { return this.view.begin + (x - this.gutter) / (this.surface.width - this.gutter) * this.view.span; }
  y(row) { return row.top + kAxisHeight - this.scroller.scrollTop; }
  // The middle of a span as it is drawn: what tests click on.
  pointOf(span) {
    const place = this.tracks.find(span);
    return {x: (this.x(this.profile.begin[span]) + this.x(this.profile.end[span])) / 2, y: this.laneMiddle(place)};
  }
  // Of a folded group, all lanes are where its title is.
  laneMiddle({row, lane}) {
    if (row.group.folded) return this.y(row.group) + row.group.height / 2;
    return this.y(row) + 2 + row.lanes.indexOf(lane) * row.laneHeight + row.laneHeight / 2 - 1;
  }
  // What a strip says of the range that is shown.
  stripValue(strip) {
    const mean = strip.series.mean(this.view.begin, this.view.end);
    if (strip.unit === "share") return (mean * 100).toFixed(0) + " %";
    return strip.unit === "bytes" ? Words.bytes(mean) : mean.toFixed(1) + " " + strip.about;
  }
  setHits(hits) {
    this.hits = hits;
    for (const group of this.tracks.groups)
      for (const track of group.tracks)
        for (const lane of track.lanes) {
          lane.hits = hits && new Int32Array(lane.spans.length + 1);
          if (hits)
            lane.spans.forEach((span, at) => {
              lane.hits[at + 1] = lane.hits[at] + hits[span];
            });
        }
    this.surface.redraw();
  }

  // --- selection -------------------------------------------------------------------------------------------------

  #selected(span, reveal) {
    const {profile, tracks} = this;
    this.links = {before: [], after: []};
    this.sameRun = [];
    if (span >= 0) {
      const place = tracks.find(span);
      if (place.row.group.folded && reveal) this.fold(place.row.group);
      if (reveal) this.view.reveal(profile.begin[span], profile.end[span]);
      this.#goTo(place.row.group.folded ? place.row.group : place.row, reveal);
      const graph = profile.graph[span], run = profile.run[span], node = profile.nodeOf(span);
      if (graph >= 0 && run >= 0) this.sameRun = profile.spansOfRun(graph, run);
      const placesOf = nodes =>
          nodes.map(at => profile.spanIn(graph, run, at)).filter(at => at >= 0).map(at => tracks.find(at));
      if (node !== null) {
        const own = profile.node[span];
        this.links.before = placesOf(node.after.slice(0, 200));
        this.links.after = placesOf([...new Set(this.sameRun.map(at => profile.node[at]))]
                                        .filter(at => at >= 0 && profile.graphs[graph].nodes[at].after.includes(own))
                                        .slice(0, 200));
      }
      this.#say(`${profile.nameOf(span)}, ${kKindNames[profile.kindOf(span)]}, ${Words.time(profile.duration(span))}`);
    }
    this.surface.redraw();
  }
  #goTo(row, scroll = true) {
    this.row = this.tracks.rows.indexOf(row);
    if (scroll) {
      const room = this.scroller.clientHeight - kAxisHeight;
      if (row.top < this.scroller.scrollTop) this.scroller.scrollTop = Math.max(0, row.top - kTitleHeight);
      else if (row.top + row.height > this.scroller.scrollTop + room)
        this.scroller.scrollTop = row.top + row.height - room + kTitleHeight;
    }
    this.surface.redraw();
  }
  #say(words) { this.status.textContent = words; }
  fold(group) {
    group.folded = !group.folded;
    this.tracks.layOut();
    this.row = this.tracks.rows.indexOf(group);
    this.resize();
    this.#say(`${group.label} ${group.folded ? "folded" : "unfolded"}`);
  }

  // --- keyboard: called by Keys ----------------------------------------------------------------------------------

  chooseRow(by) {
    const row = this.tracks.rows[Math.min(this.tracks.rows.length - 1, Math.max(0, this.row + by))];
    if (row === undefined) return;
    this.#goTo(row);
    this.#say(
        row.label +
        (row.type === "track"     ? ", " + Words.many(row.count, "span") :
             row.type === "strip" ? ", " + this.stripValue(row) :
             row.folded           ? ", folded" :
                                    ", a group"));
  }
  // Folds a group; of a track, selects the span nearest to the middle.
  enter() {
    const row = this.tracks.rows[this.row];
    if (row?.type === "title") this.fold(row);
    if (row?.type !== "track") return;
    const middle = (this.view.begin + this.view.end) / 2, {profile} = this;
    const away = span => Math.max(profile.begin[span] - middle, middle - profile.end[span], 0);
    const near = row.lanes.map(lane => lane.spans[lane.placeAt(middle, Infinity)]);
    this.selection.set(near.reduce((best, span) => away(span) < away(best) ? span : best), true);
  }
  // The next or previous span of the selected one's lane; of the row, if there is none.
  step(by) {
    const place = this.selection.span < 0 ? null : this.tracks.find(this.selection.span);
    if (place === null || place.row !== this.tracks.rows[this.row]) {
      this.enter();
      return;
    }
    const next = place.lane.spans[place.at + by];
    if (next !== undefined) this.selection.set(next, true);
  }

  // --- pointer ---------------------------------------------------------------------------------------------------

  // The span at a point, or -1.
  spanAt(x, y) {
    const row = this.tracks.rows[this.tracks.rowAt(y - kAxisHeight + this.scroller.scrollTop)];
    if (row?.type !== "track" || x < this.gutter || y < kAxisHeight) return -1;
    const lane = row.lanes[Math.min(row.lanes.length - 1, Math.floor((y - this.y(row) - 1) / row.laneHeight))];
    const at =
        lane === undefined ? -1 : lane.placeAt(this.time(x), 3 * this.view.span / (this.surface.width - this.gutter));
    return at < 0 ? -1 : lane.spans[at];
  }
  #listen() {
    const {canvas} = this;
    canvas.addEventListener("wheel", event => this.#wheel(event), {passive: false});
    canvas.addEventListener("pointerdown", event => this.#press(event));
    canvas.addEventListener("pointermove", event => this.#hover(event));
    canvas.addEventListener("pointerup", event => this.#release(event));
    canvas.addEventListener("pointercancel", () => {
      this.drag = null;
    });
    canvas.addEventListener("pointerleave", () => {
      this.tip.hidden = true;
    });
    for (const event of ["focus", "blur"]) canvas.addEventListener(event, () => this.surface.redraw());
    new ResizeObserver(() => this.resize()).observe(this.scroller);
  }
  // Over the labels the wheel scrolls, elsewhere it zooms; sideways it moves.
  #wheel(event) {
    const {left} = this.canvas.getBoundingClientRect(), x = event.clientX - left;
    if (x < this.gutter) return;
    event.preventDefault();
    const scale = event.deltaMode === 1 ? 30 : event.deltaMode === 2 ? 300 : 1;
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) {
      this.view.move(sideways * scale / (this.surface.width - this.gutter) * this.view.span);
    } else {
      this.view.zoom(Math.exp(Math.max(-300, Math.min(300, event.deltaY * scale)) * 0.0022), this.time(x));
    }
  }
  #at(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }
  #press(event) {
    if (event.button !== 0) return;
    const [x, y] = this.#at(event);
    this.canvas.setPointerCapture(event.pointerId);
    this.drag = {
      x,
      y,
      begin: this.view.begin,
      end: this.view.end,
      top: this.scroller.scrollTop,
      moved: false,
      range: event.shiftKey && x > this.gutter ? [this.time(x), this.time(x)] : null
    };
  }
  #hover(event) {
    const [x, y] = this.#at(event), drag = this.drag;
    if (drag === null) {
      this.#showTip(x, y);
      return;
    }
    drag.moved ||= Math.hypot(x - drag.x, y - drag.y) > 4;
    if (!drag.moved) return;
    this.tip.hidden = true;
    this.canvas.style.cursor = drag.range ? "col-resize" : "grabbing";
    if (drag.range) {
      drag.range[1] = this.time(x);
      this.surface.redraw();
      return;
    }
    const by = (drag.x - x) / (this.surface.width - this.gutter) * this.view.span;
    this.view.show(drag.begin + by, drag.end + by);
    this.scroller.scrollTop = drag.top + drag.y - y;
  }
  #release(event) {
    const drag = this.drag, [x, y] = this.#at(event);
    this.drag = null;
    this.canvas.style.cursor = "";
    if (drag === null) return;
    if (drag.range && drag.moved) {
      this.view.show(Math.min(...drag.range), Math.max(...drag.range));
      return;
    }
    if (drag.moved) return;
    const at = this.tracks.rowAt(y - kAxisHeight + this.scroller.scrollTop), row = this.tracks.rows[at];
    if (row === undefined || y < kAxisHeight) return;
    this.row = at;
    if (row.type === "title") this.fold(row);
    else this.selection.set(this.spanAt(x, y));
  }
  #showTip(x, y) {
    const row = this.tracks.rows[this.tracks.rowAt(y - kAxisHeight + this.scroller.scrollTop)];
    const span = this.spanAt(x, y), {profile, tip} = this;
    this.canvas.style.cursor = span >= 0 || row?.type === "title" ? "pointer" : "";
    let lines = [];
    if (span >= 0) {
      lines = [
        profile.nameOf(span) || "(no name)",
        Words.time(profile.duration(span)) + " from " + Words.moment(profile.begin[span], 0.1),
        kKindNames[profile.kindOf(span)] + (profile.run[span] >= 0 ? ", run " + profile.run[span] : "")
      ];
    } else if (row?.type === "strip" && x > this.gutter) {
      const value = row.series.mean(this.time(x), this.time(x + 1));
      lines = [
        row.label,
        row.unit === "share"     ? Words.share(value) :
            row.unit === "bytes" ? Words.bytes(value) :
                                   Words.digits(value) + " " + row.about
      ];
    } else if (row !== undefined && row.type !== "title" && x < this.gutter) {
      lines = [row.label, Words.name(row.about, 200)];
    }
    tip.hidden = lines.length === 0;
    if (tip.hidden) return;
    tip.replaceChildren(...lines.map(line => element("div", {}, line)));
    const left = this.canvas.offsetLeft + x + 14, top = this.scroller.offsetTop + y + 16;
    tip.style.left = Math.max(0, Math.min(left, this.surface.width - tip.offsetWidth - 4)) + "px";
    tip.style.top =
        (top + tip.offsetHeight > this.scroller.offsetTop + this.surface.height ? top - tip.offsetHeight - 24 : top) +
        "px";
  }
}
