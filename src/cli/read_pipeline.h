// What a profile's JSON says of a pipeline.
//
// Threads: pure function.
#pragma once

#include "penstock/profile.h"
#include "src/cli/json_object.h"

namespace penstock::cli {

// What is wrong goes to the object's status.
Profile::Pipeline ReadPipeline(JsonObject& from);

}  // namespace penstock::cli
