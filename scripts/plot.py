#!/usr/bin/env python3
"""Draws the figures of docs/figures/measured from bench/results, as SVG files that are readable on light and dark pages.

  plot.py [FOLDER]     FOLDER: docs/figures/measured by default
"""

import dataclasses
import math
import os
import pathlib
import sys
from xml.sax.saxutils import escape

import bench_results as results

WIDTH = 760
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #24292f }
.title { font-weight: 600; font-size: 15px }
.axis { stroke: #57606a }
.grid { stroke: #57606a; stroke-opacity: 0.2 }
.target { stroke: #24292f; stroke-dasharray: 6 4; fill: none }
.line { fill: none; stroke-width: 2 }
.c0 { stroke: #0072b2; fill: #0072b2 } .c1 { stroke: #c44e00; fill: #c44e00 }
.c2 { stroke: #00805e; fill: #00805e } .c3 { stroke: #a8437c; fill: #a8437c }
.c4 { stroke: #6b5b00; fill: #6b5b00 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 }
  .axis, .grid { stroke: #9ea7b3 }
  .target { stroke: #e6edf3 }
  .c0 { stroke: #56b4e9; fill: #56b4e9 } .c1 { stroke: #ff9d4d; fill: #ff9d4d }
  .c2 { stroke: #3fd0a0; fill: #3fd0a0 } .c3 { stroke: #f0a6d0; fill: #f0a6d0 }
  .c4 { stroke: #e3d26f; fill: #e3d26f }
}
.c0.line, .c1.line, .c2.line, .c3.line, .c4.line { fill: none }
""".strip()


@dataclasses.dataclass
class Axis:
    """One axis: its label, the values at its ends, its ticks, and whether it is logarithmic."""
    label: str
    low: float
    high: float
    ticks: list  # (value, text)
    log: bool = False

    def at(self, value):
        """Returns where a value lies: 0 at the low end, 1 at the high one."""
        if not self.low <= value <= self.high:
            raise results.BadResults(f"{value} is outside the axis '{self.label}'; widen it in plot.py")
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


@dataclasses.dataclass
class Series:
    """Points (x, y) under a name, joined by a line."""
    name: str
    points: list


class Canvas:
    """Collects the elements of one SVG file."""

    def __init__(self, height, title):
        self.height = height
        self.title = title
        self.parts = [f'<text class="title" x="16" y="24">{escape(title)}</text>']

    def text(self, x, y, text, anchor="start", turn=False):
        around = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turn else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{around}>{escape(text)}</text>')

    def line(self, kind, x1, y1, x2, y2):
        self.parts.append(f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>')

    def path(self, kind, points):
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline class="{kind}" points="{joined}"/>')

    def mark(self, color, x, y):
        """A mark with a shape of its own for each color, so that it can be told apart without."""
        if color % 5 == 0:
            self.parts.append(f'<circle class="c0" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>')
            return
        shapes = {1: [(-4, -4), (4, -4), (4, 4), (-4, 4)], 2: [(0, -5.5), (5, 4), (-5, 4)],
                  3: [(0, -5.5), (5.5, 0), (0, 5.5), (-5.5, 0)], 4: [(0, 5.5), (5, -4), (-5, -4)]}
        joined = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in shapes[color % 5])
        self.parts.append(f'<polygon class="c{color % 5}" points="{joined}"/>')

    def svg(self):
        body = "\n".join(self.parts)
        return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" role="img">\n'
                f"<title>{escape(self.title)}</title>\n<style>\n{STYLE}\n</style>\n{body}\n</svg>\n")


def line_chart(title, x_axis, y_axis, series, target=None, note=""):
    """Lines over a numeric axis; the legend stands on the right. `target` is (text, points)."""
    left, right, top, bottom, height = 64, 520, 48, 330, 412
    canvas = Canvas(height, title)

    def place(point):
        return left + (right - left) * x_axis.at(point[0]), bottom - (bottom - top) * y_axis.at(point[1])

    for value, text in y_axis.ticks:
        y = place((x_axis.low, value))[1]
        canvas.line("grid", left, y, right, y)
        canvas.text(left - 8, y + 4, text, "end")
    for value, text in x_axis.ticks:
        x = place((value, y_axis.low))[0]
        canvas.line("axis", x, bottom, x, bottom + 5)
        canvas.text(x, bottom + 20, text, "middle")
    canvas.line("axis", left, bottom, right, bottom)
    canvas.line("axis", left, top, left, bottom)
    canvas.text((left + right) / 2, bottom + 42, x_axis.label, "middle")
    canvas.text(18, (top + bottom) / 2, y_axis.label, "middle", turn=True)
    if target:
        canvas.path("target", [place(point) for point in target[1]])
        canvas.line("target", right + 16, top + 6, right + 40, top + 6)
        canvas.text(right + 48, top + 10, target[0])
    for number, one in enumerate(series):
        points = [place(point) for point in one.points]
        canvas.path(f"line c{number % 5}", points)
        for x, y in points:
            canvas.mark(number, x, y)
        y = top + 10 + 22 * (number + (1 if target else 0))
        canvas.line(f"line c{number % 5}", right + 16, y - 4, right + 40, y - 4)
        canvas.mark(number, right + 28, y - 4)
        canvas.text(right + 48, y, one.name)
    canvas.text(16, height - 14, note)
    return canvas.svg()


def dot_chart(title, axis, rows, line, notes=()):
    """One row a name with marks on a common axis: rows are (name, [(color, value)]); `line` is (value, text)."""
    left, right, top, step = 390, WIDTH - 32, 66, 26
    bottom = top + step * len(rows)
    canvas = Canvas(bottom + 56 + 20 * len(notes), title)

    def x_of(value):
        return left + (right - left) * axis.at(value)

    for value, text in axis.ticks:
        canvas.line("grid", x_of(value), top - 8, x_of(value), bottom)
        canvas.text(x_of(value), bottom + 18, text, "middle")
    canvas.line("axis", left, bottom, right, bottom)
    canvas.line("target", x_of(line[0]), top - 8, x_of(line[0]), bottom)
    canvas.text(x_of(line[0]), top - 14, line[1], "middle")
    canvas.text((left + right) / 2, bottom + 40, axis.label, "middle")
    for number, (name, marks) in enumerate(rows):
        y = top + step * number + step / 2
        canvas.text(left - 12, y + 4, name, "end")
        canvas.line("grid", left, y, right, y)
        for color, value in marks:
            canvas.mark(color, x_of(value), y)
    for number, note in enumerate(notes):
        canvas.text(16, bottom + 68 + 20 * number, note)
    return canvas.svg()


def measured_on(rows):
    """Returns where and when rows were measured, for the note under a figure."""
    return f"{rows[0]['machine'].split(';')[0]}, {rows[0]['date']}, {rows[0]['command']}"


def draw_headlines():
    rows = []
    for headline in results.headlines():
        share = [f / headline.target if headline.relation == "≤" else headline.target / f for f in headline.figures]
        rows.append((headline.name.split(", ")[0], [(0 if one <= 1 else 1, max(one, 0.125)) for one in share]))
    axis = Axis("figure / target, or target / figure where more is better", 0.125, 8,
                [(v, str(v)) for v in (0.125, 0.25, 0.5, 1, 2, 4, 8)], log=True)
    return dot_chart("Headline figures against their targets", axis, rows, (1, "target"),
                     ["Circles meet the target, squares miss it. Each mark is a run or a machine of the latest date.",
                      "At the left end is also what is far below its target, or better than what it may be worse than."])


def draw_planning():
    series, all_rows = [], []
    for shape in ("chain", "8 wide", "stencil", "random layers"):
        points = []
        for nodes in (1000, 10000, 100000):
            rows = results.select("host/plan", case=f"{shape}, {nodes} nodes: plan*", way="Penstock")
            rows = results.latest([row for row in rows if row["value"]])
            points.append((nodes, float(rows[0]["value"])))
            all_rows.append(rows[0])
        series.append(Series(shape, points))
    x = Axis("nodes", 700, 140000, [(1000, "1000"), (10000, "10 000"), (100000, "100 000")], log=True)
    y = Axis("us a node", 0, 1.4, [(v / 5, f"{v / 5:.1f}") for v in range(8)])
    return line_chart("Planning a graph: processor time for each node", x, y, series,
                      ("target", [(700, 1), (140000, 1)]), measured_on(all_rows))


def draw_small_copies():
    sizes = (("256 bytes", 256), ("2 KiB", 2048), ("16 KiB", 16384), ("64 KiB", 65536), ("256 KiB", 262144),
             ("1 MiB", 1048576), ("4 MiB", 4194304))
    series, rows = [], []
    for way in ("copy nodes", "up by a kernel", "down by a kernel", "both by kernels",
                "both by kernels, programmatic edges"):
        found = {row["case"]: row for row in results.select("gpu/graph_study", way=way, case="* each way")}
        rows += found.values()
        name = way.replace("both by kernels, ", "both, ")
        series.append(Series(name, [(size, float(found[f"{text} each way"]["value"])) for text, size in sizes]))
    x = Axis("bytes in each direction", 180, 6e6, [(256, "256"), (2048, "2 Ki"), (16384, "16 Ki"), (65536, "64 Ki"),
                                                   (262144, "256 Ki"), (1048576, "1 Mi"), (4194304, "4 Mi")], log=True)
    y = Axis("us until done", 8, 250, [(v, str(v)) for v in (10, 20, 50, 100, 200)], log=True)
    return line_chart("Small copies in a graph: up, two small kernels, down", x, y, series,
                      note=measured_on(rows))


def draw_submission_threads():
    series, rows = [], []
    ways = ({1: "raw, one thread", 2: "raw, 2 threads*", 4: "raw, 4 threads*", 8: "raw, 8 threads*"},
            {count + 1: f"Penstock, {count} submission threads*" for count in (0, 1, 3, 5, 7)})
    for case, name in (("16 chains of 256 tiny kernels", "16 x 256"), ("32 chains of 128 tiny kernels", "32 x 128")):
        for label, way in zip(("by hand", "Penstock"), ways):
            points = []
            for threads, text in way.items():
                row = results.select("gpu/feeders", case=f"{case}, {text}", unit="M launches/s")[-1]
                points.append((threads, float(row["value"])))
                rows.append(row)
            series.append(Series(f"{name}, {label}", points))
    x = Axis("threads that submit, the caller's included", 0, 9, [(v, str(v)) for v in (1, 2, 4, 6, 8)])
    y = Axis("million launches a second", 0, 0.8, [(v / 5, f"{v / 5:.1f}") for v in range(5)])
    return line_chart("Launching chains of tiny kernels from several threads", x, y, series, note=measured_on(rows))


def draw_copies():
    sizes = (("64 KiB", 64), ("256 KiB", 256), ("1 MiB", 1024), ("4 MiB", 4096), ("16 MiB", 16384), ("64 MiB", 65536),
             ("512 MiB", 524288))
    series, all_rows = [], []
    parts = (("one pinned copy", "", "one copy"), ("32 pinned copies in a row", "32 x ", "32 in a row"))
    for part, prefix, label in parts:
        for direction, word in (("H2D", "up"), ("D2H", "down")):
            points = []
            for text, kib in sizes:
                rows = results.select("gpu/copies", part=part, way="Penstock",
                                      case=f"{direction} of {prefix}{text}; raw: the best by hand")
                rows = results.latest(rows)
                if rows:
                    points.append((kib, float(rows[0]["ratio"])))
                    all_rows.append(rows[0])
            series.append(Series(f"{label}, {word}", points))
    ticks = [(64, "64 Ki"), (256, "256 Ki"), (1024, "1 Mi"), (4096, "4 Mi"), (16384, "16 Mi"), (65536, "64 Mi"),
             (524288, "512 Mi")]
    x = Axis("bytes of a copy", 45, 8e5, ticks, log=True)
    y = Axis("rate to the best by hand", 0.8, 1.02, [(v / 100, f"{v / 100:.2f}") for v in range(80, 103, 5)])
    return line_chart("Copies of pinned memory, rate to the best by hand", x, y, series,
                      ("target", [(45, 0.90), (512, 0.90), (512, 0.97), (8e5, 0.97)]), measured_on(all_rows))


def draw_replay():
    rows, used = [], []
    for case in ("chain of 100", "chain of 1000", "stencil of 8 x 12", "stencil of 8 x 125"):
        for when in ("submit", "until done"):
            marks = []
            for color, nodes in enumerate(("Kernel nodes", "ParallelFor nodes")):
                found = results.latest(results.select("gpu/replay", part="Replay", way="Penstock",
                                                      case=f"{case}, {nodes}, {when}"))
                marks += [(color, float(row["ratio"])) for row in found]
                used += found
            rows.append((f"{case}, {when}", marks))
    axis = Axis("time to the best graph by hand", 0.25, 2, [(v, str(v)) for v in (0.25, 0.5, 1, 2)], log=True)
    return dot_chart("Replaying a graph", axis, rows, (1, "by hand"),
                     ["Circles: Kernel nodes; squares: ParallelFor nodes.", measured_on(used)])


FIGURES = {"headlines": draw_headlines, "planning": draw_planning, "replay": draw_replay,
           "submission_threads": draw_submission_threads, "small_copies": draw_small_copies, "copies": draw_copies}


def draw_all():
    """Returns the text of every figure by the name of its file."""
    return {f"{name}.svg": draw() for name, draw in FIGURES.items()}


def main():
    os.chdir(pathlib.Path(__file__).resolve().parent.parent)
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "docs/figures/measured")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in draw_all().items():
        (folder / name).write_text(text)
    print(f"{len(FIGURES)} figures in {folder}")


if __name__ == "__main__":
    try:
        main()
    except results.BadResults as error:
        sys.exit(f"plot.py: {error}")
