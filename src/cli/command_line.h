// The command line: which command is meant, and with which options.
//
// Threads: one thread.
#pragma once

#include <functional>
#include <ostream>
#include <vector>

#include "CLI/CLI.hpp"
#include "src/cli/console.h"

namespace penstock::cli {

// What the command line asks for, once it has been parsed.
using Action = std::function<ExitCode(Console&)>;

// Each of these adds one command to `app`; if the command is meant, it sets `action`.
void AddDoctor(CLI::App& app, Action& action);
void AddInfo(CLI::App& app, Action& action);
void AddJit(CLI::App& app, Action& action);
void AddPlan(CLI::App& app, Action& action);
void AddReport(CLI::App& app, Action& action);
void AddSimulate(CLI::App& app, Action& action);
void AddTrace(CLI::App& app, Action& action);
void AddTune(CLI::App& app, Action& action);
void AddBench(CLI::App& app, Action& action);
void AddCalibrate(CLI::App& app, Action& action);
void AddVersion(CLI::App& app, Action& action);

// Does what the arguments say, those behind the program's name. All behind --exec is for another program.
ExitCode RunCommandLine(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err);

}  // namespace penstock::cli
