// The doctor's rules: each looks for one fault in the facts, and adds what it finds.
//
// A rule says nothing where it is not sure: advice that is wrong is worse than none. All of them ignore what takes less
// than 5 % of the wall time (kNoticeable). A rule fills Finding::rule, share, evidence, fix, and gain or why there is
// none; graph, node and span if it knows them. Diagnose does the rest: names, times, order, caps.
// docs/howto/why-is-it-slow.md explains each rule to users.
//
// Threads: pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/analysis/doctor.h"
#include "src/analysis/facts.h"

namespace penstock::analysis {

inline constexpr double kNoticeable = 0.05;

void FindMemoryNotPinned(const Facts& facts, std::vector<Finding>& findings);
void FindOneSlot(const Facts& facts, std::vector<Finding>& findings);
void FindWaitsForEachRun(const Facts& facts, std::vector<Finding>& findings);
void FindRunsInOrder(const Facts& facts, std::vector<Finding>& findings);
void FindLaunchBound(const Facts& facts, std::vector<Finding>& findings);
void FindMadeAgain(const Facts& facts, std::vector<Finding>& findings);
void FindStarvedSource(const Facts& facts, std::vector<Finding>& findings);
void FindSlowSink(const Facts& facts, std::vector<Finding>& findings);
void FindSynchronizingHostNodes(const Facts& facts, std::vector<Finding>& findings);
void FindHostBound(const Facts& facts, std::vector<Finding>& findings);
void FindIdleGaps(const Facts& facts, std::vector<Finding>& findings);
void FindManyTinyNodes(const Facts& facts, std::vector<Finding>& findings);
void FindManySmallCopies(const Facts& facts, std::vector<Finding>& findings);
void FindCopiesBound(const Facts& facts, std::vector<Finding>& findings);
void FindComputeBound(const Facts& facts, std::vector<Finding>& findings);
void FindFarBelowRoofline(const Facts& facts, std::vector<Finding>& findings);
void FindJobTooSmall(const Facts& facts, std::vector<Finding>& findings);

// How much of what devices can compute was used, where nodes say what they do: sentences for Diagnosis::notes.
void NoteFlops(const Facts& facts, std::vector<std::string>& notes);

struct Rule {
  std::string_view name;
  void (*find)(const Facts&, std::vector<Finding>&);
};
// In the order in which equal gains are listed.
std::span<const Rule> AllRules();

}  // namespace penstock::analysis
