"""Profiles as Profile::Json writes them, for tests and benchmarks of what reads them."""
import json

COLUMNS = ["executable", "run", "node", "slot", "device", "kind", "begin_us", "end_us", "name", "track"]
COUNTS = ["graphs", "graph_nodes", "regions", "region_nodes", "graph_launches", "nodes_set", "nodes_switched",
          "captures", "refreshes", "stream_us", "graph_us", "instantiating_us", "capturing_us"]


class ProfileBuilder:
    def __init__(self, devices=("host:0",)):
        self.devices = [{"name": name, "description": "a device", "is_cuda": False, "memory_bytes": 1 << 34}
                        for name in devices]
        self.graphs, self.pipelines, self.spans, self.texts, self.end = [], [], [], {}, 0

    def graph(self, name, lanes, nodes, slots=2, report=None):
        """lanes: kinds on device 0; nodes: (name, kind, lane or -1, after, bytes). Returns the executable."""
        executable = len(self.graphs)
        self.graphs.append({
            "executable": executable, "name": name, "slots": slots, "launches": 1,
            "slot_device_bytes": 4096, "slot_pinned_bytes": 1024,
            "lanes": [{"device": 0, "kind": kind} for kind in lanes],
            "nodes": [self.node(f"app.cc:{10 + at}", *node) for at, node in enumerate(nodes)],
            "report": {"mode": "graph", "notes": [], "loops": [], **dict.fromkeys(COUNTS, 0), **(report or {})}})
        return executable

    def pipeline(self, stages, bottleneck=-1, **counts):
        """stages: (name, capacity, busy). Until now."""
        names = ["accepted", "delivered", "dropped", "refused", "failed", "retries", "inside", "ready", "window"]
        self.pipelines.append({
            "begin_us": 0, "end_us": self.end, "engines": [], "threads": [], "bottleneck": bottleneck,
            "stages": [{"name": name, "capacity": capacity, "waiting": 0, "working": 0, "done": 7, "failed": 0,
                        "busy": busy} for name, capacity, busy in stages],
            **dict.fromkeys(names, 0), **counts})

    @staticmethod
    def node(where, name, kind, lane, after, size):
        on_device = lane >= 0
        return {"name": name, "kind": kind, "where": where if on_device else "", "device": 0 if on_device else -1,
                "lane": lane, "after": list(after), "read_bytes": size, "written_bytes": size}

    def text(self, text):
        return self.texts.setdefault(text, len(self.texts))

    def span(self, kind, begin, end, name, track, executable=-1, run=-1, node=-1, slot=-1, device=-1):
        self.spans.append([executable, run, node, slot, device, kind, begin, end, self.text(name), self.text(track)])
        self.end = max(self.end, end)

    def write(self, path, lost_spans=0):
        path.write_text(json.dumps({
            "format": "penstock profile", "version": 1, "length_us": self.end + 100, "lost_spans": lost_spans,
            "lost_graphs": 0, "devices": self.devices, "graphs": self.graphs, "pipelines": self.pipelines,
            "columns": COLUMNS,
            "spans": self.spans, "texts": list(self.texts)}))


MIB = 1 << 20
# Of `pipeline`: nodes, and when each begins and ends in a run, on the device (0) or the host (-1), on which track.
NODES = [("stage in", "stage in", -1, (), MIB), ("upload x", "upload", 0, (0,), MIB),
         ("blur", "parallel for", 1, (1,), MIB), ("sharpen", "parallel for", 1, (2,), MIB),
         ("download y", "download", 2, (3,), MIB)]
STEPS = [("host", 0, 40, -1, "staging slot {}"), ("upload", 40, 100, 0, "host:0 slot {} upload lane 0"),
         ("kernel", 100, 180, 0, "host:0 slot {} compute lane 1"),
         ("kernel", 180, 220, 0, "host:0 slot {} compute lane 1"),
         ("download", 220, 280, 0, "host:0 slot {} download lane 2")]


def pipeline(runs, slots=4):
    """A profile of a graph of five nodes, in `runs` runs that overlap; 7 spans each."""
    made = ProfileBuilder()
    executable = made.graph("photos", ["upload", "compute", "download"], NODES, slots)
    for run in range(runs):
        slot, begin = run % slots, run * 80.0
        late = 30 if run % 100 == 50 else 0  # of every hundredth run blur takes longer
        made.span("submit", begin, begin + 5, "launch photos", "launches", executable, run, slot=slot)
        for node, (kind, since, until, device, track) in enumerate(STEPS):
            made.span(kind, begin + since + (late if node > 2 else 0), begin + until + (late if node >= 2 else 0),
                      NODES[node][0], track.format(slot), executable, run, node, slot, device)
        made.span("run", begin, begin + 290 + late, "run of photos", f"runs slot {slot}", executable, run, slot=slot)
    return made
