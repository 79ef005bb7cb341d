// The work: lists of tiny tasks on 32-bit words, each with constants of its own, as functors and kernels, and on the
// CPU. Tasks are numbered level by level; a level has one in each lane.
//
// Chains:   each lane has a word, which its tasks change by x * mul + add, one after the other.
// Stencil:  a task makes a word from three neighbours of the level before, the borders repeated. Two rows of words take
//           turns: those that a task waits for to read what they wrote are also those that have read what it
//           overwrites, so two rows give no edge that as many rows as levels would not, and all of them stay in cache.
// DAG:      a task makes a word of its own from those of one to three random tasks of the level before.
//
// Penstock's graphs have all words in one buffer, of which a task accesses slices of one element: the planner compares
// the slices, and finds just the edges that `Task::after` has.
//
// Threads: plain values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/eager/penstock.cuh"
#include "bench/eager/work.cuh"
#include "words.cuh"

namespace bench {

// What a task does: a ChainStep; a StencilStep; a StencilStep that takes so many cycles of the device; or one that so
// many rounds of arithmetic follow.
enum class Code { kStep, kMix, kSpin, kHeavy };

struct Task {
  int left = 0, middle = 0, right = 0;  // words that it reads; kStep reads what it writes
  int out = 0;
  std::vector<int> after{};  // tasks, all of the level before
  Constants k{};
  uint32_t turns = 0;  // cycles or rounds
};

// On a host nothing spins.
PENSTOCK_HOST_DEVICE inline uint32_t SpinStep(const uint32_t* left, const uint32_t* middle, const uint32_t* right,
                                              Constants k, [[maybe_unused]] uint32_t cycles) {
#if defined(__CUDA_ARCH__)
  const long long begin = clock64();
#endif
  const uint32_t made = StencilStep(*left, *middle, *right, k);
#if defined(__CUDA_ARCH__)
  while (clock64() - begin < cycles) {
  }
#endif
  return made;
}
PENSTOCK_HOST_DEVICE inline uint32_t HeavyStep(uint32_t left, uint32_t middle, uint32_t right, Constants k,
                                               uint32_t rounds) {
  uint32_t x = StencilStep(left, middle, right, k);
  for (uint32_t round = 0; round < rounds; ++round) x = (x ^ (x >> 15)) * k.mul + k.add;
  return x;
}

struct SpinFunctor {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, const uint32_t* left, const uint32_t* middle, const uint32_t* right,
                                       uint32_t* out, Constants k, uint32_t cycles) const {
    *out = SpinStep(left, middle, right, k, cycles);
  }
};
struct HeavyFunctor {
  PENSTOCK_HOST_DEVICE void operator()(int64_t, const uint32_t* left, const uint32_t* middle, const uint32_t* right,
                                       uint32_t* out, Constants k, uint32_t rounds) const {
    *out = HeavyStep(*left, *middle, *right, k, rounds);
  }
};

struct TaskList {
  std::string name;
  Code code = Code::kStep;
  int lanes = 1;
  int words = 1, inputs = 1;  // the first words are input, the others are written before they are read
  std::vector<Task> tasks{};

  int levels() const { return static_cast<int>(tasks.size()) / lanes; }

  // What the words are afterwards.
  std::vector<uint32_t> OnCpu(std::vector<uint32_t> given) const {
    uint32_t* const w = given.data();
    for (const Task& t : tasks) {
      if (code == Code::kStep) w[t.out] = ChainStep(w[t.out], t.k);
      else if (code == Code::kHeavy) w[t.out] = HeavyStep(w[t.left], w[t.middle], w[t.right], t.k, t.turns);
      else w[t.out] = StencilStep(w[t.left], w[t.middle], w[t.right], t.k);
    }
    return given;
  }
};

inline std::string Times(int a, int b) { return std::to_string(a) + " x " + std::to_string(b); }

inline TaskList Chains(int lanes, int levels, std::mt19937& random) {
  TaskList list{lanes == 1 ? "chain of " + std::to_string(levels)
                           : std::to_string(lanes) + " chains of " + std::to_string(levels),
                Code::kStep, lanes, lanes, lanes};
  for (const Constants& k : RandomConstants(lanes * levels, random)) {
    const auto t = static_cast<int>(list.tasks.size());
    Task task{.out = t % lanes, .k = k};
    if (t >= lanes) task.after = {t - lanes};
    list.tasks.push_back(std::move(task));
  }
  return list;
}

inline TaskList StencilOf(int width, int levels, Code code, uint32_t turns, std::mt19937& random) {
  TaskList list{"stencil of " + Times(width, levels), code, width, 2 * width, width};
  for (const Constants& k : RandomConstants(width * levels, random)) {
    const auto t = static_cast<int>(list.tasks.size());
    const int level = t / width, i = t % width, left = std::max(i - 1, 0), right = std::min(i + 1, width - 1);
    const int from = level % 2 * width, to = width - from;
    Task task{from + left, from + i, from + right, to + i, {}, k, turns};
    for (int j = left; level > 0 && j <= right; ++j) task.after.push_back((level - 1) * width + j);
    list.tasks.push_back(std::move(task));
  }
  return list;
}

inline TaskList RandomDag(int width, int levels, Code code, uint32_t turns, std::mt19937& random) {
  TaskList list{"random DAG of " + Times(width, levels), code, width, width * (levels + 1), width};
  for (const Constants& k : RandomConstants(width * levels, random)) {
    const auto t = static_cast<int>(list.tasks.size());
    const int level = t / width, many = 1 + static_cast<int>(random() % 3);
    int reads[3];
    for (int r = 0; r < 3; ++r) {
      reads[r] = r < many ? level * width + static_cast<int>(random() % static_cast<uint32_t>(width)) : reads[0];
    }
    Task task{reads[0], reads[1], reads[2], (level + 1) * width + t % width, {}, k, turns};
    for (const int word : reads) {  // word `width + u` is written by task u
      const bool known = std::find(task.after.begin(), task.after.end(), word - width) != task.after.end();
      if (level > 0 && !known) task.after.push_back(word - width);
    }
    list.tasks.push_back(std::move(task));
  }
  return list;
}

inline void AddTask(ps::Graph& graph, const ps::Name& name, const Task& task, Code code,
                    ps::BufferHandle<uint32_t> words) {
  const auto one = [](int word) { return ps::Slice({word}, {1}); };
  const auto left = ps::Read(words, one(task.left)), middle = ps::Read(words, one(task.middle)),
             right = ps::Read(words, one(task.right));
  const auto out = ps::Write(words, one(task.out));
  switch (code) {
    case Code::kStep: graph.ParallelFor(name, 1, ChainFunctor{}, ps::ReadWrite(words, one(task.out)), task.k); break;
    case Code::kMix: graph.ParallelFor(name, 1, StencilFunctor{}, left, middle, right, out, task.k); break;
    case Code::kSpin: graph.ParallelFor(name, 1, SpinFunctor{}, left, middle, right, out, task.k, task.turns); break;
    case Code::kHeavy: graph.ParallelFor(name, 1, HeavyFunctor{}, left, middle, right, out, task.k, task.turns);
  }
}

// The words must outlive it.
inline Declared Declare(const TaskList& list, const Words& words) {
  ps::Graph graph("tasks");
  const auto all = graph.InOut<uint32_t>("words", list.words, words.where());
  for (size_t t = 0; t < list.tasks.size(); ++t) {
    const auto lanes = static_cast<size_t>(list.lanes);
    AddTask(graph, ps::Name("task", t / lanes, t % lanes), list.tasks[t], list.code, all);
  }
  return {std::move(graph), [all, &words](ps::Bindings& io) { words.Bind(io, all); }};
}

}  // namespace bench
