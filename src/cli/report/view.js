"use strict";
// View: the range of time that is shown. The timeline and the minimap change it and listen to it. Microseconds.

const kShortestView = 0.05;

class View {
  #listeners = [];
  constructor(first, last) {
    const margin = (last - first) * 0.01;
    [this.first, this.last] = [first - margin, last + margin];
    [this.begin, this.end] = [this.first, this.last];
  }
  get span() { return this.end - this.begin; }
  onChange(listener) { this.#listeners.push(listener); }
  show(begin, end) {
    const whole = this.last - this.first;
    const span = Math.min(whole, Math.max(kShortestView, end - begin));
    const middle = (begin + end) / 2;
    const from = Math.min(this.last - span, Math.max(this.first, middle - span / 2));
    [this.begin, this.end] = span === whole ? [this.first, this.last] : [from, from + span];
    for (const listener of this.#listeners) listener();
  }
  all() { this.show(this.first, this.last); }
  // Shows `factor` times as much; what is at `time` stays in its place.
  zoom(factor, time = (this.begin + this.end) / 2) {
    const span = Math.min(this.last - this.first, Math.max(kShortestView, this.span * factor));
    const begin = time - (time - this.begin) * span / this.span;
    this.show(begin, begin + span);
  }
  move(by) { this.show(this.begin + by, this.end + by); }
  // Moves as little as is needed, and zooms if a span would be too small to see or too large to fit.
  reveal(begin, end) {
    const span = end - begin;
    if (span > this.span * 0.9 || span < this.span / 400) this.show(begin - span * 4 - 1, end + span * 4 + 1);
    else if (begin < this.begin || end > this.end)
      this.show((begin + end - this.span) / 2, (begin + end + this.span) / 2);
  }
}
