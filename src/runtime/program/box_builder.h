// BoxBuilder: fills in what a Program knows about boxes: its slices, the facts about the model's buffers, and which of
// them depend on parameters.
//
// Ownership: refers to the options and the Program, which outlive it.
// Threads:   single-threaded.
#pragma once

#include "src/runtime/program/program.h"

namespace penstock::runtime {

class BoxBuilder {
 public:
  // Fills Program::buffers, and in Program::params what parameters shape and the instances that hold them.
  BoxBuilder(const ProgramOptions& options, Program& program);

  // The box of an access: a new slice, unless it is all of a buffer with memory of its own, which needs no check.
  BoxId AddBox(DeclId decl, int32_t access) { return Add({.decl = decl, .access = access}); }
  // The same of an access that the callable takes as a span.
  BoxId AddSpan(DeclId decl, int32_t access) { return Add({.decl = decl, .access = access, .span = true}); }
  // A launch also refuses slices that leave their buffer in copies that the plan eliminated.
  void AddBoxesOfDroppedCopies();
  // The copy that a plan node makes, with its boxes.
  CopyEntry CopyOf(NodeId n);

  bool IsSlice(BoxId box) const { return box >= model_.buffers.count(); }
  bool IsDynamicBox(BoxId box) const;
  bool MayHaveRows(BoxId box) const;  // its rows may have gaps between them
  bool Varies(InstanceId instance) const;  // each launch decides its address

 private:
  void FindBuffer(BufferId b, BufferId base);
  void FindInstances();
  void FindShaping();
  void Shapes(const Dim& dim);
  void Shapes(const Extent& extent);
  void Shapes(const Box& box);
  BoxId Add(SliceEntry slice);
  BoxId BoxOf(DeclId copy, AccessMode mode, BufferId buffer);
  BoxId BoxOfPart(BufferId buffer, graph::PartId part);
  const SliceEntry& SliceOf(BoxId box) const { return program_.slices[box - model_.buffers.count()]; }
  const AccessDecl& AccessOf(const SliceEntry& slice) const { return model_.nodes[slice.decl].accesses[slice.access]; }
  BufferId BufferOf(const SliceEntry& slice) const { return slice.part < 0 ? AccessOf(slice).buffer : slice.buffer; }

  const Model& model_;
  const graph::Plan& plan_;
  Program& program_;
};

}  // namespace penstock::runtime
