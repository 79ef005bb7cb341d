// Rows are steps: a node stands below all that it follows, and below the one before it in its column. So long chains of
// small plans are short pictures, and an arc never goes up.
#include <algorithm>
#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/analysis/node_order.h"
#include "src/cli/plan_picture.h"
#include "src/cli/text.h"

namespace penstock::cli {
namespace {

// In pixels.
constexpr int kMargin = 24, kColumn = 216, kNodeWidth = 172, kRow = 64, kNodeHeight = 40, kHeading = 78;

// For text and for attributes in double quotes.
std::string XmlText(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += c;
    }
  }
  // Two characters that XML does not have.
  for (const std::string_view none : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"}) {
    for (size_t at = 0; (at = out.find(none, at)) != std::string::npos;) out.replace(at, none.size(), "?");
  }
  return out;
}

// What the colours of a node mean: copies up and down, work of the device, the host.
const char* SvgClass(const Profile::Graph& graph, const Profile::Node& node) {
  if (node.lane < 0) return "host";
  const std::string& lane = graph.lanes[static_cast<size_t>(node.lane)].kind;
  return lane == "upload" || node.kind == "peer copy" ? "up" : lane == "download" ? "down" : "work";
}

// Where the nodes of one graph stand.
class PlanLayout {
 public:
  explicit PlanLayout(const Profile::Graph& graph) : places_(graph.nodes.size()) {
    const std::vector<std::vector<int>> lanes = NodesOfLanes(graph);
    for (size_t l = 0; l < lanes.size(); ++l) {
      if (lanes[l].empty()) continue;
      for (const int node : lanes[l]) places_[static_cast<size_t>(node)].column = static_cast<int>(columns_.size());
      columns_.push_back(static_cast<int>(l) - 1);
    }
    std::vector<int> filled(columns_.size(), 0);
    for (const int node : analysis::NodeOrder(graph)) {
      Place& place = places_[static_cast<size_t>(node)];
      place.row = filled[static_cast<size_t>(place.column)];
      for (const int before : graph.nodes[static_cast<size_t>(node)].after) {
        place.row = std::max(place.row, places_[static_cast<size_t>(before)].row + 1);
      }
      filled[static_cast<size_t>(place.column)] = place.row + 1;
      rows_ = std::max(rows_, place.row + 1);
    }
  }

  // The lanes that have nodes; -1: the host.
  const std::vector<int>& columns() const { return columns_; }
  int width() const { return 2 * kMargin + std::max(3, static_cast<int>(columns_.size())) * kColumn; }
  int height() const { return kHeading + rows_ * kRow + kMargin; }
  int left(int node) const { return kMargin + of(node).column * kColumn + (kColumn - kNodeWidth) / 2; }
  int middle(int node) const { return left(node) + kNodeWidth / 2; }
  int top(int node) const { return kHeading + of(node).row * kRow + (kRow - kNodeHeight) / 2; }
  int bottom(int node) const { return top(node) + kNodeHeight; }
  bool same_column(int a, int b) const { return of(a).column == of(b).column; }
  int rows_between(int a, int b) const { return of(b).row - of(a).row; }

 private:
  struct Place {
    int column = 0, row = 0;
  };
  const Place& of(int node) const { return places_[static_cast<size_t>(node)]; }

  std::vector<Place> places_;
  std::vector<int> columns_;
  int rows_ = 0;
};

template <class... Numbers>
std::string Numbered(const char* format, Numbers... numbers) {
  std::array<char, 400> text{};
  const int length = std::snprintf(text.data(), text.size(), format, numbers...);
  return {text.data(), static_cast<size_t>(std::clamp(length, 0, static_cast<int>(text.size()) - 1))};
}

// Between neighbours in a column from the bottom to the top, past other nodes of it on the left; to another column from
// side to side, through the space between the columns. Arcs arrive a little above where others leave.
std::string SvgArc(const PlanLayout& layout, int from, int to) {
  constexpr int kTip = 6, kBulge = 24, kApart = 8;
  if (layout.same_column(from, to) && layout.rows_between(from, to) == 1) {
    return Numbered("<path d=\"M%d %d L%d %d\"/>\n", layout.middle(from), layout.bottom(from), layout.middle(to),
                    layout.top(to) - kTip);
  }
  const int y1 = layout.top(from) + kNodeHeight / 2 + kApart, y2 = layout.top(to) + kNodeHeight / 2 - kApart;
  const bool to_right = layout.left(from) < layout.left(to);
  const int x1 = layout.left(from) + (to_right ? kNodeWidth : 0);
  if (layout.same_column(from, to)) {
    return Numbered("<path d=\"M%d %d C%d %d %d %d %d %d\"/>\n", x1, y1, x1 - kBulge, y1, x1 - kBulge, y2, x1 - kTip,
                    y2);
  }
  const int x2 = layout.left(to) + (to_right ? -kTip : kNodeWidth + kTip);
  const int reach = to_right ? kBulge : -kBulge;
  return Numbered("<path d=\"M%d %d C%d %d %d %d %d %d\"/>\n", x1, y1, x1 + reach, y1, x2 - reach, y2, x2, y2);
}

std::string SvgNode(const Profile& profile, const Profile::Graph& graph, const PlanLayout& layout, int n) {
  const Profile::Node& node = graph.nodes[static_cast<size_t>(n)];
  const std::string where = node.where.empty() ? "added by the planner" : Shown(node.where, 200);
  const std::string title = "node " + std::to_string(n) + " '" + Shown(node.name, 200) + "'\n" + Shown(node.kind) +
                            " on " + LaneTitle(profile, graph, node.lane) + "\n" + where + "\nreads " +
                            SizeText(node.read_bytes) + ", writes " + SizeText(node.written_bytes);
  const std::string small = Shown(node.kind, 14) + (node.where.empty() ? "" : ", " + Shown(node.where, 18));
  return Numbered("<g class=\"%s%s\">", SvgClass(graph, node), node.where.empty() ? " added" : "") + "<title>" +
         XmlText(title) + "</title>" +
         Numbered("<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\"/>", layout.left(n), layout.top(n),
                  kNodeWidth, kNodeHeight) +
         Numbered("<text x=\"%d\" y=\"%d\">", layout.middle(n), layout.top(n) + 17) + XmlText(Shown(node.name, 24)) +
         Numbered("</text><text class=\"small\" x=\"%d\" y=\"%d\">", layout.middle(n), layout.top(n) + 32) +
         XmlText(small) + "</text></g>\n";
}

std::string SvgColumns(const Profile& profile, const Profile::Graph& graph, const PlanLayout& layout) {
  std::string svg;
  for (size_t c = 0; c < layout.columns().size(); ++c) {
    const int lane = layout.columns()[c], x = kMargin + static_cast<int>(c) * kColumn;
    const std::string device = lane < 0 ? "host" : DeviceText(profile, graph.lanes[static_cast<size_t>(lane)].device);
    const std::string below =
        lane < 0 ? "" : "lane " + std::to_string(lane) + ", " + Shown(graph.lanes[static_cast<size_t>(lane)].kind, 12);
    svg += Numbered("<rect class=\"lane\" x=\"%d\" y=\"40\" width=\"%d\" height=\"%d\" rx=\"8\"/>", x + 4, kColumn - 8,
                    layout.height() - 40 - kMargin / 2) +
           Numbered("<text class=\"device\" x=\"%d\" y=\"58\">", x + kColumn / 2) + XmlText(device) +
           Numbered("</text><text class=\"small\" x=\"%d\" y=\"72\">", x + kColumn / 2) + XmlText(below) + "</text>\n";
  }
  return svg;
}

std::string SvgGraph(const Profile& profile, const Profile::Graph& graph, const PlanLayout& layout, int y) {
  std::string svg =
      Numbered("<g transform=\"translate(0 %d)\">\n<text class=\"graph\" x=\"%d\" y=\"26\">", y, kMargin + 4) +
      "<title>" + XmlText(GraphHeading(graph)) + "</title>graph " + std::to_string(graph.executable) + " '" +
      XmlText(Shown(graph.name, 60)) + "'</text>\n" + SvgColumns(profile, graph, layout) + "<g class=\"arcs\">\n";
  const int nodes = static_cast<int>(graph.nodes.size());
  for (int n = 0; n < nodes; ++n) {
    for (const int before : graph.nodes[static_cast<size_t>(n)].after) svg += SvgArc(layout, before, n);
  }
  svg += "</g>\n";
  for (int n = 0; n < nodes; ++n) svg += SvgNode(profile, graph, layout, n);
  return svg + "</g>\n";
}

constexpr std::string_view kStyle = R"(<style>
text { font: 13px system-ui, sans-serif; text-anchor: middle; fill: #1d2733 }
.small { font-size: 10.5px; fill: #52606d }
.device { font-weight: 600 }
.graph { font-size: 16px; font-weight: 600; text-anchor: start }
.lane { fill: #f4f6f8 }
g > rect { stroke-width: 1.3 }
.up rect { fill: #dbeafe; stroke: #3b82c4 }
.down rect { fill: #dcf3e4; stroke: #2f9e63 }
.work rect { fill: #fdecc8; stroke: #d08a1d }
.host rect { fill: #ffffff; stroke: #7b8794 }
.added rect { stroke-dasharray: 4 3 }
.arcs path { fill: none; stroke: #7b8794; stroke-width: 1.3; marker-end: url(#tip) }
g:hover > rect { stroke-width: 2.4 }
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="2" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 0 L8 4 L0 8 z" fill="#7b8794"/></marker></defs>
)";

}  // namespace

std::string PlanSvg(const Profile& profile, const GraphPlaces& graphs) {
  std::string body;
  int width = 0, y = 0;
  for (const size_t place : graphs) {
    const Profile::Graph& graph = profile.graphs[place];
    const PlanLayout layout(graph);
    body += SvgGraph(profile, graph, layout, y);
    width = std::max(width, layout.width());
    y += layout.height();
  }
  return Numbered("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n",
                  width, y, width, y) +
         std::string(kStyle) + "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n" + body + "</svg>\n";
}

}  // namespace penstock::cli
