#include "src/analysis/machine.h"

#include <cstddef>

namespace penstock::analysis {

const Machine::Device* DeviceOf(const Machine& machine, const Profile& profile, int device) {
  if (device < 0 || static_cast<size_t>(device) >= profile.devices.size()) return nullptr;
  const Device& of = profile.devices[static_cast<size_t>(device)];
  for (const Machine::Device& known : machine.devices) {
    if (known.name == of.name && known.description == of.description) return &known;
  }
  return nullptr;
}

}  // namespace penstock::analysis
