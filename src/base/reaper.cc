#include "src/base/reaper.h"

#include <exception>
#include <utility>

#include "src/base/process_life.h"
#include "src/base/thread.h"

namespace penstock::base {
namespace {

struct Ending {
  std::shared_ptr<void> object;
  std::function<void()> end;
};

void Run(Ending* of) {
  std::unique_ptr<Ending> ending(of);
  ending->end();
  if (Exiting()) LeakOnPurpose(std::move(ending->object));
  ending.reset();
  EndingOver();
}

}  // namespace

bool EndElsewhere(std::shared_ptr<void> object, std::function<void()> end) {
  auto ending = std::make_unique<Ending>(std::move(object), std::move(end));
  EndingBegins();
  try {
    StartThread("ps-end", [of = ending.get()] { Run(of); }).detach();
  } catch (const std::exception&) {  // no thread, or no memory for one
    LeakOnPurpose(std::move(ending->object));
    EndingOver();
    return false;
  }
  [[maybe_unused]] const Ending* const taken_over = ending.release();
  return true;
}

}  // namespace penstock::base
