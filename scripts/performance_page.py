#!/usr/bin/env python3
"""Writes docs/performance.md and docs/figures/measured from bench/results.

  performance_page.py             writes them
  performance_page.py --check     fails unless they are what it would write
"""

import os
import pathlib
import sys

import bench_results as results
import plot

PAGE = pathlib.Path("docs/performance.md")
FIGURES = pathlib.Path("docs/figures/measured")
CAPTIONS = {
    "headlines.svg": "All headline figures as a multiple of their targets.",
    "planning.svg": "Planning time for each node, over the size of the graph.",
    "replay.svg": "Replaying a graph, against the best graph made by hand.",
    "submission_threads.svg": "Launch rates with several threads, by hand and with submission threads.",
    "small_copies.svg": "Why copies up to 64 KiB are kernels in graphs.",
    "copies.svg": "Copies of pinned memory, against the best by hand.",
}


def number(value):
    """Returns the value with three significant digits, in plain notation."""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:.{digits}f}"


def figure_text(values, unit):
    """Returns the figures as one, or as a range."""
    first, last = number(min(values)), number(max(values))
    return f"{first} {unit}" if first == last else f"{first} to {last} {unit}"


def short(machine):
    """Returns what identifies a machine: GPUs, and cores where there is no GPU."""
    return machine.split(";")[0]


def headline_table():
    lines = ["| what | target | measured | verdict | machine | date |", "|---|---|---|---|---|---|"]
    for one in results.headlines():
        unit = {"times": "x"}.get(one.unit, one.unit)
        more = "+" if one.use == "difference" else ""
        met, runs = one.met(), len(one.figures)
        verdict = "met" if met == runs else "**missed**" if met == 0 else f"met in {met} of {runs}"
        machine = short(one.machines[0])
        if len(one.machines) > 1:
            machine += f" and {len(one.machines) - 1} more"
        measured = figure_text(one.figures, unit)
        if not measured.startswith("-"):
            measured = more + measured
        lines.append(f"| {one.name} | {one.relation} {more}{one.target:g} {unit} | "
                     f"{measured} | {verdict} | {machine} | {one.date} |")
    return "\n".join(lines)


def figure_list():
    return "\n\n".join(f"![{caption}](figures/measured/{name})\n\n{caption}" for name, caption in CAPTIONS.items())


def file_table():
    lines = ["| file | rows | dates |", "|---|---|---|"]
    for path in sorted(results.RESULTS.glob("*/*.csv")):
        rows = results.read_rows(path.relative_to(results.RESULTS).with_suffix("").as_posix())
        dates = sorted({row["date"] for row in rows})
        when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
        lines.append(f"| [{path.parent.name}/{path.name}](../{path.as_posix()}) | {len(rows)} | {when} |")
    return "\n".join(lines)


def generate():
    """Returns the text of the page and of all figures by the path of their file."""
    page = (results.RESULTS / "performance.md.in").read_text()
    for name, make in (("HEADLINES", headline_table), ("FIGURES", figure_list), ("FILES", file_table)):
        page = page.replace(f"@{name}@", make())
    figures = plot.draw_all()
    if figures.keys() != CAPTIONS.keys():
        raise results.BadResults("each figure needs a caption in performance_page.py")
    return {PAGE: page} | {FIGURES / name: text for name, text in figures.items()}


def main():
    os.chdir(pathlib.Path(__file__).resolve().parent.parent)
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit("performance_page.py: only --check is known")
    wanted = generate()
    strays = set(FIGURES.glob("*.svg")) - wanted.keys()
    if sys.argv[1:]:
        bad = [path for path, text in wanted.items() if not path.exists() or path.read_text() != text]
        for path in bad:
            print(f"{path} is not what scripts/performance_page.py makes from bench/results")
        for path in strays:
            print(f"{path} is no figure that scripts/performance_page.py makes")
        if bad or strays:
            print("scripts/performance_page.py writes them.")
            sys.exit(1)
    else:
        FIGURES.mkdir(parents=True, exist_ok=True)
        for path in strays:
            path.unlink()
        for path, text in wanted.items():
            path.write_text(text)
    print(f"{len(wanted)} files from {sum(1 for _ in results.RESULTS.glob('*/*.csv'))} tables of figures")


if __name__ == "__main__":
    try:
        main()
    except results.BadResults as error:
        sys.exit(f"performance_page.py: {error}")
