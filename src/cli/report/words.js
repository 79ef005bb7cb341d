"use strict";
// Words: how names, times, sizes and shares are written, and the only place where elements are made.
//
// Names come from the profile and are hostile: they are text nodes, never HTML, and characters that would be invisible
// or turn the direction of what follows are shown by a sign. Times are in microseconds, sizes in bytes.

const kHidden =
    /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

const Words = {
  // A name as it is shown, of at most so many letters.
  name(raw, most = 300) {
    let text = raw.length > most ? raw.slice(0, most).replace(/[\ud800-\udbff]$/, "") : raw;
    text = text.replace(kHidden, sign => {
      const code = sign.charCodeAt(0);
      if (code < 0x20) return String.fromCharCode(0x2400 + code);
      return code === 0x7f ? "\u2421" : "\u27e8U+" + code.toString(16).toUpperCase().padStart(4, "0") + "\u27e9";
    });
    return raw.length > most ? text + "… (" + Words.count(raw.length) + " letters)" : text;
  },
  // Three significant digits.
  digits(value) {
    if (value === 0) return "0";
    const places = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value)) + 1e-9));
    return value.toFixed(Math.min(places, 3));
  },
  time(us) {
    const size = Math.abs(us);
    if (size < 999.5) return Words.digits(us) + " µs";
    return size < 999500 ? Words.digits(us / 1e3) + " ms" : Words.digits(us / 1e6) + " s";
  },
  // A point in time, to a resolution.
  moment(us, resolution = 1) {
    const [unit, size] = Math.abs(us) >= 1e6 ? ["s", 1e6] : Math.abs(us) >= 1e3 ? ["ms", 1e3] : ["µs", 1];
    const places = Math.max(0, Math.min(9, Math.ceil(Math.log10(size / resolution) - 1e-9)));
    return (us / size).toFixed(places) + " " + unit;
  },
  bytes(count) {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let place = 0;
    while (count >= 1023.5 && place + 1 < units.length) {
      count /= 1024;
      ++place;
    }
    return (place === 0 ? count.toFixed(0) : Words.digits(count)) + " " + units[place];
  },
  bandwidth(bytes, us) {
    const rate = bytes / us;  // MB/s
    return rate < 999.5 ? Words.digits(rate) + " MB/s" : Words.digits(rate / 1e3) + " GB/s";
  },
  operations(count) {
    const units = ["", "K", "M", "G", "T", "P", "E"];
    let place = 0;
    while (count >= 999.5 && place + 1 < units.length) {
      count /= 1000;
      ++place;
    }
    return Words.digits(count) + " " + units[place] + "FLOP";
  },
  share(part) { return part > 0 && part < 0.001 ? "< 0.1 %" : (part * 100).toFixed(1) + " %"; },
  count(number) { return String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f"); },
  many(number, noun, plural = noun + "s") { return Words.count(number) + " " + (number === 1 ? noun : plural); },
};

// An element with properties and children; a child that is a string becomes text.
function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "role" || name === "scope") made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children.filter(child => child !== null && child !== undefined));
  return made;
}

function button(text, action, properties = {}) {
  return element("button", {type: "button", className: "link", onclick: action, ...properties}, text);
}

// A name that keeps its direction to itself, with all of it as a tooltip.
function named(raw, most = 80) {
  return element("bdi", {className: "name", title: Words.name(raw, 2000)}, Words.name(raw, most) || "(no name)");
}
