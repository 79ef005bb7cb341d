"use strict";
// Memory: what the slots of each graph hold.

function memoryPanel(profile) {
  if (profile.graphs.length === 0) return [element("p", {className: "quiet"}, "No graph is recorded.")];
  const columns = [
    {title: "Graph", value: row => row.name, show: row => element("bdi", {className: "name"}, row.name)},
    {title: "Slots", number: true, value: row => row.slots, show: row => Words.count(row.slots)},
    {title: "Most in use", number: true, value: row => row.most, show: row => Words.count(row.most)},
    {title: "Device, a slot", number: true, value: row => row.device, show: row => Words.bytes(row.device)},
    {title: "Pinned, a slot", number: true, value: row => row.pinned, show: row => Words.bytes(row.pinned)},
    {
      title: "Device, all",
      number: true,
      value: row => row.device * row.slots,
      show: row => Words.bytes(row.device * row.slots)
    },
    {
      title: "Pinned, all",
      number: true,
      value: row => row.pinned * row.slots,
      show: row => Words.bytes(row.pinned * row.slots)
    },
  ];
  const rows = profile.graphs.map((graph, at) => ({
                                    name: profile.graphName(at),
                                    slots: graph.slots,
                                    most: profile.inFlight(at).most,
                                    device: graph.slot_device_bytes,
                                    pinned: graph.slot_pinned_bytes
                                  }));
  const sum = member => rows.reduce((all, row) => all + row[member] * row.slots, 0);
  return [
    element(
        "p", {},
        `The slots of all graphs hold ${Words.bytes(sum("device"))} of device memory and ${
            Words.bytes(sum("pinned"))} ` +
            "of pinned memory. The timeline shows, below the runs, how much of it was in use."),
    sortedTable(columns, rows, 5, "Memory")
  ];
}
