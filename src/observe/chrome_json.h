// Spans as JSON in the trace event format that chrome://tracing and Perfetto read.
//
//   https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU ("Trace Event Format")
//
// A process a device (pid 0 is the host, pid d + 1 device d), a thread a track. The format wants the events of one
// thread disjoint or nested; where spans of one track overlap in part, the later one goes to a further row, "<track>
// #2".
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "penstock/trace.h"

namespace penstock::observe {

std::string ChromeJson(const std::vector<Span>& spans);

// `text` in quotes, with quotes, backslashes and control characters escaped; bytes that are not UTF-8 become U+FFFD.
std::string JsonString(std::string_view text);

}  // namespace penstock::observe
