// DeviceShare: a device that takes a part of what several devices share: runs (CompileOptions::devices) or shards
// (sharding.h).
//
// Threads: plain values.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <vector>

#include "penstock/export.h"
#include "penstock/machine_figures.h"

namespace penstock {

struct DeviceShare {
  // `index` in the runtime's device list, and the weight `of` that device.
  DeviceShare(int index, double of = 1) : device(index), weight(of) {}  // NOLINT: implicit
  int device;  // index in the runtime's list
  // How much of the whole it takes, compared with the others. Of runs: multiplies the device's measured speed when the
  // next run is placed, and scales its share of the keys; with 0 it gets only launches that name it. Of shards: its
  // part of the elements; with 0 it gets none.
  double weight;
};

// All devices of a machine, each with the weight of its memory's bandwidth, or of another figure: a device that is half
// as fast takes half as much. A device whose figure is unknown counts as the mean of the others, and all as equal if
// none is known.
//
//   ps::Blocked(0, ps::SharesOf(figures, &ps::MachineFigures::Device::fp32))
PENSTOCK_EXPORT std::vector<DeviceShare> SharesOf(
    const MachineFigures& figures, double MachineFigures::Device::* figure = &MachineFigures::Device::memory);

}  // namespace penstock
