// ArgumentBuilder: lays out the argument blocks of a Program's calls, and lists what launches write into them.
//
// Ownership: refers to the options, the boxes and the Program, which outlive it.
// Threads:   single-threaded.
#pragma once

#include "src/runtime/program/box_builder.h"
#include "src/runtime/program/program.h"

namespace penstock::runtime {

class ArgumentBuilder {
 public:
  ArgumentBuilder(const ProgramOptions& options, BoxBuilder& boxes, Program& program)
      : options_(options), boxes_(boxes), program_(program) {}

  // Adds the call of a node with arguments, its block and its patches.
  void AddCall(NodeId n);
  // Fills in the rest of Program::params once all calls have been added.
  void FinishParams();

 private:
  CallEntry MakeBlock(NodeId n, const NodeDecl& decl);
  void AddArg(CallEntry& call, const graph::PlanNode& node, const NodeDecl& decl, const ArgDecl& arg);
  void AddAccess(CallEntry& call, const graph::PlanNode& node, const NodeDecl& decl, const ArgDecl& arg, uint32_t at);
  void SortPatches();
  void ListPatchesOfCalls();
  void PlaceParams();

  const ProgramOptions& options_;
  BoxBuilder& boxes_;
  Program& program_;
};

}  // namespace penstock::runtime
