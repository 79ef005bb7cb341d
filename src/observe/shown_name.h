// ShownName: a name as operators see it, on one line and in UTF-8: control characters, and bytes that are not UTF-8,
// become U+FFFD.
//
// Threads: a pure function.
#pragma once

#include <string>
#include <string_view>

namespace penstock::observe {

std::string ShownName(std::string_view name);

}  // namespace penstock::observe
