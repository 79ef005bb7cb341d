// RunHostcalls: the hostcalls of a run: those of its slot, and those of the constructs that its devices decide.
//
// Ownership: owns the slot's; borrows those of parts, whose slots the constructs hold.
// Threads:   used only by the slot's owner.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "src/runtime/calls/hostcalls.h"

namespace penstock::runtime {

class RunHostcalls {
 public:
  // Returns the hostcalls of the slot (Program::hostcalls), or null if it has none.
  const Hostcalls* own() const { return own_.get(); }
  void SetOwn(std::unique_ptr<Hostcalls> own) {
    own_ = std::move(own);
    all_.push_back(own_.get());
  }
  // Adds the hostcalls of a part of a construct, and of the constructs in it.
  void Add(const RunHostcalls& part) { all_.insert(all_.end(), part.all_.begin(), part.all_.end()); }

  // For all of them: see Hostcalls.
  void Begin(int64_t serial) {
    for (Hostcalls* const of : all_) of->BeginRun(serial);
  }
  void End() {
    for (Hostcalls* const of : all_) of->EndRun();
  }
  bool settled() const {
    return std::all_of(all_.begin(), all_.end(), [](const Hostcalls* of) { return of->settled(); });
  }

 private:
  std::unique_ptr<Hostcalls> own_;
  std::vector<Hostcalls*> all_;
};

}  // namespace penstock::runtime
