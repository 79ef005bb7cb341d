#include "src/cli/findings_json.h"

namespace penstock::cli {
namespace {

nlohmann::json FindingJson(const analysis::Finding& finding) {
  nlohmann::json json = {{"rule", finding.rule},
                         {"share", finding.share},
                         {"gain", nullptr},
                         {"gain_how", finding.gain_how},
                         {"graph", finding.graph},
                         {"graph_name", finding.graph_name},
                         {"node", finding.node},
                         {"node_name", finding.node_name},
                         {"where", finding.where},
                         {"span", finding.span},
                         {"begin_us", finding.begin_us},
                         {"end_us", finding.end_us},
                         {"evidence", finding.evidence},
                         {"fix", finding.fix}};
  if (finding.gain) json["gain"] = *finding.gain;
  return json;
}

}  // namespace

nlohmann::json FindingsJson(const analysis::Diagnosis& diagnosis) {
  nlohmann::json findings = nlohmann::json::array();
  for (const analysis::Finding& finding : diagnosis.findings) findings.push_back(FindingJson(finding));
  return findings;
}

}  // namespace penstock::cli
