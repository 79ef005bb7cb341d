#include "src/runtime/executable/device_replicas.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "graph/common/message.h"
#include "graph/conflicts/boxes.h"
#include "graph/declare/returned_counts.h"
#include "graph/plan/memory_report.h"
#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/host/progress.h"
#include "src/runtime/core/runtime_core.h"
#include "src/runtime/core/test_hook.h"
#include "src/runtime/executable/compile_controls.h"
#include "src/runtime/executable/device_choice.h"
#include "src/runtime/executable/internals.h"
#include "src/runtime/executable/profile_graph.h"
#include "src/runtime/executable/slot_wait.h"

namespace penstock::runtime {
namespace {

absl::Status CheckShares(const Model& model, const std::vector<DeviceShare>& shares, size_t devices) {
  const auto refuse = [&](const std::string& text) {
    return absl::InvalidArgumentError(graph::Prefix(model) + ": CompileOptions::devices " + text);
  };
  std::set<int> seen;
  double sum = 0;
  for (const DeviceShare& share : shares) {
    if (share.device < 0 || static_cast<size_t>(share.device) >= devices) {
      return refuse(absl::StrCat("names ", share.device, "; the runtime has devices 0 to ", devices - 1));
    }
    if (!seen.insert(share.device).second) {
      return refuse(absl::StrCat("names ", share.device, " twice; ask for more slots instead"));
    }
    if (!(share.weight >= 0) || std::isinf(share.weight)) {  // also refuses NaN
      return refuse(absl::StrCat("gives ", share.device, " the weight ", share.weight, "; a weight is 0 or more"));
    }
    sum += share.weight;
  }
  return sum > 0 ? absl::OkStatus() : refuse("gives every device the weight 0; one at least takes runs");
}

// Its runs use all devices at once: no other device could take some of them, nor keep their order.
absl::Status CheckPlacement(const Model& model, const CompileOptions& options) {
  if (options.placement == Placement::kOneDevice) return absl::OkStatus();
  const std::string prefix = graph::Prefix(model) + ": CompileOptions::placement is kAutomatic ";
  if (options.devices.size() > 1) {
    return absl::InvalidArgumentError(
        prefix + absl::StrCat("and CompileOptions::devices names ", options.devices.size(),
                              "; each run is placed on all devices, and no device takes whole runs; give one of both"));
  }
  if (!options.in_order) return absl::OkStatus();
  return absl::InvalidArgumentError(
      prefix + "and in_order is set; no device can keep runs that use several in order; leave one of both out");
}

// Which device takes a run depends on their pace, and with it which replica the run writes.
absl::Status CheckReplicasAreRead(const Model& model, size_t devices) {
  if (!model.deterministic || devices < 2) return absl::OkStatus();
  for (const NodeDecl& node : model.nodes) {
    for (const AccessDecl& access : node.accesses) {
      if (access.mode == AccessMode::kRead || access.graph != model.serial) continue;
      if (access.buffer < 0 || access.buffer >= model.buffers.count()) continue;  // Validate reports it
      const BufferId base = graph::BaseOf(model, access.buffer);
      const BufferDecl* const buffer = base < 0 ? nullptr : &model.buffers[base];
      if (buffer == nullptr || buffer->state == nullptr || buffer->state->replicas.empty()) continue;
      return absl::InvalidArgumentError(
          graph::Prefix(model, "node", node.name) +
          absl::StrCat(": writes ", graph::Quoted(buffer->name), ", of which each of ", devices,
                       " devices has a replica, and the graph is Deterministic; which of them a run writes depends on "
                       "the pace of the devices; compile for one device, or declare a KeyedState"));
    }
  }
  return absl::OkStatus();
}

MemoryReport::Arena* Find(MemoryReport& report, const std::string& where) {
  const auto it = std::find_if(report.arenas.begin(), report.arenas.end(),
                               [&](const MemoryReport::Arena& arena) { return arena.where == where; });
  return it == report.arenas.end() ? nullptr : &*it;
}

// With the arenas of the parts of constructs, of which each slot has some of its own.
MemoryReport ReportOf(const ExecutableCore& core, const std::vector<std::string>& devices) {
  MemoryReport all = graph::ReportMemory(core.graph().plan(), core.model(), devices, core.slots());
  for (const ControlPart& part : core.parts()) {
    for (const MemoryReport::Arena& arena : ReportOf(*part.core, devices).arenas) {
      if (MemoryReport::Arena* const same = Find(all, arena.where)) {
        same->slot_bytes += arena.slot_bytes;
        same->all_bytes += arena.all_bytes;
        same->peak_bytes += arena.peak_bytes;
      } else {
        all.arenas.push_back(arena);
      }
    }
  }
  return all;
}

std::vector<std::string> DeviceNames(const RuntimeCore& runtime) {
  std::vector<std::string> names;
  for (const driver::DeviceRef& device : runtime.devices()) names.push_back(device.info.name);
  return names;
}

// The planner checks each plan for itself.
absl::Status CheckDeviceBytes(const ExecutableCore& core, int64_t most) {
  if (most == 0 || core.parts().empty()) return absl::OkStatus();
  for (const MemoryReport::Arena& arena : ReportOf(core, DeviceNames(core.runtime())).arenas) {
    if (arena.where == "pinned" || arena.all_bytes <= most) continue;
    return absl::ResourceExhaustedError(absl::StrCat(core.Label(), " on ", arena.where, ": ", core.slots(),
                                                     " slots and the conditions and bodies of constructs take ",
                                                     arena.all_bytes, " bytes, which do not fit in device_bytes of ",
                                                     most, "; use fewer slots, or smaller buffers"));
  }
  return absl::OkStatus();
}

void Add(const SubmissionReport::Loop& loop, std::vector<SubmissionReport::Loop>& to) {
  const auto same = std::find_if(to.begin(), to.end(), [&](const auto& other) { return other.name == loop.name; });
  if (same == to.end()) to.push_back(loop);
  else same->iterations += loop.iterations;
}

}  // namespace

const Bindings& ExecutableSet::nothing_set() const {
  std::call_once(made_nothing_set_, [this] {
    nothing_set_ = first().MakeBindings();
    detail::Internals<Bindings>::ValuesOf(nothing_set_).keep_alives();  // launches only read it from now on
  });
  return nothing_set_;
}

absl::StatusOr<std::shared_ptr<ExecutableSet>> ExecutableSet::Create(const std::shared_ptr<RuntimeCore>& runtime,
                                                                     const Model& declared,
                                                                     const CompileOptions& options) {
  std::optional<Model> with_counts;
  if (graph::HasCounts(declared)) with_counts = graph::WithReturnedCounts(declared);
  const Model& model = with_counts ? *with_counts : declared;
  std::vector<DeviceShare> shares = options.devices;
  if (shares.empty()) shares.emplace_back(options.device);
  if (options.in_order && shares.size() > 1) {
    return absl::InvalidArgumentError(
        graph::Prefix(model) + absl::StrCat(": CompileOptions::in_order is set with ", shares.size(),
                                            " devices, whose runs no device can keep in order; compile for one"));
  }
  PENSTOCK_RETURN_IF_ERROR(CheckPlacement(model, options));
  if (!options.devices.empty()) PENSTOCK_RETURN_IF_ERROR(CheckShares(model, shares, runtime->devices().size()));
  PENSTOCK_RETURN_IF_ERROR(CheckReplicasAreRead(model, shares.size()));
  std::vector<Member> members;
  const ProgressFunction progress = PacedByHook(options.progress);
  for (const DeviceShare& share : shares) {
    CompileOptions on = options;
    on.progress = progress;
    on.device = share.device;
    runtime->settings().Fill(model.name.view(), on);
    UseProfile(*runtime, on);
    PENSTOCK_ASSIGN_OR_RETURN(auto core, CreateExecutable(runtime, model, on));
    PENSTOCK_RETURN_IF_ERROR(CheckDeviceBytes(*core, options.device_bytes));
    members.push_back({ExecutableCore::HandleOn(std::move(core)), share});
  }
  PENSTOCK_ASSIGN_OR_RETURN(const std::shared_ptr<KeyedStates> keyed, KeyedStates::Create(runtime, model, shares));
  for (size_t m = 0; m < members.size() && keyed != nullptr; ++m)
    members[m].core->binder().UseKeys(keyed, static_cast<int>(m));
  for (const Member& member : members) {
    if (members.size() > 1) member.core->MeasureRuns();
  }
  for (const Member& member : members) AddToProfile(member.core);
  return std::make_shared<ExecutableSet>(std::move(members));
}

absl::StatusOr<Run> ExecutableSet::Launch(const Bindings& bindings, Deadline deadline, Wait wait) const {
  if (members_.size() == 1) return first().Launch(bindings, deadline, wait);
  PENSTOCK_RETURN_IF_ERROR(first().CheckLaunch(wait));
  int only = -1;
  const std::optional<Key>& key = detail::Internals<Bindings>::ValuesOf(bindings).key();
  if (keyed() != nullptr && key) {
    PENSTOCK_ASSIGN_OR_RETURN(const KeyedHome home, FindHome(key->value));
    only = home.member;
  }
  PENSTOCK_RETURN_IF_ERROR(CheckOnTime(only, deadline));
  PENSTOCK_ASSIGN_OR_RETURN(const TakenSlot taken, TakeSlot(only, deadline, wait));
  return members_[taken.member].core->Start(taken.slot, detail::Internals<Bindings>::ValuesOf(bindings), deadline);
}

absl::StatusOr<std::pair<std::shared_ptr<ExecutableCore>, RunSlot*>> ExecutableSet::Lease(Deadline deadline,
                                                                                          Wait wait) const {
  if (members_.size() == 1) {
    PENSTOCK_ASSIGN_OR_RETURN(RunSlot * slot, first().Lease(deadline, wait));
    return std::pair(members_[0].core, slot);
  }
  PENSTOCK_RETURN_IF_ERROR(first().CheckLease(wait));
  PENSTOCK_ASSIGN_OR_RETURN(const TakenSlot taken, TakeSlot(-1, deadline, wait));
  const std::shared_ptr<ExecutableCore>& core = members_[taken.member].core;
  core->MarkLeased(taken.slot);
  return std::pair(core, taken.slot);
}

// Sees ended runs first; otherwise a free device would be passed over.
absl::StatusOr<ExecutableSet::TakenSlot> ExecutableSet::TakeSlot(int only, Deadline deadline, Wait wait) const {
  RuntimeCore& runtime = first().runtime();
  TakenSlot taken;
  const auto take = [&] {
    for (const Member& member : members_) member.core->AdvanceAll();
    taken = TakeBest(only);
    return taken.slot != nullptr || !runtime.CheckOpen().ok();
  };
  if (wait == Wait::kYes) {
    const WaitingLaunch waiting(waiting_);
    if (!take()) {
      const SlotWait waits(first().context());
      host::WaitForProgress(runtime.event_count(), runtime.notifies_completion(), deadline.at(), take);
      if (taken.slot != nullptr) members_[taken.member].core->context().trace.RecordWait(*taken.slot, waits.since());
    }
  } else {
    take();
  }
  if (taken.slot != nullptr) return taken;
  PENSTOCK_RETURN_IF_ERROR(runtime.CheckOpen());
  const std::string text = graph::Prefix(first().model()) +
                           (only < 0 ? ": all slots of its " + std::to_string(members_.size()) + " devices are taken"
                                     : ": all slots of the device that has the key's States are taken");
  if (wait == Wait::kYes)
    return absl::DeadlineExceededError(text + " and none came free before the deadline; nothing was started");
  return absl::ResourceExhaustedError(
      text + "; wait for a run to end, use Launch or Acquire, which wait, or compile with more slots");
}

ExecutableSet::TakenSlot ExecutableSet::TakeBest(int only) const {
  const auto load_of = [&](int m) {
    const Member& member = members_[m];
    DeviceLoad load = member.core->load();
    load.weight = only < 0 ? member.share.weight : m == only ? 1 : 0;
    return load;
  };
  for (;;) {
    const int best = ChooseDevice(static_cast<int>(members_.size()), load_of);
    if (best < 0) return {};
    RunSlot* const slot = members_[best].core->TakeFree();
    if (slot != nullptr) return {best, slot};  // otherwise other threads were faster
  }
}

// Together the devices end as many runs in a time as each of them does. One whose mean is unknown is tried.
absl::Status ExecutableSet::CheckOnTime(int only, Deadline deadline) const {
  if (deadline.is_never()) return absl::OkStatus();
  RunsInFront all{.runs = only < 0 ? waiting_.load(std::memory_order_relaxed) : 0};
  double runs_in_ns = 0;
  for (size_t m = 0; m < members_.size(); ++m) {
    if (only >= 0 ? static_cast<int>(m) != only : members_[m].share.weight <= 0) continue;
    const RunsInFront one = members_[m].core->in_front();
    if (one.mean_ns <= 0) return absl::OkStatus();
    all.runs += one.runs;
    runs_in_ns += 1 / one.mean_ns;
  }
  if (runs_in_ns > 0) all.mean_ns = 1 / runs_in_ns;
  return RefuseIfLate(first().graph().Label(), all, deadline, Deadline::Clock::now());
}

int ExecutableSet::MemberOn(int device) const {
  for (size_t m = 0; m < members_.size(); ++m) {
    if (members_[m].share.device == device) return static_cast<int>(m);
  }
  return -1;
}

// The States are divided among the members of the whole set, of which On has left one here.
absl::StatusOr<KeyedHome> ExecutableSet::FindHome(uint64_t key, int only) const {
  if (members_.size() == 1) only = 0;
  const int wanted = only < 0 ? -1 : members_[only].core->binder().member();
  PENSTOCK_ASSIGN_OR_RETURN(KeyedHome home, keyed()->Find(key, wanted));
  if (only >= 0) home.member = only;
  return home;
}

absl::StatusOr<std::shared_ptr<ExecutableSet>> ExecutableSet::On(int device) const {
  const int member = MemberOn(device);
  if (member >= 0) {
    std::vector<Member> one{members_[member]};
    one[0].share.weight = 1;
    return std::make_shared<ExecutableSet>(std::move(one));
  }
  return absl::NotFoundError(absl::StrCat(graph::Prefix(first().model()), ": is not compiled for device ", device,
                                          "; name it in CompileOptions::devices"));
}

Mode ExecutableSet::DecideMode() {
  for (size_t m = 1; m < members_.size(); ++m) members_[m].core->DecideMode();
  return first().DecideMode();
}

SubmissionReport ExecutableSet::submission_report() const {
  SubmissionReport all = first().submission_report();
  for (size_t m = 1; m < members_.size(); ++m) {
    const SubmissionReport submission_report = members_[m].core->submission_report();
    const std::string& device = first().graph().device(members_[m].share.device).info.name;
    for (const std::string& note : submission_report.notes)
      all.notes.push_back(absl::StrCat("on ", device, ": ", note));
    for (const SubmissionReport::Loop& loop : submission_report.loops) Add(loop, all.loops);
    all.graphs += submission_report.graphs;
    all.graph_nodes += submission_report.graph_nodes;
    all.graph_launches += submission_report.graph_launches;
    all.nodes_set += submission_report.nodes_set;
    all.nodes_switched += submission_report.nodes_switched;
    all.captures += submission_report.captures;
    all.refreshes += submission_report.refreshes;
    all.instantiating_us += submission_report.instantiating_us;
    all.capturing_us += submission_report.capturing_us;
  }
  return all;
}

// Pinned memory is one place for all devices, and pinned nodes are on one device in all plans.
MemoryReport ExecutableSet::memory() const {
  const std::vector<std::string> names = DeviceNames(first().runtime());
  MemoryReport all = ReportOf(first(), names);
  for (size_t m = 1; m < members_.size(); ++m) {
    for (const MemoryReport::Arena& arena : ReportOf(*members_[m].core, names).arenas) {
      if (MemoryReport::Arena* const same = Find(all, arena.where)) same->all_bytes += arena.all_bytes;
      else all.arenas.push_back(arena);
    }
  }
  return all;
}

}  // namespace penstock::runtime
