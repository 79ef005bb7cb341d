// Marks what the shared library exports. Everything is compiled with hidden visibility: a public class or function that
// is not inline carries the mark; templates and inline functions do not need it.
#pragma once

#define PENSTOCK_EXPORT __attribute__((visibility("default")))
