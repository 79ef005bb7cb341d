#include "tests/fuzz/algorithm_program.h"

#include <algorithm>
#include <utility>

namespace penstock::fuzz {

using Step = AlgorithmStep;

AlgorithmWriter::AlgorithmWriter(ByteSource& bytes, int of_256) : bytes_(bytes), of_256_(of_256) {
  for (size_t a = 0; a < kArrays.size(); ++a) {
    const BufferRole role = kArrays[a].role;
    if (role != BufferRole::kOutput && role != BufferRole::kInternal) written_[a].fill(true);
  }
  kept_count_ = PickCount(true, {}, {});
  for (int left = 1 + bytes_.Below(12); left > 0; --left) AddSome(program_, 2);
  WriteWhatIsMissing();
}

void AlgorithmWriter::AddSome(std::vector<Step>& to, int depth) {
  constexpr int kChains = 4;  // kinds more: Maps that follow one another, which are fused
  const int kind = bytes_.Below(Step::kKinds + kChains);
  if (kind == Step::kRepeat && depth > 0) return to.push_back(Repeat(depth - 1));
  if (kind < Step::kRepeat) return to.push_back(One(static_cast<Step::Kind>(kind), false));
  for (int left = 2 + bytes_.Below(5); left > 0; --left) to.push_back(One(Step::kMap, true));
}

AlgorithmStep AlgorithmWriter::Repeat(int depth) {
  Step step;
  step.kind = Step::kRepeat;
  step.name = NextName();
  step.number = bytes_.Below(4);
  const auto before = written_;
  ++bodies_;
  for (int left = 1 + bytes_.Below(4); left > 0; --left) AddSome(step.body, depth);
  --bodies_;
  written_ = before;  // it may run no time
  return step;
}

AlgorithmStep AlgorithmWriter::One(Step::Kind kind, bool follows) {
  Step step;
  step.kind = kind;
  step.name = NextName();
  ChooseArrays(step, follows);
  ChooseCounts(step);
  if (of_256_ > 0 && bytes_.Chance(of_256_)) Spoil(step);
  MarkWritten(step);
  return step;
}

void AlgorithmWriter::ChooseArrays(AlgorithmStep& step, bool follows) {
  const bool of_bins = bodies_ == 0 && !follows && bytes_.Chance(64);
  const auto length = of_bins ? Length::kBins : Length::kRun;
  step.way = bytes_.Byte();
  step.number = bytes_.Byte() - 128;
  step.device = bytes_.Chance(64) ? bytes_.Below(2) : -1;
  const bool may_follow = kArrays[last_].length == length && IsWritten(last_);
  step.from = may_follow && (follows || bytes_.Chance(128)) ? last_ : PickRead(length);
  step.with = PickRead(length);
  const bool in_place = step.kind == Step::kMap || step.kind == Step::kScan;
  step.to = PickWrite(length, in_place ? std::vector<size_t>() : std::vector{step.from, step.with});
  if (step.kind == Step::kHistogram) step.to = PickWrite(Length::kBins, {step.from});
  if (step.kind == Step::kCountedChange && !IsWritten(step.to)) step.kind = Step::kCountedFor;
  step.also = step.kind == Step::kSortPairs || step.kind == Step::kReduceByKey
                  ? PickWrite(length, {step.from, step.with, step.to})
                  : step.to;
}

void AlgorithmWriter::ChooseCounts(AlgorithmStep& step) {
  const bool needs_count = step.kind == Step::kCountedFor || step.kind == Step::kCountedChange;
  const bool may_count = step.kind == Step::kScan || step.kind == Step::kHistogram || step.WritesCount();
  const std::optional<CountAt> known = counted_by_[step.from];
  if (needs_count || (may_count && step.kind != Step::kSetCount && bytes_.Chance(known.has_value() ? 192 : 64))) {
    const bool again = known.has_value() && written_[known->array][static_cast<size_t>(known->at)] &&
                       IsUsable(known->array) && known->array != step.to && known->array != step.also &&
                       bytes_.Chance(224);
    step.of = again ? *known : PickCount(false, {}, {step.to, step.also});
  }
  if (!step.WritesCount()) return;
  std::vector<size_t> apart{step.from, step.with};
  if (step.kind == Step::kSelect || step.kind == Step::kReduceByKey) apart.insert(apart.end(), {step.to, step.also});
  step.count = PickCount(true, step.of.has_value() ? std::vector{*step.of} : std::vector<CountAt>(), apart);
}

// Makes one mistake, if the step can have the one that the bytes say. A Map then has a formula that reads.
void AlgorithmWriter::Spoil(AlgorithmStep& step) {
  if (step.kind == Step::kMap) step.way = 0;
  const bool compacts = step.kind == Step::kSelect || step.kind == Step::kReduceByKey;
  const bool sorts = step.kind == Step::kSort || step.kind == Step::kSortPairs;
  switch (bytes_.Below(7)) {
    case 0:
      if (step.kind != Step::kMap && step.kind != Step::kScan && !compacts && !sorts) return;
      if (kArrays[step.from].length != Length::kRun || bodies_ > 0) return;
      step.to = PickWrite(Length::kBins, {step.count.array, step.of.value_or(CountAt()).array});
      return Note(step, compacts ? "may write as many to" : "boxes of one shape");
    case 1:
      if (!compacts && !sorts && (step.kind != Step::kHistogram || kArrays[step.from].length != Length::kBins)) return;
      if (kArrays[step.from].role == BufferRole::kInput) return;  // which none writes
      step.to = step.from;
      return Note(step, "which may be the same memory");
    case 2:
      if (!step.of.has_value() || kArrays[step.of->array].length != Length::kBins || !IsWritten(step.of->array)) return;
      step.of->at = -1;
      return Note(step, "one integer; name a buffer of one element");
    case 3:
      if (!step.of.has_value() || step.kind == Step::kCountedFor || step.kind == Step::kCountedChange) return;
      step.wrong_maximum = true;
      return Note(step, "its CountOf has a maximum of");
    case 4:
      if (!step.of.has_value() || !step.WritesCount() || kArrays[step.of->array].role == BufferRole::kInput) return;
      step.count = *step.of;
      return Note(step, "which may be the same memory");
    case 5:
      if (step.kind != Step::kScan) return;
      step.without_initial = true;
      return Note(step, "the operation has none");
    default: {
      if (step.kind == Step::kFill || step.kind == Step::kSetCount) return;
      constexpr size_t kFirst = 2, kPast = 7;  // arrays that nothing gives values before the run
      const auto array = kFirst + static_cast<size_t>(bytes_.Below(kPast - kFirst));
      const bool other = kArrays[step.from].length != Length::kRun || step.to == array || step.also == array;
      if (other || IsWritten(array) || std::exchange(used_[array], true)) return;
      step.from = array;
      return Note(step, "before any node has written it");
    }
  }
}

void AlgorithmWriter::MarkWritten(const AlgorithmStep& step) {
  const bool writes = step.kind != Step::kReduce && step.kind != Step::kArgMax && step.kind != Step::kSetCount;
  const bool some = step.kind == Step::kSelect || step.kind == Step::kReduceByKey;
  for (const size_t array : {step.to, step.also}) {
    if (!writes) break;
    written_[array].fill(true);
    used_[array] = true;
    last_ = array;
    std::optional<CountAt> by = some ? std::optional(step.count) : step.of;
    if (step.kind == Step::kMap || step.kind == Step::kCopy) by = counted_by_[step.from];
    const bool gives_all = step.kind == Step::kHistogram || step.kind == Step::kSort;
    counted_by_[array] = gives_all || (by.has_value() && by->at < 0) ? std::nullopt : by;
  }
  if (!step.WritesCount()) return;
  written_[step.count.array][static_cast<size_t>(std::max(step.count.at, 0))] = true;
  if (!IsWritten(step.count.array)) in_parts_[step.count.array] = true;
}

// Outputs, and what tells how many elements of one count.
void AlgorithmWriter::WriteWhatIsMissing() {
  const auto add = [&](Step::Kind kind, size_t from, size_t to) {
    Step step;
    step.kind = kind;
    step.name = NextName();
    step.from = step.with = from;
    step.to = step.also = to;
    step.count = kept_count_;
    MarkWritten(program_.emplace_back(step));
  };
  for (size_t a = 0; a < kArrays.size(); ++a) {
    if (kArrays[a].role == BufferRole::kOutput && !IsWritten(a)) {
      add(Step::kMap, kArrays[a].length == Length::kRun ? kIn : kState, a);
    }
  }
  if (!written_[kept_count_.array][static_cast<size_t>(kept_count_.at)]) add(Step::kSetCount, kIn, kIn);
}

size_t AlgorithmWriter::PickRead(Length length) {
  std::vector<size_t> may;
  for (size_t a = 0; a < kArrays.size(); ++a) {
    if (kArrays[a].length == length && IsWritten(a)) may.push_back(a);
  }
  return may[static_cast<size_t>(bytes_.Below(static_cast<int>(may.size())))];
}

size_t AlgorithmWriter::PickWrite(Length length, std::vector<size_t> but) {
  std::vector<size_t> may;
  for (size_t a = 0; a < kArrays.size(); ++a) {
    if (kArrays[a].length != length || kArrays[a].role == BufferRole::kInput || !IsUsable(a)) continue;
    if (std::find(but.begin(), but.end(), a) == but.end()) may.push_back(a);
  }
  return may[static_cast<size_t>(bytes_.Below(static_cast<int>(may.size())))];
}

CountAt AlgorithmWriter::PickCount(bool writes, std::vector<CountAt> but, std::vector<size_t> but_arrays) {
  std::vector<CountAt> may;
  for (size_t a = 0; a < kArrays.size(); ++a) {
    const ArrayDecl& array = kArrays[a];
    if (array.length == Length::kRun || (writes && array.role == BufferRole::kInput) || !IsUsable(a)) continue;
    if (std::find(but_arrays.begin(), but_arrays.end(), a) != but_arrays.end()) continue;
    for (int at = 0; at < (array.length == Length::kOne ? 1 : kBinCount); ++at) {
      const CountAt count{a, at};
      if (!writes && !written_[a][static_cast<size_t>(at)]) continue;
      if (std::find(but.begin(), but.end(), count) == but.end()) may.push_back(count);
    }
  }
  return may[static_cast<size_t>(bytes_.Below(static_cast<int>(may.size())))];
}

bool AlgorithmWriter::IsWritten(size_t array) const {
  const size_t elements = kArrays[array].length == Length::kBins ? kBinCount : 1;
  return std::all_of(written_[array].begin(), written_[array].begin() + elements, [](bool is) { return is; });
}

// A construct counts as one that uses all of what it accesses, so nothing in it may access what is written in part.
bool AlgorithmWriter::IsUsable(size_t array) const { return bodies_ == 0 || IsWritten(array) || !in_parts_[array]; }

}  // namespace penstock::fuzz
