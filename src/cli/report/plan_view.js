"use strict";
// PlanView: draws a Plan. Wheel and drag move it, Ctrl and the wheel zoom; arrows walk from node to node and Enter
// shows the node in the timeline, as a click does.

const kColumnWidth = 190, kRowHeight = 46, kPlanTop = 26;

class PlanView {
  #x = 12;
  #y = kPlanTop + 6;
  #scale = 1;
  #drag = null;
  #plans = new Map();
  plan = null;
  node = -1;

  constructor({canvas, choice, words}, profile, {showNode}) {
    Object.assign(this, {canvas, choice, words, profile, showNode});
    this.surface = new Surface(canvas, (context, width, height) => this.#draw(context, width, height));
    profile.graphs.forEach(
        (graph, at) => choice.append(element(
            "option", {value: String(at)}, `${profile.graphName(at)} (${Words.many(graph.nodes.length, "node")})`)));
    choice.addEventListener("change", () => this.show(Number(choice.value)));
    canvas.addEventListener("wheel", event => this.#wheel(event), {passive: false});
    canvas.addEventListener("pointerdown", event => {
      canvas.setPointerCapture(event.pointerId);
      this.#drag = {x: event.clientX, y: event.clientY, left: this.#x, top: this.#y, moved: false};
    });
    canvas.addEventListener("pointermove", event => this.#move(event));
    canvas.addEventListener("pointerup", event => this.#release(event));
    canvas.addEventListener("keydown", event => this.#key(event));
    for (const event of ["focus", "blur"]) canvas.addEventListener(event, () => this.surface.redraw());
  }

  // Shows a graph, and a node of it.
  show(graph, node = -1) {
    if (this.profile.graphs[graph] === undefined) return;
    if (!this.#plans.has(graph)) this.#plans.set(graph, new Plan(this.profile, graph));
    const other = this.plan !== this.#plans.get(graph);
    this.plan = this.#plans.get(graph);
    this.choice.value = String(graph);
    if (other) { [this.#x, this.#y, this.#scale] = [12, kPlanTop + 6, 1]; }
    this.node = node;
    if (node >= 0) this.#reveal(node);
    this.#tell();
    this.surface.redraw();
  }
  // The middle of a node as it is drawn.
  pointOf(node) {
    const box = this.#box(node);
    return {x: box.x + box.width / 2, y: box.y + box.height / 2};
  }

  #box(node) {
    const {column, row} = this.plan.places[node];
    return {
      x: this.#x + column * kColumnWidth * this.#scale,
      y: this.#y + row * kRowHeight * this.#scale,
      width: (kColumnWidth - 36) * this.#scale,
      height: (kRowHeight - 14) * this.#scale
    };
  }
  #reveal(node) {
    const box = this.#box(node), {width, height} = this.surface;
    if (width === 0) return;
    if (box.x < 4) this.#x += 12 - box.x;
    if (box.x + box.width > width) this.#x -= box.x + box.width - width + 12;
    if (box.y < kPlanTop) this.#y += kPlanTop + 6 - box.y;
    if (box.y + box.height > height) this.#y -= box.y + box.height - height + 12;
  }
  #tell() {
    const {plan, profile} = this, list = [];
    if (plan.medianRun >= 0) {
      const us = profile.duration(plan.medianRun),
            path = plan.path.reduce((sum, at) => sum + plan.times.get(at).end - plan.times.get(at).begin, 0);
      list.push(
          `The median of ${Words.many(plan.runs.length, "run")} took ${
              Words.time(us)}. Its critical path, with thick outlines, has ` +
          `${Words.many(plan.path.length, "node")}, which took ${Words.time(path)}` +
          (us > path ? `; for ${Words.time(us - path)} none of them ran.` : "."));
    } else {
      list.push("No run of this graph is recorded.");
    }
    if (this.node >= 0) {
      const node = plan.nodes[this.node];
      list.push(` Selected: ${Words.name(node.name, 60)}, ${Words.name(node.kind, 30)}, ${
          Words.share(plan.share(this.node))} of the nodes' time.`);
    }
    this.words.replaceChildren(...list);
  }

  // --- drawing ---------------------------------------------------------------------------------------------------

  #draw(context, width, height) {
    const {plan} = this, {theme} = Colours;
    context.fillStyle = theme.back;
    context.fillRect(0, 0, width, height);
    if (plan === null) return;
    const rowsFrom = Math.floor((kPlanTop - this.#y) / (kRowHeight * this.#scale)) - 1;
    const rowsTo = Math.ceil((height - this.#y) / (kRowHeight * this.#scale));
    this.#drawEdges(context, rowsFrom, rowsTo, false);
    this.#drawEdges(context, rowsFrom, rowsTo, true);
    const strongest = plan.strongest;
    for (const node of plan.byRow) {
      const row = plan.places[node].row;
      if (row >= rowsFrom && row <= rowsTo) this.#drawNode(context, node, strongest);
    }
    context.fillStyle = theme.raised;
    context.fillRect(0, 0, width, kPlanTop);
    context.fillStyle = theme.quiet;
    plan.columns.forEach(
        (name, at) => this.surface.text(
            name, this.#x + at * kColumnWidth * this.#scale, kPlanTop / 2, kColumnWidth * this.#scale - 8));
  }
  #drawEdges(context, from, to, onPath) {
    const {plan} = this, {theme} = Colours;
    context.strokeStyle = onPath ? theme.mark : theme.quiet;
    context.lineWidth = onPath ? 2.5 : 1;
    context.globalAlpha = onPath ? 1 : 0.5;
    context.beginPath();
    plan.nodes.forEach((node, at) => {
      if (plan.places[at].row < from) return;
      for (const other of node.after) {
        if (plan.nodes[other] === undefined || plan.places[other].row > to) continue;
        if ((plan.onPath.has(at) && plan.onPath.has(other)) === onPath)
          this.#edge(context, this.#box(other), this.#box(at));
      }
    });
    context.stroke();
    context.globalAlpha = 1;
    context.lineWidth = 1;
  }
  #edge(context, from, to) {
    const x = from.x + from.width / 2, y = from.y + from.height, toX = to.x + to.width / 2;
    const bend = Math.max(10, Math.abs(to.y - y) / 2);
    context.moveTo(x, y);
    context.bezierCurveTo(x, y + bend, toX, to.y - bend, toX, to.y);
    context.moveTo(toX - 3, to.y - 5);
    context.lineTo(toX, to.y);
    context.lineTo(toX + 3, to.y - 5);
  }
  #drawNode(context, node, strongest) {
    const {plan} = this, {theme} = Colours, box = this.#box(node);
    const [fill, text] = Colours.heat(strongest > 0 ? plan.share(node) / strongest : 0);
    context.fillStyle = fill;
    context.beginPath();
    context.roundRect(box.x, box.y, box.width, box.height, 4);
    context.fill();
    context.strokeStyle = plan.onPath.has(node) ? theme.mark : theme.quiet;
    context.lineWidth = plan.onPath.has(node) ? 3 : 1;
    context.stroke();
    context.lineWidth = 1;
    if (node === this.node) {
      context.strokeStyle = theme.text;
      context.setLineDash([4, 2]);
      context.lineWidth = 2;
      context.strokeRect(box.x - 4, box.y - 4, box.width + 8, box.height + 8);
      context.setLineDash([]);
      context.lineWidth = 1;
    }
    if (this.#scale < 0.55) return;
    context.fillStyle = text;
    this.surface.text(Words.name(plan.nodes[node].name, 60), box.x + 7, box.y + box.height * 0.32, box.width - 12);
    const spans = plan.counts[node];
    const mean = spans > 0 ? Words.time(plan.totals[node] / spans) + " · " + Words.share(plan.share(node)) : "no spans";
    this.surface.text(mean, box.x + 7, box.y + box.height * 0.72, box.width - 12);
  }

  // --- pointer and keyboard --------------------------------------------------------------------------------------

  #wheel(event) {
    event.preventDefault();
    if (event.ctrlKey || event.metaKey) {
      const box = this.canvas.getBoundingClientRect();
      this.#zoom(Math.exp(-event.deltaY * 0.003), event.clientX - box.left, event.clientY - box.top);
    } else {
      this.#x -= event.shiftKey ? event.deltaY : event.deltaX;
      this.#y -= event.shiftKey ? 0 : event.deltaY;
    }
    this.#hold();
    this.surface.redraw();
  }
  #zoom(factor, x, y) {
    const scale = Math.min(2, Math.max(0.15, this.#scale * factor));
    this.#x = x - (x - this.#x) * scale / this.#scale;
    this.#y = y - (y - this.#y) * scale / this.#scale;
    this.#scale = scale;
  }
  // Keeps a part of the plan in sight.
  #hold() {
    const {plan, surface} = this, least = 60;
    this.#x =
        Math.min(surface.width - least, Math.max(least - plan.columns.length * kColumnWidth * this.#scale, this.#x));
    this.#y = Math.min(surface.height - least, Math.max(least - plan.height * kRowHeight * this.#scale, this.#y));
  }
  #move(event) {
    const drag = this.#drag;
    if (drag === null) return;
    drag.moved ||= Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > 4;
    [this.#x, this.#y] = [drag.left + event.clientX - drag.x, drag.top + event.clientY - drag.y];
    this.#hold();
    this.surface.redraw();
  }
  #release(event) {
    const drag = this.#drag, box = this.canvas.getBoundingClientRect();
    this.#drag = null;
    if (drag === null || drag.moved || this.plan === null) return;
    const x = event.clientX - box.left, y = event.clientY - box.top;
    const hit = this.plan.nodes.findIndex((node, at) => {
      const place = this.#box(at);
      return x >= place.x && x <= place.x + place.width && y >= place.y && y <= place.y + place.height;
    });
    if (hit >= 0) this.showNode(this.plan.graph, hit);
  }
  #key(event) {
    if (this.plan === null || event.ctrlKey || event.metaKey || event.altKey) return;
    const steps = {ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0]}[event.key];
    if (steps !== undefined) this.#step(...steps);
    else if (event.key === "Enter" && this.node >= 0) this.showNode(this.plan.graph, this.node);
    else if (event.key === "+" || event.key === "=") this.#zoom(1.3, this.surface.width / 2, this.surface.height / 2);
    else if (event.key === "-") this.#zoom(1 / 1.3, this.surface.width / 2, this.surface.height / 2);
    else return;
    event.preventDefault();
    event.stopPropagation();
    this.surface.redraw();
  }
  // To the next node upwards or downwards in its column, or to the nearest of the next column.
  #step(columns, rows) {
    const {plan} = this;
    if (this.node < 0) {
      this.node = plan.byRow[0] ?? -1;
      this.#tell();
      return;
    }
    const own = plan.places[this.node];
    let best = -1, away = Infinity;
    plan.places.forEach((place, at) => {
      const there = columns === 0 ? place.column === own.column && (place.row - own.row) * rows > 0 :
                                    place.column === own.column + columns;
      if (there && Math.abs(place.row - own.row) < away) {
        best = at;
        away = Math.abs(place.row - own.row);
      }
    });
    if (best < 0) return;
    this.node = best;
    this.#reveal(best);
    this.#tell();
  }
}
