// NodeRef: a handle on a node, returned by Graph, through which to set the node's options.
//
//   graph.Kernel(...).HostFallback(ReluOnHost).After(other).On(1);
//
// Ownership: a copyable handle: refers to the node inside its graph and must not be used after the graph is gone.
//            Setters return the handle by value, so `auto& n = graph.Host(...).On(1)` does not compile.
// Threads:   as the graph.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "penstock/detail/arguments.h"
#include "penstock/detail/declaration_sink.h"
#include "penstock/detail/explain_arguments.h"
#include "penstock/detail/model.h"
#include "penstock/export.h"
#include "penstock/handle.h"

namespace penstock {

class PENSTOCK_EXPORT NodeRef {
 public:
  // Runs the node after `other` has ended, whatever data they use. `other` is a node of the same graph.
  NodeRef After(const NodeRef& other);
  // Runs the node on this device, an index of the runtime's device list.
  NodeRef On(int device);
  // Lower numbers run first if the device has a choice; 0 is the default.
  NodeRef Priority(int priority);
  // Allows at most k concurrent executions of this node's callable over all slots; 1 is the default.
  NodeRef Concurrency(int k);
  // How many floating-point operations one execution of the node does, a multiply-add counting as two: at least 0 and
  // less than 10^18. It changes nothing but what profiles say of the node (Profile::Node::flops); the command penstock
  // then shows how close the node comes to what its device can do.
  NodeRef Flops(double operations);
  // Says that the node may give other bits for the same input in another run, or on another device: a kernel that adds
  // floats atomically, a callable that reads a clock. It changes nothing but that Compile refuses the node in a graph
  // that is Deterministic.
  NodeRef Nondeterministic();
  // For a Host node: promises that the callable neither fails nor waits. The run is then not cut there: later nodes are
  // submitted early, and a kernel of one thread requests the call on the device and waits for its end. If the callable
  // fails nevertheless, the run fails too, but later nodes have already used its output. A device has room for 32 such
  // nodes that wait at the same time. Infallible: a worker calls it. Inline: the hostcall poller calls it itself, so it
  // should take at most 100 us; other hostcalls wait meanwhile. Neither may call CUDA.
  NodeRef Infallible();
  NodeRef Inline();
  // Lets the output take over the input's bytes if the input is not needed after this node; otherwise it has no effect,
  // and the plan's remarks say why. Without it a node's inputs and outputs never share bytes. It promises that the node
  // reads element i of the input, counted row by row, before it writes element i of the output, and that nothing else
  // reads that element, as in most functors of one index. Each buffer must be accessed as a whole, by one access.
  template <class T, class U>
  PENSTOCK_HIDDEN NodeRef InPlace(BufferHandle<T> input, BufferHandle<U> output) {
    return InPlace({input.index(), output.index(), input.graph(), output.graph()});
  }

  // The node's index in its graph, in declaration order.
  int32_t index() const { return index_; }

 protected:
  // A node of the same graph.
  NodeRef At(int32_t index) const { return {sink_, index}; }
  template <class F>
  PENSTOCK_HIDDEN void SetFallback(F f, absl::Status (*call)(void* fallback, void* const* argv)) {
    if (detail::IsNull(f)) return RefuseNullFallback();
    sink_.Visit([&](auto& to) { to.HostFallback(index_, f, call); });
  }

 private:
  friend class Graph;
  friend class NodeSequence;
  NodeRef(const detail::DeclarationSink& sink, int32_t index) : sink_(sink), index_(index) {}
  const NodeDecl& decl() const { return sink_.model().nodes[static_cast<size_t>(index_)]; }
  // The two ways to set an option (NodeOptions, and the lists of NodeDecl).
  template <class T>
  PENSTOCK_HIDDEN NodeRef Set(T NodeOptions::* option, T value);
  template <class T>
  PENSTOCK_HIDDEN NodeRef Add(std::vector<T> NodeDecl::* list, const T& item);
  NodeRef InPlace(const InPlaceDecl& pair);
  NodeRef InAnyOrder();  // it may combine values in any order, where the order matters
  void RefuseNullFallback();

  detail::DeclarationSink sink_;
  int32_t index_;
};

// A node whose device code cannot run on the host: a host fallback computes the same there. `Args` are the arguments of
// the device code. The setters are those of NodeRef; HostFallback may stand anywhere among them.
template <class... Args>
class FallbackNode : public NodeRef {
 public:
  // For the library: a handle on a node that may have a host fallback.
  FallbackNode(const NodeRef& node) : NodeRef(node) {}  // NOLINT: implicit

  FallbackNode After(const NodeRef& other) { return NodeRef::After(other); }  // as NodeRef::After
  FallbackNode On(int device) { return NodeRef::On(device); }  // as NodeRef::On
  FallbackNode Priority(int priority) { return NodeRef::Priority(priority); }  // as NodeRef::Priority
  FallbackNode Concurrency(int k) { return NodeRef::Concurrency(k); }  // as NodeRef::Concurrency
  FallbackNode Flops(double operations) { return NodeRef::Flops(operations); }  // as NodeRef::Flops
  FallbackNode Nondeterministic() { return NodeRef::Nondeterministic(); }  // as NodeRef::Nondeterministic
  // As NodeRef::InPlace.
  template <class T, class U>
  PENSTOCK_HIDDEN FallbackNode InPlace(BufferHandle<T> input, BufferHandle<U> output) {
    return NodeRef::InPlace(input, output);
  }

  // Computes the same on host devices: f(args...), called once for the whole node. Returns void or Status.
  template <class F>
  PENSTOCK_HIDDEN FallbackNode HostFallback(F f) {
    if constexpr (!std::is_invocable_v<F&, Args...>) detail::Explain<detail::AsFallback<F>, Args...>();
    SetFallback(std::move(f), &detail::CallFallback<F, std::remove_cv_t<Args>...>);
    return *this;
  }
  // The name of HostFallback before 0.1.0.
  template <class F>
  [[deprecated("renamed HostFallback")]] PENSTOCK_HIDDEN FallbackNode HostTwin(F f) {
    return HostFallback(std::move(f));
  }
};

}  // namespace penstock
