// ProfileDocument: the JSON of a profile, before anything is known about what it means.
//
// The spans are most of a profile, a hundred thousand rows and more. They are taken from the text row by row and never
// stand in memory as JSON. Members of the document that this version does not know are passed over.
//
// Threads: plain values, and a pure function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"
#include "penstock/trace.h"

namespace penstock::cli {

struct ProfileDocument {
  struct Row {
    Span span;  // without its texts
    int64_t name = 0, track = 0;  // places in the document's "texts"
  };

  nlohmann::json members;  // an object; "spans" is empty there
  std::vector<Row> rows;
  int64_t unknown_rows = 0;  // left out: of kinds that this version does not know
};

// InvalidArgument: it is no profile. DataLoss, with the place: it is not JSON, nested too deep, or a row is not as
// "columns" has it, which must come before "spans". Unimplemented: a newer version. A name stands once in an object.
absl::StatusOr<ProfileDocument> ParseProfileDocument(std::string_view json);

}  // namespace penstock::cli
