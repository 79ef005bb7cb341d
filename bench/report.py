#!/usr/bin/env python3
"""How long Chromium takes to show a report of many spans: from opening the page to its first paint and to the timeline.

  bench/report.py PENSTOCK [SPANS]      PENSTOCK: the command; SPANS: 100000 by default

Prints a Markdown table of medians and maxima of seven loads, in milliseconds, and of frames while zooming in and out.
Needs Debian's chromium and chromium-driver.
"""
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "tests/cli")]
import browser
from profile_builder import pipeline

LOADS = 7
LOADED = """const paint = performance.getEntriesByName("first-contentful-paint")[0];
            return [paint ? paint.startTime : -1, performance.getEntriesByName("report drawn")[0].startTime];"""
FRAMES = """const done = arguments[0], times = [], {timeline, view} = report;
            const step = at => {
              if (at === 60) { done(times); return; }
              view.zoom(at < 30 ? 0.8 : 1.25, 0.4 * report.profile.last);
              const begin = performance.now();
              timeline.surface.redrawNow();
              times.push(performance.now() - begin);
              requestAnimationFrame(() => step(at + 1));
            };
            step(0);"""


def main(penstock, spans):
    with tempfile.TemporaryDirectory() as folder, browser.Browser() as chromium:
        profile, page = Path(folder, "large.profile"), Path(folder, "large.html")
        pipeline((spans + 6) // 7).write(profile)
        subprocess.run([penstock, "report", str(profile), "--out", str(page)], check=True, stdout=subprocess.DEVNULL)
        loads = []
        for _ in range(LOADS):
            chromium.open(page)
            chromium.frame()
            loads.append(chromium.run(LOADED))
        frames = chromium.call("POST", "/execute/async", {"script": FRAMES, "args": []})
        size = page.stat().st_size / 2**20
    print(f"{spans} spans, a page of {size:.1f} MiB\n\n| what | median, ms | most, ms |\n|---|---:|---:|")
    for name, times in (("first contentful paint", [load[0] for load in loads]),
                        ("timeline drawn", [load[1] for load in loads]),
                        ("a frame while zooming", frames)):
        print(f"| {name} | {statistics.median(times):.1f} | {max(times):.1f} |")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    if browser.missing():
        sys.exit(f"there is no {' and no '.join(browser.missing())}; "
                 "the Debian packages are chromium and chromium-driver")
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) == 3 else 100_000)
