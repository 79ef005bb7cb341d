// PendingBindings: records what a step sets while it is being declared, until it is known whose bindings that is for.
//
// Bindings made on a PendingBindings write to it (they belong to no executable), and ApplyTo replays the calls on an
// executable's BoundValues, which have the same calls.
//
// Threads: single-threaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "penstock/detail/bound_values.h"

namespace penstock::runtime {

class PendingBindings {
 public:
  void SetParam(uint32_t graph, int32_t index, TypeInfo type, const void* value);
  void SetBuffer(uint32_t graph, int32_t index, TypeInfo type, BoundMemory&& memory);
  void SetPredecessors(uint32_t graph, int32_t index, TypeInfo type, std::span<const Run> runs,
                       std::span<const NativeEvent> events);
  void On(void* stream);
  void ClearBuffers();
  bool Has(bool of_buffer, uint32_t graph, int32_t index) const;

  void Clear();
  // Call once: it moves values on. It forgets the mistakes that `to` has from another step.
  void ApplyTo(detail::BoundValues& to);

 private:
  enum class Call : uint8_t { kSetParam, kSetBuffer, kAfter, kOn, kClearBuffers };
  struct Item {
    Call call;
    uint32_t graph = 0;
    int32_t index = -1;
    TypeInfo type{};
    size_t value = 0;  // a parameter's offset in `values_`
    BoundMemory memory{};  // for kAfter: only what comes first
    void* stream = nullptr;
  };
  std::vector<Item> items_;
  std::vector<std::byte> values_;
};

}  // namespace penstock::runtime
