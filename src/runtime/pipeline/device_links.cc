// What executables of one stage hand on in device memory of the pipeline's own. See Stages::Then.
//
// Each slot of the executable that writes it has the memory of each link. An item has the slots of all executables of
// its stage until all their work has drained, so nobody else uses it meanwhile.
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/common/message.h"
#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/runtime/core/device_allocation.h"
#include "src/runtime/executable/device_replicas.h"
#include "src/runtime/pipeline/pipeline_core.h"

namespace penstock::runtime {
namespace {

// The bytes that a link's buffer has in each run, or why it cannot be one.
absl::StatusOr<size_t> BytesOf(const Model& model, int32_t index, bool input) {
  if (index < 0 || static_cast<size_t>(index) >= model.buffers.size()) {
    return absl::InvalidArgumentError("a link names no buffer of " + graph::Prefix(model));
  }
  const BufferDecl& decl = model.buffers[static_cast<size_t>(index)];
  const auto refuse = [&](const char* why) {
    return absl::InvalidArgumentError(graph::Prefix(model, "buffer", decl.name) + ": " + why);
  };
  const bool fits = input ? decl.role == BufferRole::kInput || decl.role == BufferRole::kInOut
                          : decl.role == BufferRole::kOutput || decl.role == BufferRole::kInOut;
  if (!fits || decl.is_alias || decl.where != Where::kDevice || decl.pitch != 0) {
    return refuse("a link goes from an Output to an Input, both kDevice and without a pitch");
  }
  size_t bytes = decl.type.size;
  for (int i = 0; i < decl.extent.rank; ++i) {
    const Dim& dim = decl.extent.dims[static_cast<size_t>(i)];
    if (!dim.is_constant()) return refuse("a link has one size in all runs; give it constant dimensions");
    bytes *= static_cast<size_t>(dim.value);
  }
  return bytes;
}

// The device its memory is on; -1: no node uses it.
int HomeOf(const ExecutableCore& core, int32_t buffer) {
  const int32_t instance = core.graph().program().buffers.bound[static_cast<size_t>(buffer)];
  return instance < 0 ? -1 : core.graph().plan().instances[static_cast<size_t>(instance)].device;
}

}  // namespace

absl::Status PipelineCore::MakeLinks(const Stage& stage, Leg& leg) {
  const ExecutableSet& from = *stage.legs.back().set;
  leg.between.resize(leg.set->members().size());
  for (const Link& link : leg.links) {
    const Model& writes = from.first().model();
    const Model& reads = leg.set->first().model();
    if (link.from_graph != writes.serial || link.to_graph != reads.serial) {
      return absl::InvalidArgumentError(leg.prefix +
                                        ": a link goes from a buffer of the graph of the Run before to one "
                                        "of this Run's graph");
    }
    const absl::StatusOr<size_t> bytes = BytesOf(writes, link.from_index, /*input=*/false);
    const absl::StatusOr<size_t> wanted = BytesOf(reads, link.to_index, /*input=*/true);
    if (!bytes.ok()) return base::Prefixed(leg.prefix, bytes.status());
    if (!wanted.ok()) return base::Prefixed(leg.prefix, wanted.status());
    if (*bytes != *wanted) {
      return absl::InvalidArgumentError(
          absl::StrCat(leg.prefix, ": a link joins ", *bytes, " bytes with ", *wanted, "; both buffers have one size"));
    }
    for (size_t m = 0; m < leg.between.size(); ++m) {
      const ExecutableCore& writer = *from.members()[m].core;
      const ExecutableCore& reader = *leg.set->members()[m].core;
      const int device = HomeOf(writer, link.from_index);
      if (device < 0 || device != HomeOf(reader, link.to_index)) {
        return absl::InvalidArgumentError(absl::StrCat(
            leg.prefix, ": the two buffers of a link are on different devices (", device, " and ",
            HomeOf(reader, link.to_index),
            "; -1: no node uses it); declare the Input or the Output on the other's device (Graph::Input)"));
      }
      leg.between[m].resize(static_cast<size_t>(writer.slots()));
      for (auto& of_slot : leg.between[m]) {
        absl::StatusOr<std::shared_ptr<void>> memory = AllocateDeviceBlock(runtime_, device, *bytes);
        if (!memory.ok()) return base::Prefixed(leg.prefix + ": the memory of a link", memory.status());
        of_slot.push_back(*std::move(memory));
      }
    }
  }
  return absl::OkStatus();
}

void PipelineCore::BindLinks(const Stage& stage, size_t l, int member, PipelineItem& item) {
  const auto part = [&](size_t leg) -> PipelineItem::Part& {
    return item.parts[static_cast<size_t>(stage.legs[leg].part)];
  };
  // Of the links between `reader` and the one before it.
  const auto bind = [&](size_t reader, bool input) {
    const Leg& leg = stage.legs[reader];
    const auto slot = static_cast<size_t>(part(reader - 1).slot.slot_->index);
    Bindings& to = part(input ? reader : reader - 1).bindings;
    for (size_t k = 0; k < leg.links.size(); ++k) {
      const Link& link = leg.links[k];
      const std::shared_ptr<void>& memory = leg.between[static_cast<size_t>(member)][slot][k];
      const uint32_t graph = input ? link.to_graph : link.from_graph;
      const int32_t index = input ? link.to_index : link.from_index;
      const BufferDecl& decl =
          (input ? leg : stage.legs[reader - 1]).set->first().model().buffers[static_cast<size_t>(index)];
      int64_t elements = 1;
      for (int i = 0; i < decl.extent.rank; ++i) elements *= decl.extent.dims[static_cast<size_t>(i)].value;
      BoundMemory bound{.data = memory.get(), .elements = elements, .held = true};
      bound.keep_alive = memory;
      to.SetBuffer(graph, index, decl.type, std::move(bound));
      if (input) to.AddPredecessor(graph, index, decl.type, &item.run, nullptr);
    }
  };
  if (l > 0) bind(l, /*input=*/true);
  if (l + 1 < stage.legs.size()) bind(l + 1, /*input=*/false);
}

}  // namespace penstock::runtime
