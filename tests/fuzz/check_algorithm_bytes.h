// What the fuzzer of algorithms and the replay of its inputs do with one: declare a program of algorithms as the bytes
// say, with mistakes or without, compile it in a way that they say, and run it where it is right, with several lengths
// and values: each run leaves what plain loops compute.
//
// Threads: one at a time: the runtime it runs on is made once and kept.
#pragma once

#include <cstdint>
#include <span>

#include "tests/fuzz/check_bytes.h"

namespace penstock::fuzz {

Outcome CheckAlgorithmBytes(std::span<const uint8_t> bytes);

}  // namespace penstock::fuzz
