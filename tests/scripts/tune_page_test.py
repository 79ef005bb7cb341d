#!/usr/bin/env python3
"""Holds the table of constants in docs/howto/tune.md to the sources: each constant is in the file that its row names,
with that value and unit.

  tune_page_test.py ROOT      ROOT: the project
"""
import re
import sys
from pathlib import Path

SOURCES = (".h", ".cc", ".cu")
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20}
TIMES = {"µs": "microseconds", "ms": "milliseconds"}


def defined(text, name):
    """The statement of the constant, and its value."""
    found = re.search(rf"^[^\n/]*\bconstexpr\b[^;]*?\b{name}\b\s*(?:=\s*)?([^;]*);", text, re.M)
    if not found:
        return None, None
    value = re.search(r"(?<![\w.])(\d+(?:\.\d+)?)\)?\}?(?:\s*<<\s*(\d+))?", found[1])
    return found[0], float(value[1]) * (1 << int(value[2] or 0))


def places(root, name):
    """Where else the constant may have gone."""
    files = [file for top in ("src", "graph") for file in (root / top).rglob("*.*") if file.suffix in SOURCES]
    found = [file for file in files if defined(file.read_text(encoding="utf-8"), name)[0]]
    return ", ".join(sorted(str(file.relative_to(root)) for file in found)) or "no file"


def faults(root):
    page = root / "docs/howto/tune.md"
    rows = re.findall(r"^\| \[[^\]]+\]\(([^)]+)\)[^|]*\|([^|]*)\|", page.read_text(encoding="utf-8"), re.M)
    listed = 0
    for file, cell in rows:
        text = (page.parent / file).read_text(encoding="utf-8")
        for name, number, unit in re.findall(r"`(k\w+)` ([\d.]+)(?: (\S+?))?(?=,| ?$)", cell.strip()):
            listed += 1
            statement, value = defined(text, name)
            if statement is None:
                yield f"{file} has no constant {name}; it is in {places(root, name)}"
            elif float(number) * UNITS.get(unit, 1) != value:
                yield f"{file}: {name} is {value:g}, the page says {number} {unit}"
            elif TIMES.get(unit, "") not in statement or (unit not in TIMES and "std::chrono" in statement):
                yield f"{file}: the unit of {name} is not {unit}"
        if cell.count("`k") != len(re.findall(r"`k\w+` [\d.]+", cell)):
            yield f"{file}: a constant without a value: {cell.strip()}"
    if listed < 50:
        yield f"only {listed} constants found: the search is broken"


if __name__ == "__main__":
    found = list(faults(Path(sys.argv[1]).resolve()))
    print("\n".join(found) or "the constants are as the page says")
    sys.exit(1 if found else 0)
