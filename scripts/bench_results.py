"""Reads bench/results: the CSV files of measured figures, and the targets. Used by performance_page.py and plot.py."""

import csv
import dataclasses
import fnmatch
import pathlib

RESULTS = pathlib.Path("bench/results")
COLUMNS = ("benchmark part case way metric unit value least most ratio target verdict machine date command "
           "commit").split()


class BadResults(Exception):
    """A file of bench/results cannot be used."""


def read_rows(benchmark):
    """Returns the rows of bench/results/<benchmark>.csv as dictionaries, in the order of the file."""
    path = RESULTS / f"{benchmark}.csv"
    if not path.exists():
        raise BadResults(f"there is no {path}")
    with path.open(newline="") as file:
        reader = csv.reader(file)
        if next(reader, None) != COLUMNS:
            raise BadResults(f"{path}:1: the columns must be {','.join(COLUMNS)}")
        rows = []
        for cells in reader:
            if len(cells) != len(COLUMNS):
                raise BadResults(f"{path}:{reader.line_num}: {len(cells)} cells instead of {len(COLUMNS)}")
            row = dict(zip(COLUMNS, cells))
            for column in ("value", "least", "most", "ratio"):
                try:
                    float(row[column] or 0)
                except ValueError:
                    raise BadResults(f"{path}:{reader.line_num}: {column} is no number: {row[column]}") from None
            rows.append(row)
    return rows


def select(benchmark, **patterns):
    """Returns the rows whose columns match the patterns, in which * stands for any text."""
    return [row for row in read_rows(benchmark)
            if all(fnmatch.fnmatchcase(row[column], pattern) for column, pattern in patterns.items())]


def latest(rows):
    """Returns the rows of the latest date."""
    newest = max((row["date"] for row in rows), default="")
    return [row for row in rows if row["date"] == newest]


def raw_of(row, rows):
    """Returns the raw row that was measured together with `row`, or None."""
    for other in rows:
        if other["way"] == "raw" and all(other[c] == row[c] for c in ("part", "case", "machine", "date", "command")):
            return other
    return None


@dataclasses.dataclass
class Headline:
    """A target and what was measured last against it."""
    name: str
    relation: str
    target: float
    unit: str
    use: str
    figures: list  # one of each run; of a range that was noted, the end that is worse
    machines: list
    date: str

    def met(self):
        """Returns how many of the figures meet the target."""
        return sum(f <= self.target if self.relation == "≤" else f >= self.target for f in self.figures)


def figure_of(row, target):
    """Returns the figure of a row that the target is about, or None if the row has none."""
    if target["use"] == "ratio":
        return float(row["ratio"]) if row["ratio"] else None
    if target["use"] == "value" and row["metric"] == "difference":
        return None
    worse = row["most"] if target["relation"] == "≤" else row["least"]
    value = row["value"] or worse
    if not value:
        return None
    if target["use"] == "value" or row["metric"] == "difference":  # the latter was noted without the raw figure
        return float(value)
    raw = raw_of(row, read_rows(target["benchmark"]))
    return float(value) - float(raw["value"]) if raw and raw["value"] else None


def headlines():
    """Returns the headlines of targets.tsv, in their order."""
    path, found = RESULTS / "targets.tsv", []
    lines = [line.split("\t") for line in path.read_text().splitlines() if not line.startswith("#")]
    for cells in lines[1:]:
        target = dict(zip(lines[0], cells, strict=True))
        if target["use"] not in ("ratio", "value", "difference") or target["relation"] not in ("≤", "≥"):
            raise BadResults(f"{path}: {target['name']}: unknown use or relation")
        rows = select(target["benchmark"], part=target["part"], case=target["case"], way=target["way"])
        rows = latest([row for row in rows if figure_of(row, target) is not None])
        if not rows:
            raise BadResults(f"{path}: no figures of {target['name']}")
        found.append(Headline(name=target["name"], relation=target["relation"], target=float(target["target"]),
                              unit=target["unit"], use=target["use"],
                              figures=[figure_of(row, target) for row in rows],
                              machines=list(dict.fromkeys(row["machine"] for row in rows)), date=rows[0]["date"]))
    return found
