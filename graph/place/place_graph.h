// PlaceGraph: what the assignment of tasks to devices (assign.h) needs to know: what each task costs on each device,
// what it takes from others, and what the devices and the links between them can do.
//
// Times are in microseconds, bandwidths in GB/s (10^9 bytes a second).
//
// Threads: plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace penstock::graph {

// The cost of a task on a device that cannot run it.
inline constexpr double kCannotRun = std::numeric_limits<double>::infinity();

// Results of the task `from` that another task takes.
struct PlaceInput {
  int32_t from = 0;
  int64_t bytes = 0;
};

struct PlaceTask {
  int32_t device = -1;  // the one that is stated; -1: any
  int64_t bytes = 0;  // of memory that it needs on its device, kept until all tasks have ended
  std::vector<PlaceInput> inputs{};  // of tasks before it, each named once
};

struct PlaceDevice {
  int64_t memory_bytes = std::numeric_limits<int64_t>::max();
  int32_t places = 1;  // how many tasks run at a time, each as fast as alone
  int32_t kind = 0;  // below PlaceGraph::kinds: devices of a kind have the same costs; does not count if that is 0
};

// What it takes to have a task's results on another device: `us`, and in addition the bytes by `gbs` unless that is 0.
struct PlaceLink {
  double us = 0, gbs = 0;
  double Cost(int64_t bytes) const { return gbs > 0 ? us + static_cast<double>(bytes) / (gbs * 1e3) : us; }
};

struct PlaceGraph {
  std::vector<PlaceTask> tasks;  // each after those that it takes something from
  std::vector<PlaceDevice> devices;
  // How many kinds of devices there are. 0: each device is a kind of its own, with its own number.
  int32_t kinds = 0;
  std::vector<double> costs;  // of task t on devices of kind k, at t * kinds + k; kCannotRun if it cannot run there
  // How errors call a task; empty: "task 12".
  std::function<std::string(int32_t task)> name_of{};
  std::vector<PlaceLink> links;  // from device a to b, at a * devices + b; those from a device to itself do not count

  double cost(int32_t task, int32_t device) const {
    const auto d = static_cast<size_t>(device);
    const size_t kind = kinds == 0 ? d : static_cast<size_t>(devices[d].kind);
    return costs[static_cast<size_t>(task) * KindCount() + kind];
  }
  size_t KindCount() const { return kinds == 0 ? devices.size() : static_cast<size_t>(kinds); }
  const PlaceLink& link(int32_t from, int32_t to) const {
    return links[static_cast<size_t>(from) * devices.size() + static_cast<size_t>(to)];
  }
};

}  // namespace penstock::graph
