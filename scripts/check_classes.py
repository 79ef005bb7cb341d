#!/usr/bin/env python3
"""Checks that no class has grown too large: at most 40 methods (overloads count once) and 20 data members.

  scripts/check_classes.py [ROOT]     ROOT: the project (default), or another tree laid out like it

scripts/large_classes.tsv lists the classes that are one thing although they are larger, each with a reason. Their sizes
are limits too: a class may not grow beyond its row. A row that is no longer needed is an error.
"""
import collections
import json
import pathlib
import subprocess
import sys

MOST_METHODS = 40
MOST_MEMBERS = 20
FOLDERS = ("include", "src", "graph")


def tags(root):
    folders = [str(root / folder) for folder in FOLDERS if (root / folder).is_dir()]
    command = ["ctags", "--languages=C++", "--langmap=C++:+.h.cu", "--kinds-C++=csfpm", "--output-format=json",
               "--fields=+S", "-R", "-I", "PENSTOCK_EXPORT,ABSL_GUARDED_BY+,ABSL_LOCKABLE,ABSL_SCOPED_LOCKABLE",
               "-f", "-"] + folders
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in out.splitlines()]


def sizes(root):
    """Of each class: its methods by name, its data members, and the file that has it."""
    methods, members, files = collections.defaultdict(set), collections.defaultdict(set), {}
    for tag in tags(root):
        scope = tag.get("scope", "")
        if tag["kind"] in ("class", "struct"):
            name = (scope + "::" if scope else "") + tag["name"]
            files.setdefault(name, str(pathlib.Path(tag["path"]).relative_to(root)))
        if tag.get("scopeKind") not in ("class", "struct"):
            continue
        if tag["kind"] in ("prototype", "function"):
            own = scope.split("::")[-1]
            if tag["name"] not in (own, "~" + own) and not tag["name"].startswith("operator"):
                methods[scope].add(tag["name"])
        elif tag["kind"] == "member":
            members[scope].add(tag["name"])
    return methods, members, files


def short(name):
    parts = [p for p in name.split("::") if p not in ("penstock", "runtime", "driver", "graph", "host", "memory", "base",
                                                      "detail") and not p.startswith("__anon")]
    return "::".join(parts)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    listed = {}
    for line in (root / "scripts/large_classes.tsv").read_text().splitlines()[1:]:
        name, most_methods, most_members, reason = line.split("\t")
        listed[name] = (int(most_methods), int(most_members), reason)
    methods, members, files = sizes(root)
    bad, needed = [], set()
    for name, path in sorted(files.items(), key=lambda item: item[1]):
        m, d, brief = len(methods[name]), len(members[name]), short(name)
        if m <= MOST_METHODS and d <= MOST_MEMBERS:
            continue
        if brief not in listed:
            bad.append(f"{path}: {brief} has {m} methods and {d} data members; a class has at most {MOST_METHODS} and "
                       f"{MOST_MEMBERS}: part it, or say in scripts/large_classes.tsv why it is one thing")
            continue
        needed.add(brief)
        most_m, most_d, reason = listed[brief]
        if m > most_m or d > most_d:
            bad.append(f"{path}: {brief} has grown to {m} methods and {d} data members; its row in "
                       f"scripts/large_classes.tsv allows {most_m} and {most_d}")
        if len(reason.split()) < 4:
            bad.append(f"scripts/large_classes.tsv: {brief}: the reason is to be a sentence")
    bad += [f"scripts/large_classes.tsv: {name} is not too large any more; take out its row"
            for name in listed if name not in needed]
    print("\n".join(bad) if bad else f"{len(files)} classes, {len(needed)} of them large for a reason")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
