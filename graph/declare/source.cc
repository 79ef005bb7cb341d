// Source: its parts are made here, so that the code that frees them is the library's and not that of a plugin.
#include "penstock/source.h"

#include <utility>

namespace penstock {

Source::Source(std::string text, std::string kernel, SourceOptions options)
    : parts_(std::make_shared<const Parts>(Parts{std::move(text), std::move(kernel), std::move(options)})) {}

}  // namespace penstock
