// Model: what a graph holds once declared: plain records of parameters, buffers and nodes, with all types erased.
//
// Graph (graph.h) appends to a Model, the planner reads it, and the runtime keeps its callables alive. Users rarely
// need it except to inspect a graph.
//
// Threads: plain data; the declaring thread writes a Model, and nothing does after Compile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "penstock/access.h"
#include "penstock/detail/table.h"
#include "penstock/export.h"
#include "penstock/extent.h"
#include "penstock/name.h"
#include "penstock/source.h"

namespace penstock {

class LaunchContext;
namespace detail {
struct Formula;
}

// Indices of a Model's records.
using ParamId = detail::Id<struct ParamTag>;
using BufferId = detail::Id<struct BufferTag>;
using DeclId = detail::Id<struct DeclTag>;  // of a node as declared; a plan has more nodes
using ControlId = detail::Id<struct ControlTag>;
using BodyId = detail::Id<struct BodyTag>;

// Where the memory of a buffer lies. For Input, Output and InOut it states what may be bound at launch:
//   kHost    any host memory; copied directly if pinned, otherwise through the library's pinned memory
//   kPinned  pinned memory only
//   kDevice  device memory only: of the device declared, or else of the first node other than a copy that uses it
//   kSlot    nothing is bound: the slot's own pinned memory, filled and read in place (lease.h)
// For Buffer: kDevice or kPinned.
enum class Where : uint8_t { kHost, kPinned, kDevice, kSlot };
using enum Where;

// kParam: the value of a parameter for OnDevice (access.h); each launch writes it to the slot's pinned memory.
// kCount: the count of an Output; each run leaves it in the slot's pinned memory. Compile adds it.
enum class BufferRole : uint8_t { kInput, kOutput, kInOut, kInternal, kState, kParam, kCount };
// Whether the contents come from outside or go there: each launch binds memory for such a buffer, unless it is kSlot.
constexpr bool IsBound(BufferRole role) { return role <= BufferRole::kInOut; }
// Whether the memory is the slot's own, and no lease's.
constexpr bool IsInSlot(BufferRole role) { return role == BufferRole::kParam || role == BufferRole::kCount; }
// Whether the access needs the contents that are there.
constexpr bool Reads(AccessMode mode) { return (static_cast<int>(mode) & static_cast<int>(AccessMode::kRead)) != 0; }
// The last three are not declared: they stand for a construct where its bodies are folded (graph/control/fold.h).
enum class NodeKind : uint8_t { kCopy, kFill, kParallelFor, kKernel, kLaunch, kHost, kGate, kConditional, kControl };

// The constructs that decide while a graph runs which of its nodes run, and how often (control.h).
enum class ControlKind : uint8_t { kIf, kSwitch, kWhile, kRepeat };

// Which thread calls a Host node, and where later nodes wait meanwhile:
//   kWorker          a worker; later nodes are submitted once it has returned
//   kHostcallWorker  a worker; later nodes wait on the device
//   kHostcallInline  the hostcall poller itself; later nodes wait on the device
enum class HostWay : uint8_t { kWorker, kHostcallWorker, kHostcallInline };

// Whether a node may give other bits for the same input in another run, or on another device of the same model:
//   kSame      it does not, as far as the library knows
//   kAnyOrder  an algorithm that may combine values in any order, where the order matters
//   kVarying   its author says that it may
enum class Bits : uint8_t { kSame, kAnyOrder, kVarying };

// The kind of a type's elements, if they are plain numbers of at most 8 bytes.
enum class NumberKind : uint8_t { kNone, kSigned, kUnsigned, kFloat };

// Identity and layout of an element or parameter type. Equal in all shared objects of a process that agree on its name,
// size and alignment; a type local to one translation unit equals no other.
struct TypeInfo {
  uint64_t mangled = 0;  // hash of its ABI name, the same for all compilers; 0: no RTTI
  uint32_t spelled = 0;  // hash of the compiler's spelling, used if either side has no RTTI
  uint32_t size = 0;  // 0: no type
  uint32_t align = 0;
  NumberKind number = NumberKind::kNone;  // for messages and comparisons
  bool operator==(const TypeInfo& other) const {
    if (size != other.size || align != other.align) return false;
    return mangled != 0 && other.mangled != 0 ? mangled == other.mangled : spelled == other.spelled;
  }
};

// A graph's record of a State (state.h) that it names: memory that lives across runs, shared by graphs. The runtime's
// own record derives from this one, so holding it keeps the State's memory alive.
struct StateRecord {
  Name name;
  TypeInfo type;
  Extent extent;  // constants only
  int32_t device = 0;  // index in its runtime's device list
  const void* runtime = nullptr;  // the runtime that made it; an identity
  bool adopted = false;  // its memory is the application's
  // For a ReplicatedState, which has no memory itself: one record per device.
  std::vector<std::shared_ptr<const StateRecord>> replicas{};
};

struct ParamDecl {
  Name name;
  TypeInfo type;
  bool is_integer = false;  // only integers may be dimensions
  bool is_signed = false;
  bool has_max = false;  // declared with AtMost, as a dimension must be
  int64_t max = 0;
};

// What tells how many elements of an Output count: one integer in a buffer of the same graph.
struct CountDecl {
  BufferId buffer{};  // none: all elements count
  SharedBox box{};
};

struct BufferDecl {
  Name name;
  TypeInfo type;
  BufferRole role = BufferRole::kInternal;
  Where where = Where::kDevice;
  Extent extent;
  int64_t pitch = 0;  // elements from row to row, in host and device memory; 0: rows are dense
  int32_t device = -1;  // for bound kDevice memory: its device; -1: see Where
  bool is_alias = false;  // it has no memory: it is `box`, of shape `extent`, of an earlier buffer or alias
  BufferId alias_of{};  // checked by the planner, with `alias_graph`
  uint32_t alias_graph = 0;
  SharedBox box{};
  // kState only: the State. Null until Compile for a keyed one.
  std::shared_ptr<const StateRecord> state{};
  int32_t keys = 0;  // kState only: the most keys that can have a State; 0: not keyed
  ParamId param{};  // kParam only
  CountDecl count{};  // kOutput only
  BufferId counted{};  // kCount only: the Output
  BodyId body{};  // the body in which it was declared; none: outside of all
};

// Whether the slot has the memory and launches bind none.
inline bool IsLeased(const BufferDecl& decl) {
  return !decl.is_alias && IsBound(decl.role) && decl.where == Where::kSlot;
}

struct AccessDecl {
  BufferId buffer{};  // checked by the planner, with `graph`
  uint32_t graph = 0;
  AccessMode mode = AccessMode::kRead;
  bool unordered = false;  // no edges follow from it
  SharedBox box{};  // in elements of the named buffer, which may be an alias
  bool uncopied = false;  // it is read where it is, if the device can
};

// A node's permission for the output `out` to take over the bytes of the input `in`.
struct InPlaceDecl {
  BufferId in{}, out{};  // checked by the planner, with the graphs
  uint32_t in_graph = 0, out_graph = 0;
  friend bool operator==(const InPlaceDecl&, const InPlaceDecl&) = default;
};

// One argument of a callable, at `offset` in the node's argument block.
struct ArgDecl {
  enum class Form : uint8_t {
    kValue,  // bytes already in the block
    kParam,  // the value of parameter `index`, written at launch
    kPointer,  // T*: the address of access `index`
    kView,  // View<T>: address and shape of access `index`
    kSpan,  // as kView, but passed as a span: the accessed box must be contiguous
    kRange,  // the node's own extent, as detail::Range
    kTable  // a ViewTable of `index` Views (views.h); each of these is a kView too, after all that the callable takes
  };
  Form form = Form::kValue;
  uint32_t offset = 0;
  uint32_t size = 0;
  int32_t index = -1;
  uint32_t graph = 0;  // of the named parameter
  uint32_t ref = 0;  // kParam: offset in the block of its address for by-reference code; 0: there is none
  TypeInfo type;  // of the parameter or element
};

// How a kernel is launched: blocks of `block` threads, either `grid` blocks or enough of them to cover `threads` in x.
struct KernelShape {
  bool per_thread = true;  // whether `threads` sets the number of blocks; else `grid` does
  Dim threads;  // the number of threads, in x
  std::array<Dim, 3> grid{Dim(1), Dim(1), Dim(1)};  // blocks: x, y, z
  std::array<uint32_t, 3> block{256, 1, 1};  // threads of a block: x, y, z
  uint32_t shared_bytes = 0;  // dynamic shared memory per block, in bytes
  bool programmatic = false;  // set by Programmatic
  bool by_occupancy = false;  // set by Threads with kOccupancy: Compile replaces the one dimension of `block`
  // The same shape for a kernel that says PENSTOCK_AWAIT_DEPENDENCIES() (or cudaGridDependencySynchronize()) in every
  // thread, before it touches memory and before any thread returns. Graphs launch it while its predecessors are still
  // ending, so it begins about 0.3 us sooner. Kernels compiled for less than compute capability 9.0 are launched as
  // usual.
  KernelShape Programmatic() const {
    KernelShape shape = *this;
    shape.programmatic = true;
    return shape;
  }
  friend bool operator==(const KernelShape&, const KernelShape&) = default;
};

// The type-erased code of a node. `argv[i]` points to argument i in its block.
struct NodeCode {
  // Runs rows [first, end) of a ParallelFor on the host.
  void (*range)(void* const* argv, int64_t first, int64_t end) = nullptr;
  // Loads the kernel on the current device and returns its handle for a launch from any copy of the CUDA runtime; on
  // failure returns null and sets *error to the cudaError_t. Null if nvcc did not compile the call.
  const void* (*cuda_kernel)(const void* self, int* error) = nullptr;
  const void* cuda_self = nullptr;
  // What a Kernel or a Map is compiled from at Compile; null: it is in the program. `cuda_self` then is its address,
  // and `cuda_kernel` is null.
  std::shared_ptr<const Source::Parts> source{};
  // What a Map computes, also by its `source` and `range`; null: it is no Map. Its address is an argument of the node.
  std::shared_ptr<const detail::Formula> formula{};
  // Variants that take the addresses of parameters (ArgDecl::ref) and read the values at run time. Null for a
  // ParallelFor without parameters.
  void (*indirect_range)(void* const* argv, int64_t first, int64_t end) = nullptr;
  const void* cuda_self_indirect = nullptr;
  // For resident regions (resident_cuda.h), loaded by `cuda_kernel` too: the kernel that runs regions of nodes of this
  // translation unit, and one whose variable `cuda_task_variable` has the address of this node's device function. Null:
  // the node is in no region.
  const void* cuda_region = nullptr;
  const void* cuda_task = nullptr;
  const char* cuda_task_variable = nullptr;
  // Names the instance of an algorithm that this is the code of (algorithm_code.h). It is no type if the node belongs
  // to no algorithm.
  TypeInfo algorithm{};
  bool lacks_cuda = false;  // nvcc did not compile it, and the library has no code for it
  // The callable of a Host or Launch node. `launch` is null for Host nodes.
  std::shared_ptr<void> callable{};
  absl::Status (*call)(void* callable, LaunchContext* launch, void* const* argv) = nullptr;
  // The host fallback: takes the same arguments and runs once for the whole node.
  std::shared_ptr<void> fallback{};
  absl::Status (*call_fallback)(void* fallback, void* const* argv) = nullptr;
};

// The options of a node that have one value; NodeRef sets each by its member, and a graph that is declared again is
// compared in all of them.
struct NodeOptions {
  int32_t device = -1;  // index in the runtime's device list; -1: not pinned
  int32_t priority = 0;
  int32_t concurrency = 1;
  HostWay host_way = HostWay::kWorker;
  double flops = 0;  // of one execution; 0: unknown
  Bits bits = Bits::kSame;
  friend bool operator==(const NodeOptions&, const NodeOptions&) = default;
};

// How a device takes the leaves of a ParallelFor.
struct TilesDecl {
  int leaves_of_block = 1;  // how many a block takes at a time
  int working = -1;  // the access whose contents differ on hosts and devices (detail/look_back.h); -1: none
};

struct NodeDecl : NodeOptions {
  explicit NodeDecl(Name n, NodeKind k = NodeKind::kHost) : name(std::move(n)), kind(k) {}

  Name name;
  NodeKind kind;
  std::vector<AccessDecl> accesses{};
  std::vector<DeclId> after{};
  std::vector<InPlaceDecl> in_place{};
  std::vector<ArgDecl> args{};
  std::vector<std::byte> arg_block{};  // constants filled in, everything else zero
  std::vector<std::byte> pattern{};  // Fill: one element
  Extent extent{};  // ParallelFor
  int functor_rank = 0;  // ParallelFor: rank of the index the functor takes
  int level = 0;  // ParallelFor: the level of a Reduce or a Scan (detail/reduce_tree.h), from 1; 0: it is none
  bool by_rows = false;  // its leaves do not reach beyond a row (detail/scan_tree.h)
  TilesDecl tiles{};
  bool later = false;  // a node of the same Reduce or Scan came before it, where mistakes are reported
  KernelShape shape{};  // Kernel, and of a Task its one block
  double runs = 1;  // kConditional, kControl: about how many nodes of its bodies do, in all iterations
  bool is_task = false;  // ParallelFor: a Task, of one index, whose functor takes a Block (task.h)
  bool decides = false;  // it is the condition of a construct, which has its decision at the begin of its functor
  NodeCode code{};
  BodyId body{};  // the body in which it was declared; none: outside of all
};

// A construct. Its condition is a node of one index that writes the word: for a Switch which body runs, for a Repeat
// how often it does, else whether one does. It belongs to the body that the construct is in, and comes before all nodes
// of the construct's own.
struct ControlDecl {
  Name name;
  ControlKind kind;
  BodyId in{};  // the body in which it was declared; none: outside of all
  DeclId begin{};  // how many nodes were declared before it, its condition included
  DeclId condition{};  // none: a kRepeat of `trips`
  BufferId word{};  // what the condition writes: one int32_t
  bool tells = false;  // kWhile: the condition also writes how far the loop has come (telling.h)
  Dim trips{0};  // kRepeat: how often the body runs, unless it has a condition, which says it when the loop begins
  int64_t max = 0;  // kWhile: the most often that it does
  int64_t expected = 10;  // kWhile, and others whose number is not declared: about how often
  std::vector<BodyId> bodies{};
};

// A body: what was declared on the graph while the function of a construct ran.
struct BodyDecl {
  ControlId of{};
  int depth = 1;  // of constructs around its nodes
};

// A mistake noticed while declaring. Compile adds those that the planner's checks find.
struct Mistake {
  absl::StatusCode code = absl::StatusCode::kInvalidArgument;
  std::string text;
};

struct Model {
  Name name;
  uint32_t serial = 0;  // unique in the process; handles carry it
  detail::Table<ParamId, ParamDecl> params;
  detail::Table<BufferId, BufferDecl> buffers;
  detail::Table<DeclId, NodeDecl> nodes;
  detail::Table<ControlId, ControlDecl> controls;
  detail::Table<BodyId, BodyDecl> bodies;
  std::vector<Mistake> mistakes;
  bool deterministic = false;  // set by Graph::Deterministic
  Name scope{""};  // what names that are declared now begin with (Graph::Scope); used only while declaring
  int32_t scope_device = -1;  // the pin of nodes that are declared now (Graph::ScopeOn); used only while declaring
  BodyId open{};  // the body that is being declared; used only while declaring

  explicit Model(Name n) : name(std::move(n)) {}
};

}  // namespace penstock
