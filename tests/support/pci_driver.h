// A null driver whose devices hang on the PCI bus of a described computer: two NUMA nodes, a GPU on each.
//
// Threads: as NullDriver.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tests/support/null_driver.h"

namespace penstock::runtime {

class PciDriver : public NullDriver {
 public:
  explicit PciDriver(std::vector<std::string> bus_ids) {
    for (std::string& id : bus_ids) {
      infos_.push_back(
          {driver::DeviceKind::kHost, "host:" + std::to_string(infos_.size()), "", int64_t{1} << 40, 1, std::move(id)});
    }
  }
  int device_count() const override { return static_cast<int>(infos_.size()); }
  const driver::DeviceInfo& device(int device) const override { return infos_[static_cast<size_t>(device)]; }

 private:
  std::vector<driver::DeviceInfo> infos_;
};

// Of a processor each.
inline constexpr char kTwoNodes[] = R"(<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE topology SYSTEM "hwloc2.dtd">
<topology version="2.0">
 <object type="Machine" os_index="0" cpuset="0x3" complete_cpuset="0x3" allowed_cpuset="0x3" nodeset="0x3"
   complete_nodeset="0x3" allowed_nodeset="0x3" gp_index="1">
  <object type="Package" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="2">
   <object type="NUMANode" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="3"/>
   <object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="4"/>
   <object type="PCIDev" gp_index="5" pci_busid="0000:3b:00.0" pci_type="0302 [10de:2335] [10de:18be] a1"/>
  </object>
  <object type="Package" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x2" complete_nodeset="0x2" gp_index="6">
   <object type="NUMANode" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x2" complete_nodeset="0x2" gp_index="7"/>
   <object type="PU" os_index="1" cpuset="0x2" complete_cpuset="0x2" nodeset="0x2" complete_nodeset="0x2" gp_index="8"/>
   <object type="PCIDev" gp_index="9" pci_busid="0000:af:00.0" pci_type="0302 [10de:2335] [10de:18be] a1"/>
  </object>
 </object>
</topology>)";

}  // namespace penstock::runtime
