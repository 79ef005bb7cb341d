#include "src/cli/measure/figures.h"

#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "src/analysis/text.h"

namespace penstock::cli::measure {
namespace {

constexpr int kNameWidth = 9;
constexpr size_t kColumnWidth = 9;

std::string FigureText(double value) { return value == 0 ? "-" : analysis::NumberText(value); }

// 0: not measured.
template <class F>
double ValueOf(const std::vector<Figure>& figures, F is) {
  const auto found = std::find_if(figures.begin(), figures.end(), is);
  return found == figures.end() ? 0 : found->value;
}

std::string CopiesText(const Device& device, const std::vector<Figure>& figures) {
  struct Shown {
    Column column;
    const char* what;
  };
  static const Shown kShown[] = {
      {{"pinned", "H2D"}, "H2D pinned"},
      {{"pinned", "D2H"}, "D2H pinned"},
      {{"both ways", "H2D"}, "H2D both ways"},
      {{"both ways", "D2H"}, "D2H both ways"},
      {{"not pinned", "H2D"}, "H2D not pinned"},
      {{"not pinned", "D2H"}, "D2H not pinned"},
      {{"", "D2D"}, "D2D"},
  };
  std::set<int64_t> sizes;
  for (const Figure& figure : figures) {
    if (figure.part == Part::kCopies && figure.device == device.name) sizes.insert(figure.bytes);
  }
  if (sizes.empty()) return "";
  std::vector<Column> columns;
  for (const Shown& shown : kShown) columns.push_back(shown.column);
  std::vector<Row> rows;
  for (const int64_t bytes : sizes) {
    Row row{BytesText(bytes), {}};
    for (const Shown& shown : kShown) {
      row.values.push_back(ValueOf(figures, [&](const Figure& figure) {
        return figure.part == Part::kCopies && figure.device == device.name && figure.bytes == bytes &&
               figure.what == shown.what;
      }));
    }
    rows.push_back(std::move(row));
  }
  return TableText(absl::StrCat("Copies on ", device.name, ", ", device.description, ", in GB/s"), "size", columns,
                   rows);
}

std::string PeersText(const std::vector<Device>& devices, const std::vector<Figure>& figures) {
  std::vector<Column> columns;
  std::vector<Row> rows;
  int64_t bytes = 0;
  for (const Device& from : devices) {
    columns.push_back({"", from.name});
    Row row{from.name, {}};
    for (const Device& to : devices) {
      row.values.push_back(ValueOf(figures, [&](const Figure& figure) {
        const bool is = figure.part == Part::kPeers && figure.device == from.name && figure.to == to.name;
        if (is) bytes = figure.bytes;
        return is;
      }));
    }
    rows.push_back(std::move(row));
  }
  if (bytes == 0) return "";
  return TableText(absl::StrCat("Copies of ", BytesText(bytes), " from a row's device to a column's, in GB/s"), "from",
                   columns, rows);
}

std::string DevicesText(Part part, const std::string& title, const std::vector<Column>& columns,
                        const std::vector<Device>& devices, const std::vector<Figure>& figures) {
  std::vector<Row> rows;
  for (const Device& device : devices) {
    Row row{device.name, {}};
    for (const Column& column : columns) {
      const std::string what = column.group.empty() ? column.name : absl::StrCat(column.group, " ", column.name);
      row.values.push_back(ValueOf(figures, [&](const Figure& figure) {
        return figure.part == part && figure.device == device.name && figure.what == what;
      }));
    }
    const bool measured = std::any_of(row.values.begin(), row.values.end(), [](double value) { return value != 0; });
    if (measured) rows.push_back(std::move(row));
  }
  return rows.empty() ? "" : TableText(title, "device", columns, rows);
}

size_t WidthOf(const Column& column) { return std::max({kColumnWidth, column.group.size(), column.name.size()}); }

// A name and cells, each as wide as its column.
void AppendLine(std::string& text, const std::string& name, const std::vector<Column>& columns,
                const std::vector<std::string>& cells) {
  std::string line = absl::StrFormat("%-*s", kNameWidth, name);
  for (size_t i = 0; i < cells.size(); ++i) {
    absl::StrAppendFormat(&line, " %*s", static_cast<int>(WidthOf(columns[i])), cells[i]);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  absl::StrAppend(&text, line, "\n");
}

}  // namespace

std::string TableText(const std::string& title, const std::string& corner, const std::vector<Column>& columns,
                      const std::vector<Row>& rows) {
  std::string text = absl::StrCat(title, "\n");
  std::vector<std::string> groups, names;
  for (const Column& column : columns) {
    groups.push_back(column.group);
    names.push_back(column.name);
  }
  const bool grouped =
      std::any_of(groups.begin(), groups.end(), [](const std::string& group) { return !group.empty(); });
  if (grouped) AppendLine(text, "", columns, groups);
  AppendLine(text, corner, columns, names);
  for (const Row& row : rows) {
    std::vector<std::string> cells;
    for (const double value : row.values) cells.push_back(FigureText(value));
    AppendLine(text, row.name, columns, cells);
  }
  return text;
}

std::string BytesText(int64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB"};
  size_t unit = 0;
  while (unit + 1 < std::size(kUnits) && bytes >= 1024 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++unit;
  }
  return absl::StrCat(bytes, " ", kUnits[unit]);
}

std::string PartText(Part part, const std::vector<Device>& devices, const std::vector<Figure>& figures) {
  switch (part) {
    case Part::kCopies: {
      std::string text;
      for (const Device& device : devices) {
        const std::string table = CopiesText(device, figures);
        absl::StrAppend(&text, text.empty() || table.empty() ? "" : "\n", table);
      }
      return text;
    }
    case Part::kPeers: return PeersText(devices, figures);
    case Part::kLaunches:
      return DevicesText(part, "Launches, in us",
                         {{"", "launch"},
                          {"empty", "run"},
                          {"stream", "node"},
                          {"graph", "node"},
                          {"host", "node"},
                          {"small", "copy"}},
                         devices, figures);
    case Part::kMemory:
      return DevicesText(part, "Memory of a device, read and written, in GB/s", {{"", "copy"}, {"", "fill"}}, devices,
                         figures);
  }
  return "";
}

nlohmann::json FiguresJson(const std::vector<Figure>& figures) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Figure& figure : figures) {
    nlohmann::json row = {{"part", kPartNames[static_cast<size_t>(figure.part)]},
                          {"device", figure.device},
                          {"what", figure.what},
                          {"unit", figure.unit},
                          {"value", figure.value}};
    if (!figure.to.empty()) row["to"] = figure.to;
    if (figure.bytes != 0) row["bytes"] = figure.bytes;
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string FiguresCsv(const std::vector<Figure>& figures) {
  std::string text = "part,device,to,what,bytes,unit,value\n";
  for (const Figure& figure : figures) {
    absl::StrAppendFormat(&text, "%s,%s,%s,%s,%d,%s,%.6g\n", kPartNames[static_cast<size_t>(figure.part)],
                          figure.device, figure.to, figure.what, figure.bytes, figure.unit, figure.value);
  }
  return text;
}

}  // namespace penstock::cli::measure
