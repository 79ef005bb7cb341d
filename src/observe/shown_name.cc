#include "src/observe/shown_name.h"

#include <algorithm>

#include "src/observe/chrome_json.h"

namespace penstock::observe {

// The control characters of ISO 8859 are two bytes, of which the first is 0xC2.
std::string ShownName(std::string_view name) {
  std::string shown;
  while (!name.empty()) {
    const size_t length = Utf8Length(name);
    const auto first = static_cast<unsigned char>(name[0]);
    const bool control = length == 1 ? first < 0x20 || first == 0x7F
                                     : length == 2 && first == 0xC2 && static_cast<unsigned char>(name[1]) < 0xA0;
    if (length == 0 || control) shown += "\xEF\xBF\xBD";
    else shown += name.substr(0, length);
    name.remove_prefix(std::max<size_t>(length, 1));
  }
  return shown;
}

}  // namespace penstock::observe
