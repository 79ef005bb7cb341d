"use strict";
// Colours: those of the kinds of spans, and what the style sheet says for the theme. The kinds' are Okabe and Ito's,
// which people tell apart whatever their colour vision; black text can be read on each of them.

const kKindColours = {
  upload: "#56b4e9",
  download: "#e69f00",
  kernel: "#00a57a",
  host: "#d487b1",
  submit: "#e4d43a",
  wait: "#e8702a",
  run: "#a3a9b3",
};
const kKindNames = {
  upload: "upload",
  download: "download",
  kernel: "kernel",
  host: "host",
  submit: "launch",
  wait: "wait for a slot",
  run: "run",
};

const Colours = {
  theme: {},
  // Reads the theme again: after the page has changed to another.
  read() {
    const style = getComputedStyle(document.documentElement);
    for (const name of ["back", "raised", "text", "quiet", "line", "band", "mark", "hit"]) {
      Colours.theme[name] = style.getPropertyValue("--" + name).trim();
    }
  },
  // Of work, one of four shades of its kind's colour, which tell neighbours apart.
  shade(
      kind, number) { return kShades[kind][kind === "run" || kind === "submit" || kind === "wait" ? 0 : number & 3]; },
  // Of a share between 0 and 1: [fill, text], from pale to strong.
  heat(share) {
    const at = Math.sqrt(Math.min(1, Math.max(0, share)));
    const mix = (from, to) => Math.round(from + (to - from) * at);
    return [`rgb(${mix(238, 213)} ${mix(240, 94)} ${mix(244, 0)})`, "#111"];
  },
};

const kShades = Object.fromEntries(Object.entries(kKindColours).map(([kind, colour]) => {
  const parts = [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16));
  const towards = (white, amount) =>
      "rgb(" + parts.map(part => Math.round(part + (white - part) * amount)).join(" ") + ")";
  return [kind, [colour, towards(255, 0.28), towards(0, 0.12), towards(255, 0.5)]];
}));
