// ParameterIndirection: which nodes of a slot's graphs hold their parameters by value, and which read them from device
// memory, which one copy at the head of a graph fills for all of them.
//
//                 enabled: in 8 launches in a row 16 nodes or more had new parameters
//             ------------------------------------------------------------------------->
//   by value                                                                             by reference
//             <-------------------------------------------------------------------------
//                 disabled: in 24 launches in a row no parameter read by reference was new
//
// Enabling converts only the nodes that had new parameters; disabling converts all of them back. Setting a node costs
// 0.35 us, instantiating it again 3 us, the copy 3.5 us, and a node that reads its parameters begins 0.13 us later
// (H200, bench/replay). Each state is kept until it has cost about as much as the conversion does. Why: docs/adr/005.
//
// By reference, the device's parameters are out of date (`stale`) from when one differs until the copy is launched.
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
  // `uses[p]`: how many arguments of nodes are the parameter p.
  ParameterIndirection(size_t entries, std::vector<int32_t> uses);

  // No node is converted before this call.
  void Allow() { allowed_ = true; }
  bool indirect(int32_t entry) const { return indirect_[entry]; }
  bool stale() const { return stale_; }

  // The parameter differs from the previous launch. Returns true if all nodes that take it read it from the device.
  bool AllRead(size_t param);
  // The same for a node that takes the parameter. Returns true if it reads it from device memory.
  bool Reads(int32_t entry);

  // Called once for each launch, when it is known how many nodes have new parameters by value: whether those nodes are
  // to be converted, and then whether all nodes by reference are to be converted back.
  bool ShouldEnable(size_t differing);
  bool ShouldDisable();
  // Converts the node, whose parameters are then taken from those by value (TakeFrom). Returns false if it already was.
  bool Enable(int32_t entry);
  void TakeFrom(uint32_t param) { --by_value_[param]; }
  // Converts all nodes back. Calls `f` with each one, which must give back all its parameters and set them by value.
  template <class F>
  void DisableAll(F f) {
    for (const int32_t entry : reading_) {
      indirect_[entry] = false;
      f(entry);
    }
    reading_.clear();
  }
  void GiveBack(uint32_t param) { ++by_value_[param]; }

  // The copy has been launched.
  void Copied() { stale_ = false; }

 private:
  std::vector<bool> indirect_;  // one for each entry
  std::vector<int32_t> by_value_;  // for each parameter: how many arguments hold it by value
  std::vector<int32_t> reading_;  // entries by reference
  bool allowed_ = false;
  bool stale_ = false;
  int many_ = 0;  // launches in a row, up to this one, in which many nodes had new parameters
  int same_ = 0;  // launches in a row in which no parameter that is read by reference was new
};

}  // namespace penstock::runtime
