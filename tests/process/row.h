// CsrRows of a table of the ways a process ends and of what is in flight then, as text that a child takes:
// "host:2/exit/kernel".
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::test_support {

struct Row {
  std::string devices, end, work;
  explicit Row(const std::string& text) {
    const size_t first = text.find('/'), second = text.find('/', first + 1);
    devices = text.substr(0, first);
    end = text.substr(first + 1, second - first - 1);
    work = text.substr(second + 1);
  }
};

// Every end with every work.
inline std::vector<std::string> CsrRows(const std::string& devices, std::initializer_list<const char*> ends,
                                        std::span<const std::string_view> works) {
  std::vector<std::string> rows;
  for (const char* end : ends) {
    for (const std::string_view work : works) rows.push_back(devices + "/" + end + "/" + std::string(work));
  }
  return rows;
}

inline std::string NameOfRow(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = Row(info.param).end + "_" + Row(info.param).work;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

}  // namespace penstock::test_support
