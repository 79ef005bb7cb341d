// NameScope and DeviceScope: what holds for all that is declared on a graph while they live. Graph::Scope and
// Graph::ScopeOn make them.
//
// Ownership: they keep the graph's records alive. They nest, and end in the reverse order.
// Threads:   as the graph.
#pragma once

#include "penstock/detail/cplusplus20.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "penstock/detail/model.h"
#include "penstock/export.h"

namespace penstock {

// A prefix of names while it lives: see Graph::Scope.
class PENSTOCK_EXPORT NameScope {
 public:
  NameScope(const NameScope&) = delete;
  NameScope& operator=(const NameScope&) = delete;
  ~NameScope() { model_->scope = std::move(outer_); }

 private:
  friend class Graph;
  NameScope(std::shared_ptr<Model> model, Name name)
      : model_(std::move(model)), outer_(std::exchange(model_->scope, std::move(name))) {}
  std::shared_ptr<Model> model_;
  Name outer_;  // the prefix before
};

// A pin of nodes while it lives: see Graph::ScopeOn.
class PENSTOCK_EXPORT DeviceScope {
 public:
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;
  ~DeviceScope() { model_->scope_device = outer_; }

 private:
  friend class Graph;
  DeviceScope(std::shared_ptr<Model> model, int device)
      : model_(std::move(model)), outer_(std::exchange(model_->scope_device, device)) {}
  std::shared_ptr<Model> model_;
  int32_t outer_;  // the pin before
};

}  // namespace penstock
