// The part of Validate about nodes: handles, pins, and the rules for each kind of node.
#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "graph/common/message.h"
#include "graph/common/prefetch.h"
#include "graph/passes/passes.h"

namespace penstock::graph {
namespace {

constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;
constexpr double kMostFlops = 1e18;  // more than JSON of a profile has

bool IsCompiledForCuda(const NodeDecl& node) { return node.code.cuda_kernel != nullptr || node.code.source != nullptr; }

class NodeCheck {
 public:
  NodeCheck(Records& records, Findings& findings, DeclId n)
      : records_(records), findings_(findings), index_(n), node_(records.model.nodes[n]), accesses_(records.boxes[n]) {}

  void Run() {
    CheckAccesses();
    CheckArgs();
    CheckAfter();
    for (size_t i = 0; i < node_.in_place.size(); ++i) CheckInPlace(i);
    if (node_.concurrency < 1) {
      Add(kInvalid, "Concurrency(" + std::to_string(node_.concurrency) +
                        "): at least one run at a time must be able to use the callable; give 1 or more");
    }
    if (!(node_.flops >= 0 && node_.flops < kMostFlops)) {
      Add(kInvalid, absl::StrCat("Flops(", node_.flops,
                                 "): one execution does at least 0 and less than 10^18 operations; count those of one "
                                 "run"));
    }
    if (node_.kind != NodeKind::kHost && node_.host_way != HostWay::kWorker) {
      Add(kInvalid, "Inline and Infallible apply to Host nodes only; a node of another kind runs on its device");
    }
    if (records_.model.deterministic) CheckBits();
    device_ = FindDevice();
    if (node_.kind == NodeKind::kParallelFor || node_.kind == NodeKind::kKernel) CheckArgumentBytes();
    switch (node_.kind) {
      case NodeKind::kCopy: CheckCopy(); break;
      case NodeKind::kFill: CheckFill(); break;
      case NodeKind::kParallelFor: CheckParallelFor(); break;
      case NodeKind::kKernel: CheckKernel(); break;
      case NodeKind::kLaunch: CheckLaunch(); break;
      case NodeKind::kHost:
      case NodeKind::kGate:
      case NodeKind::kConditional:
      case NodeKind::kControl: break;
    }
  }

  // Null if the node has no pin, or its pin is a mistake.
  const PlanDevice* device() const { return device_; }

 private:
  void Add(absl::StatusCode code, const std::string& text) {
    findings_.AddMistake(code, Prefix(records_.model, "node", node_.name) + ": " + text);
  }
  void AddOnDevice(absl::StatusCode code, const std::string& text) {
    const std::string_view device = device_ != nullptr ? std::string_view(device_->name) : std::string_view();
    findings_.AddMistake(code, Prefix(records_.model, "node", node_.name, device) + ": " + text);
  }
  // The device's limits, or the default limits where the pin names no device.
  base::KernelLimits Limits() const { return device_ != nullptr ? device_->limits : base::KernelLimits(); }
  const BufferFacts& Facts(size_t access) const { return records_.buffers[accesses_[access].buffer]; }
  const BufferDecl& Buffer(size_t access) const { return records_.model.buffers[accesses_[access].buffer]; }

  void CheckBits() {
    if (node_.bits == Bits::kAnyOrder) {
      Add(kInvalid,
          "may combine values in any order, and the graph is Deterministic; another order may give other bits; take "
          "CombineOrder::kFixed, the default");
    } else if (node_.bits == Bits::kVarying) {
      Add(kInvalid,
          "is declared Nondeterministic, and the graph is Deterministic; it may give other bits in each run; declare a "
          "node that does not, or leave out Graph::Deterministic");
    }
  }

  void CheckAccesses() {
    for (size_t i = 0; i < accesses_.size(); ++i) {
      if (node_.later && accesses_[i].mode == AccessMode::kRead) continue;  // the first node reads it too
      if (accesses_[i].buffer < 0) {
        Add(kInvalid, "access " + std::to_string(i) +
                          (node_.accesses[i].buffer < 0
                               ? " is to no buffer; its handle was never set; "
                               : " is to a buffer of another graph; a handle is good in the graph that made it; ") +
                          "declare the buffer in this graph");
      } else if (accesses_[i].part) {
        CheckBox(records_.model, findings_, {"node", node_.name}, "access " + std::to_string(i) + " ", Buffer(i),
                 node_.accesses[i].box);
      }
    }
  }

  void CheckArgs() {
    for (size_t i = 0; i < node_.args.size(); ++i) {
      const ArgDecl& arg = node_.args[i];
      switch (arg.form) {
        case ArgDecl::Form::kRange:
        case ArgDecl::Form::kTable: break;
        case ArgDecl::Form::kValue:
          if (arg.type.align > kMostAlign) Add(kInvalid, TooAligned(ValueText(i) + " has a type", arg.type.align));
          break;
        case ArgDecl::Form::kParam: CheckParam(i, arg); break;
        case ArgDecl::Form::kPointer:
        case ArgDecl::Form::kView:
        case ArgDecl::Form::kSpan: {
          const auto access = static_cast<size_t>(arg.index);
          if (accesses_[access].buffer < 0 || IsType(arg.type, Facts(access).type)) break;
          AddType(i, arg.type, Buffer(access).name, Facts(access).type);
        }
      }
    }
  }

  // Does not count the addresses beside parameters, which a kernel may take in place of the values. Calls on the host
  // take any number of bytes.
  void CheckArgumentBytes() {
    auto bytes = static_cast<int64_t>(node_.arg_block.size());
    for (const ArgDecl& arg : node_.args) bytes -= arg.ref > 0 ? int64_t{sizeof(void*)} : 0;
    const int64_t most = Limits().argument_bytes;
    const bool has_table = std::any_of(node_.args.begin(), node_.args.end(),
                                       [](const ArgDecl& arg) { return arg.form == ArgDecl::Form::kTable; });
    if (bytes <= most) return;
    AddOnDevice(kInvalid, "its arguments take " + std::to_string(bytes) + " bytes; a kernel takes at most " +
                              std::to_string(most) + " there; put large values into a buffer" +
                              (has_table ? ", and name fewer accesses in ps::All" : ""));
  }

  // The number of an argument as the user counts: a ParallelFor has its extent and functor before, and the Views of
  // tables come after all arguments, in the order of the tables.
  std::string NumberOf(size_t arg) const {
    size_t views = 0;
    for (const ArgDecl& table : node_.args) views += SizeOf(table);
    size_t at = node_.args.size() - views;
    for (size_t table = 0; arg >= at && table < node_.args.size(); at += SizeOf(node_.args[table++])) {
      if (arg < at + SizeOf(node_.args[table])) return NumberOf(table) + "[" + std::to_string(arg - at) + "]";
    }
    const size_t before = node_.kind == NodeKind::kParallelFor ? std::min<size_t>(arg, 2) : 0;
    return std::to_string(arg - before);
  }

  static size_t SizeOf(const ArgDecl& table) {
    return table.form == ArgDecl::Form::kTable ? static_cast<size_t>(table.index) : 0;
  }

  std::string ValueText(size_t arg) const {
    return node_.kind == NodeKind::kParallelFor && arg == 1 ? "its functor" : "argument " + NumberOf(arg);
  }

  void CheckParam(size_t index, const ArgDecl& arg) {
    if (arg.graph == records_.model.serial && arg.index >= 0 && arg.index < records_.model.params.count()) {
      const ParamDecl& param = records_.model.params[arg.index];
      if (!IsType(arg.type, param.type)) AddType(index, arg.type, param.name, param.type);
      return;
    }
    Add(kInvalid,
        "argument " + NumberOf(index) +
            (arg.index < 0 ? " is no parameter; its handle was never set; "
                           : " is a parameter of another graph; a handle is good in the graph that made it; ") +
            "declare the parameter in this graph");
  }

  // Handles can be assembled by hand, and only this check keeps their type equal to the record's. A record assembled by
  // hand may have no type.
  static bool IsType(const TypeInfo& handle, const TypeInfo& declared) {
    return handle.size == 0 || handle == declared;
  }
  void AddType(size_t arg, const TypeInfo& handle, const Name& name, const TypeInfo& declared) {
    Add(kInvalid, "argument " + NumberOf(arg) + " is " + Quoted(name) + " through " + OtherTypeText(handle, declared));
  }

  void CheckAfter() {
    for (const DeclId other : node_.after) {
      if (other >= 0 && other < records_.model.nodes.count()) continue;
      Add(kInvalid, "After names node " + std::to_string(other) + "; the graph's nodes are 0 to " +
                        std::to_string(records_.model.nodes.size() - 1) + "; name one of them");
    }
  }

  void CheckInPlace(size_t index) {
    const InPlaceDecl& pair = node_.in_place[index];
    if (node_.kind == NodeKind::kCopy) {
      return Add(kInvalid, "InPlace: a Copy does not work in place; leave the copy out, or leave InPlace out");
    }
    const int32_t in = AccessTo(pair.in, pair.in_graph), out = AccessTo(pair.out, pair.out_graph);
    if (in < 0 || out < 0) return;
    for (size_t i = 0; i < index; ++i) {
      const InPlaceDecl& other = node_.in_place[i];
      const bool same_in = pair.in == other.in || pair.in == other.out;
      if (!same_in && pair.out != other.in && pair.out != other.out) continue;
      return Add(kInvalid, "InPlace names " + Quoted(NameOf(same_in ? pair.in : pair.out)) +
                               " twice; bytes can be taken over only once; name each buffer in one pair");
    }
    const bool written = Accesses(pair.in, AccessMode::kWrite);
    if (written) {
      Add(kInvalid, "InPlace: it writes its input " + Quoted(NameOf(pair.in)) +
                        "; a node that changes its input needs no other bytes; name a buffer that it only reads");
    }
    if (!Accesses(pair.out, AccessMode::kWrite)) {
      Add(kInvalid, "InPlace: it does not write its output " + Quoted(NameOf(pair.out)) +
                        "; an output takes over the bytes of an input; name a buffer that it writes");
    } else if (!written) {
      records_.in_place.push_back({index_, in, out});
    }
  }

  const Name& NameOf(BufferId buffer) const { return records_.model.buffers[buffer].name; }
  bool Accesses(BufferId buffer, AccessMode mode) const {
    return std::any_of(accesses_.begin(), accesses_.end(), [&](const BoxRef& a) {
      return a.buffer == buffer && (static_cast<int>(a.mode) & static_cast<int>(mode)) != 0;
    });
  }

  // The node's first access to a buffer that InPlace names; -1 after a mistake.
  int32_t AccessTo(BufferId buffer, uint32_t graph) {
    if (graph != records_.model.serial || buffer < 0 || buffer >= records_.model.buffers.count()) {
      Add(kInvalid, std::string("InPlace names ") +
                        (buffer < 0 ? "no buffer; its handle was never set; "
                                    : "a buffer of another graph; a handle is good in the graph that made it; ") +
                        "name buffers that the node accesses");
      return -1;
    }
    const auto access =
        std::find_if(accesses_.begin(), accesses_.end(), [&](const BoxRef& a) { return a.buffer == buffer; });
    if (access != accesses_.end()) return static_cast<int32_t>(access - accesses_.begin());
    Add(kInvalid, "InPlace names " + Quoted(NameOf(buffer)) +
                      ", which it does not access; name an input that it reads and an output that it writes");
    return -1;
  }

  const PlanDevice* FindDevice() {
    const int32_t count = records_.options.devices.count();
    if (node_.device < -1 || node_.device >= count) {
      if (node_.later) return nullptr;
      std::string list;
      for (const DeviceId i : records_.options.devices.ids()) {
        list += (i > 0 ? ", " : "") + std::to_string(i) + " (" + records_.device_name(i) + ")";
      }
      Add(kInvalid, "pinned to device " + std::to_string(node_.device) + "; the runtime has " + list +
                        "; pin it to one of these");
      return nullptr;
    }
    const DeviceId device = node_.device >= 0 ? DeviceId(node_.device) : records_.options.default_device;
    if (node_.kind == NodeKind::kHost || device < 0 || device >= count) return nullptr;
    return &records_.options.devices[device];
  }

  bool HasAccesses(size_t count) {
    if (accesses_.size() != count) {
      Add(kInvalid, "has " + std::to_string(accesses_.size()) + " accesses; this kind of node has " +
                        std::to_string(count) + "; declare it through Graph");
      return false;
    }
    return std::all_of(accesses_.begin(), accesses_.end(), [](const BoxRef& a) { return a.buffer >= 0; });
  }

  std::string Text(const Extent& extent) const {
    std::string text = "{";
    for (int i = 0; i < extent.rank && i < kMaxRank; ++i) {
      const Dim& dim = extent.dims[i];
      const ParamDecl* param = ParamOf(records_.model, dim);
      text += i > 0 ? ", " : "";
      text += dim.is_constant() ? std::to_string(dim.value) : param != nullptr ? std::string(param->name.view()) : "?";
    }
    return text + "}";
  }

  // The size of an access's box.
  const Extent& SizeOf(size_t access) const {
    return accesses_[access].part ? node_.accesses[access].box->size : Buffer(access).extent;
  }

  // Whether the sizes are equal in every run, apart from leading dimensions of 1.
  static bool IsSameShape(const Extent& a, const Extent& b) {
    if (a.rank < 1 || a.rank > kMaxRank || b.rank < 1 || b.rank > kMaxRank) return true;  // reported with the box
    const auto dim = [](const Extent& e, int back) { return back < e.rank ? e.dims[e.rank - 1 - back] : Dim(1); };
    return dim(a, 0) == dim(b, 0) && dim(a, 1) == dim(b, 1) && dim(a, 2) == dim(b, 2);
  }

  void CheckCopy() {
    if (!HasAccesses(2)) return;
    const bool reads_first = accesses_[0].mode == AccessMode::kRead;
    if (accesses_[reads_first ? 0 : 1].mode != AccessMode::kRead ||
        accesses_[reads_first ? 1 : 0].mode != AccessMode::kWrite) {
      return Add(kInvalid, "a Copy reads one buffer and writes another; declare it through Graph");
    }
    const BufferDecl& from = Buffer(reads_first ? 0 : 1);
    const BufferDecl& to = Buffer(reads_first ? 1 : 0);
    if (&from == &to && !accesses_[0].part && !accesses_[1].part) {
      return Add(kInvalid, "copies " + Quoted(from.name) + " to itself; name another target");
    }
    const Extent &taken = SizeOf(reads_first ? 0 : 1), &given = SizeOf(reads_first ? 1 : 0);
    const bool same_type = from.type == to.type, same_extent = IsSameShape(taken, given);
    if (same_type && same_extent) return;
    const std::string what = "copies " + Quoted(from.name) + " to " + Quoted(to.name) + ", ";
    if (!same_type) {
      Add(kInvalid, what + "which has another element type (" + std::to_string(from.type.size) + " and " +
                        std::to_string(to.type.size) + " bytes); a Copy converts nothing; use one type");
    }
    if (!same_extent) {
      Add(kInvalid, what + "which has another extent (" + Text(taken) + " and " + Text(given) +
                        "); a Copy takes and writes boxes of one shape; declare both with the same constants and "
                        "parameters");
    }
  }

  void CheckFill() {
    if (!HasAccesses(1)) return;
    if (accesses_[0].mode != AccessMode::kWrite) return Add(kInvalid, "a Fill writes; declare it through Graph");
    if (node_.pattern.size() == Buffer(0).type.size) return;
    Add(kInvalid, "its pattern has " + std::to_string(node_.pattern.size()) + " bytes and the elements of " +
                      Quoted(Buffer(0).name) + " have " + std::to_string(Buffer(0).type.size) +
                      "; a Fill writes whole elements; fill with the buffer's element type");
  }

  // The later nodes of a Reduce or a Scan have the extent and the options of the first, where mistakes are reported.
  void CheckParallelFor() {
    if (!node_.later) {
      CheckExtent(records_.model, findings_, {"node", node_.name}, node_.extent, 1);
      if (node_.functor_rank != node_.extent.rank) {
        Add(kInvalid, "the functor takes a " + std::to_string(node_.functor_rank) + "-D index and the extent is " +
                          std::to_string(node_.extent.rank) +
                          "-D; it is called with an index of the extent; take int64_t, Index2 or Index3 to match");
      }
      if (node_.is_task) CheckTask();
    }
    if (device_ != nullptr && device_->is_cuda) CheckCompiledForCuda();
  }

  void CheckTask() {
    const int64_t threads = node_.shape.block[0], most = Limits().block_threads;
    if (threads < 1 || threads > most) {
      AddOnDevice(kInvalid, "its block has " + std::to_string(threads) + " threads; a block has 1 to " +
                                std::to_string(most) + "; name so many in TaskOptions::threads");
    }
    CheckSharedBytes("its block takes ");
  }

  // Of an algorithm that the library has in part, the first node that is missing is told.
  void CheckCompiledForCuda() {
    if (IsCompiledForCuda(node_)) return;
    for (DeclId n = index_; records_.model.nodes[n].later && n > 0;) {
      n = DeclId(n - 1);
      if (!IsCompiledForCuda(records_.model.nodes[n])) return;
    }
    RefuseNotCompiled();
  }
  void RefuseNotCompiled() {
    const std::string place = Where(node_.name.source());
    AddOnDevice(absl::StatusCode::kFailedPrecondition,
                "declared in " + place.substr(0, place.rfind(':')) +
                    ", which nvcc did not compile; compile this file as CUDA or pin the node to a host device" +
                    (node_.code.algorithm.size == 0
                         ? ""
                         : "; without nvcc there are algorithms over some types, in a library built with them: "
                           "docs/howto/algorithms.md has a list"));
  }

  void CheckKernel() {
    const KernelShape& shape = node_.shape;
    const std::array<int64_t, 3> most = Limits().grid;
    CheckBlock(shape);
    if (shape.per_thread) {
      CheckGrid("the number of threads", -1, shape.threads, most[0] * std::max<int64_t>(1, shape.block[0]));
    } else {
      for (size_t i = 0; i < 3; ++i) CheckGrid("grid dimension ", static_cast<int>(i), shape.grid[i], most[i]);
    }
    if (node_.code.source != nullptr) CheckSource(*node_.code.source);
    if (device_ == nullptr) return;
    if (!device_->is_cuda) return CheckFallback("a Kernel runs on CUDA devices only");
    CheckCompiledForCuda();
  }

  void CheckSource(const Source::Parts& source) {
    if (source.text.empty()) Add(kInvalid, "its source has no text; give it that of a CUDA translation unit");
    if (source.kernel.empty()) {
      Add(kInvalid, "its source names no kernel; name a __global__ function of the text, as axpy<float>");
    }
    const auto has_null = [](const std::string& text) { return text.find('\0') != std::string::npos; };
    bool null = has_null(source.text) || has_null(source.kernel) || has_null(source.options.file);
    for (const std::string& option : source.options.options) null = null || has_null(option);
    for (const SourceHeader& header : source.options.headers) null = null || has_null(header.name + header.text);
    CheckHeaderNames(source.options.headers);
    if (null) Add(kInvalid, "its source has a null character, at which the compiler would end; leave it out");
  }

  void CheckHeaderNames(const std::vector<SourceHeader>& headers) {
    std::set<std::string_view> names;
    for (const SourceHeader& header : headers) {
      if (header.name.empty())
        Add(kInvalid, "a header of its source has no name; give it the one that the #include names");
      else if (!names.insert(header.name).second) {
        Add(kInvalid, "two headers of its source are called '" + header.name + "'; give each a name of its own");
      }
    }
  }

  void CheckBlock(const KernelShape& shape) {
    const base::KernelLimits limits = Limits();
    const auto text = [](const auto& size) {
      return std::to_string(size[0]) + " x " + std::to_string(size[1]) + " x " + std::to_string(size[2]);
    };
    int64_t threads = 1;
    bool each_fits = true;
    for (size_t i = 0; i < 3; ++i) {
      threads = std::min<int64_t>(threads * shape.block[i], int64_t{1} << 31);
      each_fits = each_fits && shape.block[i] <= limits.block[i];
    }
    const std::string blocks = "its blocks have " + text(shape.block) + " threads; ";
    if (threads < 1 || threads > limits.block_threads) {
      AddOnDevice(kInvalid,
                  blocks + "a block has 1 to " + std::to_string(limits.block_threads) + "; use fewer, or more blocks");
    } else if (!each_fits) {
      AddOnDevice(kInvalid, blocks + "a block has at most " + text(limits.block) + "; use fewer there, or more blocks");
    }
    CheckSharedBytes("its blocks take ");
  }

  void CheckSharedBytes(const char* take) {
    const int64_t bytes = node_.shape.shared_bytes, most = Limits().shared_bytes;
    if (bytes <= most) return;
    AddOnDevice(kInvalid, take + std::to_string(bytes) + " bytes of shared memory; a block has at most " +
                              std::to_string(most) + "; use less");
  }

  void CheckGrid(const char* label, int index, const Dim& dim, int64_t most) {
    const int64_t value = CheckDim(records_.model, findings_, {"node", node_.name}, label, index, dim);
    if (value <= most) return;
    AddOnDevice(kInvalid, label + (index >= 0 ? std::to_string(index) : "") +
                              (dim.is_constant() ? " is " : " may be ") + std::to_string(value) +
                              "; a launch has at most " + std::to_string(most) + "; use fewer");
  }

  void CheckLaunch() {
    if (device_ == nullptr) return;
    if (!device_->is_cuda) CheckFallback("a Launch submits to a CUDA stream");
    else if (node_.code.lacks_cuda) RefuseNotCompiled();
  }

  void CheckFallback(const std::string& why) {
    if (node_.code.call_fallback != nullptr) return;
    AddOnDevice(kUnimplemented,
                why +
                    "; this is a host device and the node has no host fallback for it; give it one with "
                    ".HostFallback(f), or pin it to a CUDA device");
  }

  Records& records_;
  Findings& findings_;
  const DeclId index_;
  const NodeDecl& node_;
  const std::span<const BoxRef> accesses_;
  const PlanDevice* device_ = nullptr;
};

// The declared device of a buffer's memory, or of a State; null: none.
const PlanDevice* DeviceOf(const Records& records, const BufferDecl& buffer) {
  DeviceId device = buffer.keys != 0 ? records.options.default_device : DeviceId(buffer.device);
  if (buffer.state != nullptr && buffer.state->runtime == records.options.runtime) device = buffer.state->device;
  if (device < 0 || device >= records.options.devices.count()) return nullptr;
  return &records.options.devices[device];
}

// Reports devices of several drivers in one graph: `node` is the first node with a device, or null.
void CheckMemoryDrivers(const Records& records, Findings& findings, const NodeDecl* node, const PlanDevice* device) {
  const BufferDecl* first = nullptr;
  for (const BufferDecl& buffer : records.model.buffers) {
    const PlanDevice* const own = DeviceOf(records, buffer);
    if (own == nullptr) continue;
    if (device == nullptr) {
      device = own;
      first = &buffer;
    }
    if (own->driver == device->driver) continue;
    const auto kind = [](const BufferDecl& of) { return of.role == BufferRole::kState ? "state" : "buffer"; };
    const std::string other = node != nullptr ? "node " + Quoted(node->name) + " runs on "
                                              : kind(*first) + (" " + Quoted(first->name)) + " lives on ";
    findings.AddMistake(kInvalid, Prefix(records.model, kind(buffer), buffer.name, own->name) + ": " + other +
                                      device->name +
                                      ", a device of another driver; events order devices of one driver only; keep the "
                                      "nodes and States of a graph on devices of one driver");
  }
}

}  // namespace

void ValidateNodes(Records& records, Findings& findings) {
  const NodeDecl* first = nullptr;
  const PlanDevice* first_device = nullptr;
  bool mixed = false;
  records.node_hash.reserve(records.model.nodes.size());
  ForEachRecord(records.model.nodes, [&](const NodeDecl& node, DeclId n) {
    records.Read(node);
    NodeCheck check(records, findings, n);
    check.Run();
    if (findings.mistakes.empty())
      records.node_hash.push_back(HashOfNode(records, n));  // while the record is in the cache
    if (check.device() == nullptr || mixed) return;
    if (first == nullptr) {
      first = &node;
      first_device = check.device();
    } else if (check.device()->driver != first_device->driver) {
      mixed = true;
      findings.AddMistake(
          kInvalid, Prefix(records.model, "node", node.name, check.device()->name) + ": node " + Quoted(first->name) +
                        " runs on " + first_device->name +
                        ", a device of another driver; events order devices of one driver only; pin all "
                        "nodes of a graph to devices of one driver");
    }
  });
  CheckMemoryDrivers(records, findings, first, first_device);
}

}  // namespace penstock::graph
