// Declares a program of algorithms (algorithm_program.h) as a graph.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <vector>

#include "penstock/graph.h"
#include "penstock/state.h"
#include "tests/fuzz/algorithm_program.h"

namespace penstock::fuzz {

class AlgorithmDeclarer {
 public:
  // The arrays of the run's length have `most` elements, or a parameter of at most so many.
  AlgorithmDeclarer(Graph& graph, const CountAt& kept_count, State<int32_t>& state, int64_t most, bool any_length);

  void Declare(Graph& graph, const std::vector<AlgorithmStep>& program) const;

  BufferHandle<int32_t> array(size_t index) const { return arrays_[index]; }
  ParamHandle<int32_t> param() const { return param_; }
  ParamHandle<int64_t> length() const { return length_; }

 private:
  void One(Graph& graph, const AlgorithmStep& step) const;
  void Map(Graph& graph, const AlgorithmStep& step) const;
  void Scan(Graph& graph, const AlgorithmStep& step) const;
  void Reduce(Graph& graph, const AlgorithmStep& step) const;
  Dim LengthOf(size_t array) const;
  BufferHandle<int32_t> MakeArray(Graph& graph, size_t index) const;
  auto ReadAt(const CountAt& count) const { return Read(arrays_[count.array], BoxOf(count)); }
  auto WriteAt(const CountAt& count) const { return Write(arrays_[count.array], BoxOf(count)); }
  static Box BoxOf(const CountAt& count) {
    const bool whole = count.at < 0 || kArrays[count.array].length == Length::kOne;
    return whole ? Box() : Slice({int64_t{count.at}}, {1});
  }
  // Calls f with the count that the step has, or without, and puts what it declares where it shall run.
  template <class F>
  void WithCount(const AlgorithmStep& step, F f) const;

  const int64_t most_;
  const bool any_length_;
  ParamHandle<int32_t> param_;
  ParamHandle<int64_t> length_;
  std::vector<BufferHandle<int32_t>> arrays_;
};

}  // namespace penstock::fuzz
