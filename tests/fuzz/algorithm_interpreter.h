// What a program of algorithms (algorithm_program.h) computes, by plain loops that use nothing of the library. What is
// unspecified, and all that is made of it, is known to be so.
//
// Threads: one.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "tests/fuzz/algorithm_program.h"

namespace penstock::fuzz {

struct Cell {
  int32_t value = 0;
  bool known = false;
};
using Cells = std::vector<Cell>;

class AlgorithmInterpreter {
 public:
  // `memory`: what the arrays hold before the run, and how long they are. `param` is the run's parameter.
  AlgorithmInterpreter(std::vector<Cells> memory, int32_t param) : memory_(std::move(memory)), param_(param) {}

  void Run(const std::vector<AlgorithmStep>& program);
  const Cells& at(size_t array) const { return memory_[array]; }
  const Cell& at(const CountAt& count) const { return memory_[count.array][static_cast<size_t>(count.at)]; }

 private:
  void Do(const AlgorithmStep& step);
  int32_t Formula(const AlgorithmStep& step, int32_t a, int32_t b) const;
  void Scan(const AlgorithmStep& step, const Cells& taken);
  void Keep(const AlgorithmStep& step, const Cells& taken);
  void CountBins(const AlgorithmStep& step, const Cells& taken);
  void Sort(const AlgorithmStep& step);
  void ReduceRuns(const AlgorithmStep& step, const Cells& taken);
  void Reduce(const AlgorithmStep& step, const Cells& taken);
  // What is not written next is unspecified in memory that does not outlive the run.
  void BeginSome(size_t array);
  void Forget(size_t array);
  void Put(size_t array, const std::vector<int32_t>& values);  // the first ones
  void Put(const CountAt& count, int64_t value) {
    memory_[count.array][static_cast<size_t>(count.at)] = {static_cast<int32_t>(value), true};
  }

  std::vector<Cells> memory_;
  const int32_t param_;
};

}  // namespace penstock::fuzz
