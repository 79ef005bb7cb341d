// Whether the program is built with AddressSanitizer or ThreadSanitizer, by g++ or clang, and with which.
#pragma once

namespace penstock {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitized = true;
#elif !defined(__has_feature)
inline constexpr bool kThreadSanitized = false;
#elif __has_feature(thread_sanitizer)
inline constexpr bool kThreadSanitized = true;
#else
inline constexpr bool kThreadSanitized = false;
#endif

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kSanitized = true;
#elif !defined(__has_feature)
inline constexpr bool kSanitized = kThreadSanitized;
#elif __has_feature(address_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = kThreadSanitized;
#endif

}  // namespace penstock
