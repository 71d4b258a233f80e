#include "tests/conformance/runnable.h"

#include "pipeline/kernels/isa.h"

namespace ggufmill::conformance {

std::string missing_here(const ggufmill_module& module) {
  std::string asked = module.cpu_features;
  if (const Isa* isa = find_isa(module.isa)) asked.append(" ").append(isa->cpu_features);
  std::string missing;
  for (const std::string& feature : missing_features(asked, cpu_features())) {
    if (!missing.empty()) missing += ' ';
    missing += feature;
  }
  return missing;
}

}  // namespace ggufmill::conformance
