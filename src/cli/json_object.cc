#include "src/cli/json_object.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock::cli {
namespace {

const nlohmann::json& Nothing() {
  static const nlohmann::json nothing;
  return nothing;
}

void KeepFirst(absl::Status& status, const std::string& place, const std::string& problem) {
  if (status.ok() && !problem.empty()) status = absl::DataLossError(absl::StrCat(place, ": ", problem));
}

}  // namespace

std::string TakeInteger(const nlohmann::json& value, int64_t least, int64_t most, int64_t& to) {
  if (!value.is_number_integer()) return "is not an integer";
  if (value.is_number_unsigned() &&
      value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return absl::StrCat("is ", value.get<uint64_t>(), ", more than ", most);
  }
  const int64_t number = value.get<int64_t>();
  if (number < least) return absl::StrCat("is ", number, ", less than ", least);
  if (number > most) return absl::StrCat("is ", number, ", more than ", most);
  to = number;
  return "";
}

std::string TakeNumber(const nlohmann::json& value, double& to) {
  if (!value.is_number()) return "is not a number";
  const double number = value.get<double>();
  if (!(std::abs(number) < 1e18)) return absl::StrCat("is ", number, ", beyond 10^18");
  to = number;
  return "";
}

std::string TakeAmount(const nlohmann::json& value, double& to) {
  double number = 0;
  if (std::string problem = TakeNumber(value, number); !problem.empty()) return problem;
  if (number < 0) return absl::StrCat("is ", number, ", less than 0");
  to = number;
  return "";
}

std::string TakeText(const nlohmann::json& value, std::string& to) {
  if (!value.is_string()) return "is not a string";
  to = value.get_ref<const std::string&>();
  return "";
}

JsonObject::JsonObject(const nlohmann::json& value, std::string place, absl::Status& status)
    : value_(value), place_(std::move(place)), status_(status) {
  if (!value_.is_object()) KeepFirst(status_, place_, "is not an object");
}

const nlohmann::json& JsonObject::Member(const char* name) {
  if (!value_.is_object()) return Nothing();
  const auto at = value_.find(name);
  if (at != value_.end()) return *at;
  Refuse(name, "is missing");
  return Nothing();
}

int64_t JsonObject::Integer(const char* name, int64_t least, int64_t most) {
  int64_t number = 0;
  Refuse(name, TakeInteger(Member(name), least, most, number));
  return number;
}

double JsonObject::Number(const char* name) {
  double number = 0;
  Refuse(name, TakeNumber(Member(name), number));
  return number;
}

double JsonObject::AmountIfAny(const char* name) {
  if (!Has(name)) return 0;
  double amount = 0;
  Refuse(name, TakeAmount(Member(name), amount));
  return amount;
}

bool JsonObject::Flag(const char* name) {
  const nlohmann::json& value = Member(name);
  if (value.is_boolean()) return value.get<bool>();
  Refuse(name, "is neither true nor false");
  return false;
}

std::string JsonObject::Text(const char* name) {
  std::string text;
  Refuse(name, TakeText(Member(name), text));
  return text;
}

std::string JsonObject::TextIfAny(const char* name) { return Has(name) ? Text(name) : ""; }

std::vector<std::string> JsonObject::Texts(const char* name) {
  std::vector<std::string> texts;
  ForElements(name, [&](const nlohmann::json& element, const std::string& place) {
    KeepFirst(status_, place, TakeText(element, texts.emplace_back()));
  });
  return texts;
}

std::vector<int> JsonObject::Indices(const char* name) {
  std::vector<int> indices;
  ForElements(name, [&](const nlohmann::json& element, const std::string& place) {
    int64_t index = 0;
    KeepFirst(status_, place, TakeInteger(element, 0, std::numeric_limits<int>::max(), index));
    indices.push_back(static_cast<int>(index));
  });
  return indices;
}

std::vector<double> JsonObject::Numbers(const char* name) {
  std::vector<double> numbers;
  ForElements(name, [&](const nlohmann::json& element, const std::string& place) {
    KeepFirst(status_, place, TakeNumber(element, numbers.emplace_back()));
  });
  return numbers;
}

void JsonObject::Refuse(const char* name, const std::string& problem) { KeepFirst(status_, Place(name), problem); }

}  // namespace penstock::cli
