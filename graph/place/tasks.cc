#include "graph/place/tasks.h"

#include <algorithm>
#include <utility>

#include "graph/common/assumed_figures.h"
#include "graph/common/message.h"
#include "graph/passes/passes.h"
#include "graph/place/figures.h"

namespace penstock::graph {
namespace {

bool Writes(AccessMode mode) {
  return mode != AccessMode::kScratch && (static_cast<int>(mode) & static_cast<int>(AccessMode::kWrite)) != 0;
}
// Whether earlier contents have to be where the node runs.
bool Takes(AccessMode mode) { return Reads(mode) || mode == AccessMode::kWriteSome; }

int64_t BytesOfBox(const Records& records, const BoxRef& ref) {
  if (ref.box < 0 || ref.base < 0) return 0;
  return ref.box == 0 ? records.buffer_bytes[ref.base] : BytesOf(records.boxes.tree(ref.base)->box(ref.box));
}

// Tells, node after node, who wrote last what a node reads.
class LastWriters {
 public:
  explicit LastWriters(const Records& records) : records_(records), whole_(records.buffers.size(), -1) {
    if (records.boxes.any_tree()) boxed_.resize(records.buffers.size());
  }

  // Calls `f(writer, bytes)` for each.
  template <class F>
  void ForEach(const BoxRef& ref, F&& f) {
    if (ref.box < 0) return;
    const BoxTree* const tree = records_.boxes.tree(ref.base);
    if (tree == nullptr) {
      if (whole_[ref.base] >= 0) f(whole_[ref.base], records_.buffer_bytes[ref.base]);
      return;
    }
    const Boxed& boxed = BoxedOf(ref.base, *tree);
    FindLive(boxed, *tree, ref.box);
    std::sort(found_.begin(), found_.end(), [&](int32_t a, int32_t b) { return boxed.Writer(a) > boxed.Writer(b); });
    left_.assign(1, tree->box(ref.box));
    for (const int32_t box : found_) {
      if (left_.empty()) return;
      const int64_t bytes =
          left_.size() > kMostLeft ? BytesOf(Common(tree->box(box), tree->box(ref.box))) : Take(tree->box(box));
      if (bytes > 0) f(boxed.Writer(box), bytes);
    }
  }

  void Write(const BoxRef& ref, int32_t task) {
    if (ref.box < 0) return;
    const BoxTree* const tree = records_.boxes.tree(ref.base);
    if (tree == nullptr) {
      whole_[ref.base] = task;
      return;
    }
    Boxed& boxed = BoxedOf(ref.base, *tree);
    for (const int32_t box : FindLive(boxed, *tree, ref.box)) {
      if (Covers(tree->box(ref.box), tree->box(box))) SetWriter(boxed, *tree, box, -1);
    }
    SetWriter(boxed, *tree, ref.box, task);
  }

 private:
  // If what is left of a read box is in more pieces, each further box counts as if no later one covered part of it.
  static constexpr size_t kMostLeft = 64;

  struct Boxed {
    BoxTree::Live live{};  // the boxes with a writer
    std::vector<int32_t> writer{};  // of each box
    int32_t Writer(int32_t box) const { return writer[static_cast<size_t>(box)]; }
  };

  // Cuts the box out of what is left, and returns how many bytes that were.
  int64_t Take(const Region& box) {
    int64_t bytes = 0;
    rest_.clear();
    for (const Region& region : left_) {
      if (!Overlap(region, box)) {
        rest_.push_back(region);
        continue;
      }
      bytes += BytesOf(Common(region, box));
      Subtract(region, box, rest_);
    }
    left_.swap(rest_);
    return bytes;
  }

  Boxed& BoxedOf(BufferId base, const BoxTree& tree) {
    Boxed& boxed = boxed_[base];
    if (boxed.writer.empty()) {
      boxed.live = tree.NoneLive();
      boxed.writer.assign(static_cast<size_t>(tree.size()), -1);
    }
    return boxed;
  }
  const std::vector<int32_t>& FindLive(const Boxed& boxed, const BoxTree& tree, int32_t box) {
    found_.clear();
    tree.Find(boxed.live, tree.box(box), found_);
    return found_;
  }
  static void SetWriter(Boxed& boxed, const BoxTree& tree, int32_t box, int32_t task) {
    int32_t& writer = boxed.writer[static_cast<size_t>(box)];
    if ((writer >= 0) != (task >= 0)) tree.SetLive(boxed.live, box, task >= 0);
    writer = task;
  }

  const Records& records_;
  Table<BufferId, int32_t> whole_;  // the writer of each buffer that is only accessed as a whole
  Table<BufferId, Boxed> boxed_;
  std::vector<int32_t> found_;
  std::vector<Region> left_, rest_;
};

// No memory has more bytes.
constexpr int64_t kMostInput = int64_t{1} << 46;

// As much as it takes of an arena.
int64_t InArenaBytes(int64_t bytes) { return (bytes + kMostAlign - 1) / kMostAlign * kMostAlign; }

class TaskMaker {
 public:
  TaskMaker(const Draft& draft, const Placed& placed, const MachineFigures& figures)
      : records_(draft.records),
        checked_(draft.checked),
        placed_(placed),
        figures_(figures),
        writers_(records_),
        is_used_(records_.buffers.size()) {}

  PlaceTasks Make() {
    AddDevices();
    AddLinks();
    AddHomes();
    made_.task.assign(records_.nodes.size(), -1);
    made_.copied.assign(records_.nodes.size(), 0);
    for (const DeclId n : checked_.sequence) AddNode(n);
    return std::move(made_);
  }

 private:
  // Only those with work: placeable ones, those of pins and homes, and the host.
  void AddDevices() {
    made_.place_of.assign(records_.options.devices.size(), -1);
    placeable_ = PlaceableDevices(records_.options);
    for (const DeviceId d : placeable_) AddDevice(d);
    std::vector<bool> is_asked_for(records_.options.devices.size());
    bool any_host = false;
    for (const DeviceId d : placed_.device) {
      if (d >= 0) is_asked_for[static_cast<size_t>(d)] = true;
      else any_host = true;
    }
    for (const DeviceId d : placed_.home) {
      if (d >= 0) is_asked_for[static_cast<size_t>(d)] = true;
    }
    for (const DeviceId d : records_.options.devices.ids()) {
      if (is_asked_for[static_cast<size_t>(d)] && made_.place_of[d] < 0) AddDevice(d);
    }
    if (any_host) AddDevice(DeviceId());
  }
  void AddDevice(DeviceId device) {
    const auto place = static_cast<int32_t>(made_.devices.size());
    made_.devices.push_back(device);
    made_.graph.devices.push_back({.places = device >= 0 ? FiguresOf(device).kernels : 1});
    if (device >= 0) made_.place_of[device] = place;
    else host_ = place;
  }
  const MachineFigures::Device& FiguresOf(DeviceId device) const {
    return figures_.devices[static_cast<size_t>(device)];
  }

  void AddLinks() {
    for (const DeviceId a : made_.devices) {
      for (const DeviceId b : made_.devices) made_.graph.links.push_back(Link(a, b));
    }
  }
  PlaceLink Link(DeviceId a, DeviceId b) const {
    if (a < 0 && b < 0) return {};
    if (a < 0) return {FiguresOf(b).copy_us, FiguresOf(b).upload};
    if (b < 0) return {FiguresOf(a).copy_us, FiguresOf(a).download};
    PlaceLink link = PeerLink(figures_, a, b);
    link.us += 2 * figures_.crossing_us;
    return link;
  }

  // A task that costs nothing for the contents before the run.
  void AddHomes() {
    for (const BufferId b : checked_.buffers_by_name) {
      if (placed_.home[b] < 0) continue;
      is_used_[b] = true;
      const int32_t task = AddTask(made_.place_of[placed_.home[b]]);
      for (size_t d = 0; d < made_.devices.size(); ++d) made_.graph.costs.push_back(0);
      writers_.Write({.buffer = b, .base = b}, task);
    }
  }
  int32_t AddTask(int32_t device) {
    const auto task = static_cast<int32_t>(made_.graph.tasks.size());
    made_.graph.tasks.push_back({.device = device});
    made_.memory.push_back(0);
    return task;
  }

  void AddNode(DeclId n) {
    const DeviceId device = placed_.device[n];
    const bool is_free = records_.nodes[n].may_be_placed();
    const int32_t task = AddTask(is_free ? -1 : device >= 0 ? made_.place_of[device] : host_);
    made_.task[n] = task;
    const std::span<const BoxRef> accesses = records_.boxes[n];
    if (records_.nodes[n].kind == NodeKind::kCopy) made_.copied[n] = BytesOfBox(records_, accesses[0]);
    AddCosts(n);
    for (const BoxRef& ref : accesses) AddAccess(ref, task);
    for (const DeclId other : records_.after[n]) AddInput(task, made_.task[other], 0);
    std::vector<PlaceInput>& inputs = made_.graph.tasks[static_cast<size_t>(task)].inputs;
    for (const PlaceInput& input : inputs) input_at_[static_cast<size_t>(input.from)] = -1;
    for (const BoxRef& ref : accesses) {
      if (ref.base >= 0 && Writes(ref.mode)) writers_.Write(ref, task);
    }
  }

  void AddAccess(const BoxRef& ref, int32_t task) {
    if (ref.base < 0) return;
    if (!is_used_[ref.base]) AddMemory(ref.base, task);
    is_used_[ref.base] = true;
    if (!Takes(ref.mode)) return;
    writers_.ForEach(ref, [&](int32_t from, int64_t bytes) { AddInput(task, from, bytes); });
  }

  // No sum of buffers exceeds 64 bits.
  void AddMemory(BufferId buffer, int32_t task) {
    int64_t& bytes = made_.memory[static_cast<size_t>(task)];
    bytes = std::min(bytes, kMaxBytes / 2) + std::min(InArenaBytes(records_.buffer_bytes[buffer]), kMaxBytes / 2);
  }

  // Each task once.
  void AddInput(int32_t task, int32_t from, int64_t bytes) {
    input_at_.resize(made_.graph.tasks.size(), -1);
    std::vector<PlaceInput>& inputs = made_.graph.tasks[static_cast<size_t>(task)].inputs;
    int32_t& at = input_at_[static_cast<size_t>(from)];
    if (at < 0) {
      at = static_cast<int32_t>(inputs.size());
      inputs.push_back({from, 0});
    }
    int64_t& sum = inputs[static_cast<size_t>(at)].bytes;
    sum = std::min(std::min(sum, kMostInput) + std::min(bytes, kMostInput), kMostInput);
  }

  void AddCosts(DeclId n) {
    const Table<DeclId, double>& known = records_.options.costs;
    const bool is_known = n < known.count() && known[n] >= 0;
    const bool is_free = records_.nodes[n].may_be_placed();
    for (const DeviceId device : made_.devices) {
      const bool may = is_free ? std::find(placeable_.begin(), placeable_.end(), device) != placeable_.end()
                               : device == placed_.device[n];
      made_.graph.costs.push_back(!may ? kCannotRun : is_known ? known[n] : GuessedCost(n, device));
    }
  }

  double GuessedCost(DeclId n, DeviceId device) const {
    const NodeDecl& node = records_.model.nodes[n];
    if (device < 0) return assumed::order::kHostNodeUs;
    if (node.kind > NodeKind::kHost) return assumed::order::kConstructUs + assumed::order::kBodyNodeUs * node.runs;
    const MachineFigures::Device& figures = FiguresOf(device);
    const std::span<const BoxRef> accesses = records_.boxes[n];
    if (node.kind == NodeKind::kCopy && (IsOnHost(accesses[0]) || IsOnHost(accesses[1]))) {
      const double gbs = IsOnHost(accesses[0]) ? figures.upload : figures.download;
      return figures.copy_us + static_cast<double>(made_.copied[n]) / gbs / 1e3;
    }
    double bytes = 0;
    for (const BoxRef& ref : accesses) {
      const auto box = static_cast<double>(BytesOfBox(records_, ref));
      bytes += (Reads(ref.mode) ? box : 0) + (Writes(ref.mode) ? box : 0);
    }
    return figures.stream_node_us + std::max(bytes / figures.memory, node.flops / figures.fp32) / 1e3;
  }
  bool IsOnHost(const BoxRef& ref) const { return records_.buffers[ref.base].where != penstock::Where::kDevice; }

  const Records& records_;
  const Checked& checked_;
  const Placed& placed_;
  const MachineFigures& figures_;
  LastWriters writers_;
  Table<BufferId, bool> is_used_;
  std::vector<DeviceId> placeable_;
  std::vector<int32_t> input_at_;  // for each task: its place among the inputs of the task that is being made
  int32_t host_ = -1;
  PlaceTasks made_;
};

bool CanDoAll(const PlanDevice& device, const PlanDevice& of) {
  return device.is_cuda == of.is_cuda && device.driver == of.driver && device.model == of.model &&
         device.limits == of.limits;
}

}  // namespace

std::vector<DeviceId> PlaceableDevices(const PlanOptions& options) {
  std::vector<DeviceId> devices = {options.default_device};
  for (const DeviceId d : options.devices.ids()) {
    if (d == options.default_device || !CanDoAll(options.devices[d], options.devices[options.default_device])) continue;
    devices.push_back(d);
  }
  return devices;
}

PlaceTasks MakePlaceTasks(const Model& model, const PlanOptions& options, const MachineFigures& figures) {
  PlanOptions unplaced = options;
  unplaced.placement.clear();
  Draft draft(model, unplaced);
  Validate(draft.records, draft.findings);
  DeclaredEdges(draft.records, draft.checked);
  Check(draft.records, draft.checked, draft.findings);
  Canonical(draft.records, draft.checked);
  const Placed placed = Place(draft.records, draft.checked);
  return TaskMaker(draft, placed, figures).Make();
}

void LimitMemory(const PlanOptions& options, PlaceTasks& tasks) {
  const int64_t slots = options.in_order ? 1 : std::max(options.slots, 1);
  for (size_t d = 0; d < tasks.devices.size(); ++d) {
    if (tasks.devices[d] < 0) continue;
    int64_t most = options.devices[tasks.devices[d]].memory_bytes;
    if (options.device_bytes > 0 && (most <= 0 || options.device_bytes < most)) most = options.device_bytes;
    if (most > 0) tasks.graph.devices[d].memory_bytes = most / slots;
  }
  for (size_t t = 0; t < tasks.graph.tasks.size(); ++t) tasks.graph.tasks[t].bytes = tasks.memory[t];
}

}  // namespace penstock::graph
