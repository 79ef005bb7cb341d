#!/usr/bin/env python3
"""Compares what the doctor promises with what its advice brings, for programs of this folder.

  measure.py PENSTOCK REPEATS PROGRAM...     PENSTOCK: the command; PROGRAM: "pitfall_unpinned", or "small_examples
                                             pitfall_unpinned" where the examples are one program

A program runs in turn as it is, with --fixed, and under the doctor. Prints the medians of the times per run, the gain,
the gain that the first finding promised, and how often which rule was first.
"""
import collections
import json
import statistics
import subprocess
import sys

RUNS = ["--runs", "200"]


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def measure(penstock, repeats, program):
    slow, fixed, promised, first = [], [], [], collections.Counter()
    for _ in range(repeats):
        slow.append(float(output(*program, *RUNS).split()[0]))
        fixed.append(float(output(*program, *RUNS, "--fixed").split()[0]))
        findings = json.loads(output(penstock, "doctor", "--json", "--exec", *program, *RUNS))["findings"]
        first[findings[0]["rule"] if findings else "none"] += 1
        if findings and findings[0]["gain"] is not None:
            promised.append(findings[0]["gain"])
    before, after = statistics.median(slow), statistics.median(fixed)
    gain = statistics.median(promised) if promised else float("nan")
    rules = ", ".join(f"{rule} {count}" for rule, count in first.most_common())
    print(f"{program[-1]}: {before:.3f} -> {after:.3f} ms a run, gain {1 - after / before:.1%}, promised {gain:.1%}; "
          f"first: {rules}", flush=True)


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    for program in sys.argv[3:]:
        measure(sys.argv[1], int(sys.argv[2]), program.split())


if __name__ == "__main__":
    main()
