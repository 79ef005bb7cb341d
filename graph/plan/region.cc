#include "graph/plan/region.h"

namespace penstock::graph {

void Subtract(const Region& a, const Region& b, std::vector<Region>& out) {
  Region rest = a;
  for (size_t d = 0; d < kMaxRank; ++d) {
    if (rest.lo[d] < b.lo[d]) {
      out.push_back(rest);
      out.back().hi[d] = b.lo[d];
      rest.lo[d] = b.lo[d];
    }
    if (rest.hi[d] > b.hi[d]) {
      out.push_back(rest);
      out.back().lo[d] = b.hi[d];
      rest.hi[d] = b.hi[d];
    }
  }
}

}  // namespace penstock::graph
