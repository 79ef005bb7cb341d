// Wait: whether a call that needs a slot or room may wait for it until its deadline, or fails at once without.
//
// Threads: a plain value.
#pragma once

namespace penstock::runtime {

enum class Wait : bool { kNo, kYes };

}  // namespace penstock::runtime
