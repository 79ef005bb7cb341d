// JsonObject: an object in a JSON document that somebody else wrote, read member by member.
//
// A reader goes through the whole document without a look at errors. The first thing that is not as it should be is
// kept in a status, with its place ("graphs[2].nodes[17].device: is 7, more than 1"), and what is asked for after it
// is 0, false or empty. The status, a DataLoss, must be looked at in the end. Members that nobody asks for are ignored.
//
// Ownership: views of the document and of the status, which outlive it.
// Threads:   single-threaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "nlohmann/json.hpp"

namespace penstock::cli {

// Each sets `to`, and returns what is wrong with the value; empty: nothing.
std::string TakeInteger(const nlohmann::json& value, int64_t least, int64_t most, int64_t& to);
// Numbers beyond 10^18 either way are refused: what writes profiles has 0 for them.
std::string TakeNumber(const nlohmann::json& value, double& to);
// At least 0.
std::string TakeAmount(const nlohmann::json& value, double& to);
std::string TakeText(const nlohmann::json& value, std::string& to);

class JsonObject {
 public:
  // `place`: of the value in its document, as in "graphs[2]"; empty: it is the document.
  JsonObject(const nlohmann::json& value, std::string place, absl::Status& status);

  bool Has(const char* name) const { return value_.is_object() && value_.contains(name); }
  int64_t Integer(const char* name, int64_t least, int64_t most = std::numeric_limits<int64_t>::max());
  // How often something happened: small enough for sums of many.
  int64_t Count(const char* name) { return Integer(name, 0, 1'000'000'000'000); }
  int64_t Bytes(const char* name) { return Integer(name, 0); }
  int Index(const char* name, int least) {
    return static_cast<int>(Integer(name, least, std::numeric_limits<int>::max()));
  }
  double Number(const char* name);
  // At least 0; 0 if there is no such member.
  double AmountIfAny(const char* name);
  bool Flag(const char* name);
  std::string Text(const char* name);
  std::string TextIfAny(const char* name);  // empty if there is no such member
  std::vector<std::string> Texts(const char* name);
  std::vector<int> Indices(const char* name);
  std::vector<double> Numbers(const char* name);
  // Calls `each` with a JsonObject for each element of an array of objects.
  template <class F>
  void Objects(const char* name, F each) {
    ForElements(name, [&](const nlohmann::json& element, std::string place) {
      JsonObject object(element, std::move(place), status_);
      each(object);
    });
  }
  JsonObject Object(const char* name) { return {Member(name), Place(name), status_}; }

  // Keeps the problem with a member, unless it is empty.
  void Refuse(const char* name, const std::string& problem);

 private:
  std::string Place(const char* name) const { return place_.empty() ? name : place_ + "." + name; }
  // Null if there is none.
  const nlohmann::json& Member(const char* name);
  template <class F>
  void ForElements(const char* name, F each) {
    const nlohmann::json& array = Member(name);
    if (!array.is_array()) return Refuse(name, "is not an array");
    const std::string place = Place(name) + "[";
    for (size_t i = 0; i < array.size() && status_.ok(); ++i) each(array[i], place + std::to_string(i) + "]");
  }

  const nlohmann::json& value_;
  const std::string place_;
  absl::Status& status_;
};

}  // namespace penstock::cli
