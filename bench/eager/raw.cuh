// Hand-written CUDA for the chain and the stencil, written to win: what Penstock's eager submission is compared with.
//
// What all of them do: everything a program can know beforehand (streams, events, memory, argument arrays, function
// handles) is ready before the clock starts; events carry no timing and are reused; nothing is looked up or allocated;
// return codes are gathered with one OR a call. Which call launches fastest depends on driver and toolkit, so each way
// of ordering is tried with each way of launching:
//   <<<>>>              what people write; arguments are stored by code that the compiler made
//   cudaLaunchKernelExC prepared argument arrays instead
//   cuLaunchKernel      the driver's own calls for launches, records and waits, by pointers: no runtime in between
//   cuLaunchKernelEx    the same with a kernel, good for every device, in place of the device's function
//
// The chain needs one stream and no event. For the stencil, eight lanes let every task of a row run at once:
//   lanes   a column is a lane. A task waits for its two neighbours' tasks of the row before, and for no more: the
//   fewest
//           dependencies, and the device may run ahead in one column. One record and 1.75 waits a task.
//   phased  the same dependencies, but row by row all waits, then all launches, then all records: each driver path is
//   hot
//           when it is used, and eight events serve the whole stencil.
//   wave    row after row: all lanes join in one, which lets all go on. As many calls, but seven of eight waits of a
//   join
//           are on one stream and seven of a fork on one event.
// Two more are shown for scale and do not compete: one stream for the whole stencil, which has no event at all, but
// also no two tasks at once; and lanes with an event of its own for every task, which shows what reusing events is
// worth.
//
// Threads: single-threaded.
#pragma once

#include <cuda.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#include "cuda_check.cuh"
#include "work.cuh"

namespace bench {

// What a launch needs besides the task. `function` belongs to the current context.
struct Handles {
  cudaKernel_t kernel = nullptr;
  CUfunction function = nullptr;
  PFN_cuLaunchKernel_v4000 launch = DriverCall<PFN_cuLaunchKernel_v4000>("cuLaunchKernel", 4000);
  PFN_cuLaunchKernelEx_v11060 launch_ex = DriverCall<PFN_cuLaunchKernelEx_v11060>("cuLaunchKernelEx", 11060);
  PFN_cuEventRecord_v2000 record = DriverCall<PFN_cuEventRecord_v2000>("cuEventRecord", 2000);
  PFN_cuStreamWaitEvent_v3020 wait = DriverCall<PFN_cuStreamWaitEvent_v3020>("cuStreamWaitEvent", 3020);

  explicit Handles(const void* stub) {
    Check(cudaGetKernel(&kernel, stub), "asking for a kernel");
    cudaFunction_t found = nullptr;
    Check(cudaGetFuncBySymbol(&found, stub), "asking for a function");
    function = found;
  }
};

// A task made ready: its arguments, and where they lie. Not to be copied or moved once Ready has been called.
struct ChainTask {
  uint32_t* cell = nullptr;
  Constants k{};
  void* argv[2] = {};

  void Ready() { argv[0] = &cell, argv[1] = &k; }
  static const void* Stub() { return reinterpret_cast<const void*>(&ChainKernel); }
  void Chevrons(cudaStream_t stream) const { ChainKernel<<<1, 1, 0, stream>>>(cell, k); }
};

struct StencilTask {
  const uint32_t *left = nullptr, *middle = nullptr, *right = nullptr;
  uint32_t* out = nullptr;
  Constants k{};
  void* argv[5] = {};

  void Ready() { argv[0] = &left, argv[1] = &middle, argv[2] = &right, argv[3] = &out, argv[4] = &k; }
  static const void* Stub() { return reinterpret_cast<const void*>(&StencilKernel); }
  void Chevrons(cudaStream_t stream) const { StencilKernel<<<1, 1, 0, stream>>>(left, middle, right, out, k); }
};

// The ways to launch, record and wait; 0 is success. Errors of <<<>>> stay with the runtime until somebody asks.
struct ByRuntime {
  static int Record(const Handles&, cudaEvent_t event, cudaStream_t stream) { return cudaEventRecord(event, stream); }
  static int Wait(const Handles&, cudaStream_t stream, cudaEvent_t event) {
    return cudaStreamWaitEvent(stream, event, 0);
  }
};
struct ByChevrons : ByRuntime {
  static constexpr const char* kName = "<<<>>>";
  template <class Task>
  static int Launch(const Handles&, const Task& task, cudaStream_t stream) {
    task.Chevrons(stream);
    return 0;
  }
};
struct ByLaunchEx : ByRuntime {
  static constexpr const char* kName = "cudaLaunchKernelExC";
  template <class Task>
  static int Launch(const Handles&, const Task& task, cudaStream_t stream) {
    cudaLaunchConfig_t config{};
    config.gridDim = config.blockDim = dim3(1);
    config.stream = stream;
    return cudaLaunchKernelExC(&config, Task::Stub(), const_cast<void**>(task.argv));
  }
};
struct ByDriver {
  static int Record(const Handles& handles, cudaEvent_t event, cudaStream_t stream) {
    return handles.record(event, stream);
  }
  static int Wait(const Handles& handles, cudaStream_t stream, cudaEvent_t event) {
    return handles.wait(stream, event, 0);
  }
};
struct ByFunction : ByDriver {
  static constexpr const char* kName = "cuLaunchKernel";
  template <class Task>
  static int Launch(const Handles& handles, const Task& task, cudaStream_t stream) {
    return handles.launch(handles.function, 1, 1, 1, 1, 1, 1, 0, stream, const_cast<void**>(task.argv), nullptr);
  }
};
struct ByKernel : ByDriver {
  static constexpr const char* kName = "cuLaunchKernelEx";
  template <class Task>
  static int Launch(const Handles& handles, const Task& task, cudaStream_t stream) {
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    return handles.launch_ex(&config, reinterpret_cast<CUfunction>(handles.kernel), const_cast<void**>(task.argv),
                             nullptr);
  }
};

// Times `submit`, which returns the OR of its return codes, and the wait for `last`, the stream that ends the work.
template <class Submit>
Sample TimeRaw(cudaStream_t last, Submit submit) {
  const Clock::time_point begin = Clock::now();
  const int failed = submit();
  const Clock::time_point submitted = Clock::now();
  const cudaError_t drained = cudaStreamSynchronize(last);
  const Clock::time_point end = Clock::now();
  if (failed != 0) Fail("a raw CUDA call failed; OR of the codes: " + std::to_string(failed));
  Check(drained, "waiting for raw work");
  Check(cudaGetLastError(), "launching raw work");
  return {Microseconds(submitted - begin), Microseconds(end - begin)};
}

class RawChain {
 public:
  RawChain(const std::vector<Constants>& constants, uint32_t* host_cell)
      : host_cell_(host_cell),
        handles_(ChainTask::Stub()),
        stream_(MakeStream()),
        cell_(MakeDeviceMemory<uint32_t>(1)),
        tasks_(constants.size()) {
    for (size_t i = 0; i < tasks_.size(); ++i) {
      tasks_[i].cell = cell_;
      tasks_[i].k = constants[i];
      tasks_[i].Ready();
    }
  }

  template <class By>
  Sample Run() {
    return TimeRaw(stream_, [this] {
      int failed = cudaMemcpyAsync(cell_, host_cell_, sizeof(uint32_t), cudaMemcpyHostToDevice, stream_);
      for (const ChainTask& task : tasks_) failed |= By::Launch(handles_, task, stream_);
      return failed | cudaMemcpyAsync(host_cell_, cell_, sizeof(uint32_t), cudaMemcpyDeviceToHost, stream_);
    });
  }

 private:
  uint32_t* const host_cell_;
  const Handles handles_;
  const cudaStream_t stream_;
  uint32_t* const cell_;
  std::vector<ChainTask> tasks_;
};

class RawStencil {
 public:
  RawStencil(const std::vector<Constants>& constants, const uint32_t* host_in, uint32_t* host_out)
      : rows_(static_cast<int>(constants.size()) / kWidth),
        host_in_(host_in),
        host_out_(host_out),
        handles_(StencilTask::Stub()),
        hub_(MakeEvent()),
        cells_(MakeDeviceMemory<uint32_t>(3 * kWidth)),
        tasks_(constants.size()) {
    for (cudaStream_t& lane : lanes_) lane = MakeStream();
    for (int row = 0; row < rows_; ++row) {
      done_.push_back(MakeEvents());
      for (int i = 0; i < kWidth; ++i) Prepare(row, i, constants[static_cast<size_t>(row * kWidth + i)]);
    }
  }

  // Two rows of events are enough: when a row records, the waits for the row before the last have been submitted.
  template <class By>
  Sample RunLanes(size_t event_rows = 2) {
    return TimeRaw(lanes_[0], [this, event_rows] {
      int failed = Upload<By>();
      for (int row = 0; row < rows_; ++row) {
        const Events& before = done_[(static_cast<size_t>(row) + event_rows - 1) % event_rows];
        const Events& now = done_[static_cast<size_t>(row) % event_rows];
        for (int i = 0; i < kWidth; ++i) {
          if (row > 0) failed |= WaitForNeighbours<By>(i, before);
          failed |= By::Launch(handles_, Task(row, i), lanes_[i]);
          if (row + 1 < rows_) failed |= By::Record(handles_, now[i], lanes_[i]);
        }
      }
      failed |= JoinIn<By>(done_[0]);
      return failed | Download();
    });
  }

  template <class By>
  Sample RunPhased() {
    return TimeRaw(lanes_[0], [this] {
      int failed = Upload<By>();
      for (int row = 0; row < rows_; ++row) {
        for (int i = 0; row > 0 && i < kWidth; ++i) failed |= WaitForNeighbours<By>(i, done_[0]);
        for (int i = 0; i < kWidth; ++i) failed |= By::Launch(handles_, Task(row, i), lanes_[i]);
        for (int i = 0; row + 1 < rows_ && i < kWidth; ++i) failed |= By::Record(handles_, done_[0][i], lanes_[i]);
      }
      failed |= JoinIn<By>(done_[0]);
      return failed | Download();
    });
  }

  template <class By>
  Sample RunWave() {
    return TimeRaw(lanes_[0], [this] {
      int failed = Upload<By>();
      for (int row = 0; row < rows_; ++row) {
        for (int i = 0; i < kWidth; ++i) failed |= By::Launch(handles_, Task(row, i), lanes_[i]);
        failed |= JoinIn<By>(done_[0]);
        if (row + 1 < rows_) failed |= Fork<By>();
      }
      return failed | Download();
    });
  }

  template <class By>
  Sample RunOneStream() {
    return TimeRaw(lanes_[0], [this] {
      int failed = cudaMemcpyAsync(cells_, host_in_, sizeof(Row), cudaMemcpyHostToDevice, lanes_[0]);
      for (const StencilTask& task : tasks_) failed |= By::Launch(handles_, task, lanes_[0]);
      return failed | Download();
    });
  }

 private:
  using Events = std::array<cudaEvent_t, kWidth>;
  static Events MakeEvents() {
    Events events;
    for (cudaEvent_t& event : events) event = MakeEvent();
    return events;
  }

  // Row 0 reads the uploaded cells; after it two rows take turns.
  uint32_t* RowOf(int row) { return cells_ + (row < 0 ? 0 : (1 + (row & 1)) * kWidth); }
  void Prepare(int row, int i, Constants k) {
    StencilTask& task = tasks_[static_cast<size_t>(row * kWidth + i)];
    task.left = RowOf(row - 1) + LeftOf(i);
    task.middle = RowOf(row - 1) + i;
    task.right = RowOf(row - 1) + RightOf(i);
    task.out = RowOf(row) + i;
    task.k = k;
    task.Ready();
  }
  const StencilTask& Task(int row, int i) const { return tasks_[static_cast<size_t>(row * kWidth + i)]; }

  template <class By>
  int Upload() {
    const int failed = cudaMemcpyAsync(cells_, host_in_, sizeof(Row), cudaMemcpyHostToDevice, lanes_[0]);
    return failed | Fork<By>();
  }
  int Download() {
    return cudaMemcpyAsync(host_out_, RowOf(rows_ - 1), sizeof(Row), cudaMemcpyDeviceToHost, lanes_[0]);
  }
  template <class By>
  int WaitForNeighbours(int i, const Events& done) {
    int failed = 0;
    if (i > 0) failed |= By::Wait(handles_, lanes_[i], done[i - 1]);
    if (i + 1 < kWidth) failed |= By::Wait(handles_, lanes_[i], done[i + 1]);
    return failed;
  }
  // Lane 0 waits for the others; the others wait for lane 0.
  template <class By>
  int JoinIn(const Events& done) {
    int failed = 0;
    for (int i = 1; i < kWidth; ++i) failed |= By::Record(handles_, done[i], lanes_[i]);
    for (int i = 1; i < kWidth; ++i) failed |= By::Wait(handles_, lanes_[0], done[i]);
    return failed;
  }
  template <class By>
  int Fork() {
    int failed = By::Record(handles_, hub_, lanes_[0]);
    for (int i = 1; i < kWidth; ++i) failed |= By::Wait(handles_, lanes_[i], hub_);
    return failed;
  }

  const int rows_;
  const uint32_t* const host_in_;
  uint32_t* const host_out_;
  const Handles handles_;
  cudaStream_t lanes_[kWidth] = {};
  std::vector<Events> done_;  // as many rows as the stencil has
  const cudaEvent_t hub_;
  uint32_t* const cells_;
  std::vector<StencilTask> tasks_;
};

}  // namespace bench
