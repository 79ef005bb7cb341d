// InsertTransfers: walks the nodes in order and tracks where each buffer's contents are valid. If a node needs them
// elsewhere, copies are inserted; contents already in place are not copied again.
//
// A buffer has up to 2 + devices places:
//   bound    the user's memory (Input, Output, InOut). Host nodes use it directly.
//   pinned   the slot's pinned memory: for staging a kHost buffer, for a Buffer that host nodes use or that is declared
//            kPinned, for a buffer declared kSlot, which has no bound memory, or for a parameter.
//   device   one for each device
// A State is current in its own memory on its device at the start, and is copied back there if a node elsewhere has
// written it. So is a buffer for which device memory is bound: it has no bound memory on the host. kPinned buffers are
// copied directly between host and device. Small kHost ones go through the slot's pinned memory, which the user's
// memory replaces if it is pinned:
//   bound -stage-> pinned -upload-> device -download-> pinned -stage-> bound
// For large ones there are two forms, of which each launch uses one: host threads that copy all the way through the
// runtime's ring of pinned chunks, and the direct copy if the memory turns out to be pinned:
//   bound -stage-> device, bound -upload-> device; device -download-> bound, device -stage-> bound
//
// Contents are moved and tracked as wholes. So before a node writes part of a buffer, the rest is copied to its place,
// if there are any contents; the tiles of an Output that several nodes write on one device need none. An Output that
// may be written incompletely starts with the contents of the user's memory, which preserves what is not written. A
// node that writes some elements of its box counts as one that needs the contents there, if they outlive the run.
// Scratch has no contents, so it changes nothing of where contents are valid.
#include <algorithm>
#include <string>

#include "graph/passes/passes.h"

namespace penstock::graph {
namespace {

constexpr int32_t kBoundPlace = 0, kPinnedPlace = 1, kFirstDevicePlace = 2;

PlanKind KindOf(NodeKind kind) {
  switch (kind) {
    case NodeKind::kFill: return PlanKind::kFill;
    case NodeKind::kParallelFor: return PlanKind::kParallelFor;
    case NodeKind::kKernel: return PlanKind::kKernel;
    case NodeKind::kLaunch: return PlanKind::kLaunch;
    case NodeKind::kGate: return PlanKind::kGate;
    case NodeKind::kConditional: return PlanKind::kConditional;
    case NodeKind::kControl: return PlanKind::kControl;
    default: return PlanKind::kHost;
  }
}

class Walk {
 public:
  Walk(const Records& records, const Checked& checked, const Placed& placed, Findings& findings)
      : records_(records),
        checked_(checked),
        placed_(placed),
        findings_(findings),
        places_(kFirstDevicePlace + records.options.devices.count()),
        instance_(records.model.buffers.size() * static_cast<size_t>(places_)),
        valid_(instance_.size()),
        state_(records.model.buffers.size()) {
    ordered_.steps.reserve(records.nodes.size());
    ordered_.uses.reserve(records.boxes.accesses());
    ordered_.instances.reserve(records.buffers.size());
    readers_.reserve(records.buffers.size());
    copies_.reserve(records.buffers.size());
    for (const BufferId b : records.model.buffers.ids()) {
      const BufferRole role = records.buffers[b].role;
      const bool has_contents = role == BufferRole::kInput || role == BufferRole::kInOut ||
                                role == BufferRole::kState || role == BufferRole::kParam || checked.partial_output[b];
      if (has_contents) valid_[at(b, home_place(b))] = 1;
    }
  }

  Ordered Run() {
    for (const DeclId n : checked_.sequence) {
      if (placed_.IsDropped(n)) continue;
      if (records_.nodes[n].kind == NodeKind::kCopy) {
        AddCopyNode(n);
      } else {
        AddNode(n);
      }
    }
    for (const BufferId b : checked_.buffers_by_name) BringBack(b);
    FindAliases();
    RemarkOnBuffers();
    return std::move(ordered_);
  }

 private:
  struct BufferState {
    bool used = false, written = false, dropped_upload = false;
    int32_t priority = 0;  // that of the last node that wrote it
    DeclId writer{};  // the first node that wrote it
  };

  const BufferFacts& decl(BufferId b) const { return records_.buffers[b]; }
  bool is_state(BufferId b) const { return decl(b).role == BufferRole::kState; }
  bool is_leased(BufferId b) const {  // or a parameter: in the slot before the run begins
    return decl(b).role == BufferRole::kParam || (IsBound(decl(b).role) && decl(b).where == Where::kSlot);
  }
  bool is_bound(BufferId b) const {  // to host memory
    return IsBound(decl(b).role) && (decl(b).where == Where::kHost || decl(b).where == Where::kPinned);
  }
  DeviceId home(BufferId b) const { return placed_.home[b]; }
  // Where the contents must be at the end, for buffers that outlive the run.
  int32_t home_place(BufferId b) const {
    if (home(b) >= 0) return kFirstDevicePlace + home(b);
    return is_leased(b) ? kPinnedPlace : kBoundPlace;
  }
  // The place that host code uses, and the place that copies to and from devices use.
  int32_t host_place(BufferId b) const { return is_bound(b) ? kBoundPlace : kPinnedPlace; }
  int32_t copy_place(BufferId b) const {
    return is_bound(b) && (decl(b).where == Where::kPinned || rings(b)) ? kBoundPlace : kPinnedPlace;
  }
  // Whether its bound memory is staged through the ring if it is not pinned.
  bool rings(BufferId b) const {
    return is_bound(b) && decl(b).where == Where::kHost && records_.buffer_bytes[b] > records_.options.ring_from_bytes;
  }
  size_t at(BufferId b, int32_t place) const {
    return static_cast<size_t>(b) * static_cast<size_t>(places_) + static_cast<size_t>(place);
  }
  bool valid(BufferId b, int32_t place) const { return valid_[at(b, place)] != 0; }
  bool on_host(BufferId b) const { return valid(b, kBoundPlace) || valid(b, kPinnedPlace); }
  int32_t AnyDevicePlace(BufferId b) const {
    int32_t place = kFirstDevicePlace;
    while (place < places_ && !valid(b, place)) ++place;
    return place;
  }
  bool anywhere(BufferId b) const { return on_host(b) || AnyDevicePlace(b) < places_; }

  InstanceId InstanceAt(BufferId b, int32_t place) {
    InstanceId& index = instance_[at(b, place)];
    if (index < 0) index = MakeInstance(b, place);
    return index;
  }
  InstanceId MakeInstance(BufferId b, int32_t place) {
    const InstanceId index = ordered_.instances.next();
    Instance instance;
    instance.buffer = b;
    instance.bytes = records_.buffer_bytes[b];
    instance.space = place == kBoundPlace ? Space::kBound : place == kPinnedPlace ? Space::kPinned : Space::kDevice;
    if (place >= kFirstDevicePlace) instance.device = place - kFirstDevicePlace;
    if (IsHome(b, place)) instance.space = is_state(b) ? Space::kState : Space::kBound;
    instance.stages = place == kPinnedPlace && is_bound(b);
    instance.leased = place == kPinnedPlace && is_leased(b);
    ordered_.instances.push_back(instance);
    readers_.push_back(0);
    copies_.push_back(0);
    return index;
  }

  // Makes `place` hold the contents, copied preferably from host memory, otherwise from another device.
  void Ensure(BufferId b, int32_t place, int32_t priority) {
    if (valid(b, place)) return;
    const int32_t through = copy_place(b);
    if (place >= kFirstDevicePlace) {
      if (on_host(b)) {
        Ensure(b, through, priority);
        Insert(PlanKind::kUpload, b, through, place, place - kFirstDevicePlace, priority);
      } else {
        Insert(PlanKind::kPeerCopy, b, AnyDevicePlace(b), place, place - kFirstDevicePlace, priority);
      }
    } else if (place != through) {  // bound, staged
      Ensure(b, through, priority);
      Insert(PlanKind::kStageOut, b, through, place, -1, priority);
    } else if (place == kPinnedPlace && valid(b, kBoundPlace)) {
      Insert(PlanKind::kStageIn, b, kBoundPlace, place, -1, priority);
    } else {
      const int32_t from = AnyDevicePlace(b);
      Insert(PlanKind::kDownload, b, from, place, from - kFirstDevicePlace, priority);
    }
  }

  void Insert(PlanKind kind, BufferId b, int32_t from, int32_t to, DeviceId device, int32_t priority) {
    Step step;
    step.kind = kind;
    step.device = device;
    step.priority = priority;
    step.buffer = b;
    step.src = InstanceAt(b, from);
    step.dst = InstanceAt(b, to);
    if (step.on_host()) step.when = When::kIfNotPinned;
    ++copies_[step.dst];
    Push(step, b);
    valid_[at(b, to)] = 1;
  }

  // Appends a copy, in both forms if the bound memory of `host` is on one side and may or may not be pinned. Others
  // wait for the second form; host threads come first in uploads and last in downloads.
  void Push(const Step& step, BufferId host) {
    const bool in = step.kind == PlanKind::kUpload;
    if ((!in && step.kind != PlanKind::kDownload) || !rings(host)) return ordered_.steps.push_back(step);
    Step direct = step, staged = step;
    direct.when = When::kIfPinned;
    staged.when = When::kIfNotPinned;
    staged.kind = in ? PlanKind::kStageIn : PlanKind::kStageOut;
    staged.device = -1;
    Step &first = in ? staged : direct, &second = in ? direct : staged;
    first.decl = -1;
    first.uses = 0;
    second.follows = true;
    ordered_.steps.push_back(first);
    ordered_.steps.push_back(second);
  }

  void AddNode(DeclId n) {
    const NodeFacts& node = records_.nodes[n];
    const std::span<const BoxRef> accesses = records_.boxes[n];
    const DeviceId device = placed_.device[n];
    const auto place = [&](BufferId b) { return device < 0 ? host_place(b) : kFirstDevicePlace + device; };
    for (const BoxRef& ref : accesses) {
      if (!UsesContents(ref)) continue;
      if (!valid(ref.base, place(ref.base))) {
        if (!anywhere(ref.base)) continue;
        Ensure(ref.base, place(ref.base), node.priority);
      }
      state_[ref.base].used = true;
    }
    const DeviceId caller = placed_.CallingDevice(n);
    Step step;
    step.kind = caller >= 0 ? PlanKind::kHostcall : KindOf(node.kind);
    step.decl = n;
    step.device = std::max<int32_t>(device, caller);
    step.priority = node.priority;
    step.first_use = static_cast<int32_t>(ordered_.uses.size());
    step.uses = static_cast<int32_t>(accesses.size());
    for (const BoxRef& ref : accesses) {
      if (ref.mode == AccessMode::kScratch) {
        AddScratch(ref, accesses, place(ref.base));
      } else {
        AddUse(n, ref.base, ref.mode, place(ref.base));
      }
    }
    ordered_.steps.push_back(step);
  }

  // Whether the buffer's contents must be where the access is made: its own, or those next to what it writes.
  bool UsesContents(const BoxRef& ref) const {
    if (ref.mode == AccessMode::kScratch) return false;
    const bool drops = ref.mode == AccessMode::kWrite ||
                       (ref.mode == AccessMode::kWriteSome && decl(ref.base).role == BufferRole::kInternal);
    return !drops || !ref.whole();
  }

  // Contents stay valid where they are, since no node reads what was in the scratch. An access to all of a buffer
  // gets an instance for this node alone, so that its bytes are free before and after.
  void AddScratch(const BoxRef& ref, std::span<const BoxRef> accesses, int32_t place) {
    const bool own = ref.whole() && std::count_if(accesses.begin(), accesses.end(),
                                                  [&](const BoxRef& other) { return other.base == ref.base; }) == 1;
    ordered_.uses.push_back({own ? MakeInstance(ref.base, place) : InstanceAt(ref.base, place), ref.mode});
    state_[ref.base].used = true;
  }

  void AddUse(DeclId n, BufferId b, AccessMode mode, int32_t place) {
    const InstanceId instance = InstanceAt(b, place);
    ordered_.uses.push_back({instance, mode});
    BufferState& state = state_[b];
    if (Reads(mode)) ++readers_[instance];
    if (mode == AccessMode::kWrite && !state.used) state.dropped_upload = decl(b).role == BufferRole::kInOut;
    state.used = true;
    if (mode == AccessMode::kRead) return;
    if (!state.written) state.writer = n;
    state.written = true;
    state.priority = records_.nodes[n].priority;
    for (int32_t p = 0; p < places_; ++p) valid_[at(b, p)] = p == place;
  }

  // A Copy node is itself the transfer: from the nearest place that holds the source to the target's home. Contents of
  // the target that it does not write are copied there first.
  void AddCopyNode(DeclId n) {
    const NodeFacts& node = records_.nodes[n];
    const std::span<const BoxRef> accesses = records_.boxes[n];
    const bool reads_first = accesses[0].mode == AccessMode::kRead;
    const BoxRef& to = accesses[reads_first ? 1 : 0];
    const BufferId better = placed_.CopyFrom(n), from = better < 0 ? accesses[reads_first ? 0 : 1].base : better;
    const auto [kind, src, dst, device] = Route(from, to.base, placed_.device[n], node.priority);
    if (!to.whole() && anywhere(to.base)) Ensure(to.base, dst, node.priority);
    Step step;
    step.kind = kind;
    step.decl = n;
    step.copy = n;
    step.device = device;
    step.priority = node.priority;
    step.src = InstanceAt(from, src);
    step.dst = InstanceAt(to.base, dst);
    step.first_use = static_cast<int32_t>(ordered_.uses.size());
    step.uses = 2;
    for (const BoxRef& ref : accesses) {
      const bool reads = ref.mode == AccessMode::kRead;
      AddUse(n, reads ? from : to.base, ref.mode, reads ? src : dst);
    }
    Push(step, kind == PlanKind::kUpload ? from : to.base);
  }

  // Whether it is device memory that the slot does not own. Access to that is ordered on a lane; so copies through the
  // ring, which has none, also go through the slot's arena.
  bool IsHome(BufferId b, int32_t place) const { return home(b) >= 0 && place == kFirstDevicePlace + home(b); }

  struct CopyRoute {
    PlanKind kind;
    int32_t src, dst;
    DeviceId device;
  };
  CopyRoute Route(int32_t from, int32_t to, DeviceId device, int32_t priority) {
    const bool to_device = !is_bound(to) && decl(to).where == Where::kDevice;
    const int32_t here = kFirstDevicePlace + device;
    const bool nowhere = !anywhere(from);  // then no element is read
    if (to_device && (nowhere || valid(from, here))) return {PlanKind::kDeviceCopy, here, here, device};
    if (nowhere) return {PlanKind::kHostCopy, host_place(from), host_place(to), -1};
    if (to_device && on_host(from) && rings(from) && IsHome(to, here)) {
      Ensure(from, here, priority);
      return {PlanKind::kDeviceCopy, here, here, device};
    }
    if (to_device && on_host(from)) {
      Ensure(from, copy_place(from), priority);
      return {PlanKind::kUpload, copy_place(from), here, device};
    }
    if (to_device) return {PlanKind::kPeerCopy, AnyDevicePlace(from), here, device};
    if (on_host(from)) {
      const int32_t src = valid(from, kBoundPlace) ? kBoundPlace : kPinnedPlace;
      return {PlanKind::kHostCopy, src, host_place(to), -1};
    }
    const int32_t src = valid(from, here) ? here : AnyDevicePlace(from);
    if (rings(to) && IsHome(from, src)) return {PlanKind::kDeviceCopy, src, src, src - kFirstDevicePlace};
    return {PlanKind::kDownload, src, copy_place(to), src - kFirstDevicePlace};
  }

  void BringBack(BufferId b) {
    const BufferState& state = state_[b];
    if (decl(b).role != BufferRole::kInternal && state.written) Ensure(b, home_place(b), state.priority);
  }

  void FindAliases() {
    ordered_.fallback.assign(ordered_.instances.size(), InstanceId());
    for (const BufferId b : state_.ids()) {
      const InstanceId bound = instance_[at(b, kBoundPlace)], pinned = instance_[at(b, kPinnedPlace)];
      if (bound < 0 || pinned < 0) continue;
      ordered_.fallback[bound] = pinned;
      ordered_.fallback[pinned] = bound;
    }
  }

  // Adds remarks on what was dropped, buffer by buffer.
  void RemarkOnBuffers() {
    for (const BufferId b : checked_.buffers_by_name) {
      const BufferState& state = state_[b];
      const bool elsewhere = records_.model.buffers[b].body >= 0;  // in the body of a construct
      if (!state.used && !decl(b).is_alias && !elsewhere) Remark(b, "no node uses it");
      if (state.used && !state.written && decl(b).role == BufferRole::kInOut) {
        Remark(b, home(b) < 0 ? "not copied back; no node writes it" : "no node writes it");
      }
      if (state.used && checked_.partial_output[b]) {
        Remark(b, "an Output that may not be written whole; what is not keeps its contents");
      }
      if (state.dropped_upload) {
        Remark(b, "its contents are not used; '" + std::string(records_.node_names[state.writer]) +
                      "' writes all of it first");
      }
      for (int32_t place = kFirstDevicePlace; place < places_; ++place) RemarkOnUploads(b, instance_[at(b, place)]);
      if (records_.boxes.tree(b) != nullptr) RemarkOnWholeCopies(b);
    }
  }

  // Devices that use parts of one buffer copy all of it to each other.
  void RemarkOnWholeCopies(BufferId b) {
    std::string devices;
    int64_t copies = 0, receivers = 0;
    for (int32_t place = kFirstDevicePlace; place < places_; ++place) {
      const InstanceId instance = instance_[at(b, place)];
      if (instance < 0 || copies_[instance] == 0) continue;
      devices += (receivers > 0 ? ", " : "") + records_.device_name(place - kFirstDevicePlace);
      copies += copies_[instance];
      ++receivers;
    }
    if (receivers < 2) return;
    findings_.whole_copies.push_back(
        std::string(records_.buffer_names[b]) + ": all of it is copied " + std::to_string(copies) + " times to " +
        devices + ", " + std::to_string(copies * records_.buffer_bytes[b]) +
        " bytes in a run, for nodes there that use parts of it; give each device a buffer of its own");
  }

  void RemarkOnUploads(BufferId b, InstanceId instance) {
    if (instance < 0) return;
    const int32_t copies = copies_[instance], readers = readers_[instance];
    if (copies == 0 || readers <= copies) return;
    Remark(b, "copied to " + records_.device_name(ordered_.instances[instance].device) +
                  (copies == 1 ? " once" : " " + std::to_string(copies) + " times") + " for " +
                  std::to_string(readers) + " readers");
  }

  void Remark(BufferId b, const std::string& text) {
    findings_.remarks.push_back(std::string(records_.buffer_names[b]) + ": " + text);
  }

  const Records& records_;
  const Checked& checked_;
  const Placed& placed_;
  Findings& findings_;
  Ordered ordered_;
  const int32_t places_;
  std::vector<InstanceId> instance_;  // (buffer, place) -> instance
  std::vector<uint8_t> valid_;  // (buffer, place)
  Table<BufferId, BufferState> state_;
  Table<InstanceId, int32_t> readers_;  // declared reads
  Table<InstanceId, int32_t> copies_;  // inserted copies into it
};

}  // namespace

Ordered InsertTransfers(const Records& records, const Checked& checked, const Placed& placed, Findings& findings) {
  return Walk(records, checked, placed, findings).Run();
}

}  // namespace penstock::graph
