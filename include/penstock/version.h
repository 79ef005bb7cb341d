// The version of these headers.
#pragma once

// The version as numbers, for #if, and as text.
#define PENSTOCK_VERSION_MAJOR 0
#define PENSTOCK_VERSION_MINOR 1
#define PENSTOCK_VERSION_PATCH 0
#define PENSTOCK_VERSION "0.1.0"
