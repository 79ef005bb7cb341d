// Profiles of jobs made by hand, run by run.
//
//   MadeJob made;
//   const int g = made.Graph("g", /*slots=*/2, {{.name = "work", .kind = "kernel", .device = 0}});
//   made.Run(g, 0, /*launch=*/0, /*submitted=*/5, /*end=*/100).Node(g, 0, 10, 90);
//
// Nodes belong to the run that was added last. Times are in microseconds.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "penstock/profile.h"

namespace penstock::analysis {

// A node, of which most may be left out.
struct JobNode {
  std::string name{}, kind{}, where{};
  int device = -1;
  std::vector<int> after{};
  int64_t read_bytes = 0, written_bytes = 0;
  double flops = 0;
};

class MadeJob {
 public:
  explicit MadeJob(bool is_cuda = false) {
    profile_.devices.push_back({.name = is_cuda ? "cuda:0" : "host:0", .description = "made", .is_cuda = is_cuda});
  }

  int Graph(std::string name, int slots, const std::vector<JobNode>& nodes) {
    Profile::Graph graph;
    graph.executable = static_cast<int64_t>(profile_.graphs.size()) + 10;  // no places
    graph.name = std::move(name);
    graph.where = "made.cc:1";
    graph.slots = slots;
    for (const JobNode& node : nodes) {
      graph.nodes.push_back({node.name, node.kind, node.where, node.device, -1, node.after, node.read_bytes,
                             node.written_bytes, node.flops});
    }
    graph.report.mode = Mode::kGraph;
    profile_.graphs.push_back(std::move(graph));
    return static_cast<int>(profile_.graphs.size()) - 1;
  }

  // A run, with its launch.
  MadeJob& Run(int graph, int slot, double launch, double submitted, double end) {
    run_ = profile_.graphs[At(graph)].launches++;
    slot_ = slot;
    Add(graph, SpanKind::kSubmit, "launch", launch, submitted);
    return Add(graph, SpanKind::kRun, "run", launch, end);
  }
  MadeJob& Node(int graph, int node, double begin, double end) {
    const Profile::Node& of = profile_.graphs[At(graph)].nodes[At(node)];
    const SpanKind kind = of.device < 0           ? SpanKind::kHost
                          : of.kind == "upload"   ? SpanKind::kUpload
                          : of.kind == "download" ? SpanKind::kDownload
                                                  : SpanKind::kKernel;
    Add(graph, kind, of.name, begin, end);
    profile_.spans.back().node = node;
    profile_.spans.back().device = of.device;
    return *this;
  }
  // The run's spans are being recorded.
  MadeJob& Recording(int graph, double begin, double end) {
    return Add(graph, SpanKind::kHost, "record a run", begin, end);
  }
  // On device 0.
  MadeJob& WaitForState(int graph, double begin, double end) {
    Add(graph, SpanKind::kWait, "wait for state x", begin, end);
    profile_.spans.back().device = 0;
    return *this;
  }
  // A span of the application.
  MadeJob& Own(const std::string& name, double begin, double end) {
    profile_.spans.push_back({.name = name, .track = "own", .kind = SpanKind::kHost, .begin_us = begin, .end_us = end});
    return *this;
  }

  // A pipeline of these stages: name and capacity, of host stages the workers.
  MadeJob& Pipeline(const std::vector<std::pair<std::string, int>>& stages) {
    Profile::Pipeline& pipeline = profile_.pipelines.emplace_back();
    pipeline.end_us = 1e9;
    for (const auto& [name, capacity] : stages) {
      StageStats& stage = pipeline.stats.stages.emplace_back();
      stage.name = name;
      stage.capacity = capacity;
      stage.done = 1;
    }
    return *this;
  }
  // A call of a host stage.
  MadeJob& Stage(const std::string& name, int thread, double begin, double end) {
    Own(name, begin, end);
    profile_.spans.back().track = "stage " + name + " thread " + std::to_string(thread);
    return *this;
  }

  Profile& profile() { return profile_; }

 private:
  static size_t At(int place) { return static_cast<size_t>(place); }
  MadeJob& Add(int graph, SpanKind kind, const std::string& name, double begin, double end) {
    profile_.spans.push_back({.name = name,
                              .track = "made",
                              .kind = kind,
                              .begin_us = begin,
                              .end_us = end,
                              .run = run_,
                              .executable = profile_.graphs[At(graph)].executable,
                              .slot = slot_});
    return *this;
  }

  Profile profile_;
  int64_t run_ = 0;
  int slot_ = 0;
};

}  // namespace penstock::analysis
