// The Cholesky factor of a symmetric positive definite matrix, A = L L^T, tile by tile on all devices (right-looking;
// Buttari, Langou, Kurzak and Dongarra 2009). The steps are cuSOLVER's and cuBLAS's, or plain loops on host devices.
// The program says which tiles a step reads and writes, and whose they are: the order of some hundred steps, what
// overlaps and which tiles go from device to device follow from that.
//
//   cholesky [--devices cuda | host:2] [--tiles 8] [--size 64] [--diagonal 512]
//
// The matrix has `tiles` x `tiles` tiles of `size` x `size`. Its elements are between -1 and 1, plus `diagonal` on the
// diagonal, so small diagonals make it indefinite, which is an error.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "penstock/ps.h"
#if defined(WITH_CUDA)
#include "penstock/cublas.h"
#include "penstock/cusolver.h"
#endif

// Steps on tiles of n x n. A tile is stored row by row; to the libraries, which count columns first, it is its own
// transpose, so that what is the lower triangle here is the upper one there.
#if defined(WITH_CUDA)
constexpr cublasFillMode_t kLower = CUBLAS_FILL_MODE_UPPER;
constexpr double kOne = 1, kMinusOne = -1;

absl::StatusOr<cublasHandle_t> Blas(ps::LaunchContext& launch) {
  // Each lane of the plan has a workspace. The scalars never change.
  const ps::CublasOptions options{.workspace_bytes = size_t{8} << 20, .pointer_mode = CUBLAS_POINTER_MODE_HOST};
  PS_ASSIGN_OR_RETURN(ps::Cublas * blas, launch.Get<ps::Cublas>(options));
  return blas->handle();
}
absl::Status Factor(ps::LaunchContext& launch, int n, double* a, int* info) {
  PS_ASSIGN_OR_RETURN(ps::Cusolver * solver, launch.Get<ps::Cusolver>());
  int count = 0;
  PS_RETURN_IF_ERROR(
      ps::ToStatus(cusolverDnDpotrf_bufferSize(solver->handle(), kLower, n, a, n, &count), "the workspace of potrf"));
  PS_ASSIGN_OR_RETURN(ps::CudaWorkspace * work, launch.Get<ps::CudaWorkspace>(count * sizeof(double)));
  return ps::ToStatus(
      cusolverDnDpotrf(solver->handle(), kLower, n, a, n, static_cast<double*>(work->data()), count, info), "potrf");
}
absl::Status Solve(ps::LaunchContext& launch, int n, const double* l, double* x) {
  PS_ASSIGN_OR_RETURN(cublasHandle_t blas, Blas(launch));
  return ps::ToStatus(
      cublasDtrsm(blas, CUBLAS_SIDE_LEFT, kLower, CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT, n, n, &kOne, l, n, x, n), "trsm");
}
absl::Status UpdateDiagonal(ps::LaunchContext& launch, int n, const double* x, double* c) {
  PS_ASSIGN_OR_RETURN(cublasHandle_t blas, Blas(launch));
  return ps::ToStatus(cublasDsyrk(blas, kLower, CUBLAS_OP_T, n, n, &kMinusOne, x, n, &kOne, c, n), "syrk");
}
absl::Status Update(ps::LaunchContext& launch, int n, const double* x, const double* y, double* c) {
  PS_ASSIGN_OR_RETURN(cublasHandle_t blas, Blas(launch));
  return ps::ToStatus(cublasDgemm(blas, CUBLAS_OP_T, CUBLAS_OP_N, n, n, n, &kMinusOne, y, n, x, n, &kOne, c, n),
                      "gemm");
}
#endif

// a becomes its factor. `info` becomes 0, or the order of the first leading minor that is not positive.
void FactorOnHost(int n, double* a, int* info) {
  *info = 0;
  for (int j = 0; j < n && *info == 0; ++j) {
    double* const row = a + j * n;
    for (int k = 0; k < j; ++k) row[j] -= row[k] * row[k];
    if (!(row[j] > 0)) *info = j + 1;
    row[j] = std::sqrt(row[j]);
    for (int i = j + 1; i < n; ++i) {
      double* const below = a + i * n;
      for (int k = 0; k < j; ++k) below[j] -= below[k] * row[k];
      below[j] /= row[j];
    }
  }
}
// x becomes x l^-T.
void SolveOnHost(int n, const double* l, double* x) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      for (int k = 0; k < j; ++k) x[i * n + j] -= x[i * n + k] * l[j * n + k];
      x[i * n + j] /= l[j * n + j];
    }
  }
}
// c -= x y^T.
void UpdateOnHost(int n, const double* x, const double* y, double* c) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      for (int k = 0; k < n; ++k) c[i * n + j] -= x[i * n + k] * y[j * n + k];
    }
  }
}
void UpdateDiagonalOnHost(int n, const double* x, double* c) { UpdateOnHost(n, x, x, c); }

struct Options {
  std::string devices;
  int tiles = 8, size = 64;
  double diagonal = 0;  // 0: as much as makes the matrix positive definite

  int64_t side() const { return int64_t{tiles} * size; }
};

// The steps of the factorization. Columns of tiles are dealt round to the devices, so that each has work to the end,
// and a column's factor stays with those who need it first. What the next columns wait for has priority.
class Factorization {
 public:
  Factorization(ps::Graph& graph, const Options& options, int devices)
      : graph_(graph), n_(options.size), devices_(devices) {
    a_ = graph.InOut<double>("a", {options.side(), options.side()}, ps::kPinned);
    info_ = graph.Output<int>("info", options.tiles, ps::kPinned);
    for (int i = 0; i < options.tiles; ++i) {
      for (int j = 0; j <= i; ++j) {
        tiles_.push_back(graph.Buffer<double>(ps::Name("tile", i, j), {n_, n_}));
        graph.Copy(ps::Name("load", i, j), ps::Read(a_, Place(i, j)), ps::Write(Tile(i, j))).On(Owner(j));
      }
    }
    for (int k = 0; k < options.tiles; ++k) Column(k, options.tiles);
    for (int i = 0; i < options.tiles; ++i) {
      for (int j = 0; j <= i; ++j) {
        graph.Copy(ps::Name("store", i, j), ps::Read(Tile(i, j)), ps::Write(a_, Place(i, j))).On(Owner(j));
      }
    }
  }

  ps::BufferHandle<double> a() const { return a_; }  // its lower triangle becomes the factor's
  ps::BufferHandle<int> info() const { return info_; }  // of each tile on the diagonal

 private:
  ps::BufferHandle<double> Tile(int i, int j) const { return tiles_[static_cast<size_t>(i * (i + 1) / 2 + j)]; }
  int Owner(int column) const { return column % devices_; }

  ps::Box Place(int i, int j) const { return ps::Slice({int64_t{i} * n_, int64_t{j} * n_}, {n_, n_}); }

  void Column(int k, int tiles) {
    const auto scope = graph_.Scope(ps::Name("column", k));
    graph_.Launch("factor", PS_ON_CUDA(Factor), n_, ps::ReadWrite(Tile(k, k)), ps::Write(info_, ps::Slice(k, 1)))
        .HostFallback(FactorOnHost)
        .On(Owner(k))
        .Priority(-1);
    for (int i = k + 1; i < tiles; ++i) {
      graph_.Launch(ps::Name("solve", i), PS_ON_CUDA(Solve), n_, ps::Read(Tile(k, k)), ps::ReadWrite(Tile(i, k)))
          .HostFallback(SolveOnHost)
          .On(Owner(k))
          .Priority(-1);
    }
    for (int j = k + 1; j < tiles; ++j) {
      const int priority = j == k + 1 ? -1 : 0;
      graph_
          .Launch(ps::Name("update", j, j), PS_ON_CUDA(UpdateDiagonal), n_, ps::Read(Tile(j, k)),
                  ps::ReadWrite(Tile(j, j)))
          .HostFallback(UpdateDiagonalOnHost)
          .On(Owner(j))
          .Priority(priority);
      for (int i = j + 1; i < tiles; ++i) {
        graph_
            .Launch(ps::Name("update", i, j), PS_ON_CUDA(Update), n_, ps::Read(Tile(i, k)), ps::Read(Tile(j, k)),
                    ps::ReadWrite(Tile(i, j)))
            .HostFallback(UpdateOnHost)
            .On(Owner(j))
            .Priority(priority);
      }
    }
  }

  ps::Graph& graph_;
  int n_, devices_;
  std::vector<ps::BufferHandle<double>> tiles_;  // of the lower triangle
  ps::BufferHandle<double> a_;
  ps::BufferHandle<int> info_;
};

std::vector<double> Symmetric(const Options& options) {
  const int64_t n = options.side();
  std::mt19937 random(1);
  std::vector<double> a(static_cast<size_t>(n * n));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) a[i * n + j] = a[j * n + i] = static_cast<double>(random()) / 2147483648.0 - 1;
    a[i * n + i] += options.diagonal;
  }
  return a;
}

// The same factor without tiles: an element after the other, each from those to its left and above.
std::vector<double> PlainFactor(std::vector<double> a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      double sum = a[i * n + j];
      for (int64_t k = 0; k < j; ++k) sum -= a[i * n + k] * a[j * n + k];
      a[i * n + j] = i == j ? std::sqrt(sum) : sum / a[j * n + j];
    }
  }
  return a;
}

double Norm(std::span<const double> x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

// |A x - L (L^T x)| / (|A| |x|) for a random x: of the order of 1e-16 if L is right.
double Residual(const std::vector<double>& a, std::span<const double> l, int64_t n) {
  std::mt19937 random(2);
  std::vector<double> x(static_cast<size_t>(n)), lx(x.size()), left(x.size());
  for (double& value : x) value = static_cast<double>(random()) / 2147483648.0 - 1;
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) lx[j] += l[i * n + j] * x[i];
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) left[i] += a[i * n + j] * x[j];
    for (int64_t j = 0; j <= i; ++j) left[i] -= l[i * n + j] * lx[j];
  }
  return Norm(left) / (Norm(a) * Norm(x));
}

absl::Status Check(const std::vector<double>& a, std::span<const double> l, int64_t n) {
  const double residual = Residual(a, l, n);
  if (!(residual < 1e-14)) return absl::InternalError("the factor is wrong: it leaves " + std::to_string(residual));
  if (n > 1024) return absl::OkStatus();  // the plain factor would take minutes
  const std::vector<double> expected = PlainFactor(a, n);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      if (!(std::abs(l[i * n + j] - expected[i * n + j]) < 1e-12 * Norm(std::span(expected).subspan(i * n, i + 1)))) {
        return absl::InternalError("element " + std::to_string(i) + ", " + std::to_string(j) + " is wrong");
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Run(const Options& options) {
  const int64_t n = options.side();
  const std::vector<double> a = Symmetric(options);
  PS_ASSIGN_OR_RETURN(ps::Runtime runtime, ps::Runtime::Create({.devices = options.devices}));
  const int devices = std::min(static_cast<int>(runtime.devices().size()), options.tiles);

  ps::Graph graph("cholesky");
  const Factorization factorization(graph, options, devices);
  PS_ASSIGN_OR_RETURN(ps::Executable exec, runtime.Compile(graph, {.slots = 1}));

  PS_ASSIGN_OR_RETURN(auto l, runtime.MakeHostBuffer<double>(n * n));
  PS_ASSIGN_OR_RETURN(auto info, runtime.MakeHostBuffer<int>(options.tiles));
  std::copy(a.begin(), a.end(), l.begin());
  ps::Bindings io = exec.bindings();
  PS_ASSIGN_OR_RETURN(const ps::Run run, exec.Launch(io.Set(factorization.a(), l).Set(factorization.info(), info)));
  PS_RETURN_IF_ERROR(run.Wait());

  // What a step says of its tile counts from there, and what comes after it means nothing.
  for (int k = 0; k < options.tiles; ++k) {
    if (info[k] == 0) continue;
    return absl::InvalidArgumentError("the matrix is not positive definite: its leading minor of order " +
                                      std::to_string(k * options.size + info[k]) +
                                      " is not positive; give a larger --diagonal");
  }
  PS_RETURN_IF_ERROR(Check(a, {l.begin(), l.end()}, n));
  std::printf("%d x %d tiles of %d x %d on %d devices: the factor is right\n", options.tiles, options.tiles,
              options.size, options.size, devices);
  return absl::OkStatus();
}

absl::Status Misused(const std::string& what) {
  return absl::InvalidArgumentError(
      what + "; usage: cholesky [--devices cuda | host:2] [--tiles 8] [--size 64] [--diagonal 512]");
}

absl::Status Parse(int argc, char** argv, Options& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    if (flag == "--devices") options.devices = argv[i + 1];
    else if (flag == "--tiles") options.tiles = std::atoi(argv[i + 1]);
    else if (flag == "--size") options.size = std::atoi(argv[i + 1]);
    else if (flag == "--diagonal") options.diagonal = std::atof(argv[i + 1]);
    else return Misused("there is no " + flag);
  }
  if (argc % 2 == 0) return Misused(std::string(argv[argc - 1]) + " lacks a value");
  if (options.tiles < 1 || options.size < 1 || options.tiles > 64 || options.size > 4096 || options.side() > 32768)
    return absl::InvalidArgumentError("give 1 to 64 tiles, of 1 to 4096 rows, and 32768 rows at most in all");
  if (options.diagonal == 0) options.diagonal = static_cast<double>(options.side());
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  Options options;
  absl::Status status = Parse(argc, argv, options);
  if (status.ok()) status = Run(options);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
