// Finds what is known of boxes and buffers before any launch. See box_builder.h.
#include "src/runtime/program/box_builder.h"

namespace penstock::runtime {
namespace {

using graph::PlanKind;
using graph::Space;

driver::CopyKind CopyKindOf(PlanKind kind) {
  switch (kind) {
    case PlanKind::kUpload:
    case PlanKind::kStageIn: return driver::CopyKind::kHostToDevice;
    case PlanKind::kStageOut:
    case PlanKind::kDownload: return driver::CopyKind::kDeviceToHost;
    case PlanKind::kPeerCopy: return driver::CopyKind::kPeer;
    default: return driver::CopyKind::kDeviceToDevice;
  }
}

// For each buffer, the buffer that owns its memory. Alias chains may be long, so none is followed more than one step.
Table<BufferId, BufferId> BasesOf(const Model& model) {
  Table<BufferId, BufferId> bases;
  bases.reserve(model.buffers.size());
  for (const BufferDecl& decl : model.buffers) {
    bases.push_back(decl.is_alias ? bases[decl.alias_of] : bases.next());
  }
  return bases;
}

}  // namespace

BoxBuilder::BoxBuilder(const ProgramOptions& options, Program& program)
    : model_(options.model), plan_(options.plan), program_(program) {
  BufferTables& buffers = program_.buffers;
  const size_t count = model_.buffers.size();
  buffers.staged.resize(count);
  buffers.bound.resize(count);
  buffers.written.resize(count);
  buffers.dynamic.resize(count);
  buffers.max_alignment_alias.resize(count);
  const Table<BufferId, BufferId> bases = BasesOf(model_);
  for (const BufferId b : model_.buffers.ids()) FindBuffer(b, bases[b]);
  for (const NodeDecl& node : model_.nodes) {
    for (const AccessDecl& access : node.accesses) {
      if (access.mode != AccessMode::kRead) buffers.written[bases[access.buffer]] = true;
    }
  }
  FindInstances();
  FindShaping();
}

void BoxBuilder::FindBuffer(BufferId b, BufferId base) {
  BufferTables& buffers = program_.buffers;
  const BufferDecl& decl = model_.buffers[b];
  const bool moves = decl.is_alias && (IsDynamic(decl.box) || buffers.dynamic[decl.alias_of]);
  buffers.dynamic[b] = moves || IsDynamic(decl.extent);
  if (buffers.leased < 0 && IsLeased(decl)) buffers.leased = b;
  if (!decl.is_alias) return;
  BufferId& max_alignment_alias = buffers.max_alignment_alias[base];
  const BufferDecl& most = model_.buffers[max_alignment_alias < 0 ? base : max_alignment_alias];
  if (decl.type.align > most.type.align) max_alignment_alias = b;
}

void BoxBuilder::FindInstances() {
  program_.params.instance.resize(model_.params.size());
  for (const InstanceId i : plan_.instances.ids()) {
    const graph::Instance& instance = plan_.instances[i];
    if (instance.space == Space::kBound) program_.buffers.bound[instance.buffer] = i;
    if (instance.stages) program_.buffers.staged[instance.buffer] = i;
    const BufferDecl& decl = model_.buffers[instance.buffer];
    if (decl.counted >= 0 && instance.space == Space::kPinned) {
      program_.counts.push_back({decl.counted, i, decl.type, model_.buffers[decl.counted].extent.dims[0]});
    }
    const ParamId param = decl.param;
    if (param >= 0 && instance.space == Space::kPinned) program_.params.instance[param] = i;
  }
}

void BoxBuilder::FindShaping() {
  program_.params.shaping.resize(model_.params.size());
  for (const BufferDecl& buffer : model_.buffers) Shapes(buffer.extent), Shapes(buffer.box);
  for (const NodeDecl& node : model_.nodes) {
    Shapes(node.extent);
    Shapes(node.shape.threads);
    for (const Dim& dim : node.shape.grid) Shapes(dim);
    for (const AccessDecl& access : node.accesses) Shapes(access.box);
  }
}
void BoxBuilder::Shapes(const Dim& dim) {
  if (!dim.is_constant()) program_.params.shaping[dim.param] = true;
}
void BoxBuilder::Shapes(const Extent& extent) {
  for (int i = 0; i < extent.rank; ++i) Shapes(extent.dims[i]);
}
void BoxBuilder::Shapes(const Box& box) {
  if (!box.whole) Shapes(box.offset), Shapes(box.size);
}

BoxId BoxBuilder::Add(SliceEntry slice) {
  const AccessDecl& access = AccessOf(slice);
  const BufferDecl& of = model_.buffers[access.buffer];
  if (access.box.whole() && !of.is_alias && !(slice.span && of.pitch > 0)) return int32_t{access.buffer};
  slice.dynamic = program_.buffers.dynamic[access.buffer] || IsDynamic(access.box);
  program_.slices.push_back(slice);
  return model_.buffers.count() + static_cast<int32_t>(program_.slices.size()) - 1;
}

void BoxBuilder::AddBoxesOfDroppedCopies() {
  Table<DeclId, bool> planned(model_.nodes.size());
  for (const graph::PlanNode& node : plan_.nodes) {
    if (node.decl >= 0) planned[node.decl] = true;
  }
  for (const DeclId decl : planned.ids()) {
    if (planned[decl]) continue;
    for (int32_t access = 0; access < 2; ++access) AddBox(decl, access);
  }
}

CopyEntry BoxBuilder::CopyOf(NodeId n) {
  const graph::PlanNode& node = plan_.nodes[n];
  const auto buffer_of = [&](InstanceId i) { return plan_.instances[i].buffer; };
  CopyEntry copy{.node = n, .src = node.src, .dst = node.dst, .kind = CopyKindOf(node.kind)};
  if (node.part >= 0) {
    copy.src_box = copy.dst_box = BoxOfPart(buffer_of(node.src), node.part);
  } else {
    copy.src_box = BoxOf(node.copy, AccessMode::kRead, buffer_of(node.src));
    copy.dst_box = BoxOf(node.copy, AccessMode::kWrite, buffer_of(node.dst));
  }
  if (node.when != graph::When::kAlways) {
    const bool from = plan_.instances[node.src].space == Space::kBound;
    copy.bound = buffer_of(from ? node.src : node.dst);
  }
  return copy;
}

// The box that a Copy node reads or writes; all of `buffer` if there is no such node.
BoxId BoxBuilder::BoxOf(DeclId copy, AccessMode mode, BufferId buffer) {
  if (copy < 0) return int32_t{buffer};
  const bool first = model_.nodes[copy].accesses[0].mode == mode;
  return AddBox(copy, first ? 0 : 1);
}

BoxId BoxBuilder::BoxOfPart(BufferId buffer, graph::PartId part) {
  program_.slices.push_back({.buffer = buffer, .part = part, .dynamic = program_.buffers.dynamic[buffer]});
  return model_.buffers.count() + static_cast<int32_t>(program_.slices.size()) - 1;
}

bool BoxBuilder::IsDynamicBox(BoxId box) const {
  return IsSlice(box) ? SliceOf(box).dynamic : program_.buffers.dynamic[int32_t{box}];
}

bool BoxBuilder::MayHaveRows(BoxId box) const {
  const BufferId buffer = IsSlice(box) ? BufferOf(SliceOf(box)) : BufferId(int32_t{box});
  const BufferDecl& decl = model_.buffers[buffer];
  return decl.extent.rank > 1 && (IsSlice(box) || decl.pitch > 0 || decl.is_alias);
}

bool BoxBuilder::Varies(InstanceId instance) const {
  const graph::Instance& i = plan_.instances[instance];
  return i.space == Space::kBound || i.stages || model_.buffers[i.buffer].keys != 0;
}

}  // namespace penstock::runtime
