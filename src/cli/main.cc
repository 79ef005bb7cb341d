// penstock: the command.
#include <iostream>
#include <string>
#include <vector>

#include "src/cli/command_line.h"

int main(int argc, char** argv) {
  return penstock::cli::RunCommandLine(std::vector<std::string>(argv + 1, argv + argc), std::cout, std::cerr);
}
