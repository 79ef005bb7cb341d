// Checks a text against the trace event format as its documentation has it, and what viewers make of it: members that
// each phase must have, a name for each process and thread in use, slices of a thread disjoint or nested, arrows that
// begin and end once, in slices, and never go back, counters of numbers with one value at a time.
//
//   https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU ("Trace Event Format")
//
// It shares nothing with what writes the format.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace penstock::chrome_checker {

// What is wrong, at most a few lines; empty: nothing.
std::vector<std::string> MistakesIn(std::string_view json);

}  // namespace penstock::chrome_checker
