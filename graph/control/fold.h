// Fold: cuts a model with constructs (control.h) into models without: one for what is outside of all constructs, in
// which each of them is a node, and one for each condition and body.
//
// A construct's node accesses all that its condition and bodies do. What is used on both sides of a body's edge, and
// what an iteration may find there that an earlier one has left, is memory of the model around it: the body's model
// has an Input or InOut there, device memory that the construct binds. Everything else of a body is its own.
//
// A Repeat whose number of rounds is known and small is unrolled instead: the nodes of its body stand so many times in
// the model around it, and what they access orders them like all others.
//
// A construct that the device decides (lowering.h) is a node there. Of those that are in no region, two loops of one
// model are in the order of their declarations: only one such loop may run on a device at a time.
//
// A body may not run, or write less than it seems to, so a construct is said to write some elements only; and to change
// what a buffer already holds, so that this comes to where the body is. What a condition writes is written for certain.
//
// Ownership: the models keep alive what they were made from: views name buffers by addresses in it.
// Threads:   a pure function.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "graph/control/lowering.h"
#include "penstock/detail/model.h"

namespace penstock::graph {

inline constexpr int64_t kMostUnrolled = 256;  // nodes that an unrolled Repeat becomes

struct FoldedControl;

struct Folded {
  std::shared_ptr<const Model> model;
  std::vector<std::shared_ptr<const FoldedControl>> controls;  // in the order of their nodes, on a device or not
  std::vector<std::string> unrolled;  // what the submission report says of each unrolled Repeat; of the outermost model
};

// What a part of a construct binds: a buffer of its model, and where that is in the model around it.
struct BoundByControl {
  BufferId inner{};
  int32_t access = -1;  // of the construct's node
};

// A condition or a body.
struct FoldedPart {
  Folded folded;
  std::vector<BoundByControl> bound;
  // What its condition writes, if it has one: an Output in the slot's own memory if the host reads it, else of no use.
  BufferId word{};
};

struct FoldedControl {
  ControlId id{};
  Name name{""};
  ControlKind kind{};
  bool on_device = false;
  bool in_region = false;  // the device decides it in a resident region
  int32_t device = -1;  // the first that a node in it is pinned to; -1: none is
  bool has_loop = false;  // it is a loop, or has one in a body
  bool tells = false;  // kWhile: the condition's decision says how many iterations have ended
  Dim trips{0};  // kRepeat without a condition
  int64_t max = 0;  // kWhile
  // The condition; that of a Repeat says how many iterations there are, and may be missing. The body of a While ends
  // with it too.
  std::vector<FoldedPart> condition;
  std::vector<FoldedPart> bodies;
};

// `model` has constructs. All mistakes, those collected while declaring and those found here, are the outermost
// model's.
Folded Fold(std::shared_ptr<const Model> model, const Lowerings& lowerings);

}  // namespace penstock::graph
