// Messages in the one form every error of the library has:
//
//   graph 'g' node 'axpy' (a.cc:12) on cuda:0: what; why; what to do
//
// Threads: free functions without state.
#pragma once

#include <string>
#include <string_view>

#include "penstock/model.h"

namespace penstock::graph {

// "a.cc:12": the file without its folders.
std::string Where(const SourceLine& source);
// "graph 'g'", "graph 'g' node 'axpy' (a.cc:12)", "... on cuda:0" when `device` is not empty.
std::string Prefix(const Model& model);
std::string Prefix(const Model& model, std::string_view what, const Name& name, std::string_view device = {});

}  // namespace penstock::graph
