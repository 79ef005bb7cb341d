"use strict";
// Axis: round times for the marks of a range of time.

const Axis = {
  // Times at a round distance, at most so many; and that distance. Microseconds.
  marks(begin, end, most) {
    const rough = (end - begin) / Math.max(1, most), size = 10 ** Math.floor(Math.log10(rough));
    const step = [1, 2, 5, 10].find(times => times * size >= rough * 0.999) * size;
    const times = [];
    for (let at = Math.ceil(begin / step); at * step <= end && times.length <= most + 1; ++at) times.push(at * step);
    return {times, step};
  },
  label(time, step, end) {
    const [unit, size] = end >= 1e6 ? ["s", 1e6] : end >= 1e3 ? ["ms", 1e3] : ["µs", 1];
    return (time / size).toFixed(Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / size) - 1e-9)))) + " " + unit;
  },
};
