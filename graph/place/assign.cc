#include "graph/place/assign.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "penstock/status_macros.h"

namespace penstock::graph {
namespace {

std::string NameOf(const PlaceGraph& graph, int32_t task) {
  return graph.name_of ? graph.name_of(task) : "task " + std::to_string(task);
}

absl::Status CheckDevices(const PlaceGraph& graph) {
  if (graph.devices.empty()) return absl::InvalidArgumentError("there is no device");
  if (graph.kinds < 0 || graph.costs.size() != graph.tasks.size() * graph.KindCount() ||
      graph.links.size() != graph.devices.size() * graph.devices.size()) {
    return absl::InvalidArgumentError("the numbers of costs and links are not those of the tasks and devices");
  }
  for (const PlaceDevice& device : graph.devices) {
    if (device.places < 1) return absl::InvalidArgumentError("a device has no place for a task");
    if (graph.kinds > 0 && (device.kind < 0 || device.kind >= graph.kinds)) {
      return absl::InvalidArgumentError("a device is of a kind that does not exist");
    }
  }
  for (const PlaceLink& link : graph.links) {
    if (!(link.us >= 0 && link.gbs >= 0 && std::isfinite(link.Cost(std::numeric_limits<int64_t>::max())))) {
      return absl::InvalidArgumentError(
          "a link has a time or bandwidth that is negative, or with which copies never end");
    }
  }
  return absl::OkStatus();
}

absl::Status Check(const PlaceGraph& graph, int32_t device = 0) {
  PENSTOCK_RETURN_IF_ERROR(CheckDevices(graph));
  const auto tasks = static_cast<int32_t>(graph.tasks.size()), devices = static_cast<int32_t>(graph.devices.size());
  if (device < 0 || device >= devices) return absl::InvalidArgumentError("the device to prefer does not exist");
  for (int32_t t = 0; t < tasks; ++t) {
    const PlaceTask& task = graph.tasks[static_cast<size_t>(t)];
    if (task.device >= devices)
      return absl::InvalidArgumentError(NameOf(graph, t) + " states a device that does not exist");
    if (task.bytes < 0) return absl::InvalidArgumentError(NameOf(graph, t) + " has a size that is negative");
    for (const PlaceInput& input : task.inputs) {
      if (input.from < 0 || input.from >= t) {
        return absl::InvalidArgumentError(NameOf(graph, t) + " takes something from a task that is not before it");
      }
      if (input.bytes < 0) return absl::InvalidArgumentError(NameOf(graph, t) + " has a size that is negative");
    }
    const size_t kinds = graph.KindCount();
    for (size_t k = 0; k < kinds; ++k) {
      if (graph.costs[static_cast<size_t>(t) * kinds + k] >= 0) continue;
      return absl::InvalidArgumentError(NameOf(graph, t) + " has a cost that is negative");
    }
  }
  return absl::OkStatus();
}

// The times at which a device's place is free, as gaps that ascend; the last has no end.
class FreeTime {
 public:
  // The first moment, not before `from`, at which it is free for `us`.
  double Find(double from, double us) const {
    auto gap = std::upper_bound(gaps_.begin(), gaps_.end(), from, [](double t, const Gap& g) { return t < g.end; });
    while (std::max(gap->begin, from) + us > gap->end) ++gap;
    return std::max(gap->begin, from);
  }
  void Occupy(double begin, double end) {
    if (begin == end) return;
    auto gap = std::upper_bound(gaps_.begin(), gaps_.end(), begin, [](double t, const Gap& g) { return t < g.end; });
    const Gap before{gap->begin, begin}, after{end, gap->end};
    if (before.end > before.begin && after.end > after.begin) {
      *gap = after;
      gaps_.insert(gap, before);
    } else if (before.end > before.begin) {
      *gap = before;
    } else if (after.end > after.begin) {
      *gap = after;
    } else {
      gaps_.erase(gap);
    }
  }

 private:
  struct Gap {
    double begin, end;
  };
  std::vector<Gap> gaps_{{0, INFINITY}};
};

// The tasks assigned so far, and what is left of the devices.
class Schedule {
 public:
  explicit Schedule(const PlaceGraph& graph) : graph_(graph) {
    const size_t tasks = graph.tasks.size();
    assignment_.device.assign(tasks, -1);
    assignment_.begin_us.assign(tasks, 0);
    assignment_.end_us.assign(tasks, 0);
    for (const PlaceDevice& device : graph.devices) {
      room_.push_back(device.memory_bytes);
      free_.emplace_back(std::min(static_cast<size_t>(device.places), std::max<size_t>(tasks, 1)));
    }
  }

  int32_t device(int32_t task) const { return assignment_.device[static_cast<size_t>(task)]; }
  bool MayRun(int32_t task, int32_t device) const {
    const PlaceTask& of = graph_.tasks[static_cast<size_t>(task)];
    return (of.device < 0 || of.device == device) && std::isfinite(graph_.cost(task, device)) &&
           of.bytes <= room_[static_cast<size_t>(device)];
  }

  struct Slot {
    double begin = 0, end = INFINITY;
    size_t place = 0;
  };
  // When the inputs of the task, which are assigned, have arrived at the device.
  double ReadyAt(int32_t task, int32_t device) const {
    double ready = 0;
    for (const PlaceInput& input : graph_.tasks[static_cast<size_t>(task)].inputs) {
      const int32_t from = assignment_.device[static_cast<size_t>(input.from)];
      const double transfer = from == device ? 0 : graph_.link(from, device).Cost(input.bytes);
      ready = std::max(ready, assignment_.end_us[static_cast<size_t>(input.from)] + transfer);
    }
    return ready;
  }
  // When the task would run on the device.
  Slot Find(int32_t task, int32_t device) const { return Find(task, device, ReadyAt(task, device)); }
  Slot Find(int32_t task, int32_t device, double ready) const {
    const double us = graph_.cost(task, device);
    const std::vector<FreeTime>& places = free_[static_cast<size_t>(device)];
    Slot best;
    for (size_t p = 0; p < places.size(); ++p) {
      const double begin = places[p].Find(ready, us);
      if (begin + us < best.end) best = {begin, begin + us, p};
      if (begin == ready) break;  // no place is free earlier
    }
    return best;
  }

  void Put(int32_t task, int32_t device, const Slot& slot) {
    const auto t = static_cast<size_t>(task), d = static_cast<size_t>(device);
    assignment_.device[t] = device;
    assignment_.begin_us[t] = slot.begin;
    assignment_.end_us[t] = slot.end;
    assignment_.makespan_us = std::max(assignment_.makespan_us, slot.end);
    free_[d][slot.place].Occupy(slot.begin, slot.end);
    room_[d] -= graph_.tasks[t].bytes;
  }

  // Puts the task on the first of `devices` on which it may run.
  absl::Status PutOnFirst(int32_t task, const std::vector<int32_t>& devices) {
    for (const int32_t device : devices) {
      if (!MayRun(task, device)) continue;
      Put(task, device, Find(task, device));
      return absl::OkStatus();
    }
    return NoRoom(task);
  }

  absl::Status NoRoom(int32_t task) const {
    const PlaceTask& of = graph_.tasks[static_cast<size_t>(task)];
    int64_t most = 0;
    bool runs = false;
    for (int32_t d = 0; d < static_cast<int32_t>(graph_.devices.size()); ++d) {
      if ((of.device >= 0 && of.device != d) || !std::isfinite(graph_.cost(task, d))) continue;
      runs = true;
      most = std::max(most, room_[static_cast<size_t>(d)]);
    }
    if (!runs) return absl::InvalidArgumentError(NameOf(graph_, task) + " cannot run on any device that it may have");
    return absl::ResourceExhaustedError(NameOf(graph_, task) + " needs " + std::to_string(of.bytes) +
                                        " bytes of memory; the devices that it may have are left with at most " +
                                        std::to_string(most));
  }

  Assignment Take() && { return std::move(assignment_); }

 private:
  const PlaceGraph& graph_;
  Assignment assignment_;
  std::vector<int64_t> room_;  // bytes of each device
  std::vector<std::vector<FreeTime>> free_;  // of each place of each device
};

std::vector<int32_t> AllDevices(const PlaceGraph& graph) {
  std::vector<int32_t> devices(graph.devices.size());
  std::iota(devices.begin(), devices.end(), 0);
  return devices;
}

// All devices, `first` first.
std::vector<int32_t> DevicesFrom(const PlaceGraph& graph, int32_t first) {
  std::vector<int32_t> devices = AllDevices(graph);
  std::rotate(devices.begin(), devices.begin() + first, devices.begin() + first + 1);
  return devices;
}

// On average over the devices that can run it.
double MeanCost(const PlaceGraph& graph, int32_t task) {
  double sum = 0;
  int count = 0;
  for (int32_t d = 0; d < static_cast<int32_t>(graph.devices.size()); ++d) {
    const double cost = graph.cost(task, d);
    if (!std::isfinite(cost)) continue;
    sum += cost;
    ++count;
  }
  return count == 0 ? 0 : sum / count;
}

// On average over all pairs of different devices: a time, and a time for each byte.
PlaceLink MeanLink(const PlaceGraph& graph) {
  const auto devices = static_cast<int32_t>(graph.devices.size());
  double us = 0, us_a_kilobyte = 0;
  for (int32_t a = 0; a < devices; ++a) {
    for (int32_t b = 0; b < devices; ++b) {
      if (a == b) continue;
      us += graph.link(a, b).us;
      if (graph.link(a, b).gbs > 0) us_a_kilobyte += 1 / graph.link(a, b).gbs;
    }
  }
  const double pairs = std::max(1.0, static_cast<double>(devices) * (devices - 1));
  return {us / pairs, us_a_kilobyte > 0 ? pairs / us_a_kilobyte : 0};
}

// Topcuoglu's upward rank: the mean cost of each task, plus the longest way from its end to the end of the last task.
std::vector<double> UpwardRanks(const PlaceGraph& graph) {
  const PlaceLink mean = MeanLink(graph);
  std::vector<double> ranks(graph.tasks.size());
  for (size_t t = graph.tasks.size(); t-- > 0;) {
    ranks[t] += MeanCost(graph, static_cast<int32_t>(t));
    for (const PlaceInput& input : graph.tasks[t].inputs) {
      double& before = ranks[static_cast<size_t>(input.from)];
      before = std::max(before, mean.Cost(input.bytes) + ranks[t]);
    }
  }
  return ranks;
}

}  // namespace

absl::StatusOr<Assignment> AssignToOne(const PlaceGraph& graph, int32_t device) {
  PENSTOCK_RETURN_IF_ERROR(Check(graph, device));
  Schedule schedule(graph);
  const std::vector<int32_t> devices = DevicesFrom(graph, device);
  for (int32_t t = 0; t < static_cast<int32_t>(graph.tasks.size()); ++t) {
    PENSTOCK_RETURN_IF_ERROR(schedule.PutOnFirst(t, devices));
  }
  return std::move(schedule).Take();
}

absl::StatusOr<Assignment> AssignByAffinity(const PlaceGraph& graph, int32_t device) {
  PENSTOCK_RETURN_IF_ERROR(Check(graph, device));
  Schedule schedule(graph);
  std::vector<int64_t> bytes(graph.devices.size());
  for (int32_t t = 0; t < static_cast<int32_t>(graph.tasks.size()); ++t) {
    std::fill(bytes.begin(), bytes.end(), 0);
    for (const PlaceInput& input : graph.tasks[static_cast<size_t>(t)].inputs) {
      int64_t& there = bytes[static_cast<size_t>(schedule.device(input.from))];
      there += std::min(input.bytes, INT64_MAX - there);
    }
    const auto order = [&](int32_t d) { return std::tuple(-bytes[static_cast<size_t>(d)], d != device, d); };
    int32_t best = -1;
    for (int32_t d = 0; d < static_cast<int32_t>(bytes.size()); ++d) {
      if (schedule.MayRun(t, d) && (best < 0 || order(d) < order(best))) best = d;
    }
    if (best < 0) return schedule.NoRoom(t);
    schedule.Put(t, best, schedule.Find(t, best));
  }
  return std::move(schedule).Take();
}

absl::StatusOr<Assignment> AssignByHeft(const PlaceGraph& graph) {
  PENSTOCK_RETURN_IF_ERROR(Check(graph));
  const std::vector<double> ranks = UpwardRanks(graph);
  std::vector<int32_t> order(graph.tasks.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    const double of_a = ranks[static_cast<size_t>(a)], of_b = ranks[static_cast<size_t>(b)];
    return of_a != of_b ? of_a > of_b : a < b;
  });
  Schedule schedule(graph);
  for (const int32_t t : order) {
    int32_t best = -1;
    Schedule::Slot slot;
    for (int32_t d = 0; d < static_cast<int32_t>(graph.devices.size()); ++d) {
      if (!schedule.MayRun(t, d)) continue;
      const double ready = schedule.ReadyAt(t, d);
      if (best >= 0 && ready + graph.cost(t, d) >= slot.end) continue;  // whatever is free there
      const Schedule::Slot found = schedule.Find(t, d, ready);
      if (best >= 0 && found.end >= slot.end) continue;
      best = d;
      slot = found;
    }
    if (best < 0) return schedule.NoRoom(t);
    schedule.Put(t, best, slot);
  }
  return std::move(schedule).Take();
}

}  // namespace penstock::graph
