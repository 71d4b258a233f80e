#include "pipeline/kernels/module_set.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstring>

#include "pipeline/kernels/module_file.h"
#include "pipeline/kernels/module_search.h"

namespace ggufmill {
namespace {

void describe(const ModuleWords& words, ModuleReport& report) {
  report.name = words.name;
  report.version = words.version;
  report.isa = words.isa;
  report.cpu_features = words.cpu_features;
}

std::shared_ptr<void> open_library(const std::string& path, std::string& reason) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) reason = fmt::format("cannot be loaded: {}", ::dlerror());
  return {library, [](void* handle) {
            if (handle) ::dlclose(handle);
          }};
}

}  // namespace

void ModuleSet::add_built_in(const ggufmill_module& module) {
  ModuleReport report;
  report.path = "(built in)";
  std::string refusal = accept(module, nullptr, report);
  record(std::move(report), std::move(refusal));
}

void ModuleSet::add_file(const std::string& path) {
  ModuleReport report;
  report.path = path;
  std::string refusal = load_file(path, report);
  record(std::move(report), std::move(refusal));
}

bool ModuleSet::add_directory(const std::string& directory) {
  std::vector<std::string> paths;
  std::string refusal = why_unsafe(directory);
  if (refusal.empty() && list_modules(directory, paths, refusal)) {
    for (const std::string& path : paths) add_file(path);
    return true;
  }
  ModuleReport report;
  report.path = directory;
  record(std::move(report), std::move(refusal));
  return false;
}

// The words are checked in the file before one instruction of it runs, and once more in memory, because the file may
// have changed in between.
std::string ModuleSet::load_file(const std::string& path, ModuleReport& report) {
  std::string reason = why_unsafe(path);
  ModuleFile file;
  if (reason.empty()) reason = read_module_file(path, file);
  describe(file.words, report);
  if (reason.empty()) reason = check_words(file.words, features_);
  if (!reason.empty()) return reason;

  std::shared_ptr<void> library = open_library(path, reason);
  if (!library) return reason;
  const auto* module = static_cast<const ggufmill_module*>(::dlsym(library.get(), GGUFMILL_SYMBOL));
  if (!module) return "is no kernel module: it exports no symbol " GGUFMILL_SYMBOL;
  return accept(*module, std::move(library), report);
}

std::string ModuleSet::accept(const ggufmill_module& module, std::shared_ptr<void> library, ModuleReport& report) {
  ModuleWords words;
  std::string reason = check_abi(module);
  if (reason.empty()) reason = copy_words(module, words);
  describe(words, report);
  if (reason.empty()) reason = check_words(words, features_);
  if (!reason.empty()) return reason;
  for (const LoadedModule& other : modules_)
    if (other.library && words.name == other.module->name && words.isa == other.isa->name)
      return fmt::format("module '{}' for {} is loaded already from {}", words.name, words.isa,
                         reports_[other.report].path);

  LoadedModule loaded{std::move(library), &module, find_isa(words.isa), {}, reports_.size()};
  reason = check_kernels(module, loaded.kernels, report.kernel_refusals);
  if (!reason.empty()) return reason;
  report.kernels = loaded.kernels.size();
  modules_.push_back(std::move(loaded));
  return {};
}

void ModuleSet::record(ModuleReport report, std::string refusal) {
  report.loaded = refusal.empty();
  report.refusal = std::move(refusal);
  reports_.push_back(std::move(report));
}

}  // namespace ggufmill
