// Short spellings for users who want them: namespace `ps` and the PS_ macros. The library itself never includes this.
#pragma once

#include "penstock/penstock.h"

namespace ps = penstock;

// Short names of the macros with PENSTOCK_ in place of PS_.
#define PS_HOST_DEVICE PENSTOCK_HOST_DEVICE
#define PS_ON_CUDA(...) PENSTOCK_ON_CUDA(__VA_ARGS__)
#define PS_AWAIT_DEPENDENCIES() PENSTOCK_AWAIT_DEPENDENCIES()
#define PS_RETURN_IF_ERROR(expr) PENSTOCK_RETURN_IF_ERROR(expr)
#define PS_ASSIGN_OR_RETURN(lhs, ...) PENSTOCK_ASSIGN_OR_RETURN(lhs, __VA_ARGS__)
