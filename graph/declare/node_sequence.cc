#include "penstock/node_sequence.h"

namespace penstock {

// Calls f(node) for each of the nodes, which have been declared one after the other.
template <class F>
NodeSequence NodeSequence::OfEach(F f) {
  for (int32_t i = first_.index(); i <= index(); ++i) f(At(i));
  return *this;
}

NodeSequence NodeSequence::On(int device) {
  return OfEach([&](NodeRef node) { node.On(device); });
}
NodeSequence NodeSequence::Priority(int priority) {
  return OfEach([&](NodeRef node) { node.Priority(priority); });
}
NodeSequence NodeSequence::Flops(double operations) {
  first_.Flops(operations);
  return *this;
}
// The first of them has the name that the user knows.
NodeSequence NodeSequence::InAnyOrder() {
  first_.InAnyOrder();
  return *this;
}
NodeSequence NodeSequence::After(const NodeRef& other) {
  first_.After(other);
  return *this;
}

}  // namespace penstock
