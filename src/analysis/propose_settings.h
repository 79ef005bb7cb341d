// ProposeSettings: which slots and mode the simulator expects to be fastest for the graphs of a profile.
//
// Threads: a pure function.
#pragma once

#include <string>
#include <vector>

#include "penstock/profile.h"
#include "penstock/settings.h"

namespace penstock::analysis {

struct Proposal {
  // A way to run a graph, and what the simulator expects of it.
  struct Way {
    std::string graph;
    int slots = 0;
    Mode mode = Mode::kStream;
    double run_us = 0;
    bool as_measured = false;  // it is how the profile's runs were
    bool proposed = false;  // at most one of a graph
  };
  Settings settings;
  std::vector<Way> ways;  // graph by graph
  std::vector<std::string> notes;  // why graphs, or ways to run one, are left out, a sentence each
};

// Of graphs with one name, the one that was launched most often counts. What is proposed should take at least 2 % less
// time than the runs as they were; of ways that are within 1 % of the best, it is the one with fewest slots.
// What the program states is left alone (Profile::open), and so is what the simulator knows too little of: the slots of
// graphs whose runs wait for States, and the mode on host devices, or where the submission report says why there are no
// graphs.
Proposal ProposeSettings(const Profile& profile);

}  // namespace penstock::analysis
