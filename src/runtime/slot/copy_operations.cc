#include "src/runtime/slot/copy_operations.h"

#include "src/driver/copy_box.h"
#include "src/runtime/slot/box_shapes.h"
#include "src/runtime/slot/slot_tables.h"

namespace penstock::runtime {
namespace {

driver::CopyOp OpOf(const CopyEntry& entry, const graph::Plan& plan, const std::vector<driver::DeviceRef>& devices,
                    driver::RunFault& fault) {
  const auto local = [&](InstanceId instance) {
    const DeviceId d = plan.instances[instance].device;
    return d < 0 ? -1 : devices[d].local;
  };
  driver::CopyOp op;
  op.kind = entry.kind;
  op.dst_device = local(entry.dst);
  op.src_device = local(entry.src);
  op.tag = {&fault, entry.node};
  return op;
}

bool HasNoBytes(const driver::CopyOp& op) { return op.width == 0 || op.height == 0 || op.depth == 0; }

const BoxInRun& BoxAt(const SlotTables& tables, BoxId box) { return tables.boxes[box]; }

// Rows that are adjacent on both sides count as one row. There are no bytes until both boxes are known, of which a
// launch may decide one alone.
void SetShape(const CopyEntry& entry, const SlotTables& tables, driver::CopyOp& op) {
  const BoxInRun &src = BoxAt(tables, entry.src_box), &dst = BoxAt(tables, entry.dst_box);
  const detail::Range size = dst.element == 0 ? detail::Range{0, 0, 0} : RangeOf(src.shape);
  op.width = static_cast<size_t>(size.width * src.element);
  op.height = static_cast<size_t>(size.height);
  op.depth = static_cast<size_t>(size.depth);
  op.src_pitch = static_cast<size_t>(src.row);
  op.dst_pitch = static_cast<size_t>(dst.row);
  op.src_slice = static_cast<size_t>(src.slice);
  op.dst_slice = static_cast<size_t>(dst.slice);
  op = driver::Collapse(op);
}

void SetAddresses(const CopyEntry& entry, const SlotTables& tables, driver::CopyOp& op) {
  op.src = tables.AddressOf(entry.src, entry.src_box);
  op.dst = tables.AddressOf(entry.dst, entry.dst_box);
}

// Lists the pieces of a batch to copy in this run.
void List(const BatchEntry& entry, SlotTables& tables, driver::BatchOp& batch) {
  driver::CopyPiece* const begin = tables.pieces + entry.pieces;
  driver::CopyPiece* end = begin;
  for (CopyId c = entry.first; c < entry.first + entry.count; ++c) {
    const driver::CopyOp& op = tables.copies[c];
    if (!tables.copies_disabled[c] && !HasNoBytes(op)) *end++ = *driver::PieceOf(op);  // small ones always fit
  }
  batch.count = static_cast<size_t>(end - begin);
  batch.size = driver::SizeOf(batch).value_or(driver::BatchSize());  // the driver reports an error with the node
}

}  // namespace

void MakeCopies(const graph::Plan& plan, const Program& program, const std::vector<driver::DeviceRef>& devices,
                driver::RunFault& fault, SlotTables& tables) {
  for (const CopyEntry& c : program.copies) tables.copies.push_back(OpOf(c, plan, devices, fault));
  tables.copies_disabled.resize(tables.copies.size());
  for (const BatchEntry& b : program.batches) {
    const driver::CopyOp& first = tables.copies[b.first];
    tables.batches.push_back({.kind = first.kind, .pieces = tables.pieces + b.pieces, .tag = first.tag});
  }
  tables.host_copies.resize(program.hosts.size());
  for (const HostStepId h : program.hosts.ids()) {
    if (program.hosts[h].copies()) tables.host_copies[h] = OpOf(program.hosts[h].copy, plan, devices, fault);
  }
}

void SetCopyShapes(const Program& program, SlotTables& tables) {
  for (const CopyId c : program.copies.ids()) {
    SetShape(program.copies[c], tables, tables.copies[c]);
    SetAddresses(program.copies[c], tables, tables.copies[c]);
  }
  for (const HostStepId h : program.hosts.ids()) {
    if (program.hosts[h].copies()) SetShape(program.hosts[h].copy, tables, tables.host_copies[h]);
  }
}

void PatchCopies(const Program& program, SlotTables& tables) {
  const auto pinned = [&](const CopyEntry& c) { return c.bound < 0 || tables.bound_pinned[c.bound]; };
  for (const CopyId c : program.patches.bound_copies) {
    const CopyEntry& entry = program.copies[c];
    SetAddresses(entry, tables, tables.copies[c]);
    tables.copies_disabled[c] = !pinned(entry);
  }
  for (const BatchId b : tables.batches.ids()) {
    List(program.batches[b], tables, tables.batches[b]);
  }
  for (const HostStepId h : program.hosts.ids()) {
    const HostEntry& host = program.hosts[h];
    if (!host.copies()) continue;
    driver::CopyOp& op = tables.host_copies[h];
    SetAddresses(host.copy, tables, op);
    tables.is_noop[h] = HasNoBytes(op) || (host.copy.bound >= 0 && tables.bound_pinned[host.copy.bound]);
  }
}

}  // namespace penstock::runtime
