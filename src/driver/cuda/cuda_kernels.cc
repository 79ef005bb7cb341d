// The build makes the image from kernels/*.cu (cmake/PenstockKernelImage.cmake).
#include "src/driver/cuda/cuda_kernels.h"

#include <algorithm>
#include <string>

#include "penstock/detail/programmatic.h"
#include "penstock/status_macros.h"
#include "src/base/mutex.h"
#include "src/driver/cuda/cuda_status.h"
#include "src/driver/fill_box.h"

extern "C" const unsigned char penstock_kernels_fatbin[];

namespace penstock::driver {
namespace {

// Enough blocks to occupy any current device; the kernel strides over the rest.
constexpr uint64_t kMaxFillBlocks = 2048;
// Blocks of the gather kernel. This many, with words in flight in every thread, saturate one direction of the bus; more
// would slow concurrent copies in the other direction (H200, 256 KiB a piece: 80 GB/s in sum with 64 up and 32 down, 68
// with 64 and 64, 60 with 32 and 64). Pieces of a few bytes take 256. Within device memory, as many as fit are best.
constexpr uint64_t kUpBlocks = 64, kDownBlocks = 32, kMostBusBlocks = 256, kDeviceBlocks = 1024;

uint64_t MostBlocks(CopyKind kind, uint64_t teams_a_block) {
  if (kind == CopyKind::kDeviceToDevice) return kDeviceBlocks;
  return std::min((kind == CopyKind::kHostToDevice ? kUpBlocks : kDownBlocks) * teams_a_block, kMostBusBlocks);
}

struct OwnKernel {
  cudaKernel_t LibraryKernels::* kernel;
  const char* symbol;
  const char* what;
};
constexpr OwnKernel kOwnKernels[] = {
    {&LibraryKernels::pattern_fill, "PenstockPatternFill", "the pattern fill kernel"},
    {&LibraryKernels::gather, "PenstockGather", "the gather kernel"},
    {&LibraryKernels::ask, "PenstockHostcall", "the kernel that asks the host"},
    {&LibraryKernels::stamp, "PenstockTimestamp", "the kernel that writes down the time"},
    {&LibraryKernels::decide, "PenstockDecide", "the kernel that decides about a loop"},
    {&LibraryKernels::look, "PenstockLook", "the kernel that looks whether a loop is stopped"}};

absl::StatusOr<LibraryKernels> LoadImage() {
  cudaLibrary_t library = nullptr;
  PENSTOCK_RETURN_IF_ERROR(
      ToStatus(cudaLibraryLoadData(&library, penstock_kernels_fatbin, nullptr, nullptr, 0, nullptr, nullptr, 0),
               "loading the library's kernels"));
  LibraryKernels kernels;
  for (const OwnKernel& own : kOwnKernels) {
    PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaLibraryGetKernel(&(kernels.*own.kernel), library, own.symbol),
                                      std::string("finding ") + own.what));
  }
  return kernels;
}

}  // namespace

absl::StatusOr<LibraryKernels> LibraryKernels::Get() {
  static base::Mutex mu;  // held while CUDA loads the kernels, once a process
  static LibraryKernels loaded;
  base::MutexLock lock(mu);
  if (loaded.pattern_fill == nullptr) {
    PENSTOCK_ASSIGN_OR_RETURN(loaded, LoadImage());
  }
  return loaded;
}

absl::StatusOr<bool> LibraryKernels::Load() const {
  cudaFuncAttributes found;
  for (const OwnKernel& own : kOwnKernels) {
    PENSTOCK_RETURN_IF_ERROR(
        ToStatus(LoadOnCurrentDevice(this->*own.kernel, 0, found), std::string("loading ") + own.what));
  }
  return found.ptxVersion >= detail::kAwaitsFromPtx;
}

cudaError_t LoadOnCurrentDevice(const void* kernel, int shared_limit, cudaFuncAttributes& found) {
  if (const cudaError_t code = cudaFuncGetAttributes(&found, kernel)) return code;
  const int dynamic = shared_limit - static_cast<int>(found.sharedSizeBytes);
  if (dynamic > found.maxDynamicSharedSizeBytes) {
    // Without this, launches that need more than 48 KiB are refused; if it fails they still are, with a Status.
    Forget(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, dynamic));
  }
  return cudaSuccess;
}

LibraryLaunch<PatternFill> LaunchOf(const FillOp& whole) {
  const FillOp op = Collapse(whole);
  PatternFill fill{.dst = static_cast<unsigned char*>(op.dst),
                   .width = op.count * op.pattern_size,
                   .rows = op.height * op.depth,
                   .height = op.height,
                   .pitch = op.pitch,
                   .slice = op.slice,
                   .team = 32,
                   .period = op.pattern_size,
                   .pattern{}};
  std::copy_n(reinterpret_cast<const unsigned char*>(op.pattern.data()), 16, fill.pattern);
  const uint64_t chunks = fill.width / 16 + 1;
  while (fill.team < kPatternFillThreads && fill.team < chunks) fill.team *= 2;
  const uint64_t teams = kPatternFillThreads / fill.team;  // per block
  const uint64_t across = std::min((fill.rows + teams - 1) / teams, kMaxFillBlocks);
  const uint64_t along = std::min((chunks + fill.team - 1) / fill.team, kMaxFillBlocks / across);
  return {fill, dim3(static_cast<unsigned>(along), static_cast<unsigned>(across)), dim3(kPatternFillThreads)};
}

LibraryLaunch<Gather> LaunchOf(const BatchOp& op, const BatchSize& size) {
  constexpr uint64_t kSweep = uint64_t{16} * kGatherWords;  // bytes that a thread has in flight
  // Teams just large enough for the average piece, so that a block takes several small pieces.
  uint64_t team = 32;
  while (team < kGatherThreads && team * kSweep < size.bytes / op.count) team *= 2;
  const uint64_t teams = kGatherThreads / team;  // per block
  const uint64_t most_blocks = MostBlocks(op.kind, teams);
  // As many parts as the largest piece keeps busy, unless that makes many more teams than can run concurrently.
  const uint64_t useful = (size.largest + team * kSweep - 1) / (team * kSweep);
  const uint64_t parts = std::clamp<uint64_t>((most_blocks * teams + op.count - 1) / op.count, 1, useful);
  const uint64_t blocks = std::min((op.count * parts + teams - 1) / teams, most_blocks);
  return {{.pieces = op.pieces,
           .count = op.count,
           .parts = static_cast<uint32_t>(parts),
           .team = static_cast<uint32_t>(team)},
          dim3(static_cast<unsigned>(blocks)),
          dim3(kGatherThreads)};
}

}  // namespace penstock::driver
