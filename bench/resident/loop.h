// A While of a thousand iterations of five tiny nodes, with and without regions, against a WHILE node made by hand.
#pragma once

#include "context.h"

namespace bench {

void MeasureLoop(const Context& context, Report& report);

}  // namespace bench
