// The kernel that runs a resident region on a CUDA device, and the device functions of its tasks (resident_protocol.h).
//
// A function pointer is good within its translation unit only. So each unit has a kernel of its own, and a node brings
// the kernel of the unit that compiled its functor along: nodes with the same kernel may share a region. The host
// learns a function's address from a variable.
//
// A worker is a warp. A task's function loads the arguments before it waits, and goes on with the next task as long as
// that has the same code: a call by a pointer costs 0.1 us, and what it saves of registers as much again, since what
// acquires throws away the cache that they are saved in.
//
// Compiled for less than compute capability 9.0 all of it does nothing, and no node is in a region.
//
// Threads: device code; one lane of a worker raises its word, all wait.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "penstock/detail/arguments.h"
#include "penstock/detail/decision.h"
#include "penstock/detail/programmatic.h"
#include "penstock/detail/resident_protocol.h"
#include "penstock/detail/resident_shared_cuda.h"
#include "penstock/task.h"

#if defined(__CUDACC__)
namespace penstock::detail {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
// A launch's own memory and words, for the protocol. The words of a block are read and raised with less delay. AllWords
// loads those of the block too: the addresses that it loads from are generic.
struct AllWords {
  __device__ static uint64_t Load(const uint64_t* word) {
    uint64_t value = 0;
    asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
  }
  __device__ static void Store(uint64_t* word, uint64_t value) {
    asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
  }
  __device__ static const uint64_t* WordOf(uint32_t word) {
    if ((word & kInBlock) != 0) return &BlockOfWorker().workers[word & ~kInBlock].progress;
    return BlockOfWorker().progress + uint64_t{word} * kWordStride;
  }
  __device__ static uint64_t LoadProgress(const uint64_t* word) { return Load(word); }
  __device__ static uint64_t LoadChoice() { return Load(&BlockOfWorker().state->choice); }
  __device__ static void RaiseChoice(uint64_t choice) { Store(&BlockOfWorker().state->choice, choice); }
  __device__ static bool Any(bool is) { return __any_sync(~0u, is) != 0; }
  __device__ static void Pause() {}
  __device__ static void Acquire() { asm volatile("fence.acquire.gpu;" ::: "memory"); }
};
struct BlockWords {
  __device__ static uint64_t Load(const uint64_t& word) {
    uint64_t value = 0;
    asm volatile("ld.relaxed.cta.shared.u64 %0, [%1];" : "=l"(value) : "r"(AddressOf(word)) : "memory");
    return value;
  }
  __device__ static void Store(uint64_t& word, uint64_t value) {
    asm volatile("st.release.cta.shared.u64 [%0], %1;" ::"r"(AddressOf(word)), "l"(value) : "memory");
  }
  __device__ static uint32_t WordOf(uint32_t word) { return word & ~kInBlock; }
  __device__ static uint64_t LoadProgress(uint32_t worker) { return Load(BlockOfWorker().workers[worker].progress); }
  __device__ static uint64_t LoadChoice() { return Load(BlockOfWorker().choice); }
  __device__ static void RaiseChoice(uint64_t choice) { Store(BlockOfWorker().choice, choice); }
  __device__ static bool Any(bool is) { return __any_sync(~0u, is) != 0; }
  __device__ static void Pause() {}
  __device__ static void Acquire() { asm volatile("fence.acquire.cta;" ::: "memory"); }
};
struct LaunchState {
  ResidentState* state;
  __device__ uint64_t LoadEpoch() const { return *const_cast<const volatile uint64_t*>(&state->epoch); }
  __device__ uint64_t CountLeaver() const {
    return atomicAdd(reinterpret_cast<unsigned long long*>(&state->leavers), 1ull);
  }
  __device__ void ResetLeavers() const { *const_cast<volatile uint64_t*>(&state->leavers) = 0; }
  __device__ void StoreEpoch(uint64_t epoch) const { *const_cast<volatile uint64_t*>(&state->epoch) = epoch; }
};

// A lane of a worker: where the worker's part of the block's memory is, and which lane it is. Passed from function to
// function, since special registers are read slowly.
struct WorkerLane {
  uint32_t worker, lane;
  __device__ ResidentBlock::Worker& self() const { return SharedAt<ResidentBlock::Worker>(worker); }
};

// Each lane waits for one of the workers that a record's task waits for; lanes that have none of their own wait for the
// last one again. They look together, since lanes that left the loop one by one would have to be brought together
// again, which takes 200 to 500 cycles.
template <class Words>
PENSTOCK_HIDDEN __device__ __forceinline__ void AwaitEach(const ResidentRecord& record, uint32_t at, WorkerLane of) {
  const uint64_t epoch = of.self().epoch;
  const uint32_t waits = at + uint32_t{sizeof(ResidentRecord)} + record.args;
#pragma unroll 1
  for (uint32_t first = 0; first < record.waits; first += kLanes) {
    const uint32_t w = min(first + of.lane, record.waits - uint32_t{1});
    const ResidentWait wait = SharedAt<ResidentWait>(waits + w * uint32_t{sizeof(ResidentWait)});
    AwaitProgress(Words{}, Words::WordOf(wait.word), ProgressAt(epoch, wait.position));
  }
  Words::Acquire();
  __syncwarp();  // what one lane has seen is seen by all
}

// `end`: 0 as the task of the record begins, 1 as it ends.
PENSTOCK_HIDDEN __device__ __forceinline__ void RecordTime(const ResidentRecord& record, uint32_t end, WorkerLane of) {
  of.self().times[2 * (record.position - 1) + end] = DeviceNanos();
}

// Waits for what comes before the task of a record, which begins then.
PENSTOCK_HIDDEN __device__ __forceinline__ void AwaitTask(const ResidentRecord& record, uint32_t at, WorkerLane of) {
  if ((record.flags & (kWaits | kIsTimed)) == 0) return;
  if ((record.flags & kWaitsForAll) != 0) AwaitEach<AllWords>(record, at, of);
  else AwaitEach<BlockWords>(record, at, of);
  if ((record.flags & kIsTimed) != 0 && of.lane == 0) RecordTime(record, 0, of);
}

// The task of a record has ended on all lanes.
PENSTOCK_HIDDEN __device__ __forceinline__ void EndTask(const ResidentRecord& record, WorkerLane of) {
  __syncwarp();
  if (of.lane != 0 || (record.flags & (kSignalsBlock | kSignalsAll | kIsTimed)) == 0) return;
  if ((record.flags & kIsTimed) != 0) RecordTime(record, 1, of);
  const uint64_t progress = ProgressAt(of.self().epoch, record.position);
  if ((record.flags & kSignalsBlock) != 0) BlockWords::Store(of.self().progress, progress);
  if ((record.flags & kSignalsAll) != 0) AllWords::Store(of.self().word, progress);
}

// Runs the task at `at`, and those that follow it as long as they have the same code, by `run(record, at, of)`, which
// loads the arguments, waits for what comes before the task, and does it. Returns where the next record is.
template <class Run>
PENSTOCK_HIDDEN __device__ __forceinline__ uint32_t RunTasks(uint32_t at, WorkerLane of, Run run) {
  bool goes_on = false;
#pragma unroll 1
  do {
    const ResidentRecord record = SharedAt<ResidentRecord>(at);
    run(record, at, of);
    EndTask(record, of);
    at += record.next;
    goes_on = (record.flags & kRepeatsCode) != 0;
  } while (goes_on);
  return at;
}
PENSTOCK_HIDDEN __device__ __forceinline__ uint32_t ArgumentsOf(uint32_t at) {
  return at + uint32_t{sizeof(ResidentRecord)};
}

// --- fills and copies ---

PENSTOCK_HIDDEN __device__ __forceinline__ void RunFill(const ResidentFill& fill, uint32_t pattern, uint32_t lane) {
  const uint64_t row_bytes = fill.count * fill.pattern_bytes, rows = fill.height * fill.depth;
  for (uint64_t row = 0; row < rows; ++row) {
    auto* const to =
        static_cast<unsigned char*>(fill.to) + row / fill.height * fill.slice + row % fill.height * fill.pitch;
    for (uint64_t i = lane; i < row_bytes; i += kLanes) {
      to[i] = SharedAt<unsigned char>(pattern + static_cast<uint32_t>(i % fill.pattern_bytes));
    }
  }
}
PENSTOCK_HIDDEN __device__ __forceinline__ void RunCopy(const ResidentCopy& copy, uint32_t lane) {
  const uint64_t rows = copy.height * copy.depth;
  for (uint64_t row = 0; row < rows; ++row) {
    const uint64_t z = row / copy.height, y = row % copy.height;
    auto* const to = static_cast<unsigned char*>(copy.to) + z * copy.to_slice + y * copy.to_pitch;
    const auto* const from = static_cast<const unsigned char*>(copy.from) + z * copy.from_slice + y * copy.from_pitch;
    for (uint64_t i = lane; i < copy.width; i += kLanes) to[i] = from[i];
  }
}
PENSTOCK_HIDDEN __device__ __noinline__ uint32_t RunFills(uint32_t at, WorkerLane lane) {
  return RunTasks(at, lane, [](const ResidentRecord& record, uint32_t task, WorkerLane of) {
    const ResidentFill fill = SharedAt<ResidentFill>(ArgumentsOf(task));
    AwaitTask(record, task, of);
    RunFill(fill, ArgumentsOf(task) + uint32_t{offsetof(ResidentFill, pattern)}, of.lane);
  });
}
PENSTOCK_HIDDEN __device__ __noinline__ uint32_t RunCopies(uint32_t at, WorkerLane lane) {
  return RunTasks(at, lane, [](const ResidentRecord& record, uint32_t task, WorkerLane of) {
    const ResidentCopy copy = SharedAt<ResidentCopy>(ArgumentsOf(task));
    AwaitTask(record, task, of);
    RunCopy(copy, of.lane);
  });
}

#endif

// --- the ends of sections ---

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
// Decides for the workers of the region, which count iterations themselves.
struct DecideInRegion {
  __device__ static Progress ProgressOf(const Decision& decision) {
    if (decision.kind != DecisionKind::kAgain && decision.kind != DecisionKind::kAgainCounted) return {};
    const ResidentBlock::Worker& self = ThisWorker();
    const int64_t most = decision.most > 0 ? decision.most : decision.loop->most;
    return {most - self.iterations[decision.in_region - 1], 0, self.stopped != 0};
  }
  __device__ static Switching Decide(const Decision& decision, const Progress& progress, uint32_t value) {
    uint32_t& choice = ThisWorker().choice;
    if (decision.kind == DecisionKind::kPick) {
      choice = value;
    } else if (decision.kind == DecisionKind::kEnter || decision.kind == DecisionKind::kEnterCounted) {
      Begin(decision);
      choice = value != 0 && decision.most > 0 ? 1 : 0;
    } else {
      const bool again = value != 0 && progress.left > 0 && !progress.stopped;
      choice = again ? 1 : 0;
      if (decision.marks != 0) Mark(decision, decision.loop->most - progress.left);
      if (!again) End(decision, progress.left);
    }
    return {};
  }
};

// A decision without a condition. One that tells no times need not wait for the section's tasks.
PENSTOCK_HIDDEN __device__ __noinline__ uint32_t RunDecision(uint32_t at, WorkerLane of) {
  const ResidentRecord record = SharedAt<ResidentRecord>(at);
  const Decision& decision = SharedAt<Decision>(at + uint32_t{sizeof(ResidentRecord)});
  const bool late = decision.marks != 0;
  if (late) AwaitTask(record, at, of);
  if (of.lane == 0 && decision.kind != DecisionKind::kNone) {
    DecideInRegion::Decide(decision, DecideInRegion::ProgressOf(decision), 1);
  }
  if (!late) AwaitTask(record, at, of);
  return at + record.next;
}

// Begins to copy what the host may have written, and takes what the copy before has brought. At most every 45 us, which
// takes 1 % of a short loop's time; to wait for a copy every 5 us took 0.4 us an iteration.
PENSTOCK_HIDDEN __device__ __forceinline__ void LookForStop(ResidentBlock::Worker& self) {
  constexpr uint32_t kClocks = 80000;
  const uint32_t* const stop = BlockOfWorker().stop;
  const auto now = static_cast<uint32_t>(clock64());
  if (stop == nullptr || now - self.looked < kClocks) return;
  asm volatile("cp.async.wait_all;" ::: "memory");
  self.stopped = *const_cast<const volatile uint32_t*>(&self.landing[0]);
  self.looked = now;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(AddressOf(self.landing)), "l"(stop) : "memory");
  asm volatile("cp.async.commit_group;" ::: "memory");
}

PENSTOCK_HIDDEN __device__ __forceinline__ uint32_t AwaitBranch(const ResidentRecord& record,
                                                                const ResidentBranch& branch, uint64_t epoch,
                                                                WorkerLane of) {
  EndTask(record, of);  // of idle workers: they have come here
  const uint32_t found = branch.in_block != 0 ? AwaitChoice(BlockWords{}, epoch) : AwaitChoice(AllWords{}, epoch);
  __syncwarp();
  if (branch.in_block != 0) BlockWords::Acquire();
  else AllWords::Acquire();
  return __shfl_sync(~0u, found, 0);
}

// The section has ended, or will have when the choice is known. Returns where the next one begins.
PENSTOCK_HIDDEN __device__ __forceinline__ uint32_t RunBranch(uint32_t at, WorkerLane of) {
  const uint32_t args = at + uint32_t{sizeof(ResidentRecord)};
  const ResidentBranch branch = SharedAt<ResidentBranch>(args);
  ResidentBlock::Worker& self = of.self();
  const uint64_t epoch = self.epoch;
  uint32_t choice = 0;
  if (branch.decides != 0) {
    __syncwarp();
    choice = self.choice < branch.choices ? self.choice : branch.choices;
    if (of.lane == 0) {
      if (branch.in_block != 0) PublishChoice(BlockWords{}, epoch, choice);
      if (branch.elsewhere != 0) PublishChoice(AllWords{}, epoch, choice);
    }
  } else {
    choice = AwaitBranch(SharedAt<ResidentRecord>(at), branch, epoch, of);
  }
  const auto target = SharedAt<uint32_t>(args + uint32_t{sizeof(ResidentBranch)} + choice * uint32_t{sizeof(uint32_t)});
  // All lanes count, so that they need not part and come together again.
  int64_t* const counter = branch.loop != 0 ? &self.iterations[branch.loop - 1] : nullptr;
  const int64_t iterations = counter != nullptr && branch.again != 0 ? *counter + 1 : 1;
  __syncwarp();
  if (of.lane == 0) {
    self.epoch = epoch + 1;
    if (counter != nullptr) *counter = iterations;
  }
  if (branch.decides != 0 && branch.again != 0 && iterations % 4 == 0 && of.lane == 0) LookForStop(self);
  __syncwarp();
  return target;
}
#endif

// --- functors ---

// Where the arguments of a ParallelFor lie in its block: Range, the functor, then each declared argument, after each
// parameter room for its address.
template <class F, class... A>
struct ResidentLayout {
  static constexpr size_t kCount = sizeof...(A);
  uint32_t functor = 0;
  uint32_t at[kCount + 1] = {};
  constexpr ResidentLayout() {
    uint32_t end = sizeof(Range);
    functor = Place(end, sizeof(F), alignof(F));
    size_t i = 0;
    ((at[i++] = Next<std::decay_t<A>>(end)), ...);
  }

 private:
  static constexpr uint32_t Place(uint32_t& end, size_t size, size_t align) {
    const auto begin = static_cast<uint32_t>((end + align - 1) / align * align);
    end = begin + static_cast<uint32_t>(size);
    return begin;
  }
  template <class D>
  static constexpr uint32_t Next(uint32_t& end) {
    const uint32_t begin = Place(end, sizeof(ViewStoredT<D>), alignof(ViewStoredT<D>));
    if (IsParam<D>::value) (void)Place(end, sizeof(void*), alignof(void*));
    return begin;
  }
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
// The lanes of a worker, for a Task.
PENSTOCK_HIDDEN __device__ __forceinline__ Block BlockOfLanes(int64_t shared_bytes) {
  auto& memory = SharedAt<std::byte>(AddressOf(BlockOfWorker()) + kTaskMemoryAt + WorkerInBlock() * kTaskBytes);
  return {&memory, shared_bytes, Lane(), kLanes, true};
}

// The elements of the index space that fall to a lane.
template <int kRank, class F, class Held, class... Stored>
PENSTOCK_HIDDEN __device__ __forceinline__ void RunLane(uint32_t lane, const Range& range, Held& f,
                                                        const Stored&... args) {
  if constexpr (kTakesBlock<F>) {
    if (lane == 0) f.template Evaluate<DecideInRegion>(args...);
  } else if constexpr (kRank == kTaskRank) {
    static_cast<const F&>(f)(BlockOfLanes(range.width), args...);
  } else if constexpr (kRank == 1) {
#pragma unroll 1
    for (uint32_t x = lane; x < static_cast<uint32_t>(range.width); x += kLanes) CallAt<1>(f, 0, 0, x, args...);
  } else {
    const int64_t count = range.depth * range.height * range.width;
#pragma unroll 1
    for (int64_t i = lane; i < count; i += kLanes) {
      const int64_t row = i / range.width;
      CallAt<kRank>(f, row / range.height, row % range.height, i % range.width, args...);
    }
  }
}

// By value: the arguments are loaded before the task is awaited. But what decides is long: its function would take, and
// each call of it save, many more registers.
template <class F>
using LoadedFunctor = std::conditional_t<kTakesBlock<F>, const F&, F>;
template <int kRank, class F, class... Stored>
PENSTOCK_HIDDEN __device__ __forceinline__ void RunFunctor(const ResidentRecord& record, uint32_t at, WorkerLane of,
                                                           Range range, LoadedFunctor<F> f, Stored... args) {
  AwaitTask(record, at, of);
  RunLane<kRank, F>(of.lane, range, f, args...);
}

template <class F, class... A>
inline constexpr ResidentLayout<F, A...> kResidentLayout{};

template <int kRank, class F, class... A, size_t... I>
PENSTOCK_HIDDEN __device__ __forceinline__ uint32_t RunFunctors(uint32_t at, WorkerLane lane,
                                                                std::index_sequence<I...>) {
  return RunTasks(at, lane, [](const ResidentRecord& record, uint32_t task, WorkerLane of) {
    const uint32_t args = ArgumentsOf(task);
    RunFunctor<kRank, F>(
        record, task, of, SharedAt<Range>(args),
        SharedAt<F>(args + std::integral_constant<uint32_t, kResidentLayout<F, A...>.functor>::value),
        SharedAt<ViewStoredT<A>>(args + std::integral_constant<uint32_t, kResidentLayout<F, A...>.at[I]>::value)...);
  });
}

#endif

using ResidentFunction = uint32_t (*)(uint32_t record, uint32_t worker, uint32_t lane);

namespace {
// Of this translation unit only.
struct ThisUnit {};
}  // namespace

template <class Unit, int kRank, class F, class... A>
PENSTOCK_HIDDEN __device__ __noinline__ uint32_t ResidentTask(uint32_t at, [[maybe_unused]] uint32_t worker,
                                                              [[maybe_unused]] uint32_t lane) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  at = RunFunctors<kRank, F, A...>(at, WorkerLane{worker, lane}, std::index_sequence_for<A...>());
#endif
  return at;
}

// Never launched: the name of its variable, which has the address of a functor's device function, comes from its own.
// The variable cannot be a template by itself, since nvcc then rejects extended lambdas; and a kernel that takes the
// address of one such function, or reads a variable that has it, gets a copy of all of the unit.
inline constexpr const char* kResidentTaskVariable = "task";
template <class Unit, int kRank, class F, class... A>
PENSTOCK_HIDDEN __global__ void ResidentTaskAddress() {
  __attribute__((used)) static __device__ ResidentFunction task = &ResidentTask<Unit, kRank, F, A...>;
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
// Copies a worker's page to its part of the shared memory, without waiting for it.
PENSTOCK_HIDDEN __device__ __forceinline__ void FetchPage(const std::byte* pages, uint32_t page, uint32_t end,
                                                          uint32_t to) {
  if (page < end) {
    const std::byte* const from = pages + uint64_t{page} * kPageBytes;
    for (uint32_t i = Lane() * 16; i < kPageBytes; i += kLanes * 16) {
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to + i), "l"(from + i) : "memory");
    }
  }
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Runs the records of a page, which is at `place`, from an offset on. Returns what comes after the page, as an offset
// from the first page of all.
PENSTOCK_HIDDEN __device__ __forceinline__ uint32_t RunPage(uint32_t place, uint32_t from, uint32_t page,
                                                            WorkerLane of) {
  uint32_t at = place + from;
  for (;;) {
    const uint64_t code = SharedAt<ResidentRecord>(at).code;
    if (code >= static_cast<uint64_t>(ResidentCode::kFirstFunction)) {
      at = reinterpret_cast<ResidentFunction>(code)(at, of.worker, of.lane);
    } else if (code == static_cast<uint64_t>(ResidentCode::kBranch)) {
      const uint32_t next = RunBranch(at, of);
      if (next / kPageBytes != page) return next;
      at = place + next % kPageBytes;
    } else if (code == static_cast<uint64_t>(ResidentCode::kEndOfPage)) {
      return (page + 1) * kPageBytes;
    } else if (code == static_cast<uint64_t>(ResidentCode::kDecide)) {
      at = RunDecision(at, of);
    } else if (code == static_cast<uint64_t>(ResidentCode::kFill)) {
      at = RunFills(at, of);
    } else {
      at = RunCopies(at, of);
    }
  }
}

// Runs the worker's pages. The one that is needed may be there already, since a loop came from it; then nothing is
// waited for, since a copy of the host's word (LookForStop) takes long.
PENSTOCK_HIDDEN __device__ __forceinline__ void RunPages(const ResidentArgs& args, uint32_t worker, uint32_t memory) {
  constexpr uint32_t kNone = ~uint32_t{0};
  const uint32_t first = args.first_page[worker], end = args.first_page[worker + 1];
  uint32_t even = kNone, odd = kNone;  // the pages in the places of even and of odd ones
  bool arrived = true;  // no page is on its way
  const WorkerLane of{AddressOf(ThisWorker()), Lane()};
  uint32_t next = first * kPageBytes;
#pragma unroll 1
  while (next < end * kPageBytes) {
    const uint32_t page = next / kPageBytes, place = memory + page % 2 * kPageBytes;
    const bool is_even = page % 2 == 0;
    if ((is_even ? even : odd) != page) {
      if (!arrived) asm volatile("cp.async.wait_all;" ::: "memory");  // it may be on its way to the same place
      FetchPage(args.pages, page, end, place);
      arrived = false;
    }
    even = is_even ? page : even;
    odd = is_even ? odd : page;
    if (!arrived) asm volatile("cp.async.wait_all;" ::: "memory");
    arrived = true;
    __syncwarp();
    // One ahead, but not over a page that may be needed again.
    if ((is_even ? odd : even) != page + 1 && SharedAt<ResidentRecord>(place).goes_on != 0) {
      FetchPage(args.pages, page + 1, end, memory + (page + 1) % 2 * kPageBytes);
      even = is_even ? even : page + 1;
      odd = is_even ? page + 1 : odd;
      arrived = false;
    }
    next = RunPage(place, next % kPageBytes, page, of);
    __syncwarp();
  }
  asm volatile("cp.async.wait_all;" ::: "memory");
}

// What the first lane has written is there, since the lanes have met after the last task.
PENSTOCK_HIDDEN __device__ __forceinline__ void TakeTimes(const ResidentArgs& args, uint32_t worker) {
  const uint32_t end = 2 * args.first_time[worker + 1];
  for (uint32_t i = 2 * args.first_time[worker] + Lane(); i < end; i += kLanes) args.times_of_host[i] = args.times[i];
}

PENSTOCK_HIDDEN __device__ __forceinline__ void RunWorker(const ResidentArgs& args) {
  AwaitDependencies();
  const uint32_t in_block = WorkerInBlock(), worker = blockIdx.x * kWorkersOfBlock + in_block;
  const bool works = worker < args.workers;
  if (works) {
    const uint64_t epoch = EnterRegion(LaunchState{args.state});
    ResidentBlock& block = BlockOfWorker();
    if (threadIdx.x == 0) {
      block.progress = args.progress;
      block.state = args.state;
      block.stop = args.stop;
      block.choice = 0;
    }
    if (Lane() == 0) {
      uint64_t* const times = args.times == nullptr ? nullptr : args.times + 2 * args.first_time[worker];
      ThisWorker() = {{}, 0, epoch, args.progress + uint64_t{worker} * kWordStride, 0, 0, 0, 0, times, {}};
    }
  }
  __syncthreads();
  if (!works) return;
  RunPages(args, worker, AddressOf(BlockOfWorker()) + uint32_t{sizeof(ResidentBlock)} + in_block * 2 * kPageBytes);
  if (args.times != nullptr) TakeTimes(args, worker);
  if (Lane() == 0) LeaveRegion(LaunchState{args.state}, ThisWorker().epoch, args.workers);
}
#endif

template <class Unit>
PENSTOCK_HIDDEN __global__ void __launch_bounds__(kWorkersOfBlock* kLanes)
    ResidentKernel([[maybe_unused]] ResidentArgs args) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  RunWorker(args);
#endif
}

}  // namespace penstock::detail
#endif
