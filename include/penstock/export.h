// Marks symbols that the shared library exports, and symbols that no shared object exports.
//
// The library is compiled with hidden visibility: a public class, or a function that is not inline, carries
// PENSTOCK_EXPORT. Templates over the user's code or types, and inline variables, carry PENSTOCK_HIDDEN, whatever
// flags the user's own objects are compiled with. Each object thus runs its own instances even if another has some of
// the same names (an exported class would export its templates), and no unique symbol of g++ keeps a plugin from
// being unloaded.
#pragma once

#define PENSTOCK_EXPORT __attribute__((visibility("default")))
#define PENSTOCK_HIDDEN __attribute__((visibility("hidden")))

// Instances over types of unnamed namespaces exist in no other object anyway, so nvcc's warning is moot.
#if defined(__CUDACC__)
#pragma nv_diag_suppress 1407
#endif
