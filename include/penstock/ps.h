// Short spellings for users who want them: namespace `ps` and the PS_ macros. The library itself never includes this.
#pragma once

#include "penstock/penstock.h"

namespace ps = penstock;

// Short names of PENSTOCK_HOST_DEVICE, PENSTOCK_RETURN_IF_ERROR and PENSTOCK_ASSIGN_OR_RETURN.
#define PS_HOST_DEVICE PENSTOCK_HOST_DEVICE
#define PS_RETURN_IF_ERROR(expr) PENSTOCK_RETURN_IF_ERROR(expr)
#define PS_ASSIGN_OR_RETURN(lhs, ...) PENSTOCK_ASSIGN_OR_RETURN(lhs, __VA_ARGS__)
