// Abseil's packaged library drops the last reference of a Status where ThreadSanitizer does not look, which then takes
// the delete for a race with every earlier use. Under it test programs bring that one function themselves, compiled
// with their flags; the dynamic linker prefers theirs. The same as in Abseil 20220623, whose layout it knows; nothing
// elsewhere.
#include "absl/base/config.h"
#include "absl/status/status.h"

#if defined(__has_feature) && defined(ABSL_LTS_RELEASE_VERSION)
#if __has_feature(thread_sanitizer) && ABSL_LTS_RELEASE_VERSION == 20220623

void absl::Status::UnrefNonInlined(uintptr_t rep) {
  status_internal::StatusRep* const r = RepToPointer(rep);
  if (r->ref.fetch_sub(1, std::memory_order_acq_rel) == 1) delete r;
}

#endif
#endif
