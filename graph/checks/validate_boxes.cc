// The part of Validate about boxes: those of accesses and of aliases.
//
// Constants are checked here, against the declared maximum if the extent is a parameter; each launch checks what
// depends on parameters (src/runtime/slot/box_shapes.h).
#include <algorithm>
#include <string>

#include "graph/common/message.h"
#include "graph/passes/passes.h"

namespace penstock::graph {
namespace {

void Add(const Model& model, Findings& findings, const Subject& subject, const std::string& text) {
  findings.AddMistake(kInvalid, Prefix(model, subject.kind, subject.name) + ": " + text);
}

// An offset needs no maximum: if it comes from a parameter, the whole buffer counts.
bool IsOffset(const Model& model, const Dim& dim) {
  if (dim.is_constant()) return dim.value >= 0;
  const ParamDecl* param = ParamOf(model, dim);
  return param != nullptr && param->is_integer;
}

// Always returns false.
bool ReportOffset(const Model& model, Findings& findings, const Subject& subject, const std::string& label,
                  const Dim& dim) {
  if (dim.is_constant()) {
    Add(model, findings, subject, label + " is " + std::to_string(dim.value) + "; buffers begin at 0; give 0 or more");
    return false;
  }
  const ParamDecl* param = ParamOf(model, dim);
  Add(model, findings, subject,
      label + " is " +
          (param == nullptr
               ? StrayParam(dim)
               : Quoted(param->name) + ", which is not an integer; it counts elements; give it an integer type"));
  return false;
}

// The largest value of a dimension of a declared buffer; mistakes in it have been reported.
int64_t MostOf(const Model& model, const Dim& dim) {
  if (dim.is_constant()) return dim.value;
  const ParamDecl* param = ParamOf(model, dim);
  return param != nullptr ? param->max : 0;
}

void CheckRange(const Model& model, Findings& findings, const Subject& subject, const std::string& who,
                const BufferDecl& buffer, const Box& box, int i) {
  const Dim& extent = buffer.extent.dims[i];
  const Dim &offset = box.offset.dims[i], &size = box.size.dims[i];
  const int64_t most = MostOf(model, extent);
  const int64_t from = offset.is_constant() ? offset.value : 0, count = size.is_constant() ? size.value : 0;
  if (most < 0 || (from <= most && count <= most - from)) return;  // a negative one has been reported
  Add(model, findings, subject,
      who + OutsideText(buffer.name, i, offset.is_constant() ? std::to_string(from) : "", count,
                        (extent.is_constant() ? "" : "at most ") + std::to_string(most)));
}

// The bytes from row to row of the buffer that has the memory; 0 if its rows are dense, or too far apart, which has
// been reported.
int64_t PitchBytes(const Model& model, BufferId buffer) {
  const BufferId base = BaseOf(model, buffer);
  if (base < 0) return 0;
  const BufferDecl& decl = model.buffers[base];
  int64_t bytes = 0;
  return __builtin_mul_overflow(decl.pitch, int64_t{decl.type.size}, &bytes) ? 0 : bytes;
}

}  // namespace

void CheckBox(const Model& model, Findings& findings, const Subject& subject, const std::string& who,
              const BufferDecl& buffer, const Box& box) {
  const int rank = buffer.extent.rank;
  if (rank < 1 || rank > kMaxRank) return;  // reported with the buffer
  if (box.offset.rank != rank || box.size.rank != rank) {
    return Add(model, findings, subject,
               who + "takes a slice of " + Quoted(buffer.name) + " with " + std::to_string(box.offset.rank) +
                   " offsets and " + std::to_string(box.size.rank) + " sizes; the buffer has " + std::to_string(rank) +
                   (rank == 1 ? " dimension" : " dimensions") + "; give one of each for each dimension");
  }
  for (int i = 0; i < rank; ++i) {
    const auto label = [&](const char* part) {  // made only for a mistake: most graphs of boxes have none
      return std::string(who).append(part).append(std::to_string(i)) + " of its slice of " + Quoted(buffer.name);
    };
    const Dim &offset = box.offset.dims[i], &size = box.size.dims[i];
    const bool offset_ok = IsOffset(model, offset) || ReportOffset(model, findings, subject, label("offset "), offset);
    const bool size_ok =
        LargestOf(model, size) >= 0 || CheckDim(model, findings, subject, label("size ").c_str(), -1, size) >= 0;
    if (offset_ok && size_ok) CheckRange(model, findings, subject, who, buffer, box, i);
  }
}

void CheckAlias(const Model& model, Findings& findings, BufferId index) {
  const BufferDecl& alias = model.buffers[index];
  const Subject subject{"buffer", alias.name};
  if (alias.alias_graph != model.serial || alias.alias_of < 0 || alias.alias_of >= index) {
    return Add(
        model, findings, subject,
        std::string(alias.alias_of < 0
                        ? "an alias of no buffer; its handle was never set; "
                        : "an alias of a buffer of another graph; a handle is good in the graph that made it; ") +
            "declare the buffer in this graph first");
  }
  const BufferDecl& of = model.buffers[alias.alias_of];
  if (!alias.box.whole()) {
    if (!(alias.type == of.type)) {
      Add(model, findings, subject,
          "a part of " + Quoted(of.name) + " with another element type; a part keeps the type; " +
              "read all of the buffer as the other type, then take a part of that");
    }
    return CheckBox(model, findings, subject, "", of, alias.box);
  }
  if (alias.type.size == of.type.size) return;
  const std::string what = "reads " + Quoted(of.name) + ", whose elements have " + std::to_string(of.type.size) +
                           " bytes, as elements of " + std::to_string(alias.type.size) + "; ";
  bool part = false;
  for (BufferId b = alias.alias_of; b >= 0 && model.buffers[b].is_alias;) {
    const BufferDecl& decl = model.buffers[b];
    part = part || !decl.box.whole();
    b = decl.alias_graph == model.serial && decl.alias_of < b ? decl.alias_of : BufferId();
  }
  if (part) {
    return Add(model, findings, subject,
               what +
                   "it is a part of another buffer, whose rows need not be so long; read all of that as the other "
                   "type, then take a part");
  }
  if (of.extent.rank < 1 || of.extent.rank > kMaxRank) return;
  const Dim& row = of.extent.dims[static_cast<size_t>(of.extent.rank) - 1];
  int64_t bytes = 0;
  if (!row.is_constant()) {
    Add(model, findings, subject,
        what +
            "a parameter sets the length of its rows, which need not be a whole number of them; use a type of the "
            "same " +
            "size, or a constant");
  } else if (row.value < 0 || alias.type.size == 0 ||
             __builtin_mul_overflow(row.value, int64_t{of.type.size}, &bytes)) {
    return;  // reported with the buffer
  } else if (bytes % int64_t{alias.type.size} != 0) {
    Add(model, findings, subject,
        what + "a row has " + std::to_string(bytes) +
            " bytes, no whole number of them; use another type or another row length");
  } else if (const int64_t pitch = PitchBytes(model, alias.alias_of); pitch % int64_t{alias.type.size} != 0) {
    Add(model, findings, subject,
        what + "its rows lie " + std::to_string(pitch) +
            " bytes apart, no whole number of them; use another type or another pitch");
  }
}

}  // namespace penstock::graph
