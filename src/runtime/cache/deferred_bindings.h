// PendingBindings: what a step that is being declared sets, until it is known whose bindings it is for.
//
// Bindings made on one write here (they are of no executable), and ApplyTo repeats it all on an executable's.
//
// Threads: single-threaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "penstock/bindings.h"

namespace penstock::runtime {

class PendingBindings {
 public:
  void SetParam(uint32_t graph, int32_t index, TypeInfo type, const void* value);
  void SetBuffer(uint32_t graph, int32_t index, TypeInfo type, BoundMemory memory);
  void AddPredecessor(uint32_t graph, int32_t index, TypeInfo type, const Run* run, void* event);
  void On(void* stream);
  void ClearBuffers();

  void Clear();
  // Once: what was moved in is moved on. The mistakes `to` has from another step are forgotten.
  void ApplyTo(Bindings& to);

 private:
  enum class Call : uint8_t { kSetParam, kSetBuffer, kAfterRun, kAfterEvent, kOn, kClearBuffers };
  struct Item {
    Call call;
    uint32_t graph = 0;
    int32_t index = -1;
    TypeInfo type{};
    size_t value = 0;  // of a parameter: where it begins in `values_`
    BoundMemory memory{};
    Run run{};
    void* native = nullptr;  // event or stream
  };
  std::vector<Item> items_;
  std::vector<std::byte> values_;
};

}  // namespace penstock::runtime
