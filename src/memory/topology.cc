// The calls of hwloc, and how little of it is loaded: NUMA nodes and PCI devices. See topology.h.
#include "src/memory/topology.h"

#include <hwloc.h>
#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::memory {
namespace {

std::string LastError() { return std::strerror(errno); }

// The calling thread's memory policy as the kernel has it, without the nodes. hwloc cannot restore a policy exactly:
// MPOL_DEFAULT comes back as MPOL_LOCAL, MPOL_BIND as MPOL_PREFERRED_MANY.
int PolicyOfThisThread() {
  int mode = -1;
  return syscall(SYS_get_mempolicy, &mode, nullptr, 0, nullptr, 0) == 0 ? mode : -1;
}

void SetPolicyOfThisThread(int mode_without_nodes) { syscall(SYS_set_mempolicy, mode_without_nodes, nullptr, 0); }

}  // namespace

void Topology::Destroy::operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }

// `describe` selects what is loaded; it returns -1, as hwloc does, if hwloc does not accept it.
absl::StatusOr<Topology> Topology::Load(const std::function<int(hwloc_topology*)>& describe) {
  hwloc_topology* raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return absl::UnavailableError("hwloc does not start: " + LastError());
  Handle handle(raw);
  if (describe(raw) != 0) return absl::InvalidArgumentError("hwloc does not take the description: " + LastError());
  // Excludes devices of the operating system: looking for those would start CUDA, OpenCL and more if hwloc's plugins
  // for them are installed.
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(raw, HWLOC_OBJ_PCI_DEVICE, HWLOC_TYPE_FILTER_KEEP_ALL);
  if (hwloc_topology_load(raw) != 0) return absl::UnavailableError("hwloc cannot load the topology: " + LastError());
  return Topology(std::move(handle));
}

absl::StatusOr<Topology> Topology::OfThisComputer() {
  return Load([](hwloc_topology*) { return 0; });
}

absl::StatusOr<Topology> Topology::OfDescription(const std::string& description) {
  return Load([&](hwloc_topology* topology) {
    hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM);
    return hwloc_topology_set_synthetic(topology, description.c_str());
  });
}

absl::StatusOr<Topology> Topology::OfXml(const std::string& xml) {
  return Load([&](hwloc_topology* topology) {
    hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM);
    return hwloc_topology_set_xmlbuffer(topology, xml.c_str(), static_cast<int>(xml.size()) + 1);
  });
}

int Topology::nodes() const { return hwloc_get_nbobjs_by_type(handle_.get(), HWLOC_OBJ_NUMANODE); }

int Topology::processors(int node) const {
  return hwloc_bitmap_weight(
      hwloc_get_obj_by_type(handle_.get(), HWLOC_OBJ_NUMANODE, static_cast<unsigned>(node))->cpuset);
}

int Topology::NodeNear(const std::string& pci_bus_id) const {
  hwloc_obj_t at = hwloc_get_pcidev_by_busidstring(handle_.get(), pci_bus_id.c_str());
  if (at != nullptr) at = hwloc_get_non_io_ancestor_obj(handle_.get(), at);
  if (at == nullptr) return -1;
  for (int n = 0; n < nodes(); ++n) {
    const hwloc_obj_t node = hwloc_get_obj_by_type(handle_.get(), HWLOC_OBJ_NUMANODE, static_cast<unsigned>(n));
    if (hwloc_bitmap_isequal(node->nodeset, at->nodeset)) return n;
  }
  return -1;
}

absl::Status Topology::OnNode(int node, const std::function<void()>& f) const {
  const int before = PolicyOfThisThread();
  const bool chosen = before > 0 && before != MPOL_LOCAL;
  if (nodes() <= 1 || node < 0 || node >= nodes() || chosen) {
    f();
    return absl::OkStatus();
  }
  const hwloc_obj_t object = hwloc_get_obj_by_type(handle_.get(), HWLOC_OBJ_NUMANODE, static_cast<unsigned>(node));
  const bool bound = before >= 0 && hwloc_set_membind(handle_.get(), object->nodeset, HWLOC_MEMBIND_BIND,
                                                      HWLOC_MEMBIND_THREAD | HWLOC_MEMBIND_BYNODESET) == 0;
  const std::string why = bound ? "" : LastError();
  f();
  if (!bound) return absl::UnavailableError(absl::StrCat("memory cannot be taken from NUMA node ", node, ": ", why));
  SetPolicyOfThisThread(before);
  return absl::OkStatus();
}

absl::Status Topology::RunOnNode(int node) const {
  if (nodes() <= 1 || node < 0 || node >= nodes()) return absl::OkStatus();
  const std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)> now(hwloc_bitmap_alloc(), &hwloc_bitmap_free);
  if (now == nullptr || hwloc_get_cpubind(handle_.get(), now.get(), HWLOC_CPUBIND_THREAD) != 0) return absl::OkStatus();
  const bool chosen = hwloc_bitmap_isincluded(hwloc_topology_get_topology_cpuset(handle_.get()), now.get()) == 0;
  const hwloc_obj_t object = hwloc_get_obj_by_type(handle_.get(), HWLOC_OBJ_NUMANODE, static_cast<unsigned>(node));
  if (chosen || hwloc_bitmap_iszero(object->cpuset) != 0) return absl::OkStatus();
  if (hwloc_set_cpubind(handle_.get(), object->cpuset, HWLOC_CPUBIND_THREAD) == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("a thread cannot run on NUMA node ", node, ": ", LastError()));
}

}  // namespace penstock::memory
