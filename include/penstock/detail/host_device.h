// The macro that marks code for GPUs too.
#pragma once

// Marks a function for the host and, if nvcc compiles it, for the device too.
#if defined(__CUDACC__)
#define PENSTOCK_HOST_DEVICE __host__ __device__
#else
#define PENSTOCK_HOST_DEVICE
#endif
