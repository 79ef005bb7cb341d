"use strict";
// TimelinePainter: draws a Timeline.
//
// What a frame costs depends on its pixels, not on the spans: spans that begin within one pixel and are narrower are
// drawn as one, as strong as the share of the pixel that they cover, and the next is found by binary search.

const kAxisHeight = 24;

class TimelinePainter {
  constructor(timeline) {
    const {profile, tracks, view, selection, scroller, canvas} = timeline;
    Object.assign(this, {timeline, profile, tracks, view, selection, scroller, canvas});
  }

  draw(context, width, height) {
    const {theme} = Colours;
    context.fillStyle = theme.back;
    context.fillRect(0, 0, width, height);
    context.save();
    context.beginPath();
    context.rect(this.timeline.gutter, kAxisHeight, width - this.timeline.gutter, height);
    context.clip();
    this.#drawGrid(context, height);
    this.#drawRunBand(context, height);
    const first = Math.max(0, this.tracks.rowAt(Math.max(0, this.scroller.scrollTop)));
    const rows = [];
    for (let at = first; at < this.tracks.rows.length && this.timeline.y(this.tracks.rows[at]) < height; ++at)
      rows.push(at);
    for (const at of rows) this.#drawRow(context, this.tracks.rows[at], width);
    this.#drawLinks(context);
    this.#drawMarked(context);
    context.restore();
    this.#drawLabels(context, rows, height);
    this.#drawAxis(context, width);
    if (this.timeline.drag?.range) this.#drawRange(context, width, height);
  }

  #marks() {
    return Axis.marks(this.view.begin, this.view.end, (this.timeline.surface.width - this.timeline.gutter) / 110);
  }
  #drawGrid(context, height) {
    context.fillStyle = Colours.theme.line;
    for (const time of this.#marks().times) context.fillRect(Math.round(this.timeline.x(time)), kAxisHeight, 1, height);
  }
  #drawAxis(context, width) {
    const {theme} = Colours, {times, step} = this.#marks();
    context.fillStyle = theme.raised;
    context.fillRect(0, 0, width, kAxisHeight);
    context.fillStyle = theme.line;
    context.fillRect(0, kAxisHeight - 1, width, 1);
    context.fillStyle = theme.quiet;
    context.font = kFont;
    for (const time of times) {
      const x = this.timeline.x(time);
      if (x > this.timeline.gutter && x < width - 40)
        context.fillText(Axis.label(time, step, this.view.end), x + 3, kAxisHeight / 2);
      if (x > this.timeline.gutter) context.fillRect(Math.round(x), kAxisHeight - 6, 1, 6);
    }
    this.timeline.surface.text("time", 10, kAxisHeight / 2, this.timeline.gutter);
  }
  #drawRunBand(context, height) {
    const run = this.timeline.sameRun.find(span => this.profile.kind[span] === kRunKind);
    if (run === undefined) return;
    context.fillStyle = Colours.theme.band;
    const x = this.timeline.x(this.profile.begin[run]);
    context.fillRect(x, kAxisHeight, Math.max(1, this.timeline.x(this.profile.end[run]) - x), height);
  }

  #drawRow(context, row, width) {
    const y = this.timeline.y(row);
    if (row.type === "title") {
      context.fillStyle = Colours.theme.raised;
      context.fillRect(this.timeline.gutter, y, width, row.height - 1);
      if (row.folded) this.#drawFolded(context, row, y);
    } else if (row.type === "strip") {
      this.#drawStrip(context, row, y, width);
    } else {
      row.lanes.forEach((lane, at) => this.#drawLane(context, lane, y + 2 + at * row.laneHeight, row.laneHeight - 2));
      context.fillStyle = Colours.theme.line;
      context.fillRect(this.timeline.gutter, y + row.height - 1, width, 1);
    }
  }
  // Of a folded group, how all of its tracks go, one upon the other.
  #drawFolded(context, group, y) {
    context.globalAlpha = 0.7;
    for (const track of group.tracks)
      for (const lane of track.lanes) this.#drawLane(context, lane, y + 5, group.height - 11, false);
    context.globalAlpha = 1;
  }
  #drawStrip(context, strip, y, width) {
    const bottom = y + strip.height - 3, room = strip.height - 7;
    context.fillStyle = kKindColours[strip.kind];
    context.beginPath();
    context.moveTo(this.timeline.gutter, bottom);
    let begin = this.view.begin;
    for (let x = this.timeline.gutter; x < width; ++x) {
      const end = this.timeline.time(x + 1), top = bottom - strip.series.mean(begin, end) / strip.most * room;
      context.lineTo(x, top);
      context.lineTo(x + 1, top);
      begin = end;
    }
    context.lineTo(width, bottom);
    context.fill();
    context.fillStyle = Colours.theme.line;
    context.fillRect(this.timeline.gutter, bottom, width, 1);
  }
  #drawLane(context, lane, y, height, texts = true) {
    const size = lane.spans.length, pixel = this.view.span / (this.timeline.surface.width - this.timeline.gutter);
    let at = firstAbove(lane.reach, this.view.begin);
    while (at < size && lane.begin[at] < this.view.end) {
      const x = this.timeline.x(lane.begin[at]), right = this.timeline.x(lane.end[at]);
      if (right - x >= 1.5) {
        this.#drawSpan(context, lane, at, x, y, right - x, height, texts);
        ++at;
        continue;
      }
      const until = this.timeline.time(Math.floor(x) + 1);
      let next = Math.max(at + 1, firstAbove(lane.begin, until, at + 1));
      // One that begins here and reaches further is drawn by itself.
      if (next - at > 1 && lane.end[next - 1] > until + pixel) --next;
      const covered = Math.min(1, (lane.covered[next] - lane.covered[at]) / pixel);
      context.globalAlpha = (texts ? 1 : 0.7) * (0.5 + 0.5 * covered);
      context.fillStyle = kKindColours[this.profile.kindOf(lane.spans[at])];
      context.fillRect(Math.floor(x), y, 1, height);
      context.globalAlpha = texts ? 1 : 0.7;
      if (lane.hits !== null && lane.hits[next] > lane.hits[at]) this.#drawHit(context, Math.floor(x), y, 1, height);
      at = next;
    }
  }
  #drawSpan(context, lane, at, x, y, width, height, texts) {
    const span = lane.spans[at], {profile} = this;
    const left = Math.max(this.timeline.gutter - 2, x),
          seen = Math.min(this.timeline.surface.width + 2, x + width) - left;
    context.fillStyle =
        Colours.shade(profile.kindOf(span), profile.node[span] >= 0 ? profile.node[span] : profile.name[span]);
    const {hits} = this.timeline, pale = hits !== null && !hits[span], alpha = context.globalAlpha;
    if (pale) context.globalAlpha *= 0.3;
    context.fillRect(left, y, Math.max(1, seen - (width > 4 ? 1 : 0)), height);
    if (profile.kind[span] === kWaitKind) this.#hatch(context, left, y, seen - 1, height);
    if (texts && seen > 22 && height > 11) {
      context.globalAlpha = alpha;
      context.fillStyle = pale ? Colours.theme.quiet : "#111";
      this.timeline.surface.text(profile.nameOf(span), left + 4, y + height / 2 + 0.5, seen - 8);
    }
    context.globalAlpha = alpha;
    if (hits !== null && hits[span]) this.#drawHit(context, left, y, seen, height);
  }
  #hatch(context, x, y, width, height) {
    context.save();
    context.beginPath();
    context.rect(x, y, width, height);
    context.clip();
    context.strokeStyle = "rgb(0 0 0 / 0.28)";
    context.beginPath();
    for (let at = x - height - (x % 7); at < x + width; at += 7) {
      context.moveTo(at, y + height);
      context.lineTo(at + height, y);
    }
    context.stroke();
    context.restore();
  }
  #drawHit(context, x, y, width, height) {
    context.fillStyle = Colours.theme.hit;
    context.fillRect(x, y + height - 3, Math.max(2, width), 3);
    context.fillRect(x, y - 1, Math.max(2, width), 1);
  }

  #drawLinks(context) {
    if (this.selection.span < 0) return;
    const {begin, end} = this.profile, y = this.timeline.laneMiddle(this.tracks.find(this.selection.span));
    const link = (fromX, fromY, toX, toY) => {
      const bend = Math.min(60, Math.max(12, Math.abs(toX - fromX) / 2));
      context.beginPath();
      context.moveTo(fromX, fromY);
      context.bezierCurveTo(fromX + bend, fromY, toX - bend, toY, toX, toY);
      context.stroke();
      context.beginPath();
      context.arc(toX, toY, 2.5, 0, 7);
      context.fill();
    };
    context.strokeStyle = context.fillStyle = Colours.theme.mark;
    context.lineWidth = 1.5;
    const spans = {begin: this.timeline.x(begin[this.selection.span]), end: this.timeline.x(end[this.selection.span])};
    for (const other of this.timeline.links.before)
      link(this.timeline.x(end[other.lane.spans[other.at]]), this.timeline.laneMiddle(other), spans.begin, y);
    context.setLineDash([4, 3]);
    for (const other of this.timeline.links.after)
      link(spans.end, y, this.timeline.x(begin[other.lane.spans[other.at]]), this.timeline.laneMiddle(other));
    context.setLineDash([]);
    context.lineWidth = 1;
  }
  #drawMarked(context) {
    const outline = (span, width, colour) => {
      const place = this.tracks.find(span);
      const x = this.timeline.x(this.profile.begin[span]),
            right = Math.max(x + 2, this.timeline.x(this.profile.end[span]));
      context.strokeStyle = colour;
      context.lineWidth = width;
      const left = Math.max(this.timeline.gutter - 4, x);
      const {laneHeight} = place.row;
      context.strokeRect(
          left, this.timeline.laneMiddle(place) - laneHeight / 2 + 0.5,
          Math.min(this.timeline.surface.width + 4, right) - left, laneHeight - 1);
      context.lineWidth = 1;
    };
    if (this.timeline.sameRun.length <= 500)
      for (const span of this.timeline.sameRun) outline(span, 1, Colours.theme.text);
    if (this.selection.span >= 0) outline(this.selection.span, 2.5, Colours.theme.mark);
  }
  #drawLabels(context, rows, height) {
    const {theme} = Colours, gutter = this.timeline.gutter;
    context.fillStyle = theme.back;
    context.fillRect(0, kAxisHeight, gutter, height);
    for (const at of rows) {
      const row = this.tracks.rows[at], y = this.timeline.y(row), title = row.type === "title";
      if (title) {
        context.fillStyle = theme.raised;
        context.fillRect(0, y, gutter, row.height - 1);
      }
      if (at === this.timeline.row && document.activeElement === this.canvas) {
        context.fillStyle = theme.band;
        context.fillRect(0, y, gutter, row.height - 1);
        context.fillStyle = theme.mark;
        context.fillRect(0, y, 3, row.height - 1);
      }
      const middle = y + (row.type === "track" ? kLaneHeight / 2 + 1 : row.height / 2);
      context.fillStyle = title ? theme.text : theme.quiet;
      context.font = title ? "600 " + kFont : kFont;
      const label = title ? (row.folded ? "▸ " : "▾ ") + row.label + (row.about ? "  " + row.about : "") : row.label;
      this.timeline.surface.text(
          label, title ? 8 : 18, middle,
          gutter - (title ? 12 : 22) - (row.type === "strip" ? row.unit === "bytes" ? 58 : 44 : 0));
      if (row.type === "strip") {
        context.textAlign = "right";
        context.fillStyle = theme.text;
        context.fillText(this.timeline.stripValue(row), gutter - 6, middle, 60);
        context.textAlign = "left";
      }
    }
    context.fillStyle = theme.line;
    context.fillRect(gutter - 1, 0, 1, height);
  }
  #drawRange(context, width, height) {
    const from = this.timeline.x(Math.min(...this.timeline.drag.range)),
          to = this.timeline.x(Math.max(...this.timeline.drag.range));
    context.fillStyle = Colours.theme.band;
    context.fillRect(from, 0, to - from, height);
    context.fillStyle = Colours.theme.text;
    context.textAlign = "center";
    context.fillText(
        Words.time(Math.abs(this.timeline.drag.range[1] - this.timeline.drag.range[0])), (from + to) / 2,
        kAxisHeight + 10);
    context.textAlign = "left";
  }
}
