// Internals: the library's own way into a public class, which makes Internals<T> its friend. The runtime defines one
// for each such class (src/runtime/*/internals.h).
#pragma once

namespace penstock::detail {

template <class T>
class Internals;

}  // namespace penstock::detail
