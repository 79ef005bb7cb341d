// Messages in the one form that all errors of the library share:
//
//   graph 'g' node 'axpy' (a.cc:12) on cuda:0: what; why; what to do
//
// Threads: free functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "penstock/detail/model.h"

namespace penstock::graph {

// "a.cc:12": the file without its directories.
std::string Where(const SourceLine& source);
// A name, or a message with names in it, fit for a list of lines: the bytes of HiddenBytes become \xNN.
std::string OneLine(std::string_view text);
// How many bytes at the start of a text are a control character (C0, U+007F, and C1 in UTF-8), a separator of lines, or
// a character that turns the direction of the text; 0: none.
size_t HiddenBytes(std::string_view text);
// "'axpy' (a.cc:12)".
std::string Quoted(const Name& name);
// "takes 8 elements from 6 on in dimension 0 of 'x' (a.cc:1), which has 10; ...": a slice that leaves its buffer.
// `from` is empty if it is not known; `extent` is "10", "at most 10" or "10 in this run".
std::string OutsideText(const Name& buffer, int dimension, const std::string& from, int64_t count,
                        const std::string& extent);
// "a handle of another type (double; it was declared as int32_t); use the handle that its declaration returned".
std::string OtherTypeText(const TypeInfo& handle, const TypeInfo& declared);
// The strictest alignment that a type may have: all of the library's memory, on devices and pinned, is aligned to it.
inline constexpr uint32_t kMostAlign = 256;
// "has a type aligned to 4096 bytes; ...": for stricter types. `what` is "has a type".
std::string TooAligned(std::string_view what, uint32_t align);
// "graph 'g'", "graph 'g' node 'axpy' (a.cc:12)", "... on cuda:0" when `device` is not empty.
std::string Prefix(const Model& model);
std::string Prefix(const Model& model, std::string_view what, const Name& name, std::string_view device = {});

}  // namespace penstock::graph
