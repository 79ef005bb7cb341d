#!/usr/bin/env python3
"""Compares what penstock tune finds with the best of a grid of settings, on this machine.

  tune_grid.py PENSTOCK [--budget S] [--rounds N] [--finals N] [--grid "KEY=V,V,..."]... [--json FILE] -- PROGRAM ARGS...

Runs "PENSTOCK tune --exec PROGRAM ARGS..." first. Then it runs the program under each setting of the grid, at most 100 of
them: N rounds, each in another order, so that the machine's moods fall on all alike. The grid's five best by medians go
into the finals with what was found, since the best of many medians owes a part to luck. For the same reason the best of the
five is the one of the first half of the finals, and only the second half tells the shares, medians of the ratios within a
round. The program without settings is in the finals too, and what was found once more: how far its two figures are apart
is what the machine can tell. A cost is the pace of runs that the library measures (PENSTOCK_MEASURE).

KEY=V,V,... is a choice of the grid: 'graph "blur".slots=1,2,4,8'. An empty V leaves it open. Exit code 1: what was found
reaches less than 0.97 of the best.
"""
import argparse
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile

MOST = 100


def settings_text(settings):
    lines = "".join(f"{key} = {value}\n" for key, value in settings.items() if value)
    return f"penstock settings 1\n{lines}end\n"


def settings_from(text):
    lines = (line.strip() for line in text.splitlines()[1:])
    pairs = (line.rpartition("=") for line in lines if "=" in line and not line.startswith("#"))
    return {key.strip(): value.strip() for key, _, value in pairs}


def grid_of(choices):
    keys, values = [], []
    for choice in choices:
        key, _, some = choice.rpartition("=")
        keys.append(key)
        values.append(some.split(","))
    grid = [dict(zip(keys, point)) for point in itertools.product(*values)]
    if len(grid) > MOST:
        sys.exit(f"the grid has {len(grid)} settings; the most is {MOST}")
    return grid


class Program:
    def __init__(self, command, folder):
        self.command, self.folder = command, folder

    def cost(self, settings):
        """In microseconds a run; none if the program fails with these settings."""
        path, measured = os.path.join(self.folder, "settings"), os.path.join(self.folder, "measurement")
        with open(path, "w", encoding="utf-8") as file:
            file.write(settings_text(settings))
        env = dict(os.environ, PENSTOCK_SETTINGS=path, PENSTOCK_MEASURE=measured)
        done = subprocess.run(self.command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if done.returncode != 0:
            return None
        with open(measured, encoding="utf-8") as file:
            return float(next(line for line in file if line.startswith("run_us")).partition("=")[2])


def measure(program, candidates, rounds, seed):
    """The costs of each candidate, by round."""
    costs = [[] for _ in candidates]
    order = list(range(len(candidates)))
    shuffle = random.Random(seed).shuffle
    for r in range(rounds):
        shuffle(order)
        for c in order:
            cost = program.cost(candidates[c])
            costs[c].append(float("inf") if cost is None else cost)
        print(f"  round {r + 1} of {rounds}", file=sys.stderr, flush=True)
    return costs


def share(costs, of):
    """What the costs reach of those of another, round by round."""
    return statistics.median(o / c for c, o in zip(costs, of))


def name(settings):
    return "; ".join(f"{key} = {value}" for key, value in settings.items() if value) or "(all open)"


def tune(options, command, folder):
    out = os.path.join(folder, "found")
    done = subprocess.run([options.penstock, "tune", "--json", "--budget", str(options.budget), "--out", out, "--exec",
                           *command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def main():
    if "--" not in sys.argv:
        sys.exit(__doc__)
    at = sys.argv.index("--")
    command = sys.argv[at + 1:]
    parser = argparse.ArgumentParser()
    parser.add_argument("penstock")
    parser.add_argument("--budget", type=float, default=120)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--finals", type=int, default=16)
    parser.add_argument("--grid", action="append", default=[])
    parser.add_argument("--json")
    options = parser.parse_args(sys.argv[1:at])
    grid = grid_of(options.grid)
    with tempfile.TemporaryDirectory() as folder:
        result = tune(options, command, folder)
        found = settings_from(result["settings"])
        print(f"found in {result['rounds']} rounds: {name(found)}; {result['stopped']}", flush=True)
        program = Program(command, folder)
        costs = [statistics.median(some) for some in measure(program, grid, options.rounds, seed=1)]
        best = [grid[g] for g in sorted(range(len(grid)), key=lambda g: costs[g])[:5]]
        finalists = [found, found, {}, *best]
        finals = measure(program, finalists, options.finals, seed=2)
    for finalist, costs in zip(finalists, finals):
        print(f"{statistics.median(costs):12.2f} us a run: {name(finalist)}")
    half = options.finals // 2
    chosen = min(range(3, len(finals)), key=lambda f: statistics.median(finals[f][:half]))
    first, again, without, best = (finals[f][half:] for f in (0, 1, 2, chosen))
    reached = share(first, best)
    print(f"{' '.join(command)}: what was found reaches {reached:.3f} of the best of {len(grid)} settings, and "
          f"{share(first, again):.3f} of itself; without settings: {share(without, best):.3f}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"command": command, "share": reached, "control": share(first, again),
                       "without": share(without, best), "best": name(finalists[chosen]), "found": found, "grid": len(grid), "tune": result,
                       "finals": [[name(f), c] for f, c in zip(finalists, finals)]}, file, indent=2)
    sys.exit(0 if reached >= 0.97 else 1)


if __name__ == "__main__":
    main()
