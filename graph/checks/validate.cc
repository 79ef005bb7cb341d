// Validate: checks each record by itself. Names, parameters, buffers and options are here, nodes in validate_nodes.cc.
//
// All mistakes are reported, in this order: options, parameters, buffers, nodes. Arithmetic on sizes is checked: any
// declared value may be refused with its numbers, but never overflows.
#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <string_view>

#include "graph/common/message.h"
#include "graph/common/prefetch.h"
#include "graph/passes/passes.h"

namespace penstock::graph {
namespace {

// For each name the first record that has it; -1: that record itself. An open-addressing hash table.
std::vector<int32_t> FirstOfName(const Names& names) {
  const size_t slots = std::bit_ceil(2 * names.size() + 1);
  std::vector<int32_t> table(slots, -1), first(names.size(), -1);
  for (size_t i = 0; i < names.size(); ++i) {
    size_t slot = names.hash(i) & (slots - 1);
    for (; table[slot] >= 0; slot = (slot + 1) & (slots - 1)) {
      const auto other = static_cast<size_t>(table[slot]);
      if (names.hash(other) != names.hash(i) || names[other] != names[i]) continue;
      first[i] = table[slot];
      break;
    }
    if (first[i] < 0) table[slot] = static_cast<int32_t>(i);
  }
  return first;
}

// Whether the record's name merely repeats that of a parameter.
bool IsNamedByParam(const ParamDecl&) { return false; }
bool IsNamedByParam(const NodeDecl&) { return false; }
bool IsNamedByParam(const BufferDecl& buffer) { return buffer.role == BufferRole::kParam; }

// "a.cc:3, a.cc:4, a.cc:5 and 78 more".
std::string ListOf(const std::vector<std::string>& places) {
  constexpr size_t kMost = 3;
  std::string text;
  for (size_t i = 0; i < std::min(places.size(), kMost); ++i) {
    const bool last = i > 0 && i + 1 == places.size();
    text += (i == 0 ? "" : last ? " and " : ", ") + places[i];
  }
  return places.size() <= kMost ? text : text + " and " + std::to_string(places.size() - kMost) + " more";
}

// Checks the names of one kind of record: none empty, no two the same.
template <class Record>
void CheckNames(Draft& draft, const char* kind, const std::vector<Record>& records, const Names& names) {
  for (size_t i = 0; i < records.size(); ++i) {
    if (!names[i].empty()) continue;
    draft.AddMistake(kInvalid, Prefix(draft.model, kind, records[i].name) +
                                   ": has no name; messages and traces call everything by its name; give it one");
  }
  const std::vector<int32_t> first = FirstOfName(names);
  std::map<int32_t, std::vector<size_t>> repeats;
  for (size_t i = 0; i < records.size(); ++i) {
    if (first[i] < 0 || names[i].empty()) continue;
    const Record& other = records[first[i]];
    if (IsNamedByParam(records[i]) && IsNamedByParam(other)) continue;  // the parameters' names are reported
    repeats[first[i]].push_back(i);
  }
  for (const auto& [other, of_name] : repeats) {
    const Name& name = records[other].name;
    std::vector<std::string> places{Where(name.source())};
    for (const size_t i : of_name) places.push_back(Where(records[i].name.source()));
    draft.AddMistake(kInvalid, Prefix(draft.model, kind, name) + ": declared " + std::to_string(places.size()) +
                                   " times: " + ListOf(places) + "; names are unique among the " + kind +
                                   "s of a graph; rename all but one");
  }
}

// Names are known once the records have been read. Mistakes in names are inserted before the other mistakes of these
// records, which begin at `before`.
template <class Record>
void TellNamesFirst(Draft& draft, size_t before, const char* kind, const std::vector<Record>& records,
                    const Names& names) {
  const size_t end = draft.mistakes.size();
  CheckNames(draft, kind, records, names);
  const auto at = [&](size_t i) { return draft.mistakes.begin() + static_cast<std::ptrdiff_t>(i); };
  std::rotate(at(before), at(end), draft.mistakes.end());
}

void CheckOptions(Draft& draft) {
  const PlanOptions& options = draft.options;
  if (options.devices.empty()) {
    draft.AddMistake(kInvalid, Prefix(draft.model) + ": there is no device to plan for; give the runtime one");
  } else if (options.default_device < 0 || options.default_device >= static_cast<int32_t>(options.devices.size())) {
    draft.AddMistake(kInvalid, Prefix(draft.model) + ": the default device is " +
                                   std::to_string(options.default_device) + "; the runtime has " +
                                   std::to_string(options.devices.size()) + " devices; name one of them");
  }
  if (options.max_lanes < 1) {
    draft.AddMistake(kInvalid, Prefix(draft.model) + ": max_lanes is " + std::to_string(options.max_lanes) +
                                   "; kernels need a lane on each device; give 1 or more");
  }
}

void CheckGraphName(Draft& draft) {
  const Name& name = draft.model.name;
  if (!name.view().empty()) return;
  draft.AddMistake(kInvalid, Prefix(draft.model) + ": the graph declared at " + Where(name.source()) +
                                 " has no name; messages and traces call everything by its name; give it one");
}

void CheckParam(Draft& draft, const ParamDecl& param) {
  if (param.type.align > kMostAlign) {
    draft.AddMistake(kInvalid,
                     Prefix(draft.model, "param", param.name) + ": " + TooAligned("has a type", param.type.align));
  }
  if (!param.has_max) return;
  const std::string subject = Prefix(draft.model, "param", param.name);
  if (!param.is_integer) {
    draft.AddMistake(kInvalid, subject +
                                   ": has AtMost, but is not an integer; only integers have a maximum; remove "
                                   "AtMost or use an integer type");
  } else if (param.max < 0) {
    draft.AddMistake(kInvalid, subject + ": AtMost(" + std::to_string(param.max) +
                                   ") is negative; such a parameter counts elements; give 0 or more");
  }
}

constexpr int32_t kMostKeys = 65536;

void CheckKeyedState(Draft& draft, const BufferDecl& buffer) {
  const auto refuse = [&](const std::string& why) {
    draft.AddMistake(kInvalid, Prefix(draft.model, "state", buffer.name) + ": " + why);
  };
  if (buffer.keys < 1 || buffer.keys > kMostKeys) {
    refuse("KeyedStateOptions::max_keys is not 1 to " + std::to_string(kMostKeys) + "; so many keys can have a State");
  }
  for (int i = 0; i < std::min(buffer.extent.rank, kMaxRank); ++i) {
    if (buffer.extent.dims[i].is_constant()) continue;
    refuse("dimension " + std::to_string(i) + " is a parameter; a State keeps its size across runs; give a constant");
  }
}

void CheckState(Draft& draft, const BufferDecl& buffer) {
  if (buffer.keys != 0) return CheckKeyedState(draft, buffer);
  if (buffer.state != nullptr && buffer.state->runtime == draft.options.runtime) return;
  draft.AddMistake(kInvalid, Prefix(draft.model, "state", buffer.name) +
                                 ": belongs to another runtime; its memory is not known here; make it with MakeState "
                                 "of the runtime that compiles the graph");
}

// Checks the declared device of bound memory.
void CheckDevice(Draft& draft, const BufferDecl& buffer) {
  if (buffer.device == -1) return;
  const size_t devices = draft.options.devices.size();
  const std::string subject =
      Prefix(draft.model, "buffer", buffer.name) + ": is declared on device " + std::to_string(buffer.device);
  if (buffer.where != Where::kDevice) {
    draft.AddMistake(kInvalid, subject + ", and is not kDevice; host memory has no device; leave the device out");
  } else if (buffer.device < 0 || static_cast<size_t>(buffer.device) >= devices) {
    draft.AddMistake(kInvalid,
                     subject + "; the runtime has devices 0 to " + std::to_string(devices - 1) + "; name one of them");
  }
}

// Checks where a buffer may live.
void CheckWhere(Draft& draft, const BufferDecl& buffer) {
  CheckDevice(draft, buffer);
  if (buffer.role == BufferRole::kState) return CheckState(draft, buffer);
  const bool anywhere = IsBound(buffer.role) || buffer.role == BufferRole::kParam;
  if (anywhere || buffer.where == Where::kDevice || buffer.where == Where::kPinned) return;
  draft.AddMistake(kInvalid, Prefix(draft.model, "buffer", buffer.name) +
                                 ": a Buffer lives on a device or in pinned memory; declare it kDevice or kPinned");
}

// The bytes from the first to the last of a buffer with a pitch, whose elements take `dense` bytes; -1 after a mistake.
int64_t PitchedBytes(Draft& draft, const BufferDecl& buffer, int64_t dense) {
  const auto refuse = [&](const std::string& why) {
    draft.AddMistake(kInvalid, Prefix(draft.model, "buffer", buffer.name) + ": has a pitch of " +
                                   std::to_string(buffer.pitch) + " elements" + why);
    return int64_t{-1};
  };
  if (buffer.is_alias || buffer.role == BufferRole::kState) {
    return refuse(", but its memory is another's; declare it through Graph");
  }
  draft.any_pitch = true;
  const Extent& extent = buffer.extent;
  if (extent.rank < 2) return refuse(" and no rows; a pitch is from row to row; give it two or three dimensions");
  const auto most = [&](int i) {
    const Dim& dim = extent.dims[i];
    return dim.is_constant() ? dim.value : ParamOf(draft.model, dim)->max;
  };
  const int64_t width = most(extent.rank - 1), size = buffer.type.size;
  if (buffer.pitch < width) {
    return refuse(" and rows of up to " + std::to_string(width) + "; rows do not overlap; make the pitch as large");
  }
  int64_t bytes = size;
  bool fits = !__builtin_mul_overflow(bytes, buffer.pitch, &bytes);
  for (int i = 0; i + 1 < extent.rank; ++i) {
    fits = fits && !__builtin_mul_overflow(bytes, std::max<int64_t>(most(i), 1), &bytes);
  }
  if (!fits || bytes > kMaxBytes) {
    return refuse(", which makes it more than 2^62 bytes; no device holds that; make the pitch or a dimension smaller");
  }
  return dense == 0 ? 0 : bytes - (buffer.pitch - width) * size;
}

void CheckBuffer(Draft& draft, const BufferDecl& buffer) {
  if (buffer.type.align > kMostAlign && buffer.role != BufferRole::kParam) {  // the parameter has been reported
    draft.AddMistake(kInvalid,
                     Prefix(draft.model, "buffer", buffer.name) + ": " + TooAligned("has elements", buffer.type.align));
  }
  if (buffer.is_alias) {
    CheckAlias(draft, static_cast<int32_t>(draft.buffer_bytes.size()));
  } else {
    CheckWhere(draft, buffer);
  }
  if (buffer.is_alias && !buffer.box.whole()) {  // its extent is the box's size
    draft.buffer_bytes.push_back(0);
    return;
  }
  int64_t bytes = CheckExtent(draft, {"buffer", buffer.name}, buffer.extent, buffer.type.size);
  if (buffer.pitch != 0 && bytes >= 0) bytes = PitchedBytes(draft, buffer, bytes);
  draft.buffer_bytes.push_back(std::max<int64_t>(bytes, 0));
}

void ValidateBuffers(Draft& draft) {
  const size_t before = draft.mistakes.size();
  draft.buffer_bytes.reserve(draft.model.buffers.size());
  draft.buffer_hash.reserve(draft.model.buffers.size());
  ForEachRecord(draft.model.buffers, [&](const BufferDecl& buffer, size_t b) {
    draft.Read(buffer);
    CheckBuffer(draft, buffer);
    if (draft.mistakes.empty()) draft.buffer_hash.push_back(HashOfBuffer(draft, b));
  });
  TellNamesFirst(draft, before, "buffer", draft.model.buffers, draft.buffer_names);
}

std::string Opening(const Draft& draft, const Subject& subject) {
  return Prefix(draft.model, subject.kind, subject.name) + ": ";
}

}  // namespace

std::string StrayParam(const Dim& dim) {
  return std::string(dim.param < 0 ? "no parameter; its handle was never set; "
                                   : "a parameter of another graph; a handle is good in the graph that made it; ") +
         "declare the parameter in this graph";
}

int64_t CheckDim(Draft& draft, const Subject& subject, const char* label, int index, const Dim& dim) {
  if (dim.is_constant() && dim.value >= 0) return dim.value;
  const ParamDecl* param = ParamOf(draft.model, dim);
  if (param != nullptr && param->is_integer && param->has_max) return param->max;  // a negative one has been reported

  std::string text = Opening(draft, subject) + label + (index >= 0 ? std::to_string(index) : "") + " is ";
  if (dim.is_constant()) {
    text += std::to_string(dim.value) + "; it counts something; give 0 or more";
  } else if (param == nullptr) {
    text += StrayParam(dim);
  } else {
    text += Quoted(param->name) + ", which ";
    text += param->is_integer ? "has no maximum; memory is planned before its value is known; declare it with AtMost"
                              : "is not an integer; it counts something; give it an integer type and AtMost";
  }
  draft.AddMistake(kInvalid, std::move(text));
  return -1;
}

int64_t CheckExtent(Draft& draft, const Subject& subject, const Extent& extent, int64_t element_bytes) {
  if (extent.rank < 1 || extent.rank > kMaxRank) {
    draft.AddMistake(kInvalid, Opening(draft, subject) + "has " + std::to_string(extent.rank) +
                                   " dimensions; an extent has 1 to 3; use one of these");
    return -1;
  }
  int64_t sizes[kMaxRank];
  bool sound = true, empty = false, fits = true;
  for (int i = 0; i < extent.rank; ++i) {
    sizes[i] = CheckDim(draft, subject, "dimension ", i, extent.dims[i]);
    sound = sound && sizes[i] >= 0;
    empty = empty || sizes[i] == 0;
  }
  if (!sound) return -1;
  // A dimension of 0 counts as 1, so that the product of any of them fits, whatever the others are.
  int64_t product = std::max<int64_t>(element_bytes, 1);
  for (int i = 0; i < extent.rank; ++i) {
    const int64_t size = std::max<int64_t>(sizes[i], 1);
    fits = fits && !__builtin_mul_overflow(product, size, &product) && product <= kMaxBytes;
  }
  if (fits) return empty ? 0 : product;
  std::string numbers;
  for (int i = 0; i < extent.rank; ++i) numbers += (i > 0 ? " x " : "") + std::to_string(sizes[i]);
  draft.AddMistake(kInvalid, Opening(draft, subject) + numbers + " elements of " + std::to_string(element_bytes) +
                                 " bytes are more than 2^62 bytes; no device holds that; make a dimension or its "
                                 "AtMost smaller");
  return -1;
}

void Validate(Draft& draft) {
  CheckOptions(draft);
  CheckGraphName(draft);
  CheckNames(draft, "param", draft.model.params, draft.param_names);
  for (const ParamDecl& param : draft.model.params) CheckParam(draft, param);
  ValidateBuffers(draft);
  const size_t before = draft.mistakes.size();
  ValidateNodes(draft);
  TellNamesFirst(draft, before, "node", draft.model.nodes, draft.node_names);
  const auto is_alias = [](const BufferFacts& buffer) { return buffer.is_alias; };
  if (draft.boxes.any_part() || std::any_of(draft.buffers.begin(), draft.buffers.end(), is_alias)) {
    draft.boxes.FindBoxes(draft.model);
  }
}

}  // namespace penstock::graph
