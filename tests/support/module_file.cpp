#include "tests/support/module_file.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <stdexcept>

#include "pipeline/kernels/isa.h"

namespace ggufmill {

ModuleFile::ModuleFile(const std::string& path) {
  // A path with a slash is used directly; other names would be searched for.
  library_ = dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) throw std::runtime_error(dlerror());
  module_ = static_cast<const ggufmill_module*>(dlsym(library_, GGUFMILL_SYMBOL));
  if (module_ != nullptr && module_->magic == GGUFMILL_MAGIC && module_->abi_major == GGUFMILL_ABI_MAJOR) return;
  dlclose(library_);
  throw std::runtime_error(fmt::format("{}: no module of kernel ABI {}", path, GGUFMILL_ABI_MAJOR));
}

ModuleFile::~ModuleFile() { dlclose(library_); }

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
