// NodeSequence: a handle on several nodes that are declared by one call, such as those of a Reduce or a Scan.
//
// To others it is the last of them: what runs after it finds the result.
//
// Ownership: as NodeRef.
// Threads:   as the graph.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include "penstock/export.h"
#include "penstock/node.h"

namespace penstock {

namespace detail {
class AlgorithmDeclaration;
}

class PENSTOCK_EXPORT NodeSequence : public NodeRef {
 public:
  // For the library: nodes declared one after the other.
  NodeSequence(const NodeRef& first, const NodeRef& last) : NodeRef(last), first_(first) {}

  NodeSequence After(const NodeRef& other);  // as NodeRef::After, for the first of them
  NodeSequence On(int device);  // as NodeRef::On, for all of them
  NodeSequence Priority(int priority);  // as NodeRef::Priority, for all of them
  NodeSequence Flops(double operations);  // as NodeRef::Flops, for the first of them, which reads all elements

 private:
  friend class detail::AlgorithmDeclaration;
  // Marks them as nodes of an algorithm that may combine values in any order.
  NodeSequence InAnyOrder();
  template <class F>
  PENSTOCK_HIDDEN NodeSequence OfEach(F f);
  NodeRef first_;
};

}  // namespace penstock
