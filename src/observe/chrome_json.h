// Writes spans as JSON in the trace event format that chrome://tracing and Perfetto read.
//
//   https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU ("Trace Event Format")
//
// Each device is a process (pid 0 is the host, pid d + 1 device d), each track a thread. The format requires the events
// of one thread to be disjoint or nested; if spans of a track overlap partially, the later one goes to an additional
// row, "<track> #2".
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "penstock/trace.h"

namespace penstock::observe {

std::string ChromeJson(const std::vector<Span>& spans);

// "upload".
const char* KindName(SpanKind kind);

// The length of the UTF-8 sequence at the start of `text`, or 0 if there is none.
size_t Utf8Length(std::string_view text);

// `text` in quotes, with quotes, backslashes and control characters escaped; bytes that are not UTF-8 become U+FFFD.
std::string JsonString(std::string_view text);

}  // namespace penstock::observe
