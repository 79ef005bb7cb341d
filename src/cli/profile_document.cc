#include "src/cli/profile_document.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "graph/common/message.h"
#include "penstock/profile.h"
#include "src/base/status.h"
#include "src/cli/json_object.h"

namespace penstock::cli {
namespace {

using nlohmann::json;

constexpr size_t kMostDepth = 16;  // a profile has 6
constexpr size_t kMostColumns = 100;

constexpr std::array<std::pair<std::string_view, SpanKind>, 7> kSpanKinds = {{{"upload", SpanKind::kUpload},
                                                                              {"download", SpanKind::kDownload},
                                                                              {"kernel", SpanKind::kKernel},
                                                                              {"host", SpanKind::kHost},
                                                                              {"submit", SpanKind::kSubmit},
                                                                              {"wait", SpanKind::kWait},
                                                                              {"run", SpanKind::kRun}}};
constexpr std::array<std::string_view, 12> kProfileMembers = {"format",      "version", "length_us", "lost_spans",
                                                              "lost_graphs", "devices", "graphs",    "pipelines",
                                                              "columns",     "spans",   "texts",     "open"};

// Makes spans of rows. What a column holds is said by its name, so a column more in a later version does no harm.
class SpanRows {
 public:
  explicit SpanRows(ProfileDocument& to) : to_(to) {}

  // "columns". Returns what is wrong with them; empty: nothing.
  std::string SetColumns(const json& columns) {
    if (!columns.is_array()) return "is not an array";
    columns_ = columns.size();
    if (columns_ > kMostColumns) return absl::StrCat("has more than ", kMostColumns, " elements");
    for (Column& column : known_) {
      const auto at = std::find(columns.begin(), columns.end(), column.name);
      if (at == columns.end()) return absl::StrCat("has no \"", column.name, "\"");
      column.place = static_cast<size_t>(at - columns.begin());
    }
    return "";
  }
  size_t columns() const { return columns_; }
  size_t count() const { return count_; }

  std::string Add(const std::vector<json>& row) {
    if (row.size() != columns_)
      return absl::StrCat(": has ", row.size(), " elements, and there are ", columns_, " columns");
    ++count_;
    problem_.clear();
    ProfileDocument::Row made;
    Span& span = made.span;
    span.executable = Integer(row, known_[kExecutable], -1);
    span.run = Integer(row, known_[kRun], -1);
    span.node = Index(row, known_[kNode]);
    span.slot = Index(row, known_[kSlot]);
    span.device = Index(row, known_[kDevice]);
    span.begin_us = Number(row, known_[kBegin]);
    span.end_us = Number(row, known_[kEnd]);
    made.name = Integer(row, known_[kName], 0);
    made.track = Integer(row, known_[kTrack], 0);
    std::string kind;
    Keep(known_[kKind], TakeText(row[known_[kKind].place], kind));
    if (!problem_.empty()) return problem_;
    const auto at = std::find_if(kSpanKinds.begin(), kSpanKinds.end(), [&](const auto& k) { return k.first == kind; });
    if (at == kSpanKinds.end()) {
      ++to_.unknown_rows;
      return "";
    }
    span.kind = at->second;
    to_.rows.push_back(std::move(made));
    return "";
  }

 private:
  struct Column {
    const char* name;
    size_t place = 0;
  };
  enum { kExecutable, kRun, kNode, kSlot, kDevice, kKind, kBegin, kEnd, kName, kTrack, kColumns };

  void Keep(const Column& column, const std::string& problem) {
    if (problem_.empty() && !problem.empty()) problem_ = absl::StrCat(".", column.name, ": ", problem);
  }
  int64_t Integer(const std::vector<json>& row, const Column& column, int64_t least,
                  int64_t most = std::numeric_limits<int64_t>::max()) {
    int64_t number = 0;
    Keep(column, TakeInteger(row[column.place], least, most, number));
    return number;
  }
  int Index(const std::vector<json>& row, const Column& column) {
    return static_cast<int>(Integer(row, column, -1, std::numeric_limits<int>::max()));
  }
  double Number(const std::vector<json>& row, const Column& column) {
    double number = 0;
    Keep(column, TakeNumber(row[column.place], number));
    return number;
  }

  ProfileDocument& to_;
  size_t columns_ = 0, count_ = 0;
  std::array<Column, kColumns> known_ = {{{"executable"},
                                          {"run"},
                                          {"node"},
                                          {"slot"},
                                          {"device"},
                                          {"kind"},
                                          {"begin_us"},
                                          {"end_us"},
                                          {"name"},
                                          {"track"}}};
  std::string problem_;
};

absl::Status NoProfile(std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("is no profile: ", base::Av(what), "; PENSTOCK_PROFILE=FILE records one of a program"));
}

std::string Shortened(std::string_view text) {
  constexpr size_t kMost = 40;
  return graph::OneLine(text.substr(0, kMost)) + (text.size() > kMost ? "..." : "");
}

// Takes the parser's events: rows to SpanRows, the rest into a tree. Each event returns false to end the parsing.
class DocumentBuilder final : public nlohmann::json_sax<json> {
 public:
  DocumentBuilder(ProfileDocument& to, size_t bytes) : to_(to), bytes_(bytes), rows_(to) {}

  // What is wrong with what the parser has seen.
  absl::Status Finish() const {
    if (!status_.ok() || is_profile_) return status_;
    return NoProfile("it has no \"format\": \"penstock profile\"");
  }

  bool null() override { return Scalar(nullptr); }
  bool boolean(bool value) override { return Scalar(value); }
  bool number_integer(int64_t value) override { return Scalar(value); }
  bool number_unsigned(uint64_t value) override { return Scalar(value); }
  bool number_float(double value, const std::string& /*text*/) override { return Scalar(value); }
  bool string(std::string& value) override { return Scalar(std::move(value)); }
  bool binary(json::binary_t& /*value*/) override { return false; }
  bool start_object(size_t /*elements*/) override { return Begin(json::object()); }
  bool start_array(size_t /*elements*/) override { return Begin(json::array()); }
  bool end_object() override { return End(); }
  bool end_array() override { return End(); }

  bool key(std::string& name) override {
    if (passed_over_ > 0) return true;
    if (open_.size() == 1) {
      if (name == "traceEvents") return Fail(NoProfile("it is a trace for chrome://tracing and Perfetto"));
      if (name == "spans" && rows_.columns() == 0) return Fail("spans: stand before \"columns\"");
      known_ = std::find(kProfileMembers.begin(), kProfileMembers.end(), name) != kProfileMembers.end();
      member_ = name;
    }
    if (open_.back()->contains(name)) return Fail("has a member twice: \"" + Shortened(name) + "\"");
    key_ = std::move(name);
    return true;
  }

  bool parse_error(size_t position, const std::string& last, const json::exception& /*error*/) override {
    const std::string problem = position > bytes_
                                    ? absl::StrCat("ends after ", bytes_, " bytes, and its JSON does not")
                                    : absl::StrCat("byte ", position, ": is no JSON, at '", Shortened(last), "'");
    return Fail(is_profile_ ? absl::DataLossError(problem) : NoProfile(problem));
  }

 private:
  enum class Where { kTree, kSpans, kRow };

  bool Fail(absl::Status status) {
    if (status_.ok()) status_ = std::move(status);
    return false;
  }
  bool Fail(const std::string& problem) { return Fail(absl::DataLossError(problem)); }
  std::string Place() const { return absl::StrCat("spans[", rows_.count(), "]"); }

  bool Scalar(json value) {
    if (passed_over_ > 0) return true;
    if (open_.empty()) return Fail(NoProfile("it is no JSON object"));
    if (where_ == Where::kSpans) return Fail(Place() + ": is not an array");
    if (where_ == Where::kRow) return AddCell(std::move(value));
    if (!known_) return known_ = true;
    Put(std::move(value));
    return open_.size() > 1 || LookAtMember();
  }

  bool Begin(json empty) {
    if (open_.empty() && !empty.is_object()) return Fail(NoProfile("it is no JSON object"));
    if (++depth_ > kMostDepth) return Fail(absl::StrCat("is nested more than ", kMostDepth, " deep"));
    if (passed_over_ > 0 || !known_) return ++passed_over_ > 0;
    if (where_ == Where::kRow) return ++passed_over_ > 0 && AddCell(std::move(empty));
    if (where_ == Where::kSpans) {
      if (!empty.is_array()) return Fail(Place() + ": is not an array");
      where_ = Where::kRow;
      row_.clear();
      return true;
    }
    const bool is_spans = open_.size() == 1 && member_ == "spans" && empty.is_array();
    json& put = Put(std::move(empty));
    if (is_spans) {
      where_ = Where::kSpans;
    } else {
      open_.push_back(&put);
    }
    return true;
  }

  bool End() {
    --depth_;
    if (passed_over_ > 0) {
      if (--passed_over_ == 0) known_ = true;
      return true;
    }
    if (where_ == Where::kRow) {
      where_ = Where::kSpans;
      const std::string place = Place();
      const std::string problem = rows_.Add(row_);
      return problem.empty() || Fail(place + problem);
    }
    if (where_ == Where::kSpans) {
      where_ = Where::kTree;
      return true;
    }
    open_.pop_back();
    return open_.size() != 1 || LookAtMember();
  }

  bool AddCell(json value) {
    if (row_.size() == rows_.columns()) return Fail(Place() + ": has more elements than there are columns");
    row_.push_back(std::move(value));
    return true;
  }

  json& Put(json value) {
    if (open_.empty()) return to_.members = std::move(value);
    json& in = *open_.back();
    if (in.is_object()) return in[key_] = std::move(value);
    in.push_back(std::move(value));
    return in.back();
  }

  // What a member of the document says about all the others is looked at as soon as it is known.
  bool LookAtMember() {
    const json& value = to_.members[member_];
    if (member_ == "format") {
      is_profile_ = value == "penstock profile";
      return is_profile_ || Fail(NoProfile("its \"format\" is another"));
    }
    if (member_ == "version") return LookAtVersion(value);
    if (member_ != "columns") return true;
    const std::string problem = rows_.SetColumns(value);
    return problem.empty() || Fail("columns: " + problem);
  }

  bool LookAtVersion(const json& value) {
    int64_t version = 0;
    const std::string problem = TakeInteger(value, 1, std::numeric_limits<int64_t>::max(), version);
    if (!problem.empty()) return Fail("version: " + problem);
    return version <= Profile::kVersion || Fail(absl::UnimplementedError(absl::StrCat(
                                               "is of version ", version, ", and this program reads versions up to ",
                                               Profile::kVersion, "; use a newer one")));
  }

  absl::Status status_;
  ProfileDocument& to_;
  const size_t bytes_;
  bool is_profile_ = false;
  std::vector<json*> open_;  // of the tree, each in the one before
  Where where_ = Where::kTree;
  size_t depth_ = 0;  // of all that is open
  size_t passed_over_ = 0;  // of that, what is not kept
  bool known_ = true;  // whether the member that comes next is kept
  std::string member_, key_;  // the document's, and that of the innermost object
  SpanRows rows_;
  std::vector<json> row_;
};

}  // namespace

absl::StatusOr<ProfileDocument> ParseProfileDocument(std::string_view text) {
  if (text.empty()) return NoProfile("it is empty");
  ProfileDocument document;
  DocumentBuilder builder(document, text.size());
  json::sax_parse(text.begin(), text.end(), &builder);
  if (absl::Status status = builder.Finish(); !status.ok()) return status;
  return document;
}

}  // namespace penstock::cli
