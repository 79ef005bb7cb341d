#include "penstock/device_share.h"

namespace penstock {

std::vector<DeviceShare> SharesOf(const MachineFigures& figures, double MachineFigures::Device::* figure) {
  double sum = 0;
  int known = 0;
  for (const MachineFigures::Device& device : figures.devices) {
    if (!(device.*figure > 0)) continue;
    sum += device.*figure;
    ++known;
  }
  const double mean = known > 0 ? sum / known : 1;
  std::vector<DeviceShare> shares;
  for (const MachineFigures::Device& device : figures.devices) {
    shares.emplace_back(static_cast<int>(shares.size()), device.*figure > 0 ? device.*figure : mean);
  }
  return shares;
}

}  // namespace penstock
