// DeclarationSink: where the declarations of a graph go: into its model, or to a matcher that compares them with an
// earlier declaration of it.
//
// Ownership: a copyable value that borrows both.
// Threads:   single-threaded.
#pragma once

#include "penstock/detail/declaration_matcher.h"
#include "penstock/detail/declaration_recorder.h"
#include "penstock/detail/model.h"
#include "penstock/export.h"

namespace penstock::detail {

class DeclarationSink {
 public:
  // `matcher`: null if declarations are appended to the model.
  DeclarationSink(Model* model, DeclarationMatcher* matcher) : model_(model), matcher_(matcher) {}

  Model& model() const { return *model_; }
  bool is_compared() const { return matcher_ != nullptr; }

  // Returns what `declare` returns for the matcher or a recorder, which have the same calls.
  template <class Declare>
  PENSTOCK_HIDDEN auto Visit(Declare declare) const {
    if (matcher_ != nullptr) return declare(*matcher_);
    DeclarationRecorder recorder(*model_);
    return declare(recorder);
  }

 private:
  Model* model_;
  DeclarationMatcher* matcher_;
};

}  // namespace penstock::detail
