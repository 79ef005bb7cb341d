#include "src/cli/command_line.h"

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <string>

#include "graph/common/message.h"

namespace penstock::cli {
namespace {

ExitCode RunAction(const Action& action, Console& console) {
  if (console.program.empty()) {  // set for another program, whose files this one's would replace
    for (const char* name : {"PENSTOCK_PROFILE", "PENSTOCK_MEASURE", "PENSTOCK_SETTINGS"}) unsetenv(name);
  }
  try {
    const ExitCode code = action(console);
    if (console.out.flush()) return code;
    console.err << "penstock: what it shows cannot be written\n";
  } catch (const std::exception& e) {
    console.err << "penstock: " << e.what() << '\n';
  }
  return kFailed;
}

// What stands where the command is to stand, if it is none of them.
std::string UnknownCommand(const CLI::App& app, const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (argument.starts_with("-")) continue;
    const auto commands = app.get_subcommands([&](const CLI::App* command) { return command->get_name() == argument; });
    return commands.empty() ? argument : "";
  }
  return "";
}

}  // namespace

ExitCode RunCommandLine(const std::vector<std::string>& arguments, std::ostream& out, std::ostream& err) {
  CLI::App app("Shows what programs that use Penstock do, and why they take as long as they take.", "penstock");
  app.require_subcommand(1);
  app.fallthrough();
  app.footer("Exit codes: 0 done; 1 done, and a limit that was asked for is missed; 2 it could not be done.");
  Console console{.out = out, .err = err};
  app.add_flag("--json", console.json, "Write one JSON value in place of text");
  Action action;
  AddBench(app, action);
  AddCalibrate(app, action);
  AddDoctor(app, action);
  AddInfo(app, action);
  AddJit(app, action);
  AddPlan(app, action);
  AddReport(app, action);
  AddSimulate(app, action);
  AddTrace(app, action);
  AddTune(app, action);
  AddVersion(app, action);

  if (!arguments.empty() && (arguments[0] == "help" || arguments[0] == "--version")) {
    std::vector<std::string> meant(arguments.begin() + 1, arguments.end());
    if (arguments[0] == "help") meant.emplace_back("--help");
    else meant.insert(meant.begin(), "version");
    return RunCommandLine(meant, out, err);
  }
  if (const std::string unknown = UnknownCommand(app, arguments); !unknown.empty()) {
    err << "penstock: there is no command '" << graph::OneLine(unknown) << "'; penstock --help lists them\n";
    return kFailed;
  }
  auto end = std::find(arguments.begin(), arguments.end(), "--exec");
  if (end != arguments.end()) console.program.assign(++end, arguments.end());
  std::vector<std::string> reversed(std::make_reverse_iterator(end), arguments.rend());  // as CLI11 takes them
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& e) {
    return app.exit(e, out, err) == 0 ? kDone : kFailed;
  }
  return RunAction(action, console);
}

}  // namespace penstock::cli
