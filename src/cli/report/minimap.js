"use strict";
// Minimap: all of the program in a narrow strip, how busy it was, and the range that the timeline shows. Pressing moves
// that range there.

const kMinimapKinds = ["kernel", "upload", "download", "host"];

class Minimap {
  #strips = [];
  constructor(canvas, profile, view, timeline) {
    Object.assign(this, {view, timeline});
    for (const kind of kMinimapKinds) {
      const series = profile.busy(null, kKinds.indexOf(kind));
      if (series.times.length > 0) this.#strips.push({kind, series});
    }
    this.surface = new Surface(canvas, (context, width, height) => this.#draw(context, width, height));
    view.onChange(() => this.surface.redraw());
    canvas.addEventListener("pointerdown", event => {
      canvas.setPointerCapture(event.pointerId);
      this.#moveTo(event);
    });
    canvas.addEventListener("pointermove", event => {
      if (event.buttons & 1) this.#moveTo(event);
    });
    canvas.addEventListener("wheel", event => {
      event.preventDefault();
      view.zoom(Math.exp(Math.max(-300, Math.min(300, event.deltaY)) * 0.0022));
    }, {passive: false});
  }
  #x(time) {
    const {first, last} = this.view, gutter = this.timeline.gutter;
    return gutter + (time - first) / (last - first) * (this.surface.width - gutter);
  }
  #moveTo(event) {
    const {first, last, span} = this.view, gutter = this.timeline.gutter;
    const x = event.clientX - this.surface.canvas.getBoundingClientRect().left;
    const time = first + (x - gutter) / (this.surface.width - gutter) * (last - first);
    this.view.show(time - span / 2, time + span / 2);
  }
  #draw(context, width, height) {
    const {theme} = Colours, {first, last} = this.view, gutter = this.timeline.gutter;
    context.fillStyle = theme.raised;
    context.fillRect(0, 0, width, height);
    context.fillStyle = theme.quiet;
    this.surface.text("all of the program", 10, height / 2, gutter - 12);
    const room = (height - 6) / Math.max(1, this.#strips.length), step = (last - first) / (width - gutter);
    this.#strips.forEach(({kind, series}, at) => {
      context.fillStyle = kKindColours[kind];
      for (let x = gutter; x < width; ++x) {
        const mean = series.mean(first + (x - gutter) * step, first + (x - gutter + 1) * step);
        if (mean > 0)
          context.fillRect(x, 3 + (at + 1) * room - Math.max(1, mean * (room - 1)), 1, Math.max(1, mean * (room - 1)));
      }
    });
    const left = this.#x(this.view.begin), right = this.#x(this.view.end);
    context.fillStyle = theme.raised;
    context.globalAlpha = 0.6;
    context.fillRect(gutter, 0, left - gutter, height);
    context.fillRect(right, 0, width - right, height);
    context.globalAlpha = 1;
    context.strokeStyle = theme.mark;
    context.lineWidth = 1.5;
    context.strokeRect(left + 0.75, 0.75, Math.max(2, right - left - 1.5), height - 1.5);
  }
}
