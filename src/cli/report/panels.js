"use strict";
// Panels: what stands below the timeline, a tab each: findings, nodes, graph, engines, pipelines, memory, submission.

class Panels {
  #tabs = [];
  constructor({tabs, panels}) {
    Object.assign(this, {bar: tabs, place: panels});
    tabs.addEventListener("keydown", event => this.#key(event));
  }
  // Adds a tab; `fill` is called once, when it is first shown, with the panel.
  add(name, title, fill) {
    const tab = element(
        "button", {
          type: "button",
          role: "tab",
          id: "tab-" + name,
          "aria-controls": "panel-" + name,
          onclick: () => this.show(name)
        },
        title);
    const panel = element(
        "div", {role: "tabpanel", id: "panel-" + name, "aria-labelledby": "tab-" + name, tabIndex: 0},
        element("h2", {className: "printed"}, title));
    this.bar.append(tab);
    this.place.append(panel);
    this.#tabs.push({name, tab, panel, fill});
  }
  show(name) {
    for (const one of this.#tabs) {
      const chosen = one.name === name;
      one.tab.setAttribute("aria-selected", String(chosen));
      one.tab.tabIndex = chosen ? 0 : -1;
      one.panel.classList.toggle("shown", chosen);
      if (chosen) this.#fill(one);
    }
  }
  // What was not shown yet is needed for print too.
  fillAll() {
    for (const one of this.#tabs) this.#fill(one);
  }
  #fill(one) {
    one.fill?.(one.panel);
    one.fill = null;
  }
  #key(event) {
    const step = {ArrowRight: 1, ArrowLeft: -1}[event.key],
          at = this.#tabs.findIndex(one => one.tab === document.activeElement);
    if (step === undefined || at < 0) return;
    const next = this.#tabs[(at + step + this.#tabs.length) % this.#tabs.length];
    event.preventDefault();
    this.show(next.name);
    next.tab.focus();
  }
}
