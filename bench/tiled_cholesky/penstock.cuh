// The factorization with Penstock: a Launch node a step, pinned to the device of its column, on tiles that are bound.
//
// Threads: single-threaded.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "steps.cuh"

namespace bench {

// A cuBLAS handle of a lane and slot, counted.
struct CountedBlas {
  static absl::StatusOr<std::unique_ptr<CountedBlas>> Make(const ps::LaunchContext& launch) {
    PS_ASSIGN_OR_RETURN(auto blas, ps::Cublas::Make(launch, {kWorkspace, CUBLAS_POINTER_MODE_HOST}));
    ++made;
    return std::make_unique<CountedBlas>(CountedBlas{std::move(blas)});
  }

  std::unique_ptr<ps::Cublas> blas;
  static inline std::atomic<int> made = 0;
};

inline absl::Status FactorNode(ps::LaunchContext& launch, int n, int block, double* a, int* info) {
  PS_ASSIGN_OR_RETURN(CountedBlas * of, launch.Get<CountedBlas>());
  PS_ASSIGN_OR_RETURN(ps::Cusolver * solver, launch.Get<ps::Cusolver>());
  const int count = WorkOfFactor(solver->handle(), n, block, a);
  PS_ASSIGN_OR_RETURN(ps::CudaWorkspace * work,
                      launch.Get<ps::CudaWorkspace>(static_cast<size_t>(count) * sizeof(double)));
  return Factor({of->blas->handle(), solver->handle(), static_cast<double*>(work->data()), count}, n, block, a, info);
}
inline absl::Status SolveNode(ps::LaunchContext& launch, int n, const double* l, double* x) {
  PS_ASSIGN_OR_RETURN(CountedBlas * of, launch.Get<CountedBlas>());
  return Solve(of->blas->handle(), n, l, x);
}
inline absl::Status UpdateDiagonalNode(ps::LaunchContext& launch, int n, const double* x, double* c) {
  PS_ASSIGN_OR_RETURN(CountedBlas * of, launch.Get<CountedBlas>());
  return Update(of->blas->handle(), n, x, c);
}
inline absl::Status UpdateNode(ps::LaunchContext& launch, int n, const double* x, const double* y, double* c) {
  PS_ASSIGN_OR_RETURN(CountedBlas * of, launch.Get<CountedBlas>());
  return Update(of->blas->handle(), n, x, y, c);
}

// The same on host devices, for results only.
inline void FactorOnHost(int n, int, double* a, int* info) {
  *info = 0;
  for (int j = 0; j < n; ++j) {
    a[j * n + j] = std::sqrt(a[j * n + j]);
    for (int i = j + 1; i < n; ++i) a[j * n + i] /= a[j * n + j];
    for (int c = j + 1; c < n; ++c) {
      for (int i = c; i < n; ++i) a[c * n + i] -= a[j * n + i] * a[j * n + c];
    }
  }
}
inline void SolveOnHost(int n, const double* l, double* x) {
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < n; ++i) {
      for (int k = 0; k < j; ++k) x[j * n + i] -= x[k * n + i] * l[k * n + j];
      x[j * n + i] /= l[j * n + j];
    }
  }
}
inline void UpdateOnHost(int n, const double* x, const double* y, double* c) {
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < n; ++i) {
      for (int k = 0; k < n; ++k) c[j * n + i] -= x[k * n + i] * y[k * n + j];
    }
  }
}
inline void UpdateDiagonalOnHost(int n, const double* x, double* c) { UpdateOnHost(n, x, x, c); }

class PenstockTiles {
 public:
  // `size` of a tile, `block` of potrf. Tiles are bound by Bind.
  PenstockTiles(ps::Runtime& runtime, int size, int block, int devices, const ps::CompileOptions& options)
      : size_(size), block_(block), devices_(devices) {
    const int handles = CountedBlas::made;
    const Clock::time_point begin = Clock::now();
    ps::Graph graph("cholesky");
    for (int i = 0; i < kTiles; ++i) {
      for (int j = 0; j <= i; ++j) {
        tiles_.push_back(
            graph.InOut<double>(ps::Name("tile", i, j), {size_, size_}, ps::kDevice, OwnerOf(j, devices_)));
      }
    }
    const auto info = graph.Buffer<int>("info", kTiles);
    for (int k = 0; k < kTiles; ++k) Column(graph, info, k);
    exec_ = Must(runtime.Compile(graph, options));
    io_ = exec_.bindings();
    compile_us_ = Microseconds(Clock::now() - begin);
    handles_before_ = handles;
  }

  void Bind(int i, int j, std::span<double> memory) { io_.Set(tiles_[static_cast<size_t>(IndexOf(i, j))], memory); }
  Sample Run() {
    const Clock::time_point begin = Clock::now();
    const ps::Run run = Must(exec_.Launch(io_));
    const Clock::time_point submitted = Clock::now();
    const absl::Status status = run.Wait();
    const Clock::time_point end = Clock::now();
    Must(status);
    return {Microseconds(submitted - begin), Microseconds(end - begin)};
  }
  // The first run makes handles and captures what Compile could not: the memory was not known.
  std::string FirstRun() {
    const Clock::time_point begin = Clock::now();
    Run();
    const double first_us = Microseconds(Clock::now() - begin);
    const ps::SubmissionReport report = exec_.submission_report();
    return "Compile took " + Milliseconds(compile_us_) + " and the first run " + Milliseconds(first_us) + ", with " +
           std::to_string(CountedBlas::made - handles_before_) + " cuBLAS handles, " + std::to_string(report.captures) +
           " captures and " + std::to_string(report.graphs) + " graphs of " + std::to_string(report.graph_nodes) +
           " nodes";
  }

 private:
  // Priorities of the chain that all else waits for, and of the rest of a column that is solved or is next.
  static constexpr int kChain = -2, kUrgent = -1;
  static std::string Milliseconds(double us) { return std::to_string(static_cast<int>(us / 1000 + 0.5)) + " ms"; }
  ps::BufferHandle<double> Tile(int i, int j) const { return tiles_[static_cast<size_t>(IndexOf(i, j))]; }

  void Column(ps::Graph& graph, ps::BufferHandle<int> info, int k) {
    const auto scope = graph.Scope(ps::Name("column", k));
    graph.Launch("factor", FactorNode, size_, block_, ps::ReadWrite(Tile(k, k)), ps::Write(info, ps::Slice(k, 1)))
        .HostFallback(FactorOnHost)
        .On(OwnerOf(k, devices_))
        .Priority(kChain);
    for (int i = k + 1; i < kTiles; ++i) {
      graph.Launch(ps::Name("solve", i), SolveNode, size_, ps::Read(Tile(k, k)), ps::ReadWrite(Tile(i, k)))
          .HostFallback(SolveOnHost)
          .On(OwnerOf(k, devices_))
          .Priority(i == k + 1 ? kChain : kUrgent);
    }
    for (int j = k + 1; j < kTiles; ++j) {
      const bool is_next = j == k + 1;
      graph.Launch(ps::Name("update", j, j), UpdateDiagonalNode, size_, ps::Read(Tile(j, k)), ps::ReadWrite(Tile(j, j)))
          .HostFallback(UpdateDiagonalOnHost)
          .On(OwnerOf(j, devices_))
          .Priority(is_next ? kChain : 0);
      for (int i = j + 1; i < kTiles; ++i) {
        graph
            .Launch(ps::Name("update", i, j), UpdateNode, size_, ps::Read(Tile(i, k)), ps::Read(Tile(j, k)),
                    ps::ReadWrite(Tile(i, j)))
            .HostFallback(UpdateOnHost)
            .On(OwnerOf(j, devices_))
            .Priority(is_next ? kUrgent : 0);
      }
    }
  }

  const int size_, block_, devices_;
  std::vector<ps::BufferHandle<double>> tiles_;
  ps::Executable exec_;
  ps::Bindings io_;
  double compile_us_ = 0;
  int handles_before_ = 0;
};

// On tiles of a matrix on GPUs, which it fills before and checks after each run.
class PenstockOnGpus {
 public:
  PenstockOnGpus(ps::Runtime& runtime, Matrix& matrix, int block, const ps::CompileOptions& options)
      : matrix_(matrix), tiles_(runtime, matrix.size(), block, matrix.devices(), options) {
    for (int i = 0; i < kTiles; ++i) {
      for (int j = 0; j <= i; ++j) tiles_.Bind(i, j, {matrix_.tile(i, j), matrix_.elements()});
    }
    matrix_.Fill();
    first_ = tiles_.FirstRun();
    matrix_.CheckFactor("Penstock");
  }

  Sample Run() {
    matrix_.Fill();
    const Sample sample = tiles_.Run();
    matrix_.CheckFactor("Penstock");
    return sample;
  }
  const std::string& first_run() const { return first_; }

 private:
  Matrix& matrix_;
  PenstockTiles tiles_;
  std::string first_;
};

// On so many host devices, with small tiles, against a plain factor of the whole matrix.
inline void RunOnHostDevices(int devices, ps::Mode mode) {
  constexpr int kSize = 8;
  constexpr int64_t kSide = kSize * kTiles;
  ps::Runtime runtime = Must(ps::Runtime::Create({.devices = "host:" + std::to_string(devices)}));
  PenstockTiles tiles(runtime, kSize, kSize, devices, {.slots = 1, .mode = mode});
  std::vector<ps::DeviceBuffer<double>> memory;
  std::vector<std::vector<double>> host(kAll, std::vector<double>(kSize * kSize));
  ps::Graph set("set"), get("get");
  std::vector<ps::BufferHandle<double>> in, out;
  for (int i = 0; i < kTiles; ++i) {
    for (int j = 0; j <= i; ++j) {
      const int owner = OwnerOf(j, devices);
      memory.push_back(Must(runtime.MakeDeviceBuffer<double>(kSize * kSize, owner)));
      tiles.Bind(i, j, {memory.back().data(), static_cast<size_t>(memory.back().size())});
      const auto from = set.Input<double>(ps::Name("in", i, j), kSize * kSize);
      const auto to = get.Output<double>(ps::Name("out", i, j), kSize * kSize);
      in.push_back(set.Output<double>(ps::Name("tile", i, j), kSize * kSize, ps::kDevice, owner));
      out.push_back(get.Input<double>(ps::Name("tile", i, j), kSize * kSize, ps::kDevice, owner));
      set.Copy(ps::Name("set", i, j), from, in.back()).On(owner);
      get.Copy(ps::Name("get", i, j), out.back(), to).On(owner);
      in.push_back(from), out.push_back(to);
    }
  }
  ps::Executable setter = Must(runtime.Compile(set)), getter = Must(runtime.Compile(get));
  ps::Bindings set_io = setter.bindings(), get_io = getter.bindings();
  for (int i = 0; i < kTiles; ++i) {
    for (int j = 0; j <= i; ++j) {
      const auto t = static_cast<size_t>(IndexOf(i, j));
      for (int64_t e = 0; e < kSize * kSize; ++e) {
        host[t][static_cast<size_t>(e)] = ElementOf(i * kSize + e % kSize, j * kSize + e / kSize, kSide);
      }
      set_io.Set(in[2 * t], memory[t]).Set(in[2 * t + 1], host[t]);
      get_io.Set(out[2 * t], memory[t]).Set(out[2 * t + 1], host[t]);
    }
  }
  Must(Must(setter.Launch(set_io)).Wait());
  tiles.Run();
  Must(Must(getter.Launch(get_io)).Wait());

  std::vector<double> l(kSide * kSide);
  for (int64_t i = 0; i < kSide; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      double sum = ElementOf(i, j, kSide);
      for (int64_t k = 0; k < j; ++k)
        sum -= l[static_cast<size_t>(i * kSide + k)] * l[static_cast<size_t>(j * kSide + k)];
      const double at_diagonal = i == j ? std::sqrt(sum) : l[static_cast<size_t>(j * kSide + j)];
      l[static_cast<size_t>(i * kSide + j)] = i == j ? at_diagonal : sum / at_diagonal;
      const auto t = static_cast<size_t>(IndexOf(static_cast<int>(i / kSize), static_cast<int>(j / kSize)));
      const double found = host[t][static_cast<size_t>(j % kSize * kSize + i % kSize)];
      if (!(std::abs(found - l[static_cast<size_t>(i * kSide + j)]) < 1e-10)) {
        Fail("Cholesky on host devices: element " + std::to_string(i) + ", " + std::to_string(j) + " is wrong");
      }
    }
  }
}

}  // namespace bench
