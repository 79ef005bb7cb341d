#include "src/runtime/executable/block_sizes.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "graph/common/message.h"
#include "penstock/status_macros.h"
#include "src/base/kernel_limits.h"

namespace penstock::runtime {
namespace {

absl::Status CheckBlockThreads(const NodeDecl& node, int64_t threads, const driver::KernelCode& code) {
  if (threads <= code.block_threads) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      node.is_task ? "its block has " : "its blocks have ", threads, " threads; this kernel can have ",
      code.block_threads, ", for its registers or launch bounds; use fewer", node.is_task ? "" : ", or more blocks"));
}

absl::Status CheckBlockShared(const NodeDecl& node, const driver::KernelCode& code, const base::KernelLimits& limits) {
  const uint32_t bytes = node.shape.shared_bytes;
  if (bytes + code.shared_bytes <= limits.shared_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      node.is_task ? "its block takes " : "its blocks take ", bytes, " and, declared in it, ", code.shared_bytes,
      " bytes of shared memory; a block of this device can have ", limits.shared_bytes, "; use less"));
}

std::string TextOfBlocks(const driver::BlockSize& size, uint32_t shared_bytes) {
  if (size.at_once == 0) return absl::StrCat("blocks of ", size.threads, " threads: a host device has no occupancy");
  return absl::StrCat("blocks of ", size.threads, " threads by its occupancy: with ", shared_bytes,
                      " bytes of dynamic shared memory each, ", size.at_once, size.at_once == 1 ? " runs" : " run",
                      " on a multiprocessor at once, ", int64_t{size.threads} * size.at_once, " threads");
}

}  // namespace

absl::StatusOr<driver::BlockSize> BlockSizes::Get(const NodeDecl& node, const driver::DeviceRef& device,
                                                  const driver::KernelCode& code) {
  const KernelShape& shape = node.shape;
  if (!shape.by_occupancy) {
    PENSTOCK_RETURN_IF_ERROR(CheckBlockThreads(node, int64_t{shape.block[0]} * shape.block[1] * shape.block[2], code));
    PENSTOCK_RETURN_IF_ERROR(CheckBlockShared(node, code, device.info.limits));
    return driver::BlockSize{};
  }
  PENSTOCK_RETURN_IF_ERROR(CheckBlockShared(node, code, device.info.limits));
  const bool is_cuda = device.info.kind == driver::DeviceKind::kCuda;
  // Of a host device all kernels are null, and equal.
  const auto [known, is_new] = known_.try_emplace(
      Key(device.driver, device.local, is_cuda ? code.kernel : node.code.cuda_self, shape.shared_bytes));
  if (is_new) {
    PENSTOCK_ASSIGN_OR_RETURN(known->second, device.driver->FindBlockSize(device.local, code, shape.shared_bytes));
  }
  const driver::BlockSize size = known->second;
  if (size.threads == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("its occupancy is 0: no block of it with ", shape.shared_bytes,
                     " bytes of dynamic shared memory fits on a multiprocessor; use less"));
  }
  PENSTOCK_RETURN_IF_ERROR(CheckBlockThreads(node, size.threads, code));
  PENSTOCK_RETURN_IF_ERROR(CheckBlocks(node, device, size.threads));
  told_.push_back({&node, &device, size});
  return size;
}

absl::Status BlockSizes::CheckBlocks(const NodeDecl& node, const driver::DeviceRef& device, uint32_t threads) const {
  const Dim& dim = node.shape.threads;
  const int64_t most = dim.is_constant() ? dim.value : model_.params[dim.param].max;
  const int64_t limit = device.info.limits.grid[0] * threads;
  if (most <= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("it may have ", most, " threads, and a launch has at most ", limit,
                                                 " in blocks of ", threads,
                                                 ", the size by its occupancy; use fewer, or name the size of blocks"));
}

void BlockSizes::TellOf(const graph::Plan& plan, std::vector<std::string>& notes) const {
  const bool several = graph::IsOnSeveralDevices(plan);
  std::vector<std::string> all;
  for (const Told& told : told_) {
    all.push_back(absl::StrCat("node ", graph::Quoted(told.node->name), " has ",
                               TextOfBlocks(told.size, told.node->shape.shared_bytes),
                               several ? absl::StrCat(", on ", told.device->info.name) : ""));
  }
  notes.insert(notes.begin(), all.begin(), all.end());
}

}  // namespace penstock::runtime
