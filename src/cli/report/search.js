"use strict";
// Search: finds spans by a part of their name, track, kind, graph or source line, and goes from one to the next.

class Search {
  #found = new Int32Array(0);  // in the order in which they begin
  #at = -1;

  constructor({query, hits, previous, next}, profile, timeline, selection) {
    Object.assign(this, {query, hits, profile, timeline, selection});
    query.addEventListener("input", () => this.find(query.value));
    query.form.addEventListener("submit", event => {
      event.preventDefault();
      this.go(1);
    });
    query.addEventListener("keydown", event => {
      if (event.key === "Enter") {
        event.preventDefault();
        this.go(event.shiftKey ? -1 : 1);
      }
      if (event.key === "Escape") {
        query.value = "";
        this.find("");
        timeline.canvas.focus();
      }
    });
    previous.addEventListener("click", () => this.go(-1));
    next.addEventListener("click", () => this.go(1));
  }

  find(text) {
    const wanted = text.trim().toLowerCase(), {profile} = this;
    this.#at = -1;
    if (wanted === "") {
      this.#found = new Int32Array(0);
      this.timeline.setHits(null);
      this.hits.textContent = "";
      return;
    }
    const has = words => words.toLowerCase().includes(wanted);
    const texts = profile.texts.map(has), kinds = kKinds.map(kind => has(kKindNames[kind]));
    const graphs = profile.graphs.map((graph, at) => has(profile.graphName(at)));
    const nodes = profile.graphs.map(graph => graph.nodes.map(node => has(node.where) || has(node.kind)));
    const hits = new Uint8Array(profile.size), found = [];
    for (let span = 0; span < profile.size; ++span) {
      const graph = profile.graph[span];
      const hit = texts[profile.name[span]] || texts[profile.track[span]] || kinds[profile.kind[span]] ||
          (graph >= 0 && (graphs[graph] || (profile.node[span] >= 0 && nodes[graph][profile.node[span]])));
      if (hit) {
        hits[span] = 1;
        found.push(span);
      }
    }
    found.sort((a, b) => profile.begin[a] - profile.begin[b]);
    this.#found = Int32Array.from(found);
    this.timeline.setHits(hits);
    this.#tell();
  }
  // Selects the next hit or the previous one: the first time, that at or behind what the timeline shows first.
  go(by) {
    const size = this.#found.length;
    if (size === 0) return;
    if (this.#at < 0) {
      this.#at = this.#found.findIndex(span => this.profile.end[span] >= this.timeline.view.begin);
      if (by < 0) --this.#at;
    } else {
      this.#at += by;
    }
    this.#at = (this.#at + size) % size;
    this.selection.set(this.#found[this.#at], true);
    this.#tell();
  }
  #tell() {
    const size = this.#found.length;
    this.hits.textContent = size === 0 ? "nothing found" :
        this.#at < 0                   ? Words.many(size, "hit") :
                                         `${Words.count(this.#at + 1)} of ${Words.count(size)}`;
  }
}
