// Programs of algorithms that follow one another: Maps, ParallelFors over counts, Scan, Select, Histogram, sorts,
// ReduceByKey, Reduce, ArgMax, copies, fills, and Repeats of these. A fuzzer's bytes say which, on which of a few
// arrays of int32_t, with mistakes or without. algorithm_declarer.h declares one, algorithm_interpreter.h says what it
// computes.
//
// Threads: one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "penstock/graph.h"
#include "tests/fuzz/byte_source.h"
#include "tests/fuzz/hostile_graph.h"

namespace penstock::fuzz {

// How many elements an array has: as many as the run has, as many as there are bins, or one.
enum class Length : uint8_t { kRun, kBins, kOne };
inline constexpr int64_t kBinCount = 7;

struct ArrayDecl {
  const char* name;
  BufferRole role;
  Length length;
};
inline constexpr std::array<ArrayDecl, 14> kArrays{{
    {"x", BufferRole::kInput, Length::kRun},
    {"io", BufferRole::kInOut, Length::kRun},
    {"out", BufferRole::kOutput, Length::kRun},
    {"kept", BufferRole::kOutput, Length::kRun},  // the Output of which a count tells how many elements count
    {"t", BufferRole::kInternal, Length::kRun},
    {"u", BufferRole::kInternal, Length::kRun},
    {"v", BufferRole::kInternal, Length::kRun},
    {"state", BufferRole::kState, Length::kBins},
    {"bins out", BufferRole::kOutput, Length::kBins},
    {"bins", BufferRole::kInternal, Length::kBins},
    {"bins too", BufferRole::kInternal, Length::kBins},
    {"given", BufferRole::kInput, Length::kOne},
    {"count", BufferRole::kInternal, Length::kOne},
    {"count io", BufferRole::kInOut, Length::kOne},
}};
inline constexpr size_t kIn = 0, kKept = 3, kState = 7;  // indices of some of them

// One element of an array, which is a count; `at` is negative where all of the array is named, by mistake.
struct CountAt {
  size_t array = 0;
  int at = 0;

  bool operator==(const CountAt&) const = default;
};

struct AlgorithmStep {
  enum Kind : uint8_t {
    kMap,
    kScan,
    kSelect,
    kHistogram,
    kSort,
    kSortPairs,
    kReduceByKey,
    kReduce,
    kArgMax,
    kCountedFor,
    kCountedChange,
    kSetCount,
    kCopy,
    kFill,
    kRepeat
  };
  static constexpr int kKinds = 15;

  Kind kind = kMap;
  std::string name;
  size_t from = 0, with = 0, to = 0, also = 0;  // arrays that are read, and written
  CountAt count;  // the one that is written
  std::optional<CountAt> of;  // the one that says how many elements are taken
  bool wrong_maximum = false;  // of that
  bool without_initial = false;  // of an exclusive Scan whose operation has no identity
  uint8_t way = 0;  // which operation, order or formula
  int32_t number = 0;
  int device = -1;
  std::vector<AlgorithmStep> body;  // of a Repeat, which runs it `number` times

  bool WritesCount() const {
    return kind == kSelect || kind == kReduceByKey || kind == kReduce || kind == kArgMax || kind == kSetCount;
  }
};

// Writes a program as bytes say.
class AlgorithmWriter {
 public:
  // So many of 256 steps have a mistake.
  AlgorithmWriter(ByteSource& bytes, int of_256);

  const std::vector<AlgorithmStep>& program() const { return program_; }
  // Tells how many elements of the Output count.
  const CountAt& kept_count() const { return kept_count_; }
  // What a refusal tells of the mistakes.
  const std::vector<Known>& known() const { return known_; }

 private:
  void AddSome(std::vector<AlgorithmStep>& to, int depth);
  AlgorithmStep Repeat(int depth);
  // `follows`: it reads what was written last, if it can.
  AlgorithmStep One(AlgorithmStep::Kind kind, bool follows);
  void ChooseArrays(AlgorithmStep& step, bool follows);
  void ChooseCounts(AlgorithmStep& step);
  void Spoil(AlgorithmStep& step);
  std::string NextName() { return "step " + std::to_string(names_++); }
  void Note(const AlgorithmStep& step, const char* text) { known_.push_back({step.name, text}); }
  void MarkWritten(const AlgorithmStep& step);
  void WriteWhatIsMissing();
  size_t PickRead(Length length);
  size_t PickWrite(Length length, std::vector<size_t> but);
  CountAt PickCount(bool writes, std::vector<CountAt> but, std::vector<size_t> but_arrays);
  bool IsWritten(size_t array) const;
  bool IsUsable(size_t array) const;

  ByteSource& bytes_;
  const int of_256_;
  int names_ = 0, bodies_ = 0;  // of steps, and around what is written
  std::array<std::array<bool, kBinCount>, kArrays.size()> written_{};  // of long arrays only the first
  std::array<std::optional<CountAt>, kArrays.size()> counted_by_{};  // how many elements of it have values
  std::array<bool, kArrays.size()> used_{};  // some step writes it, or reads it before it is written
  std::array<bool, kArrays.size()> in_parts_{};  // some step writes an element of it, before all are written
  size_t last_ = 0;  // the array that was written last
  CountAt kept_count_;
  std::vector<AlgorithmStep> program_;
  std::vector<Known> known_;
};

}  // namespace penstock::fuzz
