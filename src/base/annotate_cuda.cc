// The calls of NVTX, whose headers find and load the tool (NVTX_INJECTION64_PATH) when the domain is created.
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <unistd.h>

#include <mutex>

#include "src/base/annotate.h"

namespace penstock::base::detail {
namespace {

nvtxDomainHandle_t Domain() {
  return static_cast<nvtxDomainHandle_t>(annotation_domain.load(std::memory_order_acquire));
}

nvtxEventAttributes_t AttributesOf(AnnotationText text, int64_t number) {
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  attributes.message.registered = static_cast<nvtxStringHandle_t>(const_cast<void*>(text));
  if (number >= 0) {
    attributes.payloadType = NVTX_PAYLOAD_TYPE_INT64;
    attributes.payload.llValue = number;
  }
  return attributes;
}

}  // namespace

void StartAnnotating() {
  static std::once_flag once;
  std::call_once(once, [] { annotation_domain.store(nvtxDomainCreateA("penstock"), std::memory_order_release); });
}

AnnotationText Register(const std::string& text) { return nvtxDomainRegisterStringA(Domain(), text.c_str()); }

// Threads and streams are the process's: NVTX knows no names of them in a domain.
void NameThread(const std::string& name) { nvtxNameOsThreadA(static_cast<uint32_t>(gettid()), name.c_str()); }

void NameStream(void* cuda_stream, const std::string& name) {
  nvtxNameCudaStreamA(static_cast<cudaStream_t>(cuda_stream), name.c_str());
}

void Push(AnnotationText text, int64_t number) {
  const nvtxEventAttributes_t attributes = AttributesOf(text, number);
  nvtxDomainRangePushEx(Domain(), &attributes);
}

void Pop() { nvtxDomainRangePop(Domain()); }

AnnotatedSpan Begin(AnnotationText text, int64_t number) {
  const nvtxEventAttributes_t attributes = AttributesOf(text, number);
  return nvtxDomainRangeStartEx(Domain(), &attributes);
}

void End(AnnotatedSpan span) { nvtxDomainRangeEnd(Domain(), span); }

}  // namespace penstock::base::detail
