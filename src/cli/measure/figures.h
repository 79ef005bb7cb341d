// Figures: what was measured, and how it is shown: tables, JSON, CSV.
//
// Threads: plain values and free functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "penstock/device.h"

namespace penstock::cli::measure {

// The parts that --only chooses from.
enum class Part { kCopies, kPeers, kLaunches, kMemory };
inline constexpr const char* kPartNames[] = {"copies", "peers", "launches", "memory"};

// The first line of a result without any CUDA device.
inline constexpr const char* kHostDevicesOnly =
    "There is no CUDA device among these: the figures are of host devices, which are CPU threads.";

struct Figure {
  Part part;
  std::string device;  // "cuda:0"
  std::string to{};  // of a copy to another device
  std::string what;  // "H2D pinned"
  int64_t bytes = 0;  // of each copy; 0: not one of size
  std::string unit;  // "GB/s" or "us"
  double value = 0;
};

// A column under its heading of up to two lines, the first of which several columns may share.
struct Column {
  std::string group, name;
};
struct Row {
  std::string name;
  std::vector<double> values;  // 0: "-"
};
// Aligned, the rows' names under `corner`, after a line with the title.
std::string TableText(const std::string& title, const std::string& corner, const std::vector<Column>& columns,
                      const std::vector<Row>& rows);

// "64 KiB", "4097 B"
std::string BytesText(int64_t bytes);

// The tables of one part, of all devices.
std::string PartText(Part part, const std::vector<Device>& devices, const std::vector<Figure>& figures);
nlohmann::json FiguresJson(const std::vector<Figure>& figures);
// A line for each, behind a line of names. No member has a comma in it.
std::string FiguresCsv(const std::vector<Figure>& figures);

}  // namespace penstock::cli::measure
