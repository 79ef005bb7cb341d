// The text exposition format of Prometheus, version 0.0.4:
//
//   https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "penstock/metrics.h"

namespace penstock {
namespace {

std::string LabelOf(std::string_view name, std::string_view value) {
  std::string label(name);
  label += "=\"";
  for (const char c : value) {
    if (c == '\\' || c == '"') label += '\\';
    if (c == '\n') label += "\\n";
    else label += c;
  }
  return label += '"';
}

class Exposition {
 public:
  enum class Type : uint8_t { kCounter, kGauge };

  // What the samples that follow belong to. `help` has no backslash and is one line.
  void Family(std::string_view name, Type type, std::string_view help) {
    name_ = "penstock_" + std::string(name);
    text_ += "# HELP " + name_ + " ";
    text_ += help;
    text_ += "\n# TYPE " + name_ + (type == Type::kCounter ? " counter\n" : " gauge\n");
  }
  void Sample(const std::string& labels, int64_t value) { Line(labels, std::to_string(value)); }
  // As many digits as it takes to read the same number again, whatever the locale.
  void Sample(const std::string& labels, double value) {
    char digits[64];
    const std::to_chars_result end = std::to_chars(digits, digits + sizeof(digits), value);
    Line(labels, {digits, static_cast<size_t>(end.ptr - digits)});
  }
  void Counter(std::string_view name, std::string_view help, int64_t value) {
    Family(name, Type::kCounter, help);
    Sample("", value);
  }
  void Gauge(std::string_view name, std::string_view help, int64_t value) {
    Family(name, Type::kGauge, help);
    Sample("", value);
  }
  // A sample of each of the `things`, which the label called `label` tells apart.
  template <class Things, class Value>
  void Each(std::string_view name, Type type, std::string_view help, std::string_view label, const Things& things,
            Value value) {
    if (things.empty()) return;
    Family(name, type, help);
    for (const auto& thing : things) Sample(LabelOf(label, thing.name), value(thing));
  }

  std::string Finish() && { return std::move(text_); }

 private:
  void Line(const std::string& labels, std::string_view value) {
    text_ += name_;
    if (!labels.empty()) text_ += "{" + labels + "}";
    text_ += ' ';
    text_ += value;
    text_ += '\n';
  }

  std::string name_, text_;
};

using Type = Exposition::Type;

void AddGraphs(const std::vector<Metrics::Graph>& graphs, Exposition& to) {
  using Graph = Metrics::Graph;
  const auto each = [&](std::string_view name, Type type, std::string_view help, auto member) {
    to.Each(name, type, help, "graph", graphs, [member](const Graph& graph) { return graph.*member; });
  };
  each("executables", Type::kGauge, "Executables that exist, one for each device.", &Graph::executables);
  each("compiled_total", Type::kCounter, "Executables made, one for each device.", &Graph::compiled);
  each("launches_total", Type::kCounter, "Runs that have begun.", &Graph::launches);
  if (!graphs.empty()) {
    to.Family("runs_total", Type::kCounter, "Runs that have ended for their user, by result.");
    for (const Graph& graph : graphs) {
      const std::string label = LabelOf("graph", graph.name);
      to.Sample(label + ",result=\"ok\"", graph.succeeded);
      to.Sample(label + ",result=\"failed\"", graph.failed);
      to.Sample(label + ",result=\"cancelled\"", graph.cancelled);
    }
  }
  each("runs_in_flight", Type::kGauge, "Runs that have begun and whose work has not drained.", &Graph::in_flight);
  each("runs_abandoned", Type::kGauge, "Runs that have ended for their user and whose work has not drained.",
       &Graph::abandoned);
  each("launches_waiting", Type::kGauge, "Launches that wait for a free slot.", &Graph::waiting);
  each("slot_waits_total", Type::kCounter, "Launches that have found no free slot.", &Graph::slot_waits);
  each("slot_wait_seconds_total", Type::kCounter, "Time for which launches have waited for a slot.",
       &Graph::slot_wait_seconds);
}

void AddMemory(const Metrics& metrics, Exposition& to) {
  using Device = Metrics::Device;
  to.Each("device_memory_bytes", Type::kGauge, "Memory of the device.", "device", metrics.devices,
          [](const Device& device) { return device.memory_bytes; });
  to.Each("device_memory_used_bytes", Type::kGauge, "Memory of the device that the runtime has allocated.", "device",
          metrics.devices, [](const Device& device) { return device.used_bytes; });
  to.Gauge("pinned_used_bytes", "Pinned memory in use.", metrics.pinned.in_use);
  to.Gauge("pinned_peak_bytes", "The most pinned memory that was ever in use.", metrics.pinned.peak);
  to.Gauge("pinned_reserved_bytes", "Pinned memory, in use or free.", metrics.pinned.reserved);
  to.Gauge("pinned_budget_bytes", "The limit for reserved pinned memory.", metrics.pinned.budget);
  to.Gauge("pinned_slabs", "Pieces in which memory was pinned.", metrics.pinned.slabs);
  to.Counter("pinned_waits_total", "Allocations that have waited for pinned memory.", metrics.pinned.waits);
  to.Family("staged_bytes_total", Type::kCounter,
            "Bytes copied from and to memory that is not pinned, through the ring.");
  to.Sample(LabelOf("direction", "upload"), metrics.staged_upload_bytes);
  to.Sample(LabelOf("direction", "download"), metrics.staged_download_bytes);
}

}  // namespace

Metrics::Graph Metrics::AllGraphs() const {
  Graph all;
  for (const Graph& graph : graphs) {
    all.executables += graph.executables;
    all.compiled += graph.compiled;
    all.launches += graph.launches;
    all.succeeded += graph.succeeded;
    all.failed += graph.failed;
    all.cancelled += graph.cancelled;
    all.in_flight += graph.in_flight;
    all.abandoned += graph.abandoned;
    all.waiting += graph.waiting;
    all.slot_waits += graph.slot_waits;
    all.slot_wait_seconds += graph.slot_wait_seconds;
  }
  return all;
}

std::string Metrics::Prometheus() const {
  Exposition to;
  AddGraphs(graphs, to);
  AddMemory(*this, to);
  to.Counter("hostcalls_total", "Calls of host nodes by devices.", hostcalls);
  to.Counter("graph_instantiations_total", "CUDA graphs instantiated.", graph_instantiations);
  to.Counter("captures_total", "Captures of Launch nodes.", captures);
  to.Counter("lost_spans_total", "Spans that the runtime's profile no longer keeps.", lost_spans);
  to.Gauge("device_lost", "1 after a fatal device error, which ends the runtime.", lost ? 1 : 0);
  to.Each("threads", Type::kGauge, "Threads of the library in this process.", "thread", threads,
          [](const Threads& kind) { return kind.count; });
  to.Each("thread_cpu_seconds_total", Type::kCounter, "Processor time of threads of the library in this process.",
          "thread", threads, [](const Threads& kind) { return kind.cpu_seconds; });
  return std::move(to).Finish();
}

}  // namespace penstock
