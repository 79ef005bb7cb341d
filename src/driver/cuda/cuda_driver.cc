// Each call of the driver interface is one CUDA call; the file is one class since the interface is one. Anything longer
// has a file of its own: cuda_context (current device), cuda_copy and cuda_fill (shapes), cuda_graph, cuda_kernels
// (patterns and batches), cuda_pointer (kinds of memory), cuda_refusals (captures), driver_api.
//
// Handles are CUDA's own, as integers, except graphs and execs, which are objects of cuda_graph. Streams and events are
// used directly, so recording and launching need no lookup and no lock; the members are constant after Open.
#include "src/driver/cuda/cuda_driver.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "penstock/detail/cuda_error.h"
#include "penstock/detail/programmatic.h"
#include "penstock/status_macros.h"
#include "src/base/status.h"
#include "src/base/thread.h"
#include "src/driver/conditional_rules.h"
#include "src/driver/copy_box.h"
#include "src/driver/cuda/allocated_bytes.h"
#include "src/driver/cuda/cuda_context.h"
#include "src/driver/cuda/cuda_copy.h"
#include "src/driver/cuda/cuda_fill.h"
#include "src/driver/cuda/cuda_graph.h"
#include "src/driver/cuda/cuda_kernels.h"
#include "src/driver/cuda/cuda_pointer.h"
#include "src/driver/cuda/cuda_refusals.h"
#include "src/driver/cuda/cuda_status.h"
#include "src/driver/cuda/driver_api.h"
#include "src/driver/cuda/loop_turns.h"
#include "src/driver/cuda/region_places.h"
#include "src/driver/fill_box.h"
#include "src/driver/region_limits.h"

namespace penstock::driver {
namespace {

cudaStream_t Native(Stream stream) { return reinterpret_cast<cudaStream_t>(stream.bits); }
cudaEvent_t Native(Event event) { return reinterpret_cast<cudaEvent_t>(event.bits); }
CudaGraph* Own(Graph graph) { return reinterpret_cast<CudaGraph*>(graph.bits); }
CudaExec* Own(GraphExec exec) { return reinterpret_cast<CudaExec*>(exec.bits); }

std::string NameOf(int ordinal) { return "cuda:" + std::to_string(ordinal); }

// Empty if unknown: then nothing counts as near the device.
std::string PciBusId(int ordinal) {
  char id[32] = "";
  if (const cudaError_t code = cudaDeviceGetPCIBusId(id, sizeof id, ordinal); code != cudaSuccess) Forget(code);
  return id;
}

struct Device {
  DeviceInfo info;
  int ordinal = 0;
  CUcontext context = nullptr;
  int shared_limit = 0;  // the most shared memory of a block, in bytes
  bool own_kernels_await = false;  // see LibraryKernels::Load
};

// Batches are copied by a kernel that accesses pinned memory through host addresses, however it was pinned. All current
// GPUs support that under 64-bit Linux.
absl::Status CheckMapsHost(int ordinal) {
  int can = 0;
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaDeviceGetAttribute(&can, cudaDevAttrCanUseHostPointerForRegisteredMem, ordinal),
                                    "reading its attributes"));
  if (can != 0) return absl::OkStatus();
  return absl::FailedPreconditionError("its kernels cannot use pinned memory by the host's addresses; take another");
}

base::KernelLimits LimitsOf(const cudaDeviceProp& properties) {
  base::KernelLimits limits;
  limits.block_threads = properties.maxThreadsPerBlock;
  for (size_t i = 0; i < 3; ++i) {
    limits.block[i] = properties.maxThreadsDim[i];
    limits.grid[i] = properties.maxGridSize[i];
  }
  limits.shared_bytes = static_cast<int64_t>(properties.sharedMemPerBlockOptin);
  limits.argument_bytes = properties.major >= 7 ? 32764 : 4096;
  return limits;
}

absl::StatusOr<Device> OpenDevice(const DriverApi& api, const LibraryKernels& kernels, int ordinal) {
  Device device;
  device.ordinal = ordinal;
  PENSTOCK_ASSIGN_OR_RETURN(device.context, PrimaryContext(api, ordinal));
  ContextScope current(api, device.context);
  cudaDeviceProp properties;
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaGetDeviceProperties(&properties, ordinal), "reading its properties"));
  PENSTOCK_RETURN_IF_ERROR(CheckMapsHost(ordinal));
  PENSTOCK_ASSIGN_OR_RETURN(device.own_kernels_await, kernels.Load());
  device.info = {.kind = DeviceKind::kCuda,
                 .name = NameOf(ordinal),
                 .description = properties.name,
                 .memory_bytes = static_cast<int64_t>(properties.totalGlobalMem),
                 .compute_units = properties.multiProcessorCount,
                 .pci_bus_id = PciBusId(ordinal)};
  device.shared_limit = static_cast<int>(properties.sharedMemPerBlockOptin);
  device.info.limits = LimitsOf(properties);
  device.info.architecture = "sm_" + std::to_string(properties.major * 10 + properties.minor);
  return device;
}

// "allocating 10 bytes on cuda:0 (5 of 20 bytes are free)".
std::string TextOfAllocation(const Device& device, size_t bytes) {
  std::string text = "allocating " + std::to_string(bytes) + " bytes on " + device.info.name;
  size_t free = 0, total = 0;
  if (const cudaError_t code = cudaMemGetInfo(&free, &total); code != cudaSuccess) {
    Forget(code);
    return text;
  }
  return text + " (" + std::to_string(free) + " of " + std::to_string(total) + " bytes are free)";
}

// The C++ symbol of a kernel. Relocatable device code puts "__nv_static_25_", then 25 characters that name the unit,
// and
// "_" before that of a kernel with internal linkage.
absl::string_view SymbolOf(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, "__nv_static_")) return name;
  size_t unit = 0;
  for (; !name.empty() && absl::ascii_isdigit(static_cast<unsigned char>(name[0])); name.remove_prefix(1)) {
    unit = 10 * unit + static_cast<size_t>(name[0] - '0');
  }
  return name.substr(std::min(name.size(), unit + 2));
}

// The address, on the current device, of a variable in the body of a kernel. By the rules for C++ symbols (the Itanium
// ABI, "local-name") its symbol is that of the kernel with a Z before it, and after it an E and the variable's name.
absl::StatusOr<const void*> AddressOfVariable(const DriverApi& api, const void* loaded, const char* variable) {
  const auto kernel = static_cast<CUkernel>(const_cast<void*>(loaded));
  const char* name = nullptr;
  CUlibrary library = nullptr;
  CUdeviceptr address = 0;
  size_t bytes = 0;
  CUresult code = api.kernel_get_name(&name, kernel);
  if (code == CUDA_SUCCESS) code = api.kernel_get_library(&library, kernel);
  std::string symbol = variable;
  if (code == CUDA_SUCCESS) {
    symbol = absl::StrCat("_ZZ", absl::StripPrefix(SymbolOf(name), "_Z"), "E", std::strlen(variable), variable);
    code = api.library_get_global(&address, &bytes, library, symbol.c_str());
  }
  if (code != CUDA_SUCCESS) return StatusOfFailure(AsRuntime(code), "looking up variable " + symbol);
  return reinterpret_cast<const void*>(address);
}

KernelCode CodeOfLoaded(const void* kernel, const cudaFuncAttributes& found, bool awaits) {
  return {.kernel = kernel,
          .awaits = awaits && found.ptxVersion >= detail::kAwaitsFromPtx,
          .block_threads = found.maxThreadsPerBlock,
          .shared_bytes = static_cast<int64_t>(found.sharedSizeBytes)};
}

// An image, which the last holder unloads; the context is one for that call, whichever thread makes it.
absl::StatusOr<std::shared_ptr<const void>> LoadLibrary(const DriverApi& api, CUcontext context, std::string_view image,
                                                        const std::string& what) {
  CUlibrary library = nullptr;
  const CUresult code = api.library_load_data(&library, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (code != CUDA_SUCCESS) return StatusOfFailure(AsRuntime(code), what);
  return std::shared_ptr<const void>(library, [api, context](const void* held) {
    if (CudaIsLost()) return;
    const ContextScope current(api, context);
    const CaptureScope uncaptured(api);
    Forget(AsRuntime(api.library_unload(static_cast<CUlibrary>(const_cast<void*>(held)))));
  });
}

// Finds the size of each parameter of a kernel, in bytes. The driver refuses the index after the last one.
CUresult FindParameters(const DriverApi& api, CUkernel kernel, std::vector<uint32_t>& sizes) {
  while (true) {
    size_t offset = 0, size = 0;
    const CUresult code = api.kernel_get_param_info(kernel, sizes.size(), &offset, &size);
    if (detail::IsFatalCudaError(AsRuntime(code))) return code;
    if (code != CUDA_SUCCESS) return CUDA_SUCCESS;  // there is none of this number
    sizes.push_back(static_cast<uint32_t>(size));
  }
}

const char* WayOf(CopyKind kind) {
  static constexpr const char* kWays[] = {"host to device", "device to host", "device to device", "device to device"};
  return kWays[static_cast<int>(kind)];
}

std::string TextOfCopy(const CopyOp& op) {
  return "copying " + std::to_string(op.width) + " x " + std::to_string(op.height) + " x " + std::to_string(op.depth) +
         " bytes " + WayOf(op.kind);
}

std::string TextOfBatch(const BatchOp& op, const BatchSize& size) {
  return "copying " + std::to_string(op.count) + " pieces of " + std::to_string(size.bytes) + " bytes " +
         WayOf(op.kind);
}

std::string TextOfLaunch(const KernelOp& op) {
  const auto dims = [](const std::array<uint32_t, 3>& d) {
    return std::to_string(d[0]) + " x " + std::to_string(d[1]) + " x " + std::to_string(d[2]);
  };
  return "launching " + dims(op.grid) + " blocks of " + dims(op.block) + " threads with " +
         std::to_string(op.shared_bytes) + " bytes of shared memory";
}

class CudaDriver final : public Driver {
 public:
  CudaDriver(const DriverApi& api, const LibraryKernels& kernels, std::vector<Device> devices)
      : api_(api),
        kernels_(kernels),
        devices_(std::move(devices)),
        peers_(devices_.size() * devices_.size()),
        reaches_(devices_.size() * devices_.size()),
        allocated_(devices_.size()) {}

  int device_count() const override { return static_cast<int>(devices_.size()); }
  const DeviceInfo& device(int device) const override { return devices_[device].info; }
  int MakeCurrent(int device) override { return EnterContext(api_, devices_[device].context) ? 1 : 0; }
  void RestoreCurrent(int token) override {
    if (token != 0) LeaveContext(api_);
  }
  bool notifies_completion() const override { return false; }

  absl::StatusOr<Stream> CreateStream(int device, int priority) override;
  void DestroyStream(Stream stream) override;
  void* NativeStream(Stream stream) const override { return Native(stream); }

  absl::StatusOr<Event> CreateEvent(int device, bool timing) override;
  void DestroyEvent(Event event) override;
  absl::Status Record(Event event, Stream stream) override {
    return ToStatus(AsRuntime(api_.event_record(Native(event), Native(stream))), "recording an event");
  }
  absl::Status Wait(Stream stream, Event event) override {
    return ToStatus(AsRuntime(api_.stream_wait_event(Native(stream), Native(event), CU_EVENT_WAIT_DEFAULT)),
                    "making a stream wait for an event");
  }
  absl::Status WaitNative(Stream stream, void* event) override {
    return Wait(stream, Event{reinterpret_cast<uint64_t>(event)});
  }
  absl::StatusOr<int> DeviceOfNative(void* stream) override;
  absl::Status RecordOnNative(Event event, void* stream) override {
    return Record(event, Stream{reinterpret_cast<uint64_t>(stream)});
  }
  absl::Status MakeNativeWait(void* stream, Event event) override {
    return Wait(Stream{reinterpret_cast<uint64_t>(stream)}, event);
  }
  absl::StatusOr<bool> Query(Event event) override;
  absl::StatusOr<double> Elapsed(Event begin, Event end) override;

  absl::StatusOr<void*> AllocateDevice(int device, size_t bytes) override;
  void FreeDevice(int device, void* memory) override;
  int64_t AllocatedOn(int device) const override { return allocated_[static_cast<size_t>(device)].get(); }
  bool OpenLink(int device, int peer) override;
  absl::StatusOr<void*> AllocatePinned(size_t bytes) override;
  void FreePinned(void* memory) override;
  absl::StatusOr<PointerInfo> Inspect(const void* memory) override;

  absl::Status Copy(Stream stream, const CopyOp& op) override;
  absl::Status CopyBatch(Stream stream, const BatchOp& op) override;
  absl::Status Fill(Stream stream, const FillOp& op) override;
  absl::StatusOr<KernelCode> LoadKernel(int device, const KernelSource& source) override;
  absl::StatusOr<ImageKernel> LoadImage(int device, std::string_view image, const char* symbol, bool awaits) override;
  absl::StatusOr<BlockSize> FindBlockSize(int device, const KernelCode& code, uint32_t shared_bytes) override;
  absl::Status Launch(Stream stream, const KernelOp& op) override;
  absl::StatusOr<LibraryCode> LoadHostcall(int device) override { return CodeOf(kernels_.ask, device); }
  absl::StatusOr<LibraryCode> LoadTimestamp(int device) override { return CodeOf(kernels_.stamp, device); }

  absl::StatusOr<Graph> CreateGraph(int device) override;
  void DestroyGraph(Graph graph) override {
    if (graph && Own(graph)->is_body()) return;  // it goes with its graph
    Destroy(Own(graph));
  }
  absl::StatusOr<int32_t> AddHost(Graph graph, std::span<const int32_t> after, const HostCall& call) override {
    return Own(graph)->AddHost(after, call);
  }
  void* NativeGraph(Graph graph) override { return Own(graph)->native(); }
  absl::StatusOr<int32_t> AddNode(Graph graph, std::span<const int32_t> after, const NodeOp& op,
                                  NodePlace place) override;
  absl::StatusOr<GraphExec> Instantiate(Graph graph) override;
  void DestroyExec(GraphExec exec) override { Destroy(Own(exec)); }
  absl::Status Upload(GraphExec exec, Stream stream) override {
    const CaptureScope uncaptured(api_);
    if (Own(exec)->native() == nullptr) return BodyIsNoExec();
    PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaGraphUpload(Own(exec)->native(), Native(stream)), "uploading a graph"));
    Own(exec)->Uploaded();
    return absl::OkStatus();
  }
  absl::Status LaunchGraph(GraphExec exec, Stream stream) override {
    const cudaGraphExec_t native = Own(exec)->native();
    if (native == nullptr) return BodyIsNoExec();
    const auto launch = [&]() -> absl::Status {
      if (Own(exec)->must_upload()) PENSTOCK_RETURN_IF_ERROR(Upload(exec, stream));
      return ToStatus(AsRuntime(api_.graph_launch(native, Native(stream))), "launching a graph");
    };
    const Device& device = devices_[Own(exec)->device()];
    const auto launch_in_turn = [&] {
      return Own(exec)->has_loop() ? LoopTurns::Of(device.ordinal).InTurn(Native(stream), launch) : launch();
    };
    const int32_t regions = Own(exec)->regions();
    if (regions == 0) return launch_in_turn();
    const int32_t places = RegionLimitsOf(device.info.compute_units).at_once;
    return RegionPlaces::Of(device.ordinal, places).InPlaces(Native(stream), regions, launch_in_turn);
  }
  absl::Status SetNode(GraphExec exec, int32_t node, const NodeOp& op) override {
    PENSTOCK_ASSIGN_OR_RETURN(const int device, Own(exec)->DeviceOf(node));
    const ContextScope current(api_, devices_[device].context);
    return Own(exec)->Set(MakerOf(device), node, op);
  }
  absl::Status EnableNode(GraphExec exec, int32_t node, bool enabled) override {
    return Own(exec)->Enable(node, enabled);
  }

  absl::Status BeginCapture(Stream stream) override;
  absl::StatusOr<Graph> EndCapture(Stream stream) override;
  absl::StatusOr<int32_t> CountNodes(Graph graph) override { return Own(graph)->Count(); }
  absl::StatusOr<int32_t> AddChild(Graph graph, std::span<const int32_t> after, Graph child) override {
    return Own(graph)->AddChild(api_, after, *Own(child));
  }
  absl::Status SetChild(GraphExec exec, int32_t node, Graph child) override {
    return Own(exec)->SetChild(api_, node, *Own(child));
  }

  absl::StatusOr<ConditionalHandle> CreateConditional(Graph graph) override {
    const Entered current = Enter(Own(graph)->device());
    return Own(graph)->CreateConditional();
  }
  absl::StatusOr<ConditionalNode> AddConditional(Graph graph, std::span<const int32_t> after, ConditionalHandle handle,
                                                 ConditionalKind kind, int32_t bodies) override {
    const Entered current = Enter(Own(graph)->device());
    return Own(graph)->AddConditional(after, handle, kind, bodies);
  }
  absl::StatusOr<GraphExec> BodyOf(GraphExec exec, Graph body) override;
  absl::StatusOr<NodeSwitch> AddSwitch(Graph graph, int32_t node, Alternative) override {
    return Own(graph)->AddSwitch(node);
  }
  absl::StatusOr<LoopKernels> LoadLoopKernels(int device) override {
    return LoopKernels{CodeOf(kernels_.decide, device), CodeOf(kernels_.look, device)};
  }

 private:
  // For everything except submission.
  struct Entered {
    ContextScope context;
    CaptureScope uncaptured;
  };
  Entered Enter(int device) const { return {ContextScope(api_, devices_[device].context), CaptureScope(api_)}; }
  template <class Owned>
  void Destroy(Owned* own) const;
  NodeMaker MakerOf(int device) const {
    return {device, api_, kernels_, devices_[device].context, devices_[device].own_kernels_await};
  }
  // The code of a library kernel, which was loaded when the device was opened.
  LibraryCode CodeOf(cudaKernel_t kernel, int device) const {
    return {.kernel = {static_cast<const void*>(kernel), devices_[device].own_kernels_await}};
  }
  absl::StatusOr<bool> IsCapturing(Stream stream) const;
  int IndexOf(int ordinal) const;
  void OpenPeers(int a, int b);
  void OpenPeer(int from, int to);
  bool CanReach(int from, int to) const;

  const DriverApi api_;
  const LibraryKernels kernels_;
  const std::vector<Device> devices_;
  std::vector<std::atomic<bool>> peers_;  // for each pair: whether peer access was requested
  std::vector<std::atomic<bool>> reaches_;  // for each device and other: whether it can read the other's memory
  std::vector<AllocatedBytes> allocated_;  // one for each device
};

absl::StatusOr<Stream> CudaDriver::CreateStream(int device, int priority) {
  const Entered current = Enter(device);
  cudaStream_t stream = nullptr;
  // CUDA clamps the priority to the device's range.
  PENSTOCK_RETURN_IF_ERROR(
      ToStatus(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, priority), "creating a stream"));
  return Stream{reinterpret_cast<uint64_t>(stream)};
}

void CudaDriver::DestroyStream(Stream stream) {
  if (!stream || CudaIsLost()) return;
  if (IsCapturing(stream).value_or(false)) {
    if (const absl::StatusOr<Graph> captured = EndCapture(stream); captured.ok()) DestroyGraph(*captured);
  }
  (void)api_.stream_destroy(Native(stream));
}

absl::StatusOr<Event> CudaDriver::CreateEvent(int device, bool timing) {
  const Entered current = Enter(device);
  cudaEvent_t event = nullptr;
  PENSTOCK_RETURN_IF_ERROR(ToStatus(
      cudaEventCreateWithFlags(&event, timing ? cudaEventDefault : cudaEventDisableTiming), "creating an event"));
  return Event{reinterpret_cast<uint64_t>(event)};
}

void CudaDriver::DestroyEvent(Event event) {
  if (event && !CudaIsLost()) (void)api_.event_destroy(Native(event));
}

// For default streams, a thread without a context has the device that the runtime API would use.
absl::StatusOr<int> CudaDriver::DeviceOfNative(void* stream) {
  CUcontext context = nullptr;
  PENSTOCK_RETURN_IF_ERROR(ToStatus(AsRuntime(api_.context_get_current(&context)), "asking for the current context"));
  if (context == nullptr) {
    int ordinal = -1;
    PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaGetDevice(&ordinal), "asking for the current device"));
    if (const int device = IndexOf(ordinal); device >= 0) context = devices_[device].context;
  }
  std::optional<ContextScope> current;
  if (context != nullptr) current.emplace(api_, context);
  const auto native = static_cast<CUstream>(stream);
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  const cudaError_t asked = AsRuntime(api_.stream_is_capturing(native, &capture));
  // For a default stream: a stream that it synchronizes with is capturing.
  if (asked == cudaErrorStreamCaptureImplicit || (asked == cudaSuccess && capture != CU_STREAM_CAPTURE_STATUS_NONE)) {
    return absl::FailedPreconditionError(
        "the stream captures, and a run cannot be captured; add the graph that Executable::Export gives to the capture "
        "(AddToCapture of penstock/cuda.h), or launch when the capture has ended");
  }
  PENSTOCK_RETURN_IF_ERROR(ToStatus(asked, "asking whether the application's stream captures"));
  CUdevice ordinal = -1;
  PENSTOCK_RETURN_IF_ERROR(ToStatus(AsRuntime(api_.stream_get_device(native, &ordinal)),
                                    "asking for the device of the application's stream"));
  const int device = IndexOf(ordinal);
  if (device >= 0) return device;
  return absl::InvalidArgumentError("the stream is of " + NameOf(ordinal) + ", which the runtime does not use");
}

absl::StatusOr<bool> CudaDriver::Query(Event event) {
  const CaptureScope uncaptured(api_);
  const cudaError_t code = AsRuntime(api_.event_query(Native(event)));
  if (code == cudaSuccess) return true;
  // CUDA does not set the last error here, so there is nothing to clear.
  if (code == cudaErrorNotReady) return false;
  return StatusOfFailure(code, "querying an event");
}

absl::StatusOr<double> CudaDriver::Elapsed(Event begin, Event end) {
  const CaptureScope uncaptured(api_);
  float milliseconds = 0;
  PENSTOCK_RETURN_IF_ERROR(ToStatus(AsRuntime(api_.event_elapsed(&milliseconds, Native(begin), Native(end))),
                                    "reading the time between two events"));
  return milliseconds * 1000.0;
}

absl::StatusOr<void*> CudaDriver::AllocateDevice(int device, size_t bytes) {
  const Entered current = Enter(device);
  void* memory = nullptr;
  if (const cudaError_t code = cudaMalloc(&memory, bytes); code != cudaSuccess) {
    return StatusOfFailure(code, TextOfAllocation(devices_[device], bytes));
  }
  allocated_[static_cast<size_t>(device)].Add(memory, bytes);
  return memory;
}

void CudaDriver::FreeDevice(int device, void* memory) {
  if (memory == nullptr || CudaIsLost()) return;
  allocated_[static_cast<size_t>(device)].Remove(memory);  // before another thread may be given the address
  const Entered current = Enter(device);
  Forget(cudaFree(memory));
}

absl::StatusOr<void*> CudaDriver::AllocatePinned(size_t bytes) {
  const Entered current = Enter(0);
  void* memory = nullptr;
  if (const cudaError_t code = cudaHostAlloc(&memory, bytes, cudaHostAllocPortable | cudaHostAllocMapped);
      code != cudaSuccess) {
    return StatusOfFailure(code, "allocating " + std::to_string(bytes) + " bytes of pinned memory");
  }
  return memory;
}

void CudaDriver::FreePinned(void* memory) {
  if (memory == nullptr || CudaIsLost()) return;
  const Entered current = Enter(0);
  Forget(cudaFreeHost(memory));
}

// -1 if it does not belong to this driver.
int CudaDriver::IndexOf(int ordinal) const {
  for (int i = 0; i < device_count(); ++i) {
    if (devices_[i].ordinal == ordinal) return i;
  }
  return -1;
}

absl::StatusOr<PointerInfo> CudaDriver::Inspect(const void* memory) {
  if (memory == nullptr) return PointerInfo{};
  PENSTOCK_ASSIGN_OR_RETURN(PointerInfo info, InspectPointer(api_, memory));
  info.device = info.kind == PointerInfo::Kind::kDevice ? IndexOf(info.device) : -1;
  return info;
}

absl::Status CudaDriver::Copy(Stream stream, const CopyOp& op) {
  PENSTOCK_RETURN_IF_ERROR(SizeOf(op).status());
  int dst = 0, src = 0;
  if (op.kind == CopyKind::kPeer) {
    OpenPeers(op.dst_device, op.src_device);
    dst = devices_[op.dst_device].ordinal;
    src = devices_[op.src_device].ordinal;
  }
  if (const cudaError_t code = SubmitCopy(Native(stream), op, dst, src); code != cudaSuccess) {
    return StatusOfFailure(code, TextOfCopy(op));
  }
  return absl::OkStatus();
}

absl::Status CudaDriver::CopyBatch(Stream stream, const BatchOp& op) {
  BatchSize size = op.size;
  if (size.bytes == 0) {
    PENSTOCK_ASSIGN_OR_RETURN(size, SizeOf(op));
  }
  if (size.bytes == 0) return absl::OkStatus();
  const cudaError_t code = Submit(kernels_.gather, LaunchOf(op, size), Native(stream));
  if (code != cudaSuccess) return StatusOfFailure(code, TextOfBatch(op, size));
  return absl::OkStatus();
}

absl::Status CudaDriver::Fill(Stream stream, const FillOp& op) {
  PENSTOCK_ASSIGN_OR_RETURN(const FillSize size, SizeOf(op));
  if (size.bytes == 0) return absl::OkStatus();
  const cudaError_t code = SubmitFill(kernels_, op, Native(stream));
  if (code != cudaSuccess) return StatusOfFailure(code, "filling " + std::to_string(size.bytes) + " bytes");
  return absl::OkStatus();
}

absl::StatusOr<KernelCode> CudaDriver::LoadKernel(int device, const KernelSource& source) {
  const Device& d = devices_[device];
  const auto what = [&] { return "loading a kernel on " + d.info.name + " (" + d.info.architecture + ")"; };
  if (source.load == nullptr) {
    return absl::FailedPreconditionError(what() + " failed; it was not compiled for CUDA; compile its file with nvcc");
  }
  const Entered current = Enter(device);
  int error = 0;
  const void* kernel = source.load(source.self, &error);
  if (kernel == nullptr)
    return StatusOfFailure(error == 0 ? cudaErrorInvalidDeviceFunction : cudaError_t(error), what());
  cudaFuncAttributes found;
  if (const cudaError_t code = LoadOnCurrentDevice(kernel, d.shared_limit, found)) return StatusOfFailure(code, what());
  const void* variable = nullptr;
  if (source.variable != nullptr) {
    PENSTOCK_ASSIGN_OR_RETURN(variable, AddressOfVariable(api_, kernel, source.variable));
  }
  KernelCode code = CodeOfLoaded(kernel, found, source.awaits);
  code.variable = variable;
  return code;
}

absl::StatusOr<ImageKernel> CudaDriver::LoadImage(int device, std::string_view image, const char* symbol, bool awaits) {
  const Device& d = devices_[device];
  const Entered current = Enter(device);
  const std::string what =
      "loading kernel " + std::string(symbol) + " on " + d.info.name + " (" + d.info.architecture + ")";
  ImageKernel kernel;
  PENSTOCK_ASSIGN_OR_RETURN(kernel.image, LoadLibrary(api_, d.context, image, what));
  const auto library = static_cast<CUlibrary>(const_cast<void*>(kernel.image.get()));
  CUkernel handle = nullptr;
  PENSTOCK_RETURN_IF_ERROR(ToStatus(AsRuntime(api_.library_get_kernel(&handle, library, symbol)), what));
  PENSTOCK_RETURN_IF_ERROR(ToStatus(AsRuntime(FindParameters(api_, handle, kernel.parameters)), what));
  cudaFuncAttributes found;
  PENSTOCK_RETURN_IF_ERROR(ToStatus(LoadOnCurrentDevice(handle, d.shared_limit, found), what));
  kernel.code = CodeOfLoaded(handle, found, awaits);
  return kernel;
}

// Both calls accept a kernel in place of a function, and calculate for the current device.
absl::StatusOr<BlockSize> CudaDriver::FindBlockSize(int device, const KernelCode& code, uint32_t shared_bytes) {
  const Entered current = Enter(device);
  const auto function = static_cast<CUfunction>(const_cast<void*>(code.kernel));
  int blocks = 0, threads = 0, at_once = 0;
  CUresult result = api_.occupancy_block_size(&blocks, &threads, function, nullptr, shared_bytes, 0);
  if (result == CUDA_SUCCESS) result = api_.occupancy_blocks(&at_once, function, threads, shared_bytes);
  if (result != CUDA_SUCCESS) {
    return StatusOfFailure(AsRuntime(result), "calculating the occupancy of a kernel on " + devices_[device].info.name +
                                                  ", with " + std::to_string(shared_bytes) +
                                                  " bytes of dynamic shared memory");
  }
  return BlockSize{.threads = static_cast<uint32_t>(threads), .at_once = at_once};
}

absl::Status CudaDriver::Launch(Stream stream, const KernelOp& op) {
  if (op.grid[0] == 0 || op.grid[1] == 0 || op.grid[2] == 0) return absl::OkStatus();
  const CUlaunchConfig config{.gridDimX = op.grid[0],
                              .gridDimY = op.grid[1],
                              .gridDimZ = op.grid[2],
                              .blockDimX = op.block[0],
                              .blockDimY = op.block[1],
                              .blockDimZ = op.block[2],
                              .sharedMemBytes = op.shared_bytes,
                              .hStream = Native(stream),
                              .attrs = nullptr,
                              .numAttrs = 0};
  // The driver accepts a kernel in place of a function, and finds the current device's function itself.
  const auto function = static_cast<CUfunction>(const_cast<void*>(op.kernel));
  const cudaError_t code = AsRuntime(api_.launch_kernel(&config, function, const_cast<void**>(op.argv), nullptr));
  if (code != cudaSuccess) return StatusOfFailure(code, TextOfLaunch(op));
  return absl::OkStatus();
}

absl::StatusOr<Graph> CudaDriver::CreateGraph(int device) {
  PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<CudaGraph> graph, CudaGraph::Create(device));
  return Graph{reinterpret_cast<uint64_t>(graph.release())};
}

absl::StatusOr<int32_t> CudaDriver::AddNode(Graph graph, std::span<const int32_t> after, const NodeOp& op,
                                            NodePlace place) {
  PENSTOCK_ASSIGN_OR_RETURN(const int device, Own(graph)->DeviceOf(place, op));
  if (device >= device_count()) {
    return absl::InvalidArgumentError("there is no device " + std::to_string(device) + "; this driver has " +
                                      std::to_string(device_count()));
  }
  if (const auto* const copy = std::get_if<const CopyOp*>(&op); copy != nullptr && (*copy)->kind == CopyKind::kPeer) {
    OpenPeers((*copy)->dst_device, (*copy)->src_device);
  }
  const ContextScope current(api_, devices_[device].context);
  return Own(graph)->Add(MakerOf(device), after, op, place);
}

absl::StatusOr<GraphExec> CudaDriver::Instantiate(Graph graph) {
  const Entered current = Enter(Own(graph)->device());
  PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<CudaExec> exec, CudaExec::Create(*Own(graph)));
  return GraphExec{reinterpret_cast<uint64_t>(exec.release())};
}

absl::StatusOr<GraphExec> CudaDriver::BodyOf(GraphExec exec, Graph body) {
  PENSTOCK_ASSIGN_OR_RETURN(std::unique_ptr<CudaExec> of, Own(exec)->BodyOf(Own(body)));
  return GraphExec{reinterpret_cast<uint64_t>(of.release())};
}

// Also true if the capture is broken.
absl::StatusOr<bool> CudaDriver::IsCapturing(Stream stream) const {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  PENSTOCK_RETURN_IF_ERROR(
      ToStatus(AsRuntime(api_.stream_is_capturing(Native(stream), &status)), "asking whether a stream captures"));
  return status != CU_STREAM_CAPTURE_STATUS_NONE;
}

absl::Status CudaDriver::BeginCapture(Stream stream) {
  const CUlogIterator log_begin = LogPosition(api_);
  const cudaError_t code = cudaStreamBeginCapture(Native(stream), cudaStreamCaptureModeThreadLocal);
  if (code == cudaSuccess) {
    RefusalWatch::Begin(Native(stream), log_begin);
    return absl::OkStatus();
  }
  const absl::Status refused = ToStatus(code, "beginning a capture on a stream");
  PENSTOCK_ASSIGN_OR_RETURN(const bool captures, IsCapturing(stream));
  return captures ? absl::FailedPreconditionError("the stream captures already; end that first") : refused;
}

absl::StatusOr<Graph> CudaDriver::EndCapture(Stream stream) {
  const std::string refusals = RefusalWatch::End(api_, Native(stream));
  PENSTOCK_ASSIGN_OR_RETURN(const bool captures, IsCapturing(stream));
  if (!captures) {
    return absl::FailedPreconditionError(
        "the stream does not capture; no capture was begun on it, or code called since then has ended it");
  }
  cudaGraph_t captured = nullptr;
  const absl::Status ended = ToRefusal(cudaStreamEndCapture(Native(stream), &captured), "ending a capture on a stream");
  if (!ended.ok()) return refusals.empty() ? ended : base::Suffixed(ended, "; before it, CUDA said: " + refusals);
  int ordinal = -1;  // the callee may have made another device current
  const cudaError_t asked = cudaStreamGetDevice(Native(stream), &ordinal);
  std::unique_ptr<CudaGraph> graph = CudaGraph::Adopt(IndexOf(ordinal), captured);
  PENSTOCK_RETURN_IF_ERROR(ToStatus(asked, "asking for a stream's device"));
  if (!refusals.empty()) {
    Destroy(graph.release());
    return absl::FailedPreconditionError(
        "CUDA refused a call while the stream captured, and the graph lacks it: " + refusals +
        "; submit what a capture takes (for cudaMemcpyBatchAsync, single copies), or "
        "compile for Mode::kStream");
  }
  return Graph{reinterpret_cast<uint64_t>(graph.release())};
}

// CUDA's own calls would give a thread without a context one, on the first device.
template <class Owned>
void CudaDriver::Destroy(Owned* own) const {
  if (own == nullptr || CudaIsLost()) {
    delete own;
    return;
  }
  const Entered current = Enter(own->device());
  delete own;
}

// Enables peer access between two devices when the first copy between them needs it, so only plans that need it pay for
// it. Copies work without it, but through the host: between two H200, 38 GB/s instead of 390.
void CudaDriver::OpenPeers(int a, int b) {
  std::atomic<bool>& opened = peers_[static_cast<size_t>(a) * devices_.size() + static_cast<size_t>(b)];
  if (a == b || opened.load(std::memory_order_acquire)) return;
  OpenPeer(a, b);
  OpenPeer(b, a);
  opened.store(true, std::memory_order_release);
}

bool CudaDriver::OpenLink(int device, int peer) {
  OpenPeers(device, peer);
  return reaches_[static_cast<size_t>(device) * devices_.size() + static_cast<size_t>(peer)].load(
      std::memory_order_acquire);
}

bool CudaDriver::CanReach(int from, int to) const {
  int can = 0;
  Forget(cudaDeviceCanAccessPeer(&can, devices_[from].ordinal, devices_[to].ordinal));
  return can != 0;
}

void CudaDriver::OpenPeer(int from, int to) {
  const Entered current = Enter(from);
  if (!CanReach(from, to)) return;
  const cudaError_t code = cudaDeviceEnablePeerAccess(devices_[to].ordinal, 0);
  Forget(code);
  const bool is_open = code == cudaSuccess || code == cudaErrorPeerAccessAlreadyEnabled;
  reaches_[static_cast<size_t>(from) * devices_.size() + static_cast<size_t>(to)].store(is_open,
                                                                                        std::memory_order_release);
}

absl::Status CheckOrdinals(const std::vector<int>& ordinals, int count) {
  for (size_t i = 0; i < ordinals.size(); ++i) {
    if (ordinals[i] < 0 || ordinals[i] >= count) {
      return absl::NotFoundError(NameOf(ordinals[i]) + " does not exist; this process sees " + std::to_string(count) +
                                 " CUDA device" + (count == 1 ? "" : "s") +
                                 ", numbered from 0; check the device list and CUDA_VISIBLE_DEVICES");
    }
    if (std::find(ordinals.begin(), ordinals.begin() + i, ordinals[i]) != ordinals.begin() + i) {
      return absl::InvalidArgumentError(NameOf(ordinals[i]) + " is named twice; name each device once");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<int> CudaDeviceCount() {
  int count = 0;
  PENSTOCK_RETURN_IF_ERROR(ToStatus(cudaGetDeviceCount(&count), "looking for CUDA devices"));
  if (count == 0) return StatusOfFailure(cudaErrorNoDevice, "looking for CUDA devices");
  return count;
}

// Where CUDA starts threads, they would take the application's signals; the user's function (before_device) gets them.
absl::StatusOr<std::unique_ptr<Driver>> CreateCudaDriver(const CudaDriverOptions& options) {
  std::optional<base::MaskOfOwnThreads> mask(std::in_place);
  PENSTOCK_ASSIGN_OR_RETURN(const int count, CudaDeviceCount());
  PENSTOCK_RETURN_IF_ERROR(CheckOrdinals(options.ordinals, count));
  std::vector<int> ordinals = options.ordinals;
  for (int i = 0; options.ordinals.empty() && i < count; ++i) ordinals.push_back(i);

  PENSTOCK_ASSIGN_OR_RETURN(const DriverApi api, DriverApi::Load());
  PENSTOCK_ASSIGN_OR_RETURN(const LibraryKernels kernels, LibraryKernels::Get());
  std::vector<Device> devices;
  for (const int ordinal : ordinals) {
    if (options.before_device) {
      mask.reset();
      PENSTOCK_RETURN_IF_ERROR(options.before_device(NameOf(ordinal), devices.size(), ordinals.size()));
      mask.emplace();
    }
    absl::StatusOr<Device> device = OpenDevice(api, kernels, ordinal);
    if (!device.ok()) return base::Prefixed("opening " + NameOf(ordinal), device.status());
    devices.push_back(*std::move(device));
  }
  return std::make_unique<CudaDriver>(api, kernels, std::move(devices));
}

}  // namespace penstock::driver
