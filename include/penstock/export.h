// Marks what the shared library exports, and what no shared object does.
//
// Everything of the library is compiled with hidden visibility: a public class, or a function that is not inline,
// carries PENSTOCK_EXPORT. Templates that take code or types of the user, and inline variables, carry PENSTOCK_HIDDEN,
// whatever the user's own objects are compiled with: each object then runs its own instances, though another has some
// of the same names (the templates of an exported class would be exported with it), and none of g++'s unique symbols
// keeps a plugin from being unloaded.
#pragma once

#define PENSTOCK_EXPORT __attribute__((visibility("default")))
#define PENSTOCK_HIDDEN __attribute__((visibility("hidden")))

// Instances over types of unnamed namespaces are in no other object anyway: nvcc need not say so.
#if defined(__CUDACC__)
#pragma nv_diag_suppress 1407
#endif
