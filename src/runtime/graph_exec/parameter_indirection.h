// ParameterIndirection: which nodes of a slot's graphs have their parameters by value, and which read them from device
// memory, where one copy at the head of a graph brings the parameters of all of them.
//
//                 enabled: in 8 launches in a row 16 nodes or more had new parameters
//             ------------------------------------------------------------------------->
//   by value                                                                             by reference
//             <-------------------------------------------------------------------------
//                 disabled: in 24 launches in a row no parameter that is read there was new
//
// Only the nodes that had new parameters then change over; disabling takes all of them back. Setting a node costs
// 0.35 us, instantiating it again 3 us, the copy 3.5 us, and a node that reads its parameters begins 0.13 us later
// (H200, bench/replay). Either way is kept until it has cost about as much as the change does. Why: docs/adr/005.
//
// While it is by reference the device has old parameters (`stale`) from when one differs until the copy has brought it.
//
// Threads: thread-compatible; it knows no graph, device or clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace penstock::runtime {

class ParameterIndirection {
 public:
  static constexpr size_t kManyNodes = 16;
  static constexpr int kLaunchesToEnable = 8, kLaunchesToDisable = 24;

  // `uses[p]`: how many arguments of nodes are the parameter p.
  ParameterIndirection(size_t entries, std::vector<int32_t> uses);

  // Before that nothing changes over.
  void Allow() { allowed_ = true; }
  bool by_ref(int32_t entry) const { return by_ref_[static_cast<size_t>(entry)]; }
  bool stale() const { return stale_; }

  // The parameter differs from the launch before. True: every node that takes it reads it from device memory.
  bool AllRead(size_t param);
  // The same of a node that takes the parameter. True: it reads it from device memory.
  bool Reads(int32_t entry);

  // Once a launch, when it is known how many nodes have new parameters by value: whether those are to change over. Then
  // whether all that read are to change back.
  bool ShouldEnable(size_t differing);
  bool ShouldDisable();
  // The node reads from now on, and takes each of its parameters from those by value. False: it has done so before.
  bool Enable(int32_t entry);
  void TakeFrom(uint32_t param) { --by_value_[param]; }
  // No node reads any more. Calls `f` with each that did, which is to give back all its parameters and to have them by
  // value.
  template <class F>
  void DisableAll(F f) {
    for (const int32_t entry : reading_) {
      by_ref_[static_cast<size_t>(entry)] = false;
      f(entry);
    }
    reading_.clear();
  }
  void GiveBack(uint32_t param) { ++by_value_[param]; }

  // The copy has been launched.
  void Copied() { stale_ = false; }

 private:
  std::vector<bool> by_ref_;  // an entry each
  std::vector<int32_t> by_value_;  // of each parameter: how many arguments are it by value
  std::vector<int32_t> reading_;  // entries by reference
  bool allowed_ = false;
  bool stale_ = false;
  int many_ = 0;  // launches in a row, up to this one, in which many nodes had new parameters
  int same_ = 0;  // in which no parameter that is read was new
};

}  // namespace penstock::runtime
