#include "src/runtime/cache/deferred_bindings.h"

#include <cstring>
#include <utility>

namespace penstock::runtime {

void PendingBindings::SetParam(uint32_t graph, int32_t index, TypeInfo type, const void* value) {
  items_.push_back({.call = Call::kSetParam, .graph = graph, .index = index, .type = type, .value = values_.size()});
  const auto* const bytes = static_cast<const std::byte*>(value);
  values_.insert(values_.end(), bytes, bytes + type.size);
}

void PendingBindings::SetBuffer(uint32_t graph, int32_t index, TypeInfo type, BoundMemory&& memory) {
  items_.push_back(
      {.call = Call::kSetBuffer, .graph = graph, .index = index, .type = type, .memory = std::move(memory)});
}

void PendingBindings::SetPredecessors(uint32_t graph, int32_t index, TypeInfo type, std::span<const Run> runs,
                                      std::span<const NativeEvent> events) {
  Item item{.call = Call::kAfter, .graph = graph, .index = index, .type = type};
  item.memory.runs_ahead.assign(runs.begin(), runs.end());
  item.memory.events_ahead.assign(events.begin(), events.end());
  items_.push_back(std::move(item));
}

void PendingBindings::On(void* stream) { items_.push_back({.call = Call::kOn, .stream = stream}); }

void PendingBindings::ClearBuffers() { items_.push_back({.call = Call::kClearBuffers}); }

bool PendingBindings::Has(bool of_buffer, uint32_t graph, int32_t index) const {
  bool has = false;
  for (const Item& item : items_) {
    if (of_buffer && item.call == Call::kClearBuffers) has = false;
    if (item.call != (of_buffer ? Call::kSetBuffer : Call::kSetParam)) continue;
    has = has || (item.graph == graph && item.index == index);
  }
  return has;
}

void PendingBindings::Clear() {
  items_.clear();
  values_.clear();
}

void PendingBindings::ApplyTo(detail::BoundValues& to) {
  to.ForgetMistakes();
  for (Item& item : items_) {
    switch (item.call) {
      case Call::kSetParam: to.SetParam(item.graph, item.index, item.type, values_.data() + item.value); break;
      case Call::kSetBuffer: to.SetBuffer(item.graph, item.index, item.type, std::move(item.memory)); break;
      case Call::kAfter:
        to.SetPredecessors(item.graph, item.index, item.type, item.memory.runs_ahead, item.memory.events_ahead);
        break;
      case Call::kOn: to.On(item.stream); break;
      case Call::kClearBuffers: to.ClearBuffers(); break;
    }
  }
  Clear();
}

}  // namespace penstock::runtime
