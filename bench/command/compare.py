#!/usr/bin/env python3
"""Puts the copies that `penstock bench` and plain_copies have measured beside each other.

  compare.py PENSTOCK.csv PLAIN.csv [--least 0.97]

Prints each figure that both have, and the ratio. Ends with 1 if a copy of at least 1 MiB is below the least ratio, where
one is given, and with 2 if the files have no figure in common.
"""
import argparse
import csv
import sys

LARGE = 1 << 20  # bytes; of smaller copies, what is measured is how they are submitted


def figures(path):
    with open(path, newline="", encoding="utf-8") as file:
        return {(row["device"], row["what"], int(row["bytes"])): float(row["value"])
                for row in csv.DictReader(file) if row["part"] == "copies"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("penstock")
    parser.add_argument("plain")
    parser.add_argument("--least", type=float, help="the least ratio that copies of 1 MiB and more may have")
    options = parser.parse_args()
    penstock, plain = figures(options.penstock), figures(options.plain)
    both = [key for key in plain if key in penstock]
    if not both:
        print("compare.py: the files have no figure of a copy in common", file=sys.stderr)
        return 2
    missed = 0
    print(f"{'what':<16} {'bytes':>11} {'penstock':>9} {'plain':>9} {'ratio':>6}")
    for key in both:
        ratio = penstock[key] / plain[key]
        below = options.least is not None and key[2] >= LARGE and ratio < options.least
        missed += below
        print(f"{key[1]:<16} {key[2]:>11} {penstock[key]:>9.2f} {plain[key]:>9.2f} {ratio:>6.3f}"
              + ("  MISSED" if below else ""))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
