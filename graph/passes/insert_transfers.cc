// InsertTransfers: walks the nodes in order and tracks where each buffer's contents are current. If a node needs them
// elsewhere, copies are inserted; contents already in place are not copied again.
//
// A buffer's places are listed in buffer_places.h. A State is current in its own memory on its device at the start, and
// is copied back there if a node elsewhere has written it. So is a buffer for which device memory is bound: it has no
// bound memory on the host. kPinned buffers are copied directly between host and device. Small kHost ones go through
// the slot's pinned memory, which the user's memory replaces if it is pinned:
//   bound -stage-> pinned -upload-> device -download-> pinned -stage-> bound
// For large ones there are two forms, of which each launch uses one: host threads that copy all the way through the
// runtime's ring of pinned chunks, and the direct copy if the memory turns out to be pinned:
//   bound -stage-> device, bound -upload-> device; device -download-> bound, device -stage-> bound
//
// A buffer of which some node accesses a part is tracked and copied by boxes (contents_map.h), others as wholes.
//   Before a read, what the place lacks of the box is copied there. Parts that make one box together take one copy.
//   Before a write, nothing is, if the node writes all of its box in every run; otherwise as before a read, since what
//   it does not write keeps its contents. A node that writes some elements counts as one that does not write all of its
//   box, if the contents outlive the run.
//   At the end, what home lacks is copied back: what nodes have written elsewhere.
// So no copy moves a byte to a place that has it, or to a place where no later node needs it, except that a box that
// depends on parameters counts with its largest extent. The first node of a place that reads initial contents, or what
// one node wrote, fetches them for the later readers there too (first_reads.h, later_reads.h).
//
// Scratch has no contents: it is copied nowhere, and leaves none. An access WithoutCopy to what another device has is
// an access to that place, if the node's device reaches it.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "graph/passes/buffer_places.h"
#include "graph/passes/contents_map.h"
#include "graph/passes/first_reads.h"
#include "graph/passes/later_reads.h"
#include "graph/passes/passes.h"
#include "graph/passes/whereabouts.h"

namespace penstock::graph {
namespace {

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
        places_(records, placed),
        contents_(records, checked, placed, places_),
        first_reads_(records, checked, placed),
        later_reads_(records, checked, placed),
        instance_(records.model.buffers.size() * static_cast<size_t>(places_.count())),
        state_(records.model.buffers.size()) {
    ordered_.steps.reserve(records.nodes.size());
    ordered_.uses.reserve(records.boxes.accesses());
    ordered_.instances.reserve(records.buffers.size());
    readers_.reserve(records.buffers.size());
    copies_.reserve(records.buffers.size());
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
    DeclId gathered{};  // the last node for which its parts were gathered
    int32_t copied_anyway = 0;  // reads WithoutCopy of what no device reaches that has it
  };

  const BufferFacts& decl(BufferId b) const { return records_.buffers[b]; }
  size_t at(BufferId b, int32_t place) const {
    return static_cast<size_t>(b) * static_cast<size_t>(places_.count()) + static_cast<size_t>(place);
  }

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
    if (places_.IsHome(b, place)) instance.space = places_.is_state(b) ? Space::kState : Space::kBound;
    instance.stages = place == kPinnedPlace && places_.is_bound(b);
    instance.leased = place == kPinnedPlace && places_.is_leased(b);
    ordered_.instances.push_back(instance);
    readers_.push_back(0);
    copies_.push_back(0);
    remote_readers_.push_back(0);
    return index;
  }

  // Makes `place` hold what there is of the region, copied preferably from host memory, otherwise from other devices.
  void Ensure(BufferId b, const Region& region, int32_t place, int32_t priority) {
    if (contents_.map(b) != nullptr) return Gather(b, {region}, place, priority);
    if (contents_.Holds(b, region, place) || !contents_.Anywhere(b, region)) return;
    const int32_t through = places_.copy_place(b);
    if (place >= kFirstDevicePlace) {
      if (contents_.OnHost(b, region)) {
        Ensure(b, region, through, priority);
        Insert(PlanKind::kUpload, b, region, through, place, priority);
      } else {
        Insert(PlanKind::kPeerCopy, b, region, contents_.DeviceWith(b, region), place, priority);
      }
    } else if (place != through) {  // bound, staged
      Ensure(b, region, through, priority);
      Insert(PlanKind::kStageOut, b, region, through, place, priority);
    } else if (place == kPinnedPlace && contents_.Holds(b, region, kBoundPlace)) {
      Insert(PlanKind::kStageIn, b, region, kBoundPlace, place, priority);
    } else {
      Insert(PlanKind::kDownload, b, region, contents_.DeviceWith(b, region), place, priority);
    }
  }

  // The same by boxes, for several parts at once.
  void Gather(BufferId b, const std::vector<Region>& parts, int32_t place, int32_t priority) {
    const RegionSet& there = contents_.map(b)->at(place);
    RegionSet lacking;
    std::vector<Region> missing;
    for (const Region& part : parts) there.AppendMissing(part, missing);
    for (const Region& part : missing) lacking.Add(part);
    missing.clear();
    lacking.AppendAll(missing);
    if (missing.empty()) return;
    const int32_t through = places_.copy_place(b);
    if (place >= kFirstDevicePlace) {
      first_reads_.Widen(b, place, there, missing);
      std::vector<Region> on_host = Take(b, kBoundPlace, missing), pinned = Take(b, kPinnedPlace, missing);
      on_host.insert(on_host.end(), pinned.begin(), pinned.end());
      Gather(b, on_host, through, priority);
      InsertAll(PlanKind::kUpload, b, std::move(on_host), through, place, priority);
      FromDevices(PlanKind::kPeerCopy, b, std::move(missing), place, priority);
    } else if (place != through) {  // bound, staged
      Gather(b, missing, through, priority);
      InsertAll(PlanKind::kStageOut, b, Take(b, through, missing), through, place, priority);
    } else {
      if (place == kPinnedPlace) {
        InsertAll(PlanKind::kStageIn, b, Take(b, kBoundPlace, missing), kBoundPlace, place, priority);
      }
      FromDevices(PlanKind::kDownload, b, std::move(missing), place, priority);
    }
  }
  void FromDevices(PlanKind kind, BufferId b, std::vector<Region> missing, int32_t place, int32_t priority) {
    for (int32_t from = kFirstDevicePlace; from < places_.count() && !missing.empty(); ++from) {
      InsertAll(kind, b, Take(b, from, missing), from, place, priority);
    }
  }

  // Moves what `place` has out of `parts`.
  std::vector<Region> Take(BufferId b, int32_t place, std::vector<Region>& parts) const {
    const RegionSet& there = contents_.map(b)->at(place);
    std::vector<Region> taken, left;
    for (const Region& part : parts) {
      there.AppendCommon(part, taken);
      there.AppendMissing(part, left);
    }
    parts.swap(left);
    return taken;
  }

  void InsertAll(PlanKind kind, BufferId b, std::vector<Region> parts, int32_t from, int32_t to, int32_t priority) {
    Join(parts);
    for (const Region& part : parts) Insert(kind, b, part, from, to, priority);
  }

  void Insert(PlanKind kind, BufferId b, const Region& region, int32_t from, int32_t to, int32_t priority) {
    Step step;
    step.kind = kind;
    if (kind == PlanKind::kUpload || kind == PlanKind::kPeerCopy) step.device = to - kFirstDevicePlace;
    if (kind == PlanKind::kDownload) step.device = from - kFirstDevicePlace;
    step.priority = priority;
    step.part = PartOf(b, region);
    step.src = InstanceAt(b, from);
    step.dst = InstanceAt(b, to);
    if (step.on_host()) step.when = When::kIfNotPinned;
    ++copies_[step.dst];
    Push(step, b);
    contents_.Copy(b, region, to);
  }

  PartId PartOf(BufferId b, const Region& region) {
    if (contents_.map(b) == nullptr || region == contents_.Whole(b)) return PartId();
    const auto [found, is_new] = part_of_.try_emplace(region, ordered_.parts.next());
    if (is_new) ordered_.parts.push_back(region);
    return found->second;
  }

  // Appends a copy, in both forms if the bound memory of `host` is on one side and may or may not be pinned. Others
  // wait for the second form; host threads come first in uploads and last in downloads.
  void Push(const Step& step, BufferId host) {
    const bool in = step.kind == PlanKind::kUpload;
    if ((!in && step.kind != PlanKind::kDownload) || !places_.rings(host)) return ordered_.steps.push_back(step);
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
    const auto place = [&](BufferId b) { return device < 0 ? places_.host_place(b) : kFirstDevicePlace + device; };
    FindElsewhere(n);
    for (size_t a = 0; a < accesses.size(); ++a) {
      const BoxRef& ref = accesses[a];
      if (!places_.NeedsContents(ref) || elsewhere_[a] >= 0) continue;
      if (contents_.map(ref.base) != nullptr) {
        GatherFor(n, ref.base, place(ref.base));
      } else if (!contents_.IsWhole(ref.base, place(ref.base))) {
        Ensure(ref.base, {}, place(ref.base), node.priority);
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
    for (size_t a = 0; a < accesses.size(); ++a) {
      const BoxRef& ref = accesses[a];
      if (ref.mode == AccessMode::kScratch) {
        AddScratch(ref, accesses, place(ref.base));
      } else {
        AddUse(n, ref.base, ref, contents_.RegionOf(ref), elsewhere_[a] >= 0 ? elsewhere_[a] : place(ref.base));
      }
    }
    ordered_.steps.push_back(step);
  }

  // For each access of the node: the place on another device where it is read without a copy; -1: it has it, or gets
  // it, on its own.
  void FindElsewhere(DeclId n) {
    const std::span<const BoxRef> accesses = records_.boxes[n];
    elsewhere_.assign(accesses.size(), -1);
    const DeviceId device = placed_.device[n];
    for (size_t a = 0; a < accesses.size(); ++a) {
      const BoxRef& ref = accesses[a];
      if (!ref.uncopied || ref.mode != AccessMode::kRead || device < 0 || IsInConstruct(n)) continue;
      if (contents_.Holds(ref.base, contents_.RegionOf(ref), kFirstDevicePlace + device)) continue;
      if (!IsWrittenToo(accesses, ref)) elsewhere_[a] = PlaceElsewhere(ref, device);
    }
  }
  // The first place of those that hold it whose memory kernels of the device can read.
  int32_t PlaceElsewhere(const BoxRef& ref, DeviceId device) {
    const std::vector<bool>& reaches = records_.options.devices[device].reaches;
    bool is_there = false;
    for (int32_t place = kFirstDevicePlace; place < places_.count(); ++place) {
      if (!contents_.Holds(ref.base, contents_.RegionOf(ref), place)) continue;
      const auto other = static_cast<size_t>(place - kFirstDevicePlace);
      is_there = true;
      if (other < reaches.size() && reaches[other] && IsLibrarys(ref.base, place)) return place;
    }
    if (is_there) ++state_[ref.base].copied_anyway;
    return -1;
  }
  // Whether the library has allocated the memory: a link opens no memory of pools, or mapped by the application.
  bool IsLibrarys(BufferId b, int32_t place) const {
    if (!places_.IsHome(b, place)) return true;
    const std::shared_ptr<const StateRecord>& state = records_.model.buffers[b].state;
    return places_.is_state(b) && (state == nullptr || !state->adopted);
  }
  // Whether the same node writes some of it, on its own device.
  bool IsWrittenToo(std::span<const BoxRef> accesses, const BoxRef& ref) const {
    return std::any_of(accesses.begin(), accesses.end(), [&](const BoxRef& other) {
      if (other.base != ref.base || other.mode == AccessMode::kRead) return false;
      return contents_.map(ref.base) == nullptr || Overlap(contents_.RegionOf(other), contents_.RegionOf(ref));
    });
  }
  bool IsInConstruct(DeclId n) const { return records_.options.in_construct || records_.model.nodes[n].body >= 0; }

  // All that the node needs of a buffer that is copied by boxes.
  void GatherFor(DeclId n, BufferId b, int32_t place) {
    if (state_[b].gathered == n) return;
    state_[b].gathered = n;
    const RegionSet& there = contents_.map(b)->at(place);
    const std::span<const BoxRef> accesses = records_.boxes[n];
    std::vector<Region> parts;
    for (size_t a = 0; a < accesses.size(); ++a) {
      const BoxRef& ref = accesses[a];
      if (ref.base != b || !places_.NeedsContents(ref) || elsewhere_[a] >= 0) continue;
      if (const Region& region = contents_.RegionOf(ref); !there.Holds(region)) parts.push_back(region);
    }
    if (parts.empty()) return;
    later_reads_.Widen(b, n, place, there, parts);
    Gather(b, parts, place, records_.nodes[n].priority);
  }

  // No node reads what was in the scratch. An access to all of a buffer gets an instance for this node alone, so that
  // its bytes are free before and after.
  void AddScratch(const BoxRef& ref, std::span<const BoxRef> accesses, int32_t place) {
    const bool own = ref.whole() && std::count_if(accesses.begin(), accesses.end(),
                                                  [&](const BoxRef& other) { return other.base == ref.base; }) == 1;
    ordered_.uses.push_back({own ? MakeInstance(ref.base, place) : InstanceAt(ref.base, place), ref.mode});
    state_[ref.base].used = true;
    if (!ref.exact) return;
    contents_.Forget(ref.base, contents_.RegionOf(ref));
    first_reads_.Write(ref.base, contents_.RegionOf(ref));
  }

  void AddUse(DeclId n, BufferId b, const BoxRef& ref, const Region& region, int32_t place) {
    const InstanceId instance = InstanceAt(b, place);
    ordered_.uses.push_back({instance, ref.mode});
    BufferState& state = state_[b];
    if (Reads(ref.mode)) ++readers_[instance];
    if (ref.uncopied && place >= kFirstDevicePlace && place != kFirstDevicePlace + placed_.device[n]) {
      ++remote_readers_[instance];
    }
    if (ref.mode == AccessMode::kWrite && ref.whole() && !state.used) {
      state.dropped_upload = decl(b).role == BufferRole::kInOut;
    }
    state.used = true;
    if (ref.mode == AccessMode::kRead) return;
    if (!state.written) state.writer = n;
    state.written = true;
    state.priority = records_.nodes[n].priority;
    if (ref.box < 0) return;
    contents_.Write(b, region, place);
    first_reads_.Write(b, region);
    later_reads_.Write(b, region);
  }

  // A Copy node is itself the transfer: from the nearest place that holds the source to the target's home. What it may
  // leave unwritten of its box is copied there first.
  void AddCopyNode(DeclId n) {
    const NodeFacts& node = records_.nodes[n];
    const std::span<const BoxRef> accesses = records_.boxes[n];
    const bool reads_first = accesses[0].mode == AccessMode::kRead;
    const BoxRef &source = accesses[reads_first ? 0 : 1], &to = accesses[reads_first ? 1 : 0];
    const BufferId better = placed_.CopyFrom(n), from = better < 0 ? source.base : better;
    const Region read = better < 0 ? contents_.RegionOf(source) : contents_.Whole(better);
    const bool reads_any = source.box >= 0 && contents_.Anywhere(from, read);
    const auto [kind, src, dst, device] = reads_any ? Route(from, read, to.base, placed_.device[n], node.priority)
                                                    : EmptyRoute(from, to.base, placed_.device[n]);
    if (places_.NeedsContents(to)) Ensure(to.base, contents_.RegionOf(to), dst, node.priority);
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
      AddUse(n, reads ? from : BufferId(to.base), ref, reads ? read : contents_.RegionOf(to), reads ? src : dst);
    }
    Push(step, kind == PlanKind::kUpload ? from : to.base);
  }

  struct CopyRoute {
    PlanKind kind;
    int32_t src, dst;
    DeviceId device;
  };
  // From where to where a Copy node copies. What several places have of `read` is brought together first.
  CopyRoute Route(BufferId from, const Region& read, BufferId to, DeviceId device, int32_t priority) {
    const bool to_device = places_.is_on_device(to);
    const int32_t here = kFirstDevicePlace + device;
    if (to_device && contents_.Holds(from, read, here)) return {PlanKind::kDeviceCopy, here, here, device};
    const bool on_host = contents_.OnHost(from, read);
    if (to_device && on_host && !(places_.rings(from) && places_.IsHome(to, here))) {
      Ensure(from, read, places_.copy_place(from), priority);
      return {PlanKind::kUpload, places_.copy_place(from), here, device};
    }
    const int32_t holder = contents_.DeviceWith(from, read);
    if (to_device && !on_host && holder < places_.count()) return {PlanKind::kPeerCopy, holder, here, device};
    if (to_device) {
      Ensure(from, read, here, priority);
      return {PlanKind::kDeviceCopy, here, here, device};
    }
    if (on_host || holder == places_.count()) return FromHost(from, read, to, priority);
    const int32_t src = device >= 0 && contents_.Holds(from, read, here) ? here : holder;
    if (places_.rings(to) && places_.IsHome(from, src)) {
      return {PlanKind::kDeviceCopy, src, src, src - kFirstDevicePlace};
    }
    return {PlanKind::kDownload, src, places_.copy_place(to), src - kFirstDevicePlace};
  }
  CopyRoute EmptyRoute(BufferId from, BufferId to, DeviceId device) const {  // no element is read
    const int32_t here = kFirstDevicePlace + device;
    if (places_.is_on_device(to)) return {PlanKind::kDeviceCopy, here, here, device};
    return {PlanKind::kHostCopy, places_.host_place(from), places_.host_place(to), -1};
  }
  CopyRoute FromHost(BufferId from, const Region& read, BufferId to, int32_t priority) {
    int32_t src = kBoundPlace;
    if (!contents_.Holds(from, read, kBoundPlace)) {
      src = contents_.Holds(from, read, kPinnedPlace) ? kPinnedPlace : places_.host_place(from);
      Ensure(from, read, src, priority);
    }
    return {PlanKind::kHostCopy, src, places_.host_place(to), -1};
  }

  void BringBack(BufferId b) {
    const BufferState& state = state_[b];
    if (decl(b).role == BufferRole::kInternal || !state.written) return;
    Ensure(b, contents_.Whole(b), places_.home(b), state.priority);
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
        Remark(b, placed_.home[b] < 0 ? "not copied back; no node writes it" : "no node writes it");
      }
      if (state.used && checked_.partial_output[b]) {
        Remark(b, "an Output that may not be written whole; what is not keeps its contents");
      }
      if (state.copied_anyway > 0) {
        Remark(b, "copied for " + std::to_string(state.copied_anyway) +
                      " reads that ask for no copy; their devices cannot " +
                      "read the memory, or the application has allocated it");
      }
      if (state.dropped_upload) {
        Remark(b, "its contents are not used; '" + std::string(records_.node_names[state.writer]) +
                      "' writes all of it first");
      }
      for (int32_t place = kFirstDevicePlace; place < places_.count(); ++place)
        RemarkOnUploads(b, instance_[at(b, place)]);
    }
  }

  void RemarkOnUploads(BufferId b, InstanceId instance) {
    if (instance < 0) return;
    const int32_t copies = copies_[instance], readers = readers_[instance];
    if (const int32_t remote = remote_readers_[instance]; remote > 0) {
      Remark(b, "read on " + records_.device_name(ordered_.instances[instance].device) + " without a copy by " +
                    std::to_string(remote) + (remote == 1 ? " node" : " nodes") + " of other devices");
    }
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
  const BufferPlaces places_;
  Whereabouts contents_;
  FirstReads first_reads_;
  LaterReads later_reads_;
  std::vector<InstanceId> instance_;  // (buffer, place) -> instance
  std::map<Region, PartId> part_of_;  // numbers of Ordered::parts
  Table<BufferId, BufferState> state_;
  Table<InstanceId, int32_t> readers_;  // declared reads
  Table<InstanceId, int32_t> copies_;  // inserted copies into it
  std::vector<int32_t> elsewhere_;  // by FindElsewhere
  Table<InstanceId, int32_t> remote_readers_;  // declared reads from other devices
};

}  // namespace

Ordered InsertTransfers(const Records& records, const Checked& checked, const Placed& placed, Findings& findings) {
  return Walk(records, checked, placed, findings).Run();
}

}  // namespace penstock::graph
