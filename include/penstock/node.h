// What Graph returns for a node: where to say more about it.
//
//   graph.Kernel(...).HostFallback(ReluOnHost).After(other).On(1);
//
// Ownership: a handle, to be copied: refers to the node inside its graph and must not be used after the graph is gone.
//            What is said about a node returns the handle by value, so `auto& n = graph.Host(...).On(1)` does not
//            compile.
// Threads:   as the graph.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "penstock/detail/arguments.h"
#include "penstock/detail/declaration_matcher.h"
#include "penstock/detail/model.h"
#include "penstock/export.h"
#include "penstock/handle.h"

namespace penstock {

class PENSTOCK_EXPORT NodeRef {
 public:
  // Runs after `other` has ended, whatever data they use. `other` is a node of the same graph.
  NodeRef After(const NodeRef& other);
  // Runs on this device, an index into the runtime's device list.
  NodeRef On(int device);
  // Lower numbers run first where the device can choose; 0 is the default.
  NodeRef Priority(int priority);
  // At most k executions of this node's callable at once over all slots; 1 is the default.
  NodeRef Concurrency(int k);
  // Of a Host node: it does not fail and waits for nothing. So what follows it is submitted ahead and waits on the
  // device, where a kernel of one thread asks for the call and waits for its end; the run is not parted there. If it
  // fails nonetheless the run does, but what follows has had what it left. A device has room for 32 such nodes
  // that wait at once. Infallible: a worker calls it. Inline: the thread that watches for questions does, at once, so
  // it takes 100 us at most; nothing else that is asked is answered meanwhile. Neither may call CUDA.
  NodeRef Infallible() { return Asked(HostWay::kHostcallWorker); }
  NodeRef Inline() { return Asked(HostWay::kHostcallInline); }
  // Lets the output take the bytes of the input where nobody needs the input after this node; else it changes nothing,
  // and the plan's notes say why. Without it a node's inputs and outputs never share bytes. The node says that it has
  // read element i of the input, counted row by row, before it writes element i of the output, and that nobody else
  // reads it: what most functors of one index do. Both are read or written as wholes, each by one access.
  template <class T, class U>
  PENSTOCK_HIDDEN NodeRef InPlace(BufferHandle<T> input, BufferHandle<U> output) {
    return InPlace({input.index(), output.index(), input.graph(), output.graph()});
  }

  // The node's index in its graph, in declaration order.
  int32_t index() const { return index_; }

 protected:
  friend class Graph;
  NodeRef(Model* model, int32_t index, detail::DeclarationMatcher* again)
      : model_(model), index_(index), again_(again) {}
  NodeDecl& decl() const { return model_->nodes[static_cast<size_t>(index_)]; }
  NodeRef InPlace(const InPlaceDecl& pair);
  NodeRef Asked(HostWay way);
  void RefuseNullFallback();
  template <class F>
  PENSTOCK_HIDDEN void SetFallback(F f, absl::Status (*call)(void* fallback, void* const* argv)) {
    if (detail::IsNull(f)) return RefuseNullFallback();
    if (again_ != nullptr) return again_->HostFallback(index_, f, call);
    decl().code.fallback = detail::ShareCallable(f);
    decl().code.call_fallback = call;
  }

 private:
  Model* model_;
  int32_t index_;
  detail::DeclarationMatcher* again_;  // null where the graph is declared for the first time
};

// A node whose device code has no meaning on the host: a host fallback says what it computes. `Args` are what the
// device code takes.
template <class... Args>
class FallbackNode : public NodeRef {
 public:
  // For the library: a handle on a node that may have a host fallback.
  FallbackNode(const NodeRef& node) : NodeRef(node) {}  // NOLINT: implicit

  // Computes the same on host devices: f(args...), called once for the whole node. Returns void or Status.
  template <class F>
  PENSTOCK_HIDDEN FallbackNode HostFallback(F f) {
    static_assert(std::is_invocable_v<F&, Args...>, "the host fallback takes the arguments of the device code");
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
