"use strict";
// Series: a value over time that changes in steps, made of intervals that each add something while they last: how many
// runs are in flight, how many bytes they hold, whether an engine is busy. Means and maxima over any range of time are
// found by binary search. Times are in microseconds.

class Series {
  // begins, ends: of the intervals; weight: what each adds; cap: what the sum does not exceed.
  constructor(begins, ends, weight = 1, cap = Infinity) {
    const opened = Float64Array.from(begins).sort(), closed = Float64Array.from(ends).sort();
    const times = [], values = [], integrals = [];
    let open = 0, at = 0, gone = 0, integral = 0;
    while (gone < closed.length) {
      const now = at < opened.length ? Math.min(opened[at], closed[gone]) : closed[gone];
      while (at < opened.length && opened[at] <= now) {
        ++at;
        ++open;
      }
      while (gone < closed.length && closed[gone] <= now) {
        ++gone;
        --open;
      }
      const value = Math.min(cap, open * weight);
      if (times.length > 0) integral += values[values.length - 1] * (now - times[times.length - 1]);
      if (values.length > 0 && values[values.length - 1] === value) integral -= value * (now - times[times.length - 1]);
      else {
        times.push(now);
        values.push(value);
        integrals.push(integral);
      }
    }
    this.times = Float64Array.from(times);
    this.values = Float64Array.from(values);
    this.integrals = Float64Array.from(integrals);
    this.most = values.reduce((most, value) => Math.max(most, value), 0);
  }
  // The place of the last change at or before a time, or -1.
  #placeOf(time) { return firstAbove(this.times, time) - 1; }
  valueAt(time) {
    const place = this.#placeOf(time);
    return place < 0 ? 0 : this.values[place];
  }
  integralTo(time) {
    const place = this.#placeOf(time);
    return place < 0 ? 0 : this.integrals[place] + this.values[place] * (time - this.times[place]);
  }
  mean(begin, end) {
    return end > begin ? (this.integralTo(end) - this.integralTo(begin)) / (end - begin) : this.valueAt(begin);
  }
}

// The first place of a sorted array, from `low` on, whose value is above `value`.
function firstAbove(sorted, value, low = 0, high = sorted.length) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}
