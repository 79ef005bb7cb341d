#include "src/base/catch_all.h"

#include <pthread.h>

#include <cstring>
#include <string>
#include <system_error>

#include "src/base/status.h"
#include "src/base/thread.h"

namespace penstock::base {
namespace {

constexpr size_t kLongest = 4096;

bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// The length in bytes of the printable character at the front of `text`; 0 for invalid UTF-8 or a control character.
size_t PrintableBytes(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  if (first < 0x80) return first < 0x20 || first == 0x7f ? 0 : 1;
  const size_t size = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
  if (size == 0 || size > text.size()) return 0;
  for (size_t i = 1; i < size; ++i) {
    if (!IsContinuation(text[i])) return 0;
  }
  const auto second = static_cast<unsigned char>(text[1]);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool no_scalar = (first == 0xed && second >= 0xa0) || (first == 0xf4 && second >= 0x90);
  return overlong || no_scalar ? 0 : size;
}

std::string Printable(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  while (!text.empty()) {
    const size_t size = PrintableBytes(text);
    const auto byte = static_cast<unsigned char>(text[0]);
    if (size > 0) {
      out += text.substr(0, size);
    } else if (byte == '\n') {
      out += "\\n";
    } else {
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    }
    text.remove_prefix(size > 0 ? size : 1);
  }
  return out;
}

std::string TextOf(const std::exception* caught) {
  if (caught == nullptr) return " something that is no std::exception";
  const char* const what = caught->what();
  if (what == nullptr) return " an exception whose what() is null";
  const size_t size = strnlen(what, kLongest + 1);
  if (size <= kLongest) return ": " + Printable({what, size});
  size_t cut = kLongest;  // not inside a character
  while (cut > kLongest - 4 && IsContinuation(what[cut])) --cut;
  return ": " + Printable({what, cut}) + " [cut after " + std::to_string(cut) + " bytes]";
}

}  // namespace

absl::Status Thrown(std::string_view who, const std::exception* caught) {
  return absl::InternalError(Av(std::string(who) + " threw" + TextOf(caught) + "; catch it there"));
}

absl::Status EndedItsThread(std::string_view who) {
  return absl::InternalError(Av(std::string(who) +
                                " ended the thread it was called on (pthread_exit or pthread_cancel); the thread is "
                                "the library's; return instead"));
}

void GoOnElsewhere(const std::function<void()>& loop) {
  char name[16] = "";  // Linux limits names to this size
  (void)pthread_getname_np(pthread_self(), name, sizeof name);
  try {
    StartThread(name, loop).join();
  } catch (const std::system_error&) {
    loop();  // no other thread is available, and this one lives until the loop is ended once more
  }
}

}  // namespace penstock::base
