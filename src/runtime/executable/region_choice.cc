#include "src/runtime/executable/region_choice.h"

#include <algorithm>
#include <map>
#include <utility>

#include "graph/common/message.h"
#include "penstock/status_macros.h"
#include "src/base/environment.h"
#include "src/driver/current_device.h"
#include "src/driver/region_limits.h"
#include "src/runtime/core/synchronize_stream.h"
#include "src/runtime/executable/tuning.h"
#include "src/runtime/graph_exec/resident_image.h"

namespace penstock::runtime {
namespace {

using graph::PlanKind;

constexpr const char* kNoSmallNode = "no small node";

// Whether it has no more elements, whatever the parameters.
bool HasAtMost(int64_t limit, const Model& model, const Extent& extent) {
  int64_t count = 1;
  for (int i = 0; i < extent.rank; ++i) {
    const Dim& dim = extent.dims[i];
    const int64_t most = dim.is_constant() ? dim.value : model.params[dim.param].max;
    if (most > 0 && count > limit / most) return false;
    count *= most;
  }
  return count <= limit;
}

// Whether a ParallelFor has few elements, or a Task few threads.
bool HasFewElements(const Model& model, const NodeDecl& node, Resident wanted) {
  const int64_t limit = wanted == Resident::kAuto ? tuning::kMostAutoElements : tuning::kMostResidentElements;
  if (node.is_task) return wanted == Resident::kOn || node.shape.block[0] <= limit;
  return HasAtMost(limit, model, node.extent);
}

// Whether a Fill or a Copy has a small part of a buffer.
bool HasSmallPart(int64_t limit, const Model& model, const NodeDecl& node) {
  const BufferDecl& buffer = model.buffers[node.accesses[0].buffer];
  const Box& box = node.accesses[0].box;
  return HasAtMost(limit / static_cast<int64_t>(buffer.type.size), model, box.whole ? buffer.extent : box.size);
}

// Whether no two nodes can be at work on a device side by side.
bool IsSerial(const graph::Plan& plan) {
  const auto computes = [](const graph::Lane& lane) { return HasKernels(lane.kind); };
  return std::count_if(plan.lanes.begin(), plan.lanes.end(), computes) == 1;
}

}  // namespace

// Loads each kernel once.
class RegionChoice::CodeLoads {
 public:
  explicit CodeLoads(const driver::DeviceRef& device) : device_(device) {}

  absl::StatusOr<driver::KernelCode> Region(const NodeCode& code) {
    return Get({code.cuda_kernel, code.cuda_region, true});
  }
  absl::StatusOr<driver::KernelCode> Task(const NodeCode& code) {
    return Get({code.cuda_kernel, code.cuda_task, false, code.cuda_task_variable});
  }
  const driver::KernelCode& Loaded(const void* self) const { return loaded_.at(self); }

 private:
  absl::StatusOr<driver::KernelCode> Get(const driver::KernelSource& source) {
    const auto [at, is_new] = loaded_.try_emplace(source.self);
    if (is_new) {
      PENSTOCK_ASSIGN_OR_RETURN(at->second, device_.driver->LoadKernel(device_.local, source));
    }
    return at->second;
  }

  const driver::DeviceRef& device_;
  std::map<const void*, driver::KernelCode> loaded_;
};

absl::StatusOr<Resident> RegionChoice::Wanted(const Model& model, const CompileOptions& options) {
  const auto name = base::WordOf("PENSTOCK_RESIDENT");
  if (!name) return options.resident;
  if (name == "on") return Resident::kOn;
  if (name == "auto") return Resident::kAuto;
  if (name == "off") return Resident::kOff;
  return absl::InvalidArgumentError(graph::Prefix(model) + ": PENSTOCK_RESIDENT is '" +
                                    graph::OneLine(base::Variable("PENSTOCK_RESIDENT").value_or("")) +
                                    "'; it must be off, auto or on");
}

bool RegionChoice::MayBeResident(const Model& model, const NodeDecl& node, Resident wanted) {
  if (node.kind == NodeKind::kFill || node.kind == NodeKind::kCopy) return true;
  if (node.kind != NodeKind::kParallelFor || node.code.cuda_task == nullptr) return false;
  return HasFewElements(model, node, wanted);
}

void RegionChoice::Choose(Resident wanted, std::vector<std::string>& notes) {
  wanted_ = wanted;
  std::vector<std::string> untold;
  if (wanted == Resident::kAuto) rules_.least = tuning::kLeastAutoNodes;
  Decide(wanted == Resident::kOn ? notes : untold);
}

void RegionChoice::Decide(std::vector<std::string>& notes) {
  const graph::Plan& plan = graph_.plan();
  if (plan.lanes.empty()) return;
  const driver::DeviceInfo& device = graph_.device(plan.lanes[LaneId(0)].device).info;
  const bool cuda = device.kind == driver::DeviceKind::kCuda;
  if (!cuda && wanted_ == Resident::kAuto && !IsSerial(plan)) return;
  std::string why_not;  // of the first small node that may not
  bool any = false;
  for (const NodeId n : plan.nodes.ids()) {
    std::string why = WhyNotResident(n, cuda);
    rules_.group.push_back(why.empty() ? 0 : -1);
    any = any || why.empty();
    if (why_not.empty() && why != kNoSmallNode) why_not = std::move(why);
  }
  if (!why_not.empty()) notes.push_back("in no region: " + why_not);
  if (!any) notes.push_back("no region: no node is a ParallelFor of few elements, or a small fill or copy");
  if (cuda) SetLimits(device);
  if (Group(cuda) > 1) notes.push_back("nodes of several translation units, or priorities, share no region");
}

// Whoever compiles the part finds what is in none.
void RegionChoice::ChooseWhole(Resident wanted) {
  std::vector<std::string> notes;
  wanted_ = wanted;
  whole_ = true;
  Decide(notes);
  rules_.least = 1;
}

bool RegionChoice::IsSmall(NodeId n) const {
  const graph::PlanNode& node = graph_.plan().nodes[n];
  if (node.kind == PlanKind::kParallelFor) {
    return HasFewElements(graph_.model(), graph_.model().nodes[node.decl], wanted_);
  }
  const int64_t limit = wanted_ == Resident::kAuto ? tuning::kMostAutoBytes : tuning::kMostResidentBytes;
  const DeclId decl = node.copy >= 0 ? node.copy : node.decl;
  if (decl >= 0 && HasSmallPart(limit, graph_.model(), graph_.model().nodes[decl])) return true;
  int64_t bytes = 0;
  for (const graph::Use& use : node.uses) bytes = std::max(bytes, graph_.plan().instances[use.instance].bytes);
  if (node.decl < 0) bytes = graph::MostBytes(graph_.plan(), node);
  return bytes <= limit;
}

// Says why the node may not be in a region: an empty text if it may, kNoSmallNode where no user expects it to be.
std::string RegionChoice::WhyNotResident(NodeId n, bool cuda) const {
  const graph::PlanNode& node = graph_.plan().nodes[n];
  if (node.batch >= 0) return kNoSmallNode;
  if (node.kind == PlanKind::kFill || node.kind == PlanKind::kDeviceCopy) return IsSmall(n) ? "" : kNoSmallNode;
  if (node.kind != PlanKind::kParallelFor || !IsSmall(n)) return kNoSmallNode;
  const NodeDecl& decl = graph_.model().nodes[node.decl];
  if (decl.decides && !whole_) return kNoSmallNode;
  if (!cuda) return "";
  const auto because = [&](const char* why) { return "node " + graph::Quoted(decl.name) + " " + why; };
  if (decl.code.cuda_task == nullptr) return because("has no code for it, as a Reduce or a node that takes All");
  if (decl.arg_block.size() > ResidentImage::kMostArgsBytes) return because("has too many bytes of arguments");
  const int64_t most_shared = graph_.device(node.device).info.limits.shared_bytes;
  if (decl.is_task && decl.shape.shared_bytes > 0 && most_shared < int64_t{detail::kResidentSharedBytes}) {
    return because("takes shared memory, of which a block of this device has too little for all workers");
  }
  if (decl.is_task && decl.shape.shared_bytes > detail::kTaskBytes) {
    return "node " + graph::Quoted(decl.name) + " takes " + std::to_string(decl.shape.shared_bytes) +
           " bytes of shared memory, and a worker has " + std::to_string(detail::kTaskBytes);
  }
  const bool aligned = std::none_of(decl.args.begin(), decl.args.end(), [](const ArgDecl& arg) {
    const bool inside = arg.form == ArgDecl::Form::kValue || arg.form == ArgDecl::Form::kParam;
    return inside && arg.type.align > alignof(detail::ResidentRecord);
  });
  return aligned ? "" : because("has arguments with an alignment of more than 16 bytes");
}

void RegionChoice::SetLimits(const driver::DeviceInfo& device) {
  const driver::RegionLimits limits = driver::RegionLimitsOf(device.compute_units);
  most_workers_ = std::min(limits.blocks * static_cast<int32_t>(detail::kWorkersOfBlock), ResidentImage::kMostWorkers);
  rules_.most_at_once = limits.at_once;
}

// A group for each unit and priority, which a region has as a whole, of functors; fills and copies join the largest of
// their priority. Returns how many there are.
int32_t RegionChoice::Group(bool cuda) {
  std::map<std::pair<int32_t, const void*>, int32_t> groups;  // numbered in the order of their first nodes
  std::vector<int32_t> sizes;
  for (const NodeId n : graph_.plan().nodes.ids()) {
    const graph::PlanNode& node = graph_.plan().nodes[n];
    if (rules_.group[n] < 0 || node.kind != PlanKind::kParallelFor) continue;
    const void* const unit = cuda ? graph_.model().nodes[node.decl].code.cuda_region : nullptr;
    const auto [at, is_new] = groups.try_emplace({node.priority, unit}, static_cast<int32_t>(sizes.size()));
    if (is_new) sizes.push_back(0);
    rules_.group[n] = at->second;
    ++sizes[static_cast<size_t>(at->second)];
  }
  for (const NodeId n : graph_.plan().nodes.ids()) {
    const graph::PlanNode& node = graph_.plan().nodes[n];
    if (rules_.group[n] < 0 || node.kind == PlanKind::kParallelFor) continue;
    int32_t largest = whole_ && sizes.empty() ? 0 : -1;
    for (auto at = groups.lower_bound({node.priority, nullptr}); at != groups.end(); ++at) {
      if (at->first.first != node.priority) break;
      const auto of = static_cast<size_t>(at->second);
      if (largest < 0 || sizes[of] > sizes[static_cast<size_t>(largest)]) largest = at->second;
    }
    rules_.group[n] = largest;
  }
  return static_cast<int32_t>(sizes.size());
}

absl::Status RegionChoice::Load(LoadedKernels& kernels, std::vector<std::string>& notes) {
  if (rules_.group.empty() || graph_.plan().lanes.empty()) return absl::OkStatus();
  const driver::DeviceRef& device = graph_.device(graph_.plan().lanes[LaneId(0)].device);
  if (device.info.kind != driver::DeviceKind::kCuda) return absl::OkStatus();
  CodeLoads loads(device);
  PENSTOCK_RETURN_IF_ERROR(ForEachFunctor([&](NodeId, const NodeCode& code) {
    const absl::Status region = loads.Region(code).status();
    return region.ok() ? loads.Task(code).status() : region;
  }));
  std::map<const void*, uint64_t> addresses;
  bool compiled = true;
  PENSTOCK_RETURN_IF_ERROR(ForEachFunctor([&](NodeId, const NodeCode& code) {
    addresses[code.cuda_task] = 0;
    compiled = compiled && loads.Loaded(code.cuda_region).awaits;
    return absl::OkStatus();
  }));
  if (addresses.empty()) return absl::OkStatus();
  if (!compiled) {
    std::fill(rules_.group.begin(), rules_.group.end(), -1);
    if (wanted_ == Resident::kOn) {
      notes.push_back("no region: the kernels are compiled for less than compute capability 9.0");
    }
    return absl::OkStatus();
  }
  PENSTOCK_RETURN_IF_ERROR(FindAddresses(device, loads, addresses));
  std::map<int32_t, driver::KernelCode> of_group;
  PENSTOCK_RETURN_IF_ERROR(ForEachFunctor([&](NodeId n, const NodeCode& code) {
    kernels[n].task = addresses[code.cuda_task];
    of_group[rules_.group[n]] = loads.Loaded(code.cuda_region);
    return absl::OkStatus();
  }));
  for (const NodeId n : graph_.plan().nodes.ids()) {
    if (rules_.group[n] >= 0) kernels[n].region = of_group[rules_.group[n]];
  }
  return absl::OkStatus();
}

template <class F>
absl::Status RegionChoice::ForEachFunctor(F f) const {
  for (const NodeId n : graph_.plan().nodes.ids()) {
    const graph::PlanNode& node = graph_.plan().nodes[n];
    if (rules_.group[n] < 0 || node.kind != PlanKind::kParallelFor) continue;
    PENSTOCK_RETURN_IF_ERROR(f(n, graph_.model().nodes[node.decl].code));
  }
  return absl::OkStatus();
}

// Copies each address out of its variable.
absl::Status RegionChoice::FindAddresses(const driver::DeviceRef& device, const CodeLoads& loads,
                                         std::map<const void*, uint64_t>& addresses) const {
  memory::PinnedPool& pool = runtime_.device_set().pinned(device.driver_index);
  PENSTOCK_ASSIGN_OR_RETURN(const memory::PinnedBlock pinned, pool.Allocate(addresses.size() * sizeof(uint64_t)));
  auto* const found = static_cast<uint64_t*>(pinned.data());
  driver::Driver& driver = *device.driver;
  const driver::CurrentDevice current(driver, device.local);
  const auto submit = [&](driver::Stream stream) {
    absl::Status submitted;
    uint64_t* to = found;
    for (const auto& [task, address] : addresses) {
      submitted.Update(driver.Copy(stream, {.kind = driver::CopyKind::kDeviceToHost,
                                            .dst = to++,
                                            .src = loads.Loaded(task).variable,
                                            .width = sizeof(uint64_t)}));
    }
    return submitted;
  };
  PENSTOCK_RETURN_IF_ERROR(RunOnNewStream(driver, device.local, runtime_.event_count(), submit));
  size_t next = 0;
  for (auto& [task, address] : addresses) address = found[next++];
  return absl::OkStatus();
}

}  // namespace penstock::runtime
