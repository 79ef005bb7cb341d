// The factorization by hand: streams with a cuBLAS handle each, joined by an event where a step needs what another
// stream has made, and submitted to them or captured once as one graph of all devices.
//
// Each device has one stream for the chain that all else waits for (potrf, the first trsm, the next syrk), of the
// highest priority, some of the next one for the rest of the column that is solved and for the next one, some for all
// other updates, and one for copies from the other device. Steps are submitted with one column looked ahead; the host
// waits for nothing.
//
// Threads: single-threaded.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "steps.cuh"

namespace bench {

// How many streams a device has, besides those for the chain and for copies.
struct Streams {
  int urgent, others;
};

class RawTiles {
 public:
  RawTiles(Matrix& matrix, int block, Streams streams) : matrix_(matrix), block_(block), streams_(streams) {
    int least = 0, greatest = 0;
    Check(cudaDeviceGetStreamPriorityRange(&least, &greatest), "asking for priorities");
    for (int d = 0; d < matrix_.devices(); ++d) {
      Choose(d);
      for (int peer = 0; peer < matrix_.devices(); ++peer) {
        if (peer != d) (void)cudaDeviceEnablePeerAccess(peer, 0);
      }
      (void)cudaGetLastError();  // already enabled
      for (int s = 0; s < PerDevice(); ++s) {
        const int priority = s == 0 ? greatest : s <= streams_.urgent ? greatest + 1 : least;
        lanes_.push_back(MakeLane(d, priority, s == 0, s + 1 < PerDevice()));
      }
      info_.push_back(MakeDeviceMemory<int>(1));
    }
    for (int i = 0; i < kTiles; ++i) {
      for (int j = 0; j <= i; ++j) {
        Choose(matrix_.owner(j));
        here_.push_back({matrix_.tile(i, j), MakeEvent(), -1});
        const int other = matrix_.devices() - 1 - matrix_.owner(j);
        Choose(other);
        there_.push_back(
            {matrix_.devices() > 1 ? MakeDeviceMemory<double>(matrix_.elements()) : nullptr, MakeEvent(), -1});
      }
    }
    Choose(0);
    fork_ = MakeEvent();
  }
  RawTiles(const RawTiles&) = delete;
  ~RawTiles() {
    for (const cudaGraphExec_t exec : {graph_, chain_}) {
      if (exec != nullptr) cudaGraphExecDestroy(exec);
    }
    for (Lane& lane : lanes_) {
      Choose(lane.device);
      lane.handles.reset();
      cudaStreamDestroy(lane.stream), cudaEventDestroy(lane.end);
    }
    for (const Tile& tile : here_) cudaEventDestroy(tile.ready);
    for (const Tile& tile : there_) cudaFree(tile.memory), cudaEventDestroy(tile.ready);
    for (int* info : info_) cudaFree(info);
    cudaEventDestroy(fork_);
  }

  Sample Run(bool as_graph) {
    matrix_.Fill();
    const cudaGraphExec_t graph = as_graph ? Graph() : nullptr;
    Choose(0);
    const Clock::time_point begin = Clock::now();
    if (as_graph) Check(cudaGraphLaunch(graph, Main()), "launching");
    else Submit();
    const Clock::time_point submitted = Clock::now();
    Check(cudaStreamSynchronize(Main()), "waiting");
    const Clock::time_point end = Clock::now();
    matrix_.CheckFactor("by hand");
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }

  // The chain alone: no way of scheduling these steps is faster. Its result means nothing.
  Sample RunChain() {
    matrix_.Fill();
    if (chain_ == nullptr) {
      chain_ = Capture([&] {
        const Handles& by = lanes_[0].handles->get();
        for (int k = 0; k < kTiles; ++k) {
          double* const a = matrix_.tile(k, k);
          Must(Factor(by, matrix_.size(), block_, a, info_[0]));
          if (k + 1 == kTiles) break;
          Must(Solve(by.blas, matrix_.size(), a, matrix_.tile(k + 1, k)));
          Must(Update(by.blas, matrix_.size(), matrix_.tile(k + 1, k), matrix_.tile(k + 1, k + 1)));
        }
      });
    }
    const Clock::time_point begin = Clock::now();
    Check(cudaGraphLaunch(chain_, Main()), "launching");
    const Clock::time_point submitted = Clock::now();
    Check(cudaStreamSynchronize(Main()), "waiting");
    return {Microseconds(submitted - begin), Microseconds(Clock::now() - begin)};
  }

 private:
  struct Lane {
    int device = 0;
    cudaStream_t stream = nullptr;
    std::unique_ptr<StreamHandles> handles{};
    cudaEvent_t end = nullptr;
  };
  // A tile as a device has it.
  struct Tile {
    double* memory;
    cudaEvent_t ready;  // recorded behind the last step that wrote it
    int lane;  // of that step; -1: none yet
  };
  enum class Haste { kChain, kUrgent, kNone };

  Lane MakeLane(int device, int priority, bool factors, bool computes) const {
    Lane lane;
    lane.device = device;
    Check(cudaStreamCreateWithPriority(&lane.stream, cudaStreamNonBlocking, priority), "creating a stream");
    lane.end = MakeEvent();
    if (computes) {
      lane.handles = factors ? std::make_unique<StreamHandles>(lane.stream, matrix_.size(), block_)
                             : std::make_unique<StreamHandles>(lane.stream);
    }
    return lane;
  }

  cudaStream_t Main() const { return lanes_[0].stream; }
  int PerDevice() const { return 2 + streams_.urgent + streams_.others; }
  int LaneFor(int i, int j, Haste haste) const {
    const int first = matrix_.owner(j) * PerDevice();
    if (haste == Haste::kChain) return first;
    if (haste == Haste::kUrgent) return first + 1 + i % streams_.urgent;
    return first + 1 + streams_.urgent + IndexOf(i, j) % streams_.others;
  }
  int CopyLane(int device) const { return (device + 1) * PerDevice() - 1; }

  void Wait(int lane, const Tile& tile) const {
    if (tile.lane >= 0 && tile.lane != lane) {
      Check(cudaStreamWaitEvent(lanes_[static_cast<size_t>(lane)].stream, tile.ready, 0), "waiting");
    }
  }
  void Note(int lane, Tile& tile) const {
    tile.lane = lane;
    Check(cudaEventRecord(tile.ready, lanes_[static_cast<size_t>(lane)].stream), "recording");
  }
  Tile& Here(int i, int j) { return here_[static_cast<size_t>(IndexOf(i, j))]; }
  // Tile i, k as the owner of column j has it.
  const Tile& For(int j, int i, int k) const {
    const auto at = static_cast<size_t>(IndexOf(i, k));
    return matrix_.owner(j) == matrix_.owner(k) ? here_[at] : there_[at];
  }

  // A step that changes tile i, j and reads others.
  template <class F>
  void Step(int i, int j, Haste haste, std::initializer_list<const Tile*> reads, F call) {
    Tile& tile = Here(i, j);
    const int l = LaneFor(i, j, haste);
    Choose(lanes_[static_cast<size_t>(l)].device);
    Wait(l, tile);
    for (const Tile* of : reads) Wait(l, *of);
    Must(call(lanes_[static_cast<size_t>(l)], tile.memory));
    Note(l, tile);
  }
  void FactorTile(int k) {
    Step(k, k, Haste::kChain, {}, [&](const Lane& lane, double* a) {
      return Factor(lane.handles->get(), matrix_.size(), block_, a, info_[static_cast<size_t>(lane.device)]);
    });
  }
  void SolveTile(int i, int k) {
    Step(i, k, i == k + 1 ? Haste::kChain : Haste::kUrgent, {&Here(k, k)}, [&](const Lane& lane, double* x) {
      return Solve(lane.handles->get().blas, matrix_.size(), Here(k, k).memory, x);
    });
    if (matrix_.devices() > 1) Copy(i, k);
  }
  void UpdateTile(int i, int j, int k) {
    const Haste haste = i == k + 1 ? Haste::kChain : j == k + 1 ? Haste::kUrgent : Haste::kNone;
    const Tile &x = For(j, i, k), &y = For(j, j, k);
    Step(i, j, haste, {&x, &y}, [&](const Lane& lane, double* c) {
      return i == j ? Update(lane.handles->get().blas, matrix_.size(), x.memory, c)
                    : Update(lane.handles->get().blas, matrix_.size(), x.memory, y.memory, c);
    });
  }
  // Where an update on the other device needs it.
  void Copy(int i, int k) {
    bool needed = false;
    for (int j = k + 1; j <= i; ++j) needed |= matrix_.owner(j) != matrix_.owner(k);
    if (!needed) return;
    const int l = CopyLane(1 - matrix_.owner(k));
    Tile& to = there_[static_cast<size_t>(IndexOf(i, k))];
    Choose(lanes_[static_cast<size_t>(l)].device);
    Wait(l, Here(i, k));
    Check(cudaMemcpyAsync(to.memory, Here(i, k).memory, matrix_.elements() * sizeof(double), cudaMemcpyDefault,
                          lanes_[static_cast<size_t>(l)].stream),
          "copying a tile");
    Note(l, to);
  }

  // All steps, between a fork from the main stream and a join to it.
  void Submit() {
    for (std::vector<Tile>* of : {&here_, &there_}) {
      for (Tile& tile : *of) tile.lane = -1;
    }
    Choose(0);
    Check(cudaEventRecord(fork_, Main()), "recording");
    for (const Lane& lane : lanes_) {
      if (lane.stream != Main()) Check(cudaStreamWaitEvent(lane.stream, fork_, 0), "waiting");
    }
    FactorTile(0);
    for (int k = 0; k + 1 < kTiles; ++k) {
      SolveTile(k + 1, k);
      UpdateTile(k + 1, k + 1, k);
      FactorTile(k + 1);
      for (int i = k + 2; i < kTiles; ++i) SolveTile(i, k);
      for (int i = k + 2; i < kTiles; ++i) UpdateTile(i, k + 1, k);
      for (int j = k + 2; j < kTiles; ++j) {
        for (int i = j; i < kTiles; ++i) UpdateTile(i, j, k);
      }
    }
    for (const Lane& lane : lanes_) {
      if (lane.stream == Main()) continue;
      Choose(lane.device);
      Check(cudaEventRecord(lane.end, lane.stream), "recording");
      Check(cudaStreamWaitEvent(Main(), lane.end, 0), "waiting");
    }
  }

  template <class F>
  cudaGraphExec_t Capture(F submit) const {
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t exec = nullptr;
    Choose(0);
    Check(cudaStreamBeginCapture(Main(), cudaStreamCaptureModeRelaxed), "capturing");
    submit();
    Choose(0);
    Check(cudaStreamEndCapture(Main(), &graph), "capturing");
    Check(cudaGraphInstantiate(&exec, graph, cudaGraphInstantiateFlagUseNodePriority), "instantiating");
    Check(cudaGraphUpload(exec, Main()), "uploading");
    Check(cudaStreamSynchronize(Main()), "uploading");
    cudaGraphDestroy(graph);
    return exec;
  }
  cudaGraphExec_t Graph() {
    if (graph_ == nullptr) graph_ = Capture([&] { Submit(); });
    return graph_;
  }

  Matrix& matrix_;
  const int block_;  // of potrf
  const Streams streams_;
  std::vector<Lane> lanes_;  // of each device: the chain's, urgent ones, others, the one for copies
  std::vector<Tile> here_, there_;  // at the owner, and at the other device
  cudaEvent_t fork_ = nullptr;
  std::vector<int*> info_;  // of each device
  cudaGraphExec_t graph_ = nullptr, chain_ = nullptr;
};

// All of the matrix by one call of cuSOLVER on one GPU.
class Untiled {
 public:
  explicit Untiled(Matrix& matrix) : matrix_(matrix), stream_((Choose(0), MakeStream())) {
    a_ = MakeDeviceMemory<double>(static_cast<size_t>(matrix_.side()) * static_cast<size_t>(matrix_.side()));
    info_ = MakeDeviceMemory<int>(1);
    handles_ = std::make_unique<StreamHandles>(stream_, side(), side());
  }
  Untiled(const Untiled&) = delete;
  ~Untiled() {
    Choose(0);
    handles_.reset();
    cudaFree(a_), cudaFree(info_), cudaStreamDestroy(stream_);
  }

  Sample Run() {
    Choose(0);
    FillTile<<<Grid(side(), side()), 128>>>(a_, side(), 0, 0, side(), matrix_.Next());
    Check(cudaStreamSynchronize(nullptr), "filling");
    const Clock::time_point begin = Clock::now();
    Must(Factor(handles_->get(), side(), side(), a_, info_));
    const Clock::time_point submitted = Clock::now();
    Check(cudaStreamSynchronize(stream_), "waiting");
    const Clock::time_point end = Clock::now();
    matrix_.CheckFactor("cuSOLVER", side(),
                        [&](int i, int j) { return a_ + (int64_t{j} * side() + i) * matrix_.size(); });
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }

 private:
  int side() const { return static_cast<int>(matrix_.side()); }

  Matrix& matrix_;
  const cudaStream_t stream_;
  double* a_ = nullptr;
  int* info_ = nullptr;
  std::unique_ptr<StreamHandles> handles_;
};

}  // namespace bench
