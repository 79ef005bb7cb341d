#!/usr/bin/env python3
"""Checks docs/guarantees/*.md against tests/guarantees.tsv.

Every guarantee must have an id of its own, at most 200 characters and a row in the table that names a test. Every row
must belong to a guarantee, and every test or script that it names must exist. The index must link every page and give
the number of its guarantees.

  check_guarantees.py [ROOT]     ROOT: the project (default), or another tree laid out like it
"""

import collections
import os
import pathlib
import re
import sys

LONGEST = 200
ROW = re.compile(r"\| ([a-z][a-z0-9-]*) \| (.+) \|")
NAMED = re.compile(r"`([A-Z][A-Za-z0-9]*\.[A-Z][A-Za-z0-9_]*(?:/[A-Z][A-Za-z0-9]*)?)`")
TEST = re.compile(r"^TEST(?:_P|_F)?\(([A-Za-z0-9_]+), *([A-Za-z0-9_]+)\)", re.MULTILINE)
TABLE_TEST = re.compile(r"^TEST_P\(([A-Za-z0-9_]+), *(AreAsListed)\)", re.MULTILINE)
ENTRY = re.compile(r'^ +\{"([A-Z][A-Za-z0-9]*)",', re.MULTILINE)
SOURCES = {".cc", ".cu", ".h", ".cuh"}

problems = []


def read_page(path):
    """Returns the rows of a page as (id, text, place)."""
    rows = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        place = f"{path}:{number}"
        if not line.startswith("|") or line.startswith("|---") or line == "| id | guarantee |":
            continue
        match = ROW.fullmatch(line)
        if match is None:
            problems.append(f"{place}: this is no row of an id and a guarantee")
            continue
        name, text = match.groups()
        if len(text) > LONGEST:
            problems.append(f"{place}: {name} has {len(text)} characters; {LONGEST} are allowed")
        rows.append((name, text, place))
    return rows


def check_index(index, pages):
    """Checks that the index links each page with the number of its guarantees."""
    text = index.read_text()
    for page, rows in pages.items():
        row = re.search(rf"^\| \[[^]]*\]\({index.stem}/{re.escape(page.name)}\) \|.*\| (\d+) \|$", text, re.MULTILINE)
        if row is None:
            problems.append(f"{index}: no row for {page}")
        elif int(row.group(1)) != len(rows):
            problems.append(f"{index}: {page} has {len(rows)} guarantees, not {row.group(1)}")


def read_table(path):
    """Returns the rows of the table as (id, tests, tests named among the breaks, place)."""
    rows, heading_seen = [], False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        place = f"{path}:{number}"
        if line.startswith("#"):
            continue
        cells = line.split("\t")
        if not heading_seen:
            heading_seen = True
            if cells != ["id", "tests", "breaks"]:
                problems.append(f"{place}: the columns must be id, tests and breaks")
            continue
        if len(cells) != 3 or not all(cell.strip() for cell in cells):
            problems.append(f"{place}: three cells with text are needed")
            continue
        rows.append((cells[0], cells[1].split(), NAMED.findall(cells[2]), place))
    return rows


def known_tests(root):
    """Returns the names of all tests below `root`: Suite.Name, and Suite.AreAsListed/Entry for an entry of a table."""
    names = set()
    for path in root.rglob("*"):
        if path.suffix not in SOURCES:
            continue
        text = path.read_text(errors="replace")
        names.update(".".join(match) for match in TEST.findall(text))
        for match in TABLE_TEST.findall(text):
            names.update(".".join(match) + "/" + entry for entry in ENTRY.findall(text))
    return names


def main():
    os.chdir(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    pages = {path: read_page(path) for path in sorted(pathlib.Path("docs/guarantees").glob("*.md"))}
    places = collections.defaultdict(list)
    for rows in pages.values():
        for name, _, place in rows:
            places[name].append(place)
    for name, all_places in places.items():
        if len(all_places) > 1:
            problems.append(f"{all_places[1]}: {name} also stands at {all_places[0]}")
    check_index(pathlib.Path("docs/guarantees.md"), pages)

    known, held, named = known_tests(pathlib.Path("tests")), set(), set()
    for name, tests, mentioned, place in read_table(pathlib.Path("tests/guarantees.tsv")):
        if name not in places:
            problems.append(f"{place}: no guarantee has the id {name}")
        held.add(name)
        named.update(tests)
        for test in tests + mentioned:
            if test[0].islower() and not os.access(test, os.X_OK):
                problems.append(f"{place}: there is no script {test}")
            elif not test[0].islower() and test not in known:
                problems.append(f"{place}: there is no test {test}")
    for name in places.keys() - held:
        problems.append(f"{places[name][0]}: no row of tests/guarantees.tsv names a test for {name}")

    for problem in sorted(problems):
        print(problem)
    if not places or not named:
        print("no guarantees or no tests found: the search is broken")
    if problems or not places or not named:
        sys.exit(1)
    print(f"{len(places)} guarantees; {len(named)} tests that hold them exist")


if __name__ == "__main__":
    main()
