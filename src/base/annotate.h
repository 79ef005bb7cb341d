// Annotations for NVIDIA's tools, such as Nsight Systems: names of threads and streams, and ranges of time, by NVTX in
// a domain of the library's own, "penstock".
//
// A tool is asked for once a process, by StartAnnotating. Without one, texts are null and every call on a null text
// returns at once, so annotated code pays a load and a branch. In a build without NVTX (PENSTOCK_HAS_NVTX) there is
// never a tool. annotate_cuda.cc is the one file that sees NVTX.
//
// Ownership: the tool keeps texts until the process ends.
// Threads:   thread-safe. An AnnotatedRange belongs to the thread that made it, and ranges of a thread nest; a span may
//            end on another thread than it began on.
// Errors:    none; what a tool does with a call is its own affair.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace penstock::base {

// A text that the tool knows; null: there is no tool, and nothing is annotated.
using AnnotationText = const void*;
// A span that has begun; 0: none.
using AnnotatedSpan = uint64_t;

namespace detail {

#ifdef PENSTOCK_HAS_NVTX
inline constexpr bool kHasNvtx = true;
#else
inline constexpr bool kHasNvtx = false;
#endif
inline std::atomic<void*> annotation_domain{nullptr};  // the tool's handle; set once, before the threads that read it

// In annotate_cuda.cc.
void StartAnnotating();
AnnotationText Register(const std::string& text);
void NameThread(const std::string& name);
void NameStream(void* cuda_stream, const std::string& name);
void Push(AnnotationText text, int64_t number);
void Pop();
AnnotatedSpan Begin(AnnotationText text, int64_t number);
void End(AnnotatedSpan span);

}  // namespace detail

// Looks for a tool, and loads it. Cheap after the first call. Called before the library starts a thread.
inline void StartAnnotating() {
  if constexpr (detail::kHasNvtx) detail::StartAnnotating();
}

// Whether a tool listens.
inline bool Annotating() {
  return detail::kHasNvtx && detail::annotation_domain.load(std::memory_order_acquire) != nullptr;
}

// For texts that are used again and again, such as names of nodes. Null without a tool.
inline AnnotationText AnnotationOf(const std::string& text) {
  if constexpr (detail::kHasNvtx) {
    if (Annotating()) [[unlikely]]
      return detail::Register(text);
  }
  return nullptr;
}

// What the tool calls the calling thread, and a stream of CUDA.
inline void AnnotateThread(const std::string& name) {
  if constexpr (detail::kHasNvtx) {
    if (Annotating()) [[unlikely]]
      detail::NameThread(name);
  }
}
inline void AnnotateStream(void* cuda_stream, const std::string& name) {
  if constexpr (detail::kHasNvtx) {
    if (Annotating() && cuda_stream != nullptr) [[unlikely]]
      detail::NameStream(cuda_stream, name);
  }
}

// A range of the calling thread, as long as it lives. `number`: shown with it, if it is not negative.
class AnnotatedRange {
 public:
  explicit AnnotatedRange(AnnotationText text, int64_t number = -1) : open_(detail::kHasNvtx && text != nullptr) {
    if constexpr (detail::kHasNvtx) {
      if (open_) [[unlikely]]
        detail::Push(text, number);
    }
  }
  ~AnnotatedRange() {
    if constexpr (detail::kHasNvtx) {
      if (open_) [[unlikely]]
        detail::Pop();
    }
  }
  AnnotatedRange(const AnnotatedRange&) = delete;
  AnnotatedRange& operator=(const AnnotatedRange&) = delete;

 private:
  const bool open_;
};

// A span of time that no thread owns.
inline AnnotatedSpan BeginAnnotation(AnnotationText text, int64_t number) {
  if constexpr (detail::kHasNvtx) {
    if (text != nullptr) [[unlikely]]
      return detail::Begin(text, number);
  }
  return 0;
}
inline void EndAnnotation(AnnotatedSpan span) {
  if constexpr (detail::kHasNvtx) {
    if (span != 0) [[unlikely]]
      detail::End(span);
  }
}

}  // namespace penstock::base
