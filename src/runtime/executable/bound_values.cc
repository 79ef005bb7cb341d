#include "penstock/detail/bound_values.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "graph/common/message.h"

namespace penstock::detail {

namespace {

uint64_t NextVersion() {
  static std::atomic<uint64_t> last{0};  // the version given out last
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

BoundValues::BoundValues(std::shared_ptr<const Model> model)
    : model_(std::move(model)),
      param_set_(model_->params.size(), false),
      buffers_(model_->buffers.size()),
      version_(NextVersion()) {
  uint32_t size = 0;
  for (const ParamDecl& p : model_->params) {
    param_offsets_.push_back(size);
    size += p.type.size;
  }
  params_.resize(size);
}

void BoundValues::ClearBuffers() {
  version_ = NextVersion();
  ForgetKeepAlives();
  for (BoundMemory& memory : buffers_) memory = {};
  std::erase_if(mistakes_, [](const Noted& n) { return n.about != About::kParam; });
}

void BoundValues::Reset() {
  std::fill(param_set_.begin(), param_set_.end(), false);
  const bool bound =
      std::any_of(buffers_.begin(), buffers_.end(), [](const BoundMemory& m) { return m.elements >= 0; });
  if (bound || !mistakes_.empty()) ClearBuffers();
  mistakes_.clear();
  key_.reset();
  stream_ = nullptr;
}

// Keeps the latest mistake about each thing, so that they stay few.
void BoundValues::Note(About about, int32_t index, absl::Status mistake) {
  Forgive(about, index);
  mistakes_.push_back({about, index, std::move(mistake)});
}

namespace {
std::string StrayHandle(const std::string& what, int32_t index, const char* how) {
  const std::string why = index < 0 ? "no " + what + "; its handle was never set"
                                    : "a " + what + " of another graph; a handle is good in the graph that made it";
  return why + "; use this graph's, " + how;
}
}  // namespace

void BoundValues::Forgive(About about, int32_t index) {
  if (mistakes_.empty()) return;
  std::erase_if(mistakes_, [&](const Noted& n) { return n.about == about && n.index == index; });
}

void BoundValues::SetParam(uint32_t graph, int32_t index, TypeInfo type, const void* value) {
  if (model_ == nullptr) return;
  if (graph != model_->serial || index < 0 || static_cast<size_t>(index) >= model_->params.size()) {
    return Note(About::kParam, -1,
                absl::InvalidArgumentError(graph::Prefix(*model_) + ": Set was given " +
                                           StrayHandle("parameter", index, "with fresh bindings")));
  }
  const auto i = static_cast<size_t>(index);
  if (!(model_->params[i].type == type)) {
    return Note(About::kParam, index,
                absl::InvalidArgumentError(graph::Prefix(*model_, "param", model_->params[i].name) + ": Set with " +
                                           graph::OtherTypeText(type, model_->params[i].type)));
  }
  Forgive(About::kParam, index);
  std::memcpy(params_.data() + param_offsets_[i], value, type.size);
  param_set_[i] = true;
}

// Whether it is a handle of this graph, with the buffer's own type.
bool BoundValues::CheckBuffer(About about, uint32_t graph, int32_t index, TypeInfo type) {
  if (model_ == nullptr) return false;
  const std::string call = about == About::kAfter ? "After" : "Set";
  if (graph != model_->serial || index < 0 || static_cast<size_t>(index) >= model_->buffers.size()) {
    Note(about, -1,
         absl::InvalidArgumentError(graph::Prefix(*model_) + ": " + call + " was given " +
                                    StrayHandle("buffer", index, "with fresh bindings or after ClearBuffers")));
    return false;
  }
  const BufferDecl& decl = model_->buffers[static_cast<size_t>(index)];
  if (decl.type == type) return true;
  Note(about, index,
       absl::InvalidArgumentError(graph::Prefix(*model_, "buffer", decl.name) + ": " + call + " with " +
                                  graph::OtherTypeText(type, decl.type)));
  return false;
}

void BoundValues::SetPredecessors(uint32_t graph, int32_t index, TypeInfo type, std::span<const Run> runs,
                                  std::span<const NativeEvent> events) {
  if (!CheckBuffer(About::kAfter, graph, index, type)) return;
  BoundMemory& memory = buffers_[static_cast<size_t>(index)];
  const BufferDecl& decl = model_->buffers[static_cast<size_t>(index)];
  const auto refuse = [&](const char* why) {
    Note(About::kAfter, index, absl::InvalidArgumentError(graph::Prefix(*model_, "buffer", decl.name) + ": " + why));
  };
  if (!IsBound(decl.role) || decl.where != Where::kDevice) {
    return refuse("After orders the use of device memory; wait for the run or event, or declare the buffer kDevice");
  }
  if (memory.elements < 0) return refuse("After before Set, which forgets it; call Set first");
  if (std::any_of(runs.begin(), runs.end(), [](const Run& run) { return !run; })) {
    return refuse("After was given a Run that was default-constructed or moved from; give one that Launch returned");
  }
  if (std::any_of(events.begin(), events.end(), [](NativeEvent event) { return event.handle == nullptr; })) {
    return refuse("After was given a null event; give one that was recorded");
  }
  Forgive(About::kAfter, index);
  may_have_predecessors_ = may_have_predecessors_ || !runs.empty() || !events.empty();
  memory.runs_ahead.assign(runs.begin(), runs.end());
  memory.events_ahead.assign(events.begin(), events.end());
}

void BoundValues::SetBuffer(uint32_t graph, int32_t index, TypeInfo type, BoundMemory&& memory) {
  if (!CheckBuffer(About::kBuffer, graph, index, type)) return;
  const auto i = static_cast<size_t>(index);
  const BufferDecl& decl = model_->buffers[i];
  if (decl.role == BufferRole::kState) {
    return Note(About::kBuffer, index,
                absl::InvalidArgumentError(graph::Prefix(*model_, "state", decl.name) +
                                           ": lives across runs and cannot be bound; use State::Set"));
  }
  if (decl.is_alias) {
    return Note(About::kBuffer, index,
                absl::InvalidArgumentError(graph::Prefix(*model_, "buffer", decl.name) +
                                           ": an alias has no memory of its own; bind the buffer it is a name for"));
  }
  if (decl.role == BufferRole::kInternal) {
    return Note(About::kBuffer, index,
                absl::InvalidArgumentError(graph::Prefix(*model_, "buffer", decl.name) +
                                           ": lives inside the run and cannot be bound; declare it Input, Output or "
                                           "InOut"));
  }
  if (decl.role == BufferRole::kParam) {
    return Note(About::kBuffer, index,
                absl::InvalidArgumentError(graph::Prefix(*model_, "buffer", decl.name) +
                                           ": is the value of a parameter and cannot be bound; set the parameter"));
  }
  Forgive(About::kBuffer, index);
  Forgive(About::kAfter, index);
  memory.runs_ahead.swap(buffers_[i].runs_ahead);  // to reuse their capacity
  memory.events_ahead.swap(buffers_[i].events_ahead);
  memory.runs_ahead.clear();
  memory.events_ahead.clear();
  ForgetKeepAlives();
  buffers_[i] = std::move(memory);
  version_ = NextVersion();
}

const KeepAlives& BoundValues::keep_alives() const {
  if (keep_alives_known_) return keep_alives_;
  keep_alives_known_ = true;
  const auto is_kept = [](const BoundMemory& memory) { return memory.keep_alive != nullptr; };
  if (std::none_of(buffers_.begin(), buffers_.end(), is_kept)) return keep_alives_;
  const auto all = std::make_shared<std::vector<std::shared_ptr<const void>>>();
  all->reserve(buffers_.size());
  for (const BoundMemory& memory : buffers_) all->push_back(memory.keep_alive);
  return keep_alives_ = all;
}

void BoundValues::ForgetKeepAlives() const {
  keep_alives_.reset();
  keep_alives_known_ = false;
}

bool BoundValues::Has(bool of_buffer, uint32_t graph, int32_t index) const {
  if (model_ == nullptr || graph != model_->serial || index < 0) return false;
  const bool refused = std::any_of(mistakes_.begin(), mistakes_.end(), [&](const Noted& n) {
    return (n.about != About::kParam) == of_buffer && n.index == index;
  });
  const auto i = static_cast<size_t>(index);
  if (refused) return false;
  return of_buffer ? i < buffers_.size() && buffers_[i].elements >= 0 : i < param_set_.size() && param_set_[i];
}

void BoundValues::Consume(std::span<const int32_t> buffers) const {
  if (buffers.empty()) return;
  ForgetKeepAlives();
  for (const int32_t b : buffers) buffers_[static_cast<size_t>(b)] = {};
  version_ = 0;
}

}  // namespace penstock::detail
