#!/usr/bin/env python3
"""How long `penstock simulate --devices` takes for a large graph that has not run.

  bench/simulate_devices.py PENSTOCK [NODES [DEVICES]]    PENSTOCK: the command; else 100000 nodes and 1..1024 devices

Prints a Markdown table of seconds, of the largest resident size, and of how many times as fast the last number of
devices is: for chains, for a stencil in bands, and for nodes that follow three of the 2000 before them.
"""
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests/cli"))
from profile_builder import ProfileBuilder

WIDTH = 1024  # chains, and columns of the stencil
FAMILIES = {
    "chains": lambda n: [n - WIDTH] if n >= WIDTH else [],
    "stencil": lambda n: [n - WIDTH + by for by in (-1, 0, 1) if n >= WIDTH and 0 <= n % WIDTH + by < WIDTH],
    "random": lambda n: sorted({n - 1 - random.randrange(min(n, 2000)) for _ in range(3)}) if n else [],
}


def write_machine(path):
    device = {"name": "host:0", "description": "a device", "is_cuda": False, "upload": 50, "download": 50, "memory": 100,
              "copy_us": 5, "graph_node_us": 1, "launch_us": 8}
    path.write_text(json.dumps({"format": "penstock machine", "version": 1, "host": "made", "cores": 1,
                                "devices": [device, device], "peers": [[0, 383], [383, 0]]}))


def measure(penstock, family, nodes, devices):
    random.seed(1)
    made = ProfileBuilder()
    made.graph(family, ["compute"], [(f"k{n}", "parallel for", 0, FAMILIES[family](n), random.randrange(1, 4 << 20))
                                     for n in range(nodes)])
    with tempfile.TemporaryDirectory() as folder:
        profile, machine, out = (Path(folder, name) for name in ("a.profile", "machine.json", "out"))
        made.write(profile)
        write_machine(machine)
        begin = time.monotonic()
        pid = os.posix_spawn(penstock, [penstock, "simulate", profile, "--devices", devices, "--machine", machine, "--json"],
                             os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, out, os.O_WRONLY | os.O_CREAT, 0o600)])
        _, status, usage = os.wait4(pid, 0)
        seconds = time.monotonic() - begin
        if status != 0:
            sys.exit(f"{penstock} failed for {family}")
        over = json.loads(out.read_text())["over_devices"]
    last = over["counts"][-1]
    best = next(way for way in last["ways"] if way["way"] == last["best"])
    print(f"| {family} | {seconds:.1f} | {usage.ru_maxrss >> 10} | {best['times_as_fast']:.1f} by {last['best']} |",
          flush=True)


def main(penstock, nodes=100_000, devices="1..1024"):
    print(f"{nodes} nodes over {devices} devices\n\n| graph | s | MiB | as fast |\n|---|---:|---:|---:|")
    for family in FAMILIES:
        measure(penstock, family, int(nodes), devices)


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
