// Bindings: hands what is set to its values, or to those that wait for the step that is being declared.
#include "penstock/bindings.h"

#include "src/runtime/cache/deferred_bindings.h"

namespace penstock {

template <class F>
void Bindings::To(F set) {
  if (pending_ != nullptr) set(*pending_);
  else set(values_);
}

bool Bindings::Has(bool of_buffer, uint32_t graph, int32_t index) const {
  return pending_ != nullptr ? pending_->Has(of_buffer, graph, index) : values_.Has(of_buffer, graph, index);
}

Bindings& Bindings::SetKey(Key key) & {
  values_.SetKey(key);
  return *this;
}

Bindings& Bindings::On(NativeStream stream) & {
  To([&](auto& to) { to.On(stream.handle); });
  return *this;
}

void Bindings::ClearBuffers() {
  To([](auto& to) { to.ClearBuffers(); });
}

void Bindings::SetParam(uint32_t graph, int32_t index, TypeInfo type, const void* value) {
  To([&](auto& to) { to.SetParam(graph, index, type, value); });
}

void Bindings::SetBuffer(uint32_t graph, int32_t index, TypeInfo type, BoundMemory memory) {
  To([&](auto& to) { to.SetBuffer(graph, index, type, std::move(memory)); });
}

void Bindings::SetPredecessors(uint32_t graph, int32_t index, TypeInfo type, std::span<const Run> runs,
                               std::span<const NativeEvent> events) {
  To([&](auto& to) { to.SetPredecessors(graph, index, type, runs, events); });
}

}  // namespace penstock
