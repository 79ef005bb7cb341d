#include <cstdint>
#include <string_view>

#include "graph/common/hash.h"
#include "penstock/detail/type_of.h"

namespace penstock::detail {
namespace {

// Whether compilers spell the type as one that differs between translation units.
bool IsOfOneUnit(std::string_view spelling, std::string_view mangled) {
  for (const char* const words :
       {"{anonymous}", "(anonymous", "<unnamed", "(unnamed", "<lambda", "(lambda", "_GLOBAL__N_"}) {
    if (spelling.find(words) != std::string_view::npos) return true;
  }
  // clang's spelling of a local type omits its function.
  return mangled.starts_with("ZL") || mangled.find("_GLOBAL__N_") != std::string_view::npos;
}

}  // namespace

TypeInfo NameType(TypeInfo layout, std::string_view spelling, const char* mangled, const void* object) {
  const std::string_view abi = mangled != nullptr ? mangled : "";
  const uint64_t unit = IsOfOneUnit(spelling, abi) ? reinterpret_cast<uintptr_t>(object) : 0;
  if (!abi.empty()) layout.mangled = graph::Hash(unit).Text(abi).value();
  layout.spelled = static_cast<uint32_t>(graph::Hash(unit).Text(spelling).value());
  return layout;
}

}  // namespace penstock::detail
