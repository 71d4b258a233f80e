#include "tests/support/module_file.h"

#include <fmt/format.h>

#include <stdexcept>

#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/program.h"
#include "pipeline/kernels/isa.h"

namespace ggufmill {

ModuleFile::ModuleFile(const std::string& path) {
  // A path with a slash is used directly; other names would be searched for.
  std::string reason;
  library_ = open_library(fs::absolute(path).string(), reason);
  if (!library_) throw std::runtime_error(path + " " + reason);
  module_ = static_cast<const ggufmill_module*>(find_symbol(library_.get(), GGUFMILL_SYMBOL));
  if (module_ != nullptr && module_->magic == GGUFMILL_MAGIC && module_->abi_major == GGUFMILL_ABI_MAJOR) return;
  throw std::runtime_error(fmt::format("{}: no module of kernel ABI {}", path, GGUFMILL_ABI_MAJOR));
}

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

}  // namespace ggufmill
