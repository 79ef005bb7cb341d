// A profile in a file, for tests of commands that read one. The file goes with the object.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "penstock/profile.h"
#include "tests/support/status.h"

namespace penstock::cli {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    static int folders = 0;
    path_ = testing::TempDir() + "penstock_command." + std::to_string(getpid()) + "." + std::to_string(++folders);
    std::filesystem::create_directory(path_);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string Path(const std::string& name) const { return path_ + "/" + name; }
  std::string Write(const std::string& name, const Profile& profile) const {
    EXPECT_OK(profile.Write(Path(name)));
    return Path(name);
  }
  std::string Read(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(Path(name)).rdbuf();
    return text.str();
  }

 private:
  std::string path_;
};

// Two graphs on a CUDA device and the host. The names are hostile.
inline Profile HostileProfile() {
  Profile profile;
  profile.length_us = 1e6;
  profile.devices = {{.name = "cuda:0", .description = "<made>", .is_cuda = true, .memory_bytes = 1 << 20}};
  for (int64_t executable : {4, 5}) {
    Profile::Graph& graph = profile.graphs.emplace_back();
    graph.executable = executable;
    graph.name = executable == 4 ? "first </title><script>\x1B[2J" : "second";
    graph.slots = 2;
    graph.lanes = {{0, "upload"}, {0, "compute"}};
    graph.nodes = {{"upload x", "upload", "", 0, 0, {}, 4096, 4096},
                   {"axpy & \"co\" <b>\x1B[2J", "parallel for", "made.cu:30", 0, 1, {0}, 8192, 4096},
                   {"look", "host", "made.cu:31", -1, -1, {1, 0}, 4096, 0}};
    graph.launches = 2;
    graph.report.mode = Mode::kStream;
    graph.report.notes = {"a remark"};
    for (int64_t run = 0; run < 2; ++run) {
      const double begin = 1000.0 * static_cast<double>(2 * executable + run);
      const auto add = [&](SpanKind kind, int node, double from, double to) {
        profile.spans.push_back({.name = node < 0 ? graph.name : graph.nodes[static_cast<size_t>(node)].name,
                                 .track = "main",
                                 .kind = kind,
                                 .begin_us = begin + from,
                                 .end_us = begin + to,
                                 .run = run,
                                 .device = kind == SpanKind::kUpload || kind == SpanKind::kKernel ? 0 : -1,
                                 .executable = executable,
                                 .node = node,
                                 .slot = 0});
      };
      add(SpanKind::kWait, -1, -200, -10);
      add(SpanKind::kSubmit, -1, 0, 20);
      add(SpanKind::kUpload, 0, 30, 130);
      add(SpanKind::kKernel, 1, 140, 540);
      add(SpanKind::kHost, 2, 600, 700);
      add(SpanKind::kRun, -1, 0, 720);
    }
  }
  return profile;
}

// Whether text may go to a terminal: lines that fit, and no control characters.
inline void ExpectPlain(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(line.size(), 100u) << line;
    for (const char c : line) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << line;
  }
}

}  // namespace penstock::cli
