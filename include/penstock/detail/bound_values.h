// BoundValues: what a Bindings (bindings.h) holds: the values and memory that a launch reads. Every call checks what it
// is given, and keeps a mistake until the same thing is set correctly.
//
// Threads: thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "penstock/detail/model.h"
#include "penstock/key.h"
#include "penstock/native.h"
#include "penstock/run.h"

namespace penstock {

// Memory given for one buffer.
struct BoundMemory {
  void* data = nullptr;
  int64_t elements = -1;  // -1: nothing bound
  bool read_only = false;  // bound from const memory: refused for Output and InOut
  bool once = false;  // moved in: the next run takes ownership of it
  bool held = false;  // `keep_alive` owns the memory itself, so its kind cannot change
  std::shared_ptr<const void> keep_alive{};  // held until the run has ended
  // Set by After:
  std::vector<Run> runs_ahead{};
  std::vector<NativeEvent> events_ahead{};
};

namespace detail {

// What owns bound memory, one entry for each buffer; null if nothing does.
using KeepAlives = std::shared_ptr<const std::vector<std::shared_ptr<const void>>>;

class BoundValues {
 public:
  BoundValues() = default;  // accepts everything
  explicit BoundValues(std::shared_ptr<const Model> model);

  // What Bindings sets. runtime::PendingBindings has the same calls.
  void SetParam(uint32_t graph, int32_t index, TypeInfo type, const void* value);
  void SetBuffer(uint32_t graph, int32_t index, TypeInfo type, BoundMemory&& memory);
  void SetPredecessors(uint32_t graph, int32_t index, TypeInfo type, std::span<const Run> runs,
                       std::span<const NativeEvent> events);
  void On(void* stream) { stream_ = stream; }
  void ClearBuffers();

  void SetKey(Key key) { key_ = key; }
  void ForgetMistakes() { mistakes_.clear(); }
  void Reset();  // forgets all that was set

  const std::shared_ptr<const Model>& model() const { return model_; }  // null: belongs to no executable
  const absl::Status* mistake() const { return mistakes_.empty() ? nullptr : &mistakes_.front().mistake; }
  bool Has(bool of_buffer, uint32_t graph, int32_t index) const;  // whether something is set for it
  bool IsSet(size_t param) const { return param_set_[param]; }
  const std::byte* Value(size_t param) const { return params_.data() + param_offsets_[param]; }
  const BoundMemory& Memory(size_t buffer) const { return buffers_[buffer]; }
  // The version of the memory that is set: changes with every Set, and copies share it. 0: a run has taken some of it.
  uint64_t version() const { return version_; }
  // The owners of the memory that is set: the same object until a Set, so that a run shares it and does not copy each.
  const KeepAlives& keep_alives() const;
  // Whether After may have been given something that is still waited for.
  bool may_have_predecessors() const { return may_have_predecessors_; }
  const std::optional<Key>& key() const { return key_; }
  void* stream() const { return stream_; }

  // A run has begun and takes the memory of these buffers, which was bound for one launch only.
  void Consume(std::span<const int32_t> buffers) const;

 private:
  // What a mistake is about: the value of a parameter, the memory of a buffer, or what that memory waits for.
  enum class About : uint8_t { kParam, kBuffer, kAfter };
  // A mistake and its subject; index -1: a handle of another graph.
  struct Noted {
    About about;
    int32_t index;
    absl::Status mistake;
  };
  bool CheckBuffer(About about, uint32_t graph, int32_t index, TypeInfo type);
  void ForgetKeepAlives() const;
  void Note(About about, int32_t index, absl::Status mistake);
  void Forgive(About about, int32_t index);

  std::shared_ptr<const Model> model_;
  std::vector<uint32_t> param_offsets_;
  std::vector<std::byte> params_;
  std::vector<bool> param_set_;
  mutable std::vector<BoundMemory> buffers_;  // a launch takes ownership of moved-in memory
  mutable uint64_t version_ = 0;
  mutable KeepAlives keep_alives_;  // made when they are first asked for
  mutable bool keep_alives_known_ = false;
  bool may_have_predecessors_ = false;
  std::vector<Noted> mistakes_;
  std::optional<Key> key_;
  void* stream_ = nullptr;
};

}  // namespace detail
}  // namespace penstock
