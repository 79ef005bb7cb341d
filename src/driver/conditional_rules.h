// What conditional nodes refuse, alike on every driver: see driver.h.
//
// Threads:   pure functions.
// Errors:    each says what was refused and what to do instead.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "src/driver/driver.h"

namespace penstock::driver {

// Checks that a node of this kind may have that number of bodies: InvalidArgument.
absl::Status CheckBodies(ConditionalKind kind, int32_t bodies);
// InvalidArgument: AddConditional with a handle of another graph, or for the second time.
absl::Status NoSuchHandle();
// InvalidArgument: SetNode and EnableNode of such a node.
absl::Status NodeIsConditional(int32_t node);
// InvalidArgument: BodyOf with a graph that was no body of the exec's graph when that was instantiated.
absl::Status NoSuchBody();
// InvalidArgument: a launch or upload of what BodyOf has returned, and Instantiate of a body.
absl::Status BodyIsNoExec();
absl::Status BodyIsNoGraph();

// FailedPrecondition: AddHost in a body.
absl::Status HostCallInABody();
// FailedPrecondition: a child of a body has a node of this kind ("a call of the host").
absl::Status ChildCannotBeInABody(const std::string& kind);
// FailedPrecondition: a graph with a conditional node, and one of its bodies, as a child.
absl::Status ConditionalInAChild();
absl::Status BodyIsNoChild();
// FailedPrecondition: AddSwitch for a node that is no kernel, and a graph with a switch as a child.
absl::Status NodeHasNoSwitch(int32_t node);
absl::Status SwitchInAChild();
// InvalidArgument: the second AddSwitch for a node.
absl::Status SwitchedBefore(int32_t node);
// FailedPrecondition: the second Instantiate of a graph with a conditional node or a switch.
absl::Status InstantiatedBefore();

}  // namespace penstock::driver
