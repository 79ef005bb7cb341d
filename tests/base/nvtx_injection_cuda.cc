// A tool that NVTX loads (NVTX_INJECTION64_PATH), for tests: it writes a line to stderr for each call of the library
// that it hears of. The fields of a line are parted by tabs:
//
//   nvtx  domain|thread|stream|push|pop|start|end  the calling thread  domain  text  number
//
// The number is a range's payload, the number of a span, the system's number of a thread, or the address of a stream;
// -1 if there is none.
//
// Threads: thread-safe: a line is one write.
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>

struct CUstream_st;  // What NVTX calls with, where a tool's header says void*.

namespace {

const std::string& TextOf(const void* handle) {
  static const std::string none;
  return handle == nullptr ? none : *static_cast<const std::string*>(handle);
}

void Tell(const char* call, const void* domain, const std::string& text, int64_t number) {
  const std::string line = "nvtx\t" + std::string(call) + "\t" + std::to_string(gettid()) + "\t" + TextOf(domain) +
                           "\t" + text + "\t" + std::to_string(number) + "\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

// Never freed: the tool keeps texts as long as the process lives.
void* Keep(const char* text) { return new std::string(text); }

nvtxDomainHandle_t CreateDomain(const char* name) {
  void* const domain = Keep(name);
  Tell("domain", domain, "", -1);
  return static_cast<nvtxDomainHandle_t>(domain);
}

nvtxStringHandle_t RegisterString(nvtxDomainHandle_t, const char* text) {
  return static_cast<nvtxStringHandle_t>(Keep(text));
}

void NameThread(uint32_t thread, const char* name) { Tell("thread", nullptr, name, thread); }

void NameStream(CUstream_st* stream, const char* name) {
  Tell("stream", nullptr, name, reinterpret_cast<intptr_t>(stream));
}

void TellEvent(const char* call, nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event, int64_t number) {
  const bool registered = event->messageType == NVTX_MESSAGE_TYPE_REGISTERED;
  Tell(call, domain, registered ? TextOf(event->message.registered) : "not registered", number);
}

int Push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  const bool numbered = event->payloadType == NVTX_PAYLOAD_TYPE_INT64;
  TellEvent("push", domain, event, numbered ? event->payload.llValue : -1);
  return 0;
}

int Pop(nvtxDomainHandle_t domain) {
  Tell("pop", domain, "", -1);
  return 0;
}

nvtxRangeId_t Start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  static std::atomic<uint64_t> last{0};
  const uint64_t span = ++last;
  TellEvent("start", domain, event, static_cast<int64_t>(span));
  return span;
}

void End(nvtxDomainHandle_t domain, nvtxRangeId_t span) { Tell("end", domain, "", static_cast<int64_t>(span)); }

template <class F>
void Hear(const NvtxExportTableCallbacks& callbacks, NvtxCallbackModule module, int call, F f) {
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  if (callbacks.GetModuleFunctionTable(module, &table, &size) == 0 || static_cast<unsigned int>(call) >= size) return;
  *table[call] = reinterpret_cast<NvtxFunctionPointer>(f);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t tables) {
  const auto* const callbacks = static_cast<const NvtxExportTableCallbacks*>(tables(NVTX_ETID_CALLBACKS));
  if (callbacks == nullptr) return 0;
  Hear(*callbacks, NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_NameOsThreadA, &NameThread);
  Hear(*callbacks, NVTX_CB_MODULE_CUDART, NVTX_CBID_CUDART_NameCudaStreamA, &NameStream);
  Hear(*callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainCreateA, &CreateDomain);
  Hear(*callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRegisterStringA, &RegisterString);
  Hear(*callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePushEx, &Push);
  Hear(*callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePop, &Pop);
  Hear(*callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangeStartEx, &Start);
  Hear(*callbacks, NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangeEnd, &End);
  return 1;
}
