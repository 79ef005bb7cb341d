// What an exec does in the bodies of its conditional nodes: the operations of all of them, as if each ran once.
//
// That judges every body, since any may run, and every iteration of a loop: one comes after all of the iteration before
// it, so what is right once stays right. Two bodies of one node never run both, so they count as ordered.
//
// Threads: free functions without state; CheckedDriver locks the book.
#pragma once

#include <string>
#include <vector>

#include "src/driver/checked/graph_book.h"

namespace penstock::driver::checked {

// Gives the conditional nodes of the graph, which is a copy, the operations of their bodies, and returns where they
// are. If two loops may run at the same time, `at_once` tells which.
std::vector<BodyPlace> ResolveBodies(GraphState& graph, GraphBook& book, std::string& at_once);

// `body`, from BodyOf, has been given an operation or child, or had a node switched: enters that in its exec.
void SetInBody(ExecState& whole, const ExecState& body, int32_t node);
void EnableInBody(ExecState& whole, const ExecState& body, int32_t node, bool enabled);

}  // namespace penstock::driver::checked
