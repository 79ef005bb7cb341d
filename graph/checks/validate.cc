// Validate: checks each record by itself. Names, parameters, buffers and options are here, nodes in validate_nodes.cc.
//
// All mistakes are reported, in this order: options, parameters, constructs, buffers, nodes. Arithmetic on sizes is
// checked: any declared value may be refused with its numbers, but never overflows.
#include <algorithm>
#include <bit>
#include <map>
#include <span>
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
bool IsNamedByParam(const ControlDecl&) { return false; }
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

// Whether a construct whose name is not its own is around what has this name.
bool IsIn(std::span<const std::string_view> repeated, std::string_view name) {
  return std::any_of(repeated.begin(), repeated.end(), [&](std::string_view construct) {
    return name.size() > construct.size() && name.starts_with(construct) && name[construct.size()] == '/';
  });
}

// Checks the names of one kind of record: none empty, no two the same. What constructs with `repeated` names hold is
// not told of. Returns the names that two have.
template <class Record>
std::vector<std::string_view> CheckNames(const Model& model, Findings& findings, const char* kind,
                                         const std::vector<Record>& records, const Names& names,
                                         std::span<const std::string_view> repeated = {}) {
  for (size_t i = 0; i < records.size(); ++i) {
    if (!names[i].empty()) continue;
    findings.AddMistake(kInvalid, Prefix(model, kind, records[i].name) +
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
  std::vector<std::string_view> names_of_several;
  for (const auto& [other, of_name] : repeats) {
    const Name& name = records[other].name;
    if (IsIn(repeated, name.view()) || IsIn(names_of_several, name.view())) continue;
    names_of_several.push_back(name.view());
    std::vector<std::string> places{Where(name.source())};
    for (const size_t i : of_name) places.push_back(Where(records[i].name.source()));
    findings.AddMistake(kInvalid, Prefix(model, kind, name) + ": declared " + std::to_string(places.size()) +
                                      " times: " + ListOf(places) + "; names are unique among the " + kind +
                                      "s of a graph; rename all but one");
  }
  return names_of_several;
}

// What two constructs with one name hold has the same names too.
std::vector<std::string_view> CheckConstructs(const Model& model, Findings& findings) {
  Names names;
  names.Reserve(model.controls.size());
  for (const ControlDecl& control : model.controls) names.Add(control.name.view());
  return CheckNames<ControlDecl>(model, findings, "construct", model.controls, names);
}

// Names are known once the records have been read. Mistakes in names are inserted before the other mistakes of these
// records, which begin at `before`.
template <class Record>
void ReportNamesFirst(const Model& model, Findings& findings, size_t before, const char* kind,
                      const std::vector<Record>& records, const Names& names,
                      std::span<const std::string_view> repeated) {
  const size_t end = findings.mistakes.size();
  CheckNames(model, findings, kind, records, names, repeated);
  const auto at = [&](size_t i) { return findings.mistakes.begin() + static_cast<std::ptrdiff_t>(i); };
  std::rotate(at(before), at(end), findings.mistakes.end());
}

void CheckOptions(const Records& records, Findings& findings) {
  const PlanOptions& options = records.options;
  if (options.devices.empty()) {
    findings.AddMistake(kInvalid, Prefix(records.model) + ": there is no device to plan for; give the runtime one");
  } else if (options.default_device < 0 || options.default_device >= options.devices.count()) {
    findings.AddMistake(kInvalid, Prefix(records.model) + ": the default device is " +
                                      std::to_string(options.default_device) + "; the runtime has " +
                                      std::to_string(options.devices.size()) + " devices; name one of them");
  }
  if (options.max_lanes < 1) {
    findings.AddMistake(kInvalid, Prefix(records.model) + ": max_lanes is " + std::to_string(options.max_lanes) +
                                      "; kernels need a lane on each device; give 1 or more");
  }
}

void CheckGraphName(const Model& model, Findings& findings) {
  const Name& name = model.name;
  if (!name.view().empty()) return;
  findings.AddMistake(kInvalid, Prefix(model) + ": the graph declared at " + Where(name.source()) +
                                    " has no name; messages and traces call everything by its name; give it one");
}

void CheckParam(const Model& model, Findings& findings, const ParamDecl& param) {
  if (param.type.align > kMostAlign) {
    findings.AddMistake(kInvalid,
                        Prefix(model, "param", param.name) + ": " + TooAligned("has a type", param.type.align));
  }
  if (!param.has_max) return;
  const std::string subject = Prefix(model, "param", param.name);
  if (!param.is_integer) {
    findings.AddMistake(kInvalid, subject +
                                      ": has AtMost, but is not an integer; only integers have a maximum; remove "
                                      "AtMost or use an integer type");
  } else if (param.max < 0) {
    findings.AddMistake(kInvalid, subject + ": AtMost(" + std::to_string(param.max) +
                                      ") is negative; such a parameter counts elements; give 0 or more");
  }
}

constexpr int32_t kMostKeys = 65536;

void CheckKeyedState(const Model& model, Findings& findings, const BufferDecl& buffer) {
  const auto refuse = [&](const std::string& why) {
    findings.AddMistake(kInvalid, Prefix(model, "state", buffer.name) + ": " + why);
  };
  if (buffer.keys < 1 || buffer.keys > kMostKeys) {
    refuse("KeyedStateOptions::max_keys is not 1 to " + std::to_string(kMostKeys) +
           "; it limits how many keys can have a State");
  }
  for (int i = 0; i < std::min(buffer.extent.rank, kMaxRank); ++i) {
    if (buffer.extent.dims[i].is_constant()) continue;
    refuse("dimension " + std::to_string(i) + " is a parameter; a State keeps its size across runs; give a constant");
  }
}

void CheckState(const Records& records, Findings& findings, const BufferDecl& buffer) {
  if (buffer.keys != 0) return CheckKeyedState(records.model, findings, buffer);
  if (buffer.state != nullptr && buffer.state->runtime == records.options.runtime) return;
  findings.AddMistake(kInvalid,
                      Prefix(records.model, "state", buffer.name) +
                          ": belongs to another runtime; its memory is not known to this one; make it with MakeState "
                          "of the runtime that compiles the graph");
}

// Checks the declared device of bound memory.
void CheckDevice(const Records& records, Findings& findings, const BufferDecl& buffer) {
  if (buffer.device == -1) return;
  const int32_t devices = records.options.devices.count();
  const std::string subject =
      Prefix(records.model, "buffer", buffer.name) + ": is declared on device " + std::to_string(buffer.device);
  if (buffer.where != Where::kDevice) {
    findings.AddMistake(kInvalid, subject + ", and is not kDevice; host memory has no device; leave the device out");
  } else if (buffer.device < 0 || buffer.device >= devices) {
    findings.AddMistake(
        kInvalid, subject + "; the runtime has devices 0 to " + std::to_string(devices - 1) + "; name one of them");
  }
}

// Checks where a buffer may live.
void CheckWhere(const Records& records, Findings& findings, const BufferDecl& buffer) {
  CheckDevice(records, findings, buffer);
  if (buffer.role == BufferRole::kState) return CheckState(records, findings, buffer);
  const bool anywhere = IsBound(buffer.role) || IsInSlot(buffer.role);
  if (anywhere || buffer.where == Where::kDevice || buffer.where == Where::kPinned) return;
  findings.AddMistake(kInvalid, Prefix(records.model, "buffer", buffer.name) +
                                    ": a Buffer lives on a device or in pinned memory; declare it kDevice or kPinned");
}

// The bytes from the first to the last of a buffer with a pitch, whose elements take `dense` bytes; -1 after a mistake.
int64_t PitchedBytes(Records& records, Findings& findings, const BufferDecl& buffer, int64_t dense) {
  const auto refuse = [&](const std::string& why) {
    findings.AddMistake(kInvalid, Prefix(records.model, "buffer", buffer.name) + ": has a pitch of " +
                                      std::to_string(buffer.pitch) + " elements" + why);
    return int64_t{-1};
  };
  if (buffer.is_alias || buffer.role == BufferRole::kState) {
    return refuse(", but its memory is another's; declare it through Graph");
  }
  records.any_pitch = true;
  const Extent& extent = buffer.extent;
  if (extent.rank < 2) return refuse(" and no rows; a pitch is from row to row; give it two or three dimensions");
  const auto most = [&](int i) {
    const Dim& dim = extent.dims[i];
    return dim.is_constant() ? dim.value : ParamOf(records.model, dim)->max;
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

void CheckBuffer(Records& records, Findings& findings, const BufferDecl& buffer) {
  if (buffer.type.align > kMostAlign && buffer.role != BufferRole::kParam) {  // the parameter has been reported
    findings.AddMistake(
        kInvalid, Prefix(records.model, "buffer", buffer.name) + ": " + TooAligned("has elements", buffer.type.align));
  }
  if (buffer.is_alias) {
    CheckAlias(records.model, findings, records.buffer_bytes.next());
  } else {
    CheckWhere(records, findings, buffer);
  }
  if (buffer.is_alias && !buffer.box.whole()) {  // its extent is the box's size
    records.buffer_bytes.push_back(0);
    return;
  }
  int64_t bytes = CheckExtent(records.model, findings, {"buffer", buffer.name}, buffer.extent, buffer.type.size);
  if (buffer.pitch != 0 && bytes >= 0) bytes = PitchedBytes(records, findings, buffer, bytes);
  records.buffer_bytes.push_back(std::max<int64_t>(bytes, 0));
}

void ValidateBuffers(Records& records, Findings& findings, std::span<const std::string_view> repeated) {
  const size_t before = findings.mistakes.size();
  records.buffer_bytes.reserve(records.model.buffers.size());
  records.buffer_hash.reserve(records.model.buffers.size());
  ForEachRecord(records.model.buffers, [&](const BufferDecl& buffer, BufferId b) {
    records.Read(buffer);
    CheckBuffer(records, findings, buffer);
    if (findings.mistakes.empty()) records.buffer_hash.push_back(HashOfBuffer(records, b));
  });
  ReportNamesFirst(records.model, findings, before, "buffer", records.model.buffers, records.buffer_names, repeated);
}

std::string Opening(const Model& model, const Subject& subject) {
  return Prefix(model, subject.kind, subject.name) + ": ";
}

}  // namespace

std::string StrayParam(const Dim& dim) {
  return std::string(dim.param < 0 ? "no parameter; its handle was never set; "
                                   : "a parameter of another graph; a handle is good in the graph that made it; ") +
         "declare the parameter in this graph";
}

int64_t LargestOf(const Model& model, const Dim& dim) {
  if (dim.is_constant()) return dim.value;
  const ParamDecl* const param = ParamOf(model, dim);
  return param != nullptr && param->is_integer && param->has_max ? param->max : -1;
}

int64_t CheckDim(const Model& model, Findings& findings, const Subject& subject, const char* label, int index,
                 const Dim& dim) {
  const ParamDecl* const param = ParamOf(model, dim);
  const bool has_max = param != nullptr && param->is_integer && param->has_max;  // a negative one has been reported
  if (const int64_t largest = LargestOf(model, dim); largest >= 0 || has_max) return largest;

  std::string text = Opening(model, subject) + label + (index >= 0 ? std::to_string(index) : "") + " is ";
  if (dim.is_constant()) {
    text += std::to_string(dim.value) + "; it is a count; give 0 or more";
  } else if (param == nullptr) {
    text += StrayParam(dim);
  } else {
    text += Quoted(param->name) + ", which ";
    text += param->is_integer ? "has no maximum; memory is planned before its value is known; declare it with AtMost"
                              : "is not an integer; it is a count; give it an integer type and AtMost";
  }
  findings.AddMistake(kInvalid, std::move(text));
  return -1;
}

int64_t CheckExtent(const Model& model, Findings& findings, const Subject& subject, const Extent& extent,
                    int64_t element_bytes) {
  if (extent.rank < 1 || extent.rank > kMaxRank) {
    findings.AddMistake(kInvalid, Opening(model, subject) + "has " + std::to_string(extent.rank) +
                                      " dimensions; an extent has 1 to 3; use one of these");
    return -1;
  }
  int64_t sizes[kMaxRank];
  bool sound = true, empty = false, fits = true;
  for (int i = 0; i < extent.rank; ++i) {
    sizes[i] = CheckDim(model, findings, subject, "dimension ", i, extent.dims[i]);
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
  findings.AddMistake(kInvalid, Opening(model, subject) + numbers + " elements of " + std::to_string(element_bytes) +
                                    " bytes are more than 2^62 bytes; no device holds that; make a dimension or its "
                                    "AtMost smaller");
  return -1;
}

void Validate(Records& records, Findings& findings) {
  CheckOptions(records, findings);
  CheckGraphName(records.model, findings);
  CheckNames(records.model, findings, "param", records.model.params, records.param_names);
  for (const ParamDecl& param : records.model.params) CheckParam(records.model, findings, param);
  const std::vector<std::string_view> repeated = CheckConstructs(records.model, findings);
  ValidateBuffers(records, findings, repeated);
  const size_t before = findings.mistakes.size();
  ValidateNodes(records, findings);
  ReportNamesFirst(records.model, findings, before, "node", records.model.nodes, records.node_names, repeated);
  const auto is_alias = [](const BufferFacts& buffer) { return buffer.is_alias; };
  if (records.boxes.any_part() || std::any_of(records.buffers.begin(), records.buffers.end(), is_alias)) {
    records.boxes.FindBoxes(records.model);
  }
}

}  // namespace penstock::graph
