"use strict";
// Selection: the span that the user looks at, -1 for none. Everything that shows it listens.

class Selection {
  #listeners = [];
  span = -1;
  onChange(listener) { this.#listeners.push(listener); }
  // `reveal`: the timeline moves to it.
  set(span, reveal = false) {
    this.span = span;
    for (const listener of this.#listeners) listener(span, reveal);
  }
}
