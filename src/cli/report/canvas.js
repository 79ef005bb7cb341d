"use strict";
// Surface: a canvas that is as sharp as the screen, and is drawn again at most once a frame after somebody asks for it.
// Coordinates are CSS pixels.

const kFont = "11px system-ui, sans-serif", kLetter = 6.1;  // about the width of a letter of it

class Surface {
  #asked = false;
  constructor(canvas, draw) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.draw = draw;
    this.width = this.height = 0;
    new ResizeObserver(() => this.redraw()).observe(canvas.parentElement);
  }
  redraw() {
    if (this.#asked) return;
    this.#asked = true;
    requestAnimationFrame(() => {
      this.#asked = false;
      this.redrawNow();
    });
  }
  redrawNow() {
    const {clientWidth: width, clientHeight: height} = this.canvas, sharp = window.devicePixelRatio || 1;
    if (width === 0 || height === 0) return;
    const [columns, rows] = [Math.round(width * sharp), Math.round(height * sharp)];
    if (this.canvas.width !== columns || this.canvas.height !== rows) {
      this.canvas.width = columns;
      this.canvas.height = rows;
    }
    [this.width, this.height] = [width, height];
    this.context.setTransform(sharp, 0, 0, sharp, 0, 0);
    this.context.clearRect(0, 0, width, height);
    this.context.font = kFont;
    this.context.textBaseline = "middle";
    this.context.direction = "ltr";
    this.draw(this.context, width, height);
  }
  // As much of a text as fits into a width.
  text(text, x, y, width) {
    const room = Math.floor(width / kLetter);
    if (room < 2) return;
    this.context.fillText(text.length <= room ? text : text.slice(0, Math.max(1, room - 1)) + "…", x, y, width);
  }
}
