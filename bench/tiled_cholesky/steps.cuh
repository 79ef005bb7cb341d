// The steps on tiles, as library calls.
//
// potrf of a tile is one call of cuSOLVER, or several on smaller blocks with trsm and syrk between them, whichever is
// fastest as a graph on this GPU: both halves of the benchmark do the same. cuSOLVER allocates memory in a capture
// where it calls cuBLAS itself, and a graph with such a node cannot be a child of another; such block sizes do not
// count.
//
// Threads: single-threaded.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "matrix.cuh"
#include "penstock/cublas.h"
#include "penstock/cusolver.h"

namespace bench {

constexpr size_t kWorkspace = size_t{8} << 20;  // of each cuBLAS handle
constexpr cublasFillMode_t kLower = CUBLAS_FILL_MODE_LOWER;
constexpr double kOne = 1, kMinusOne = -1;

// What a step calls with: of one stream.
struct Handles {
  cublasHandle_t blas = nullptr;
  cusolverDnHandle_t solver = nullptr;
  double* work = nullptr;  // of potrf, so many elements
  int count = 0;
};

inline int WorkOfFactor(cusolverDnHandle_t solver, int n, int block, double* a) {
  int count = 0;
  Must(ps::ToStatus(cusolverDnDpotrf_bufferSize(solver, kLower, block, a, n, &count), "the workspace of potrf"));
  return count;
}
// a becomes its factor. `info` is of the last block: the factor itself is checked.
inline absl::Status Factor(const Handles& by, int n, int block, double* a, int* info) {
  for (int k = 0; k < n; k += block) {
    double *const at = a + int64_t{k} * n + k, *const below = at + block, *const rest = below + int64_t{block} * n;
    const int left = n - k - block;
    PS_RETURN_IF_ERROR(
        ps::ToStatus(cusolverDnDpotrf(by.solver, kLower, block, at, n, by.work, by.count, info), "potrf"));
    if (left == 0) break;
    PS_RETURN_IF_ERROR(ps::ToStatus(cublasDtrsm(by.blas, CUBLAS_SIDE_RIGHT, kLower, CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT,
                                                left, block, &kOne, at, n, below, n),
                                    "trsm in a tile"));
    PS_RETURN_IF_ERROR(
        ps::ToStatus(cublasDsyrk(by.blas, kLower, CUBLAS_OP_N, left, block, &kMinusOne, below, n, &kOne, rest, n),
                     "syrk in a tile"));
  }
  return absl::OkStatus();
}
// x becomes x l^-T.
inline absl::Status Solve(cublasHandle_t blas, int n, const double* l, double* x) {
  return ps::ToStatus(
      cublasDtrsm(blas, CUBLAS_SIDE_RIGHT, kLower, CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT, n, n, &kOne, l, n, x, n), "trsm");
}
// c -= x x^T, and c -= x y^T.
inline absl::Status Update(cublasHandle_t blas, int n, const double* x, double* c) {
  return ps::ToStatus(cublasDsyrk(blas, kLower, CUBLAS_OP_N, n, n, &kMinusOne, x, n, &kOne, c, n), "syrk");
}
inline absl::Status Update(cublasHandle_t blas, int n, const double* x, const double* y, double* c) {
  return ps::ToStatus(cublasDgemm(blas, CUBLAS_OP_N, CUBLAS_OP_T, n, n, n, &kMinusOne, x, n, y, n, &kOne, c, n),
                      "gemm");
}

// A stream's handles, and the memory in which they work.
class StreamHandles {
 public:
  // Without a `block`, not for Factor. The device is current.
  StreamHandles(cudaStream_t stream, int n = 0, int block = 0) : workspace_(MakeDeviceMemory<char>(kWorkspace)) {
    Must(ps::ToStatus(cublasCreate(&handles_.blas)));
    Must(ps::ToStatus(cublasSetStream(handles_.blas, stream)));
    Must(ps::ToStatus(cublasSetWorkspace(handles_.blas, workspace_, kWorkspace)));
    if (block == 0) return;
    Must(ps::ToStatus(cusolverDnCreate(&handles_.solver)));
    Must(ps::ToStatus(cusolverDnSetStream(handles_.solver, stream)));
    handles_.count = WorkOfFactor(handles_.solver, n, block, nullptr);
    handles_.work = MakeDeviceMemory<double>(static_cast<size_t>(std::max(1, handles_.count)));
  }
  StreamHandles(const StreamHandles&) = delete;
  ~StreamHandles() {
    cublasDestroy(handles_.blas);
    if (handles_.solver != nullptr) cusolverDnDestroy(handles_.solver);
    cudaFree(workspace_), cudaFree(handles_.work);
  }
  const Handles& get() const { return handles_; }

 private:
  char* const workspace_;
  Handles handles_;
};

// Which block is the fastest, and how long a potrf of a tile then takes.
struct FactorBlock {
  int size = 0;
  double us = 0;
};

class FindFactorBlock {
 public:
  explicit FindFactorBlock(Matrix& matrix) : matrix_(matrix), stream_((Choose(0), MakeStream())) {
    info_ = MakeDeviceMemory<int>(1);
  }
  FindFactorBlock(const FindFactorBlock&) = delete;
  ~FindFactorBlock() { cudaFree(info_), cudaStreamDestroy(stream_); }

  FactorBlock Find() const {
    const int n = matrix_.size();
    FactorBlock best{n, 0};
    for (int block = n; block >= 32 && block * 16 >= n; block /= 2) {
      const double us = Microseconds(block);
      if (us > 0 && (best.us == 0 || us < best.us)) best = {block, us};
    }
    return best;
  }

 private:
  // 0: cannot be part of another graph.
  double Microseconds(int block) const {
    const int n = matrix_.size();
    const StreamHandles handles(stream_, n, block);
    Must(Factor(handles.get(), n, block, Filled(), info_));  // what is loaded late is loaded now
    Check(cudaStreamSynchronize(stream_), "waiting");
    Check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), "capturing");
    const absl::Status called = Factor(handles.get(), n, block, matrix_.tile(0, 0), info_);
    cudaGraph_t graph = nullptr;
    const cudaError_t captured = cudaStreamEndCapture(stream_, &graph);
    (void)cudaGetLastError();
    if (captured != cudaSuccess) return 0;
    if (!called.ok() || Allocates(graph)) {
      cudaGraphDestroy(graph);
      return 0;
    }
    cudaGraphExec_t exec = nullptr;
    Check(cudaGraphInstantiate(&exec, graph, 0), "instantiating");
    std::vector<double> times;
    for (int r = 0; r < 9; ++r) {
      (void)Filled();
      const Clock::time_point begin = Clock::now();
      Check(cudaGraphLaunch(exec, stream_), "launching");
      Check(cudaStreamSynchronize(stream_), "waiting");
      times.push_back(bench::Microseconds(Clock::now() - begin));
    }
    cudaGraphExecDestroy(exec), cudaGraphDestroy(graph);
    return SpreadOf(times).median;
  }
  double* Filled() const {
    const int n = matrix_.size();
    FillTile<<<Grid(n, n), 128>>>(matrix_.tile(0, 0), n, 0, 0, matrix_.side(), 0);
    Check(cudaStreamSynchronize(nullptr), "filling");
    return matrix_.tile(0, 0);
  }
  static bool Allocates(cudaGraph_t graph) {
    size_t count = 0;
    Check(cudaGraphGetNodes(graph, nullptr, &count), "counting nodes");
    std::vector<cudaGraphNode_t> nodes(count);
    Check(cudaGraphGetNodes(graph, nodes.data(), &count), "listing nodes");
    return std::any_of(nodes.begin(), nodes.end(), [](cudaGraphNode_t node) {
      cudaGraphNodeType type{};
      Check(cudaGraphNodeGetType(node, &type), "asking for a node's type");
      return type == cudaGraphNodeTypeMemAlloc || type == cudaGraphNodeTypeMemFree;
    });
  }

  Matrix& matrix_;
  const cudaStream_t stream_;
  int* info_ = nullptr;
};

}  // namespace bench
