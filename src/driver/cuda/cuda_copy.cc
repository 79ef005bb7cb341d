// One-dimensional copies are the fast path: most plans have only these, and the hardware handles them best.
#include "src/driver/cuda/cuda_copy.h"

#include "src/driver/copy_box.h"

namespace penstock::driver {
namespace {

// CUDA measures slices in rows. A plane has one slice, so any number will do.
cudaPitchedPtr Pitched(const void* memory, size_t pitch, size_t slice, const CopyOp& op) {
  const size_t rows = op.depth == 1 ? op.height : slice / pitch;
  return {.ptr = const_cast<void*>(memory), .pitch = pitch, .xsize = op.width, .ysize = rows};
}

cudaError_t SubmitLine(cudaStream_t stream, const CopyOp& op, int dst_ordinal, int src_ordinal) {
  if (op.kind == CopyKind::kPeer) {
    return cudaMemcpyPeerAsync(op.dst, dst_ordinal, op.src, src_ordinal, op.width, stream);
  }
  return cudaMemcpyAsync(op.dst, op.src, op.width, KindOf(op.kind), stream);
}

cudaError_t SubmitPeerBox(cudaStream_t stream, const CopyOp& op, int dst_ordinal, int src_ordinal) {
  cudaMemcpy3DPeerParms box{};
  box.dstPtr = Pitched(op.dst, op.dst_pitch, op.dst_slice, op);
  box.srcPtr = Pitched(op.src, op.src_pitch, op.src_slice, op);
  box.dstDevice = dst_ordinal;
  box.srcDevice = src_ordinal;
  box.extent = {.width = op.width, .height = op.height, .depth = op.depth};
  return cudaMemcpy3DPeerAsync(&box, stream);
}

cudaError_t SubmitBox(cudaStream_t stream, const CopyOp& op) {
  if (op.depth == 1) {
    return cudaMemcpy2DAsync(op.dst, op.dst_pitch, op.src, op.src_pitch, op.width, op.height, KindOf(op.kind), stream);
  }
  const cudaMemcpy3DParms box = BoxOf(op);
  return cudaMemcpy3DAsync(&box, stream);
}

bool SlicesAreWholeRows(const CopyOp& op) {
  return op.dst_pitch != 0 && op.src_pitch != 0 && op.dst_slice % op.dst_pitch == 0 && op.src_slice % op.src_pitch == 0;
}

cudaError_t SubmitSlices(cudaStream_t stream, const CopyOp& op, int dst_ordinal, int src_ordinal) {
  CopyOp slice = op;
  slice.depth = 1;
  for (size_t z = 0; z < op.depth; ++z) {
    slice.dst = static_cast<char*>(op.dst) + z * op.dst_slice;
    slice.src = static_cast<const char*>(op.src) + z * op.src_slice;
    if (const cudaError_t code = SubmitCopy(stream, slice, dst_ordinal, src_ordinal)) return code;
  }
  return cudaSuccess;
}

}  // namespace

cudaMemcpyKind KindOf(CopyKind kind) {
  switch (kind) {
    case CopyKind::kHostToDevice: return cudaMemcpyHostToDevice;
    case CopyKind::kDeviceToHost: return cudaMemcpyDeviceToHost;
    case CopyKind::kPeer: return cudaMemcpyDefault;  // by addresses
    default: return cudaMemcpyDeviceToDevice;
  }
}

cudaMemcpy3DParms BoxOf(const CopyOp& op) {
  cudaMemcpy3DParms box{};
  box.dstPtr = Pitched(op.dst, op.dst_pitch, op.dst_slice, op);
  box.srcPtr = Pitched(op.src, op.src_pitch, op.src_slice, op);
  box.extent = {.width = op.width, .height = op.height, .depth = op.depth};
  box.kind = KindOf(op.kind);
  return box;
}

cudaError_t SubmitCopy(cudaStream_t stream, const CopyOp& op, int dst_ordinal, int src_ordinal) {
  if (op.width == 0 || op.height == 0 || op.depth == 0) return cudaSuccess;
  if (op.height == 1 && op.depth == 1) return SubmitLine(stream, op, dst_ordinal, src_ordinal);
  const CopyOp least = Collapse(op);
  if (least.height == 1 && least.depth == 1) return SubmitLine(stream, least, dst_ordinal, src_ordinal);
  if (least.depth > 1 && !SlicesAreWholeRows(least)) return SubmitSlices(stream, least, dst_ordinal, src_ordinal);
  if (least.kind == CopyKind::kPeer) return SubmitPeerBox(stream, least, dst_ordinal, src_ordinal);
  return SubmitBox(stream, least);
}

}  // namespace penstock::driver
