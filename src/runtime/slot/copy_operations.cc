#include "src/runtime/slot/copy_operations.h"

#include "src/driver/copy_box.h"
#include "src/runtime/slot/slot.h"

namespace penstock::runtime {
namespace {

driver::CopyOp OpOf(const CopyEntry& entry, const graph::Plan& plan, const std::vector<driver::DeviceRef>& devices,
                    Slot& slot) {
  const auto local = [&](int32_t instance) {
    const int32_t d = plan.instances[static_cast<size_t>(instance)].device;
    return d < 0 ? -1 : devices[static_cast<size_t>(d)].local;
  };
  driver::CopyOp op;
  op.kind = entry.kind;
  op.dst_device = local(entry.dst);
  op.src_device = local(entry.src);
  op.tag = {&slot.fault, entry.node};
  return op;
}

bool IsEmpty(const driver::CopyOp& op) { return op.width == 0 || op.height == 0 || op.depth == 0; }

const BoxInRun& BoxAt(const Slot& slot, int32_t box) { return slot.boxes[static_cast<size_t>(box)]; }

// CsrRows that lie side by side on both sides are one row.
void SetShape(const CopyEntry& entry, const Slot& slot, driver::CopyOp& op) {
  const BoxInRun &src = BoxAt(slot, entry.src_box), &dst = BoxAt(slot, entry.dst_box);
  const detail::Range size = RangeOf(src.shape);
  op.width = static_cast<size_t>(size.width * src.element);
  op.height = static_cast<size_t>(size.height);
  op.depth = static_cast<size_t>(size.depth);
  op.src_pitch = static_cast<size_t>(src.row);
  op.dst_pitch = static_cast<size_t>(dst.row);
  op.src_slice = static_cast<size_t>(src.slice);
  op.dst_slice = static_cast<size_t>(dst.slice);
  op = driver::Collapse(op);
}

void SetAddresses(const CopyEntry& entry, const Slot& slot, driver::CopyOp& op) {
  op.src = slot.AddressOf(entry.src, entry.src_box);
  op.dst = slot.AddressOf(entry.dst, entry.dst_box);
}

// The pieces of a batch that are to be copied in this run.
void List(const BatchEntry& entry, Slot& slot, driver::BatchOp& batch) {
  driver::CopyPiece* const begin = slot.pieces + entry.pieces;
  driver::CopyPiece* end = begin;
  const auto first = static_cast<size_t>(entry.first);
  for (size_t c = first; c < first + static_cast<size_t>(entry.count); ++c) {
    const driver::CopyOp& op = slot.copies[c];
    if (!slot.copies_off[c] && !IsEmpty(op)) *end++ = *driver::PieceOf(op);  // small ones always fit
  }
  batch.count = static_cast<size_t>(end - begin);
  batch.size = driver::SizeOf(batch).value_or(driver::BatchSize());  // what is wrong the driver tells of the node
}

}  // namespace

void MakeCopies(const graph::Plan& plan, const Program& program, const std::vector<driver::DeviceRef>& devices,
                Slot& slot) {
  for (const CopyEntry& c : program.copies) slot.copies.push_back(OpOf(c, plan, devices, slot));
  slot.copies_off.resize(slot.copies.size());
  for (const BatchEntry& b : program.batches) {
    const driver::CopyOp& first = slot.copies[static_cast<size_t>(b.first)];
    slot.batches.push_back({.kind = first.kind, .pieces = slot.pieces + b.pieces, .tag = first.tag});
  }
  slot.host_copies.resize(program.hosts.size());
  for (size_t h = 0; h < program.hosts.size(); ++h) {
    if (program.hosts[h].call < 0) slot.host_copies[h] = OpOf(program.hosts[h].copy, plan, devices, slot);
  }
}

void SetCopyShapes(const Program& program, Slot& slot) {
  for (size_t i = 0; i < program.copies.size(); ++i) {
    SetShape(program.copies[i], slot, slot.copies[i]);
    SetAddresses(program.copies[i], slot, slot.copies[i]);
  }
  for (size_t h = 0; h < program.hosts.size(); ++h) {
    if (program.hosts[h].call < 0) SetShape(program.hosts[h].copy, slot, slot.host_copies[h]);
  }
}

void PatchCopies(const Program& program, Slot& slot) {
  const auto pinned = [&](const CopyEntry& c) {
    return c.bound < 0 || slot.bound_pinned[static_cast<size_t>(c.bound)];
  };
  for (const int32_t c : program.bound_copies) {
    const CopyEntry& entry = program.copies[static_cast<size_t>(c)];
    SetAddresses(entry, slot, slot.copies[static_cast<size_t>(c)]);
    slot.copies_off[static_cast<size_t>(c)] = !pinned(entry);
  }
  for (size_t b = 0; b < slot.batches.size(); ++b) {
    List(program.batches[b], slot, slot.batches[b]);
  }
  for (size_t h = 0; h < program.hosts.size(); ++h) {
    const HostEntry& host = program.hosts[h];
    if (host.call >= 0) continue;
    driver::CopyOp& op = slot.host_copies[h];
    SetAddresses(host.copy, slot, op);
    slot.is_noop[h] = IsEmpty(op) || (host.copy.bound >= 0 && slot.bound_pinned[static_cast<size_t>(host.copy.bound)]);
  }
}

}  // namespace penstock::runtime
