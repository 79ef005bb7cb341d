#!/usr/bin/env python3
"""How far `penstock simulate` is from what programs measure: runs each, with a profile, and simulates it.

  bench/simulate_profiles.py PENSTOCK NAME[:GRAPH]=COMMAND...    PENSTOCK: the command
  bench/simulate_profiles.py build/cuda/bin/penstock "mlp=build/cuda/bin/examples/mlp --devices cuda:0,1"

GRAPH is the graph's name, else the one launched most often. Prints a CSV row for each: runs that count, the time per run
and the latency of a run as measured in the profile and as predicted from it, in microseconds, and predicted to
measured. With fewer than 8 runs nothing tells a pace, so the time per run is empty.
"""
import csv
import json
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path


def check(name, what, done):
    if done.returncode != 0:
        sys.exit(f"{name}: {what} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def simulate(penstock, name, graph, command):
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder, "a.profile")
        check(name, command, subprocess.run(shlex.split(command), env=os.environ | {"PENSTOCK_PROFILE": str(profile)},
                                            capture_output=True, text=True))
        if not profile.exists():
            sys.exit(f"{name}: {command} left no profile; does it make a ps::Runtime?")
        of_graph = ["--graph", graph] if graph else []
        out = check(name, "penstock simulate", subprocess.run([penstock, "simulate", profile, "--json", *of_graph],
                                                              capture_output=True, text=True))
    return json.loads(out)


def row(name, found):
    def times(measured, predicted):
        return [f"{measured:.1f}", f"{predicted:.1f}", f"{predicted / measured:.3f}"] if measured > 0 else [""] * 3
    predicted = found["predicted"]
    has_pace = found["measured_runs"] >= 8
    return [name, found["graph"], found["measured_runs"],
            *times(found["measured_run_us"] if has_pace else 0, predicted["run_us"]),
            *times(found["measured_latency_us"], predicted["latency_us"])]


def main(penstock, *programs):
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["program", "graph", "runs", "run_us", "predicted_run_us", "run_ratio", "latency_us",
                    "predicted_latency_us", "latency_ratio"])
    for program in programs:
        name, _, command = program.partition("=")
        name, _, graph = name.partition(":")
        if not command:
            sys.exit(f"{program} is not NAME[:GRAPH]=COMMAND")
        table.writerow(row(name, simulate(penstock, name, graph, command)))
        sys.stdout.flush()


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
