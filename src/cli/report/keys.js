"use strict";
// Keys: what each key does, and the dialog that lists them. Those of the timeline work when it, or nothing in
// particular, has the focus; ? and / work everywhere but in the search field.

class Keys {
  constructor({help, list, asks}, timeline, view, selection, search, profile) {
    const canvas = timeline.canvas;
    this.list = [
      [
        "→ ←", "move in time",
        {ArrowRight: () => view.move(view.span * 0.15), ArrowLeft: () => view.move(view.span * -0.15)}
      ],
      ["↑ ↓", "choose a row", {ArrowUp: () => timeline.chooseRow(-1), ArrowDown: () => timeline.chooseRow(1)}],
      ["+ −", "zoom", {"+": () => view.zoom(1 / 1.5), "=": () => view.zoom(1 / 1.5), "-": () => view.zoom(1.5)}],
      ["0 or Home", "the whole program", {0: () => view.all(), Home: () => view.all()}],
      ["Enter", "select a span of the row; fold or unfold a group", {Enter: () => timeline.enter()}],
      ["[ ]", "the span before, or after, in its lane", {"[": () => timeline.step(-1), "]": () => timeline.step(1)}],
      [
        ", .", "the same node in the run before, or after",
        {",": () => this.#otherRun(-1), ".": () => this.#otherRun(1)}
      ],
      ["F", "zoom to the selected span", {f: () => this.#zoomToSelected()}],
      ["Escape", "select nothing", {Escape: () => selection.set(-1)}],
      [
        "/", "search", {
          "/": () => {
            search.query.focus();
            search.query.select();
          }
        }
      ],
      ["N Shift+N", "the next hit, the previous one", {n: () => search.go(1), N: () => search.go(-1)}],
      ["?", "this list", {"?": () => help.showModal()}],
      ["Tab", "timeline, details, tabs and what they hold", {}],
    ];
    Object.assign(this, {view, selection, profile});
    this.keys = Object.assign({}, ...this.list.map(([, , keys]) => keys));
    list.append(
        ...this.list.flatMap(
            ([keys, what]) =>
                [element(
                     "dt", {},
                     ...keys.split(" ").flatMap(key => key === "or" ? [" or "] : [element("kbd", {}, key), " "])),
                 element("dd", {}, what)]),
        element("dt", {}, "Mouse"),
        element(
            "dd", {},
            "The wheel zooms over the timeline, and scrolls over the names of the rows. " +
                "Dragging moves; dragging with Shift measures and zooms to a range. A click selects."));
    asks.addEventListener("click", () => help.showModal());
    document.addEventListener("keydown", event => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || help.open) return;
      const focus = document.activeElement, here = focus === canvas || focus === document.body || focus === null;
      if (focus === search.query || (!here && !["/", "?", "n", "N"].includes(event.key)) || focus?.tagName === "SELECT")
        return;
      const action = this.keys[event.key];
      if (action === undefined) return;
      event.preventDefault();
      if (here) canvas.focus({preventScroll: true});
      action();
    });
  }
  #otherRun(by) {
    const {profile, selection} = this, span = selection.span;
    if (span < 0 || profile.node[span] < 0) return;
    const spans = profile.spansOf(profile.graph[span], profile.node[span]), next = spans[spans.indexOf(span) + by];
    if (next !== undefined) selection.set(next, true);
  }
  #zoomToSelected() {
    const {profile, selection, view} = this, span = selection.span;
    if (span >= 0) showAround(view, profile.begin[span], profile.end[span]);
  }
}
