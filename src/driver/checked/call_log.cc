#include "src/driver/checked/call_log.h"

#include "absl/strings/str_cat.h"

namespace penstock::driver::checked {

const char* NameOf(CallKind kind) {
  static constexpr const char* kNames[kCallKinds] = {"CreateStream",   "DestroyStream",
                                                     "CreateEvent",    "DestroyEvent",
                                                     "Record",         "Wait",
                                                     "Query",          "Elapsed",
                                                     "AllocateDevice", "FreeDevice",
                                                     "AllocatePinned", "FreePinned",
                                                     "Inspect",        "Copy",
                                                     "CopyBatch",      "Fill",
                                                     "LoadKernel",     "Launch",
                                                     "LaunchContext",  "CreateGraph",
                                                     "DestroyGraph",   "AddNode",
                                                     "Instantiate",    "DestroyExec",
                                                     "Upload",         "LaunchGraph",
                                                     "SetNode",        "EnableNode",
                                                     "BeginCapture",   "EndCapture",
                                                     "CountNodes",     "AddChild",
                                                     "SetChild",       "CreateConditional",
                                                     "AddConditional", "BodyOf",
                                                     "AddSwitch",      "FindBlockSize"};
  return kNames[static_cast<size_t>(kind)];
}

void CallLog::Add(const Call& call) {
  ++counts_[static_cast<size_t>(call.kind)];
  ++total_;
  if (keep_) calls_.push_back(call);
}

std::string TextOf(const Call& call) {
  std::string text = NameOf(call.kind);
  if (call.stream != 0) absl::StrAppend(&text, " stream ", call.stream);
  if (call.event != 0) absl::StrAppend(&text, " event ", call.event);
  if (call.graph != 0) absl::StrAppend(&text, " graph ", call.graph);
  if (call.exec != 0) absl::StrAppend(&text, " exec ", call.exec);
  if (call.graph_node >= 0) absl::StrAppend(&text, " graph node ", call.graph_node);
  if (call.child != 0) absl::StrAppend(&text, " child graph ", call.child);
  if (call.device >= 0) absl::StrAppend(&text, " device ", call.device);
  if (call.node >= 0) absl::StrAppend(&text, " node ", call.node);
  if (call.bytes != 0) absl::StrAppend(&text, " ", call.bytes, " bytes");
  return text;
}

}  // namespace penstock::driver::checked
