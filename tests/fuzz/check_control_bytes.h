// What the fuzzer of constructs and the replay of its inputs do with one: declare a nested program of If, Switch, While
// and Repeat as the bytes say, with mistakes or without, compile it in a way that they say, and run it where it is
// right: as an interpreter does, with a Host node that fails, and after that.
//
// Threads: one at a time: the runtime it runs on is made once and kept.
#pragma once

#include <cstdint>
#include <span>

#include "tests/fuzz/check_bytes.h"

namespace penstock::fuzz {

Outcome CheckControlBytes(std::span<const uint8_t> bytes);

}  // namespace penstock::fuzz
