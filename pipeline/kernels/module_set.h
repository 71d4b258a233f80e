#pragma once
// Loads modules one after the other, keeps those that pass every check, and keeps book of all.

#include <memory>
#include <string>
#include <vector>

#include "pipeline/kernels/isa.h"
#include "pipeline/kernels/kernels.h"
#include "pipeline/kernels/module_check.h"

namespace ggufmill {

// A module whose checks are passed. Holds the library in memory.
struct LoadedModule {
  std::shared_ptr<void> library;  // null for the linked-in reference
  const ggufmill_module* module = nullptr;
  const Isa* isa = nullptr;
  std::vector<const ggufmill_kernel*> kernels;  // those that this host has a place for
  std::size_t report = 0;                       // index into ModuleSet::reports()
};

// Not thread-safe, and adds to the type table: see add_foreign_type().
class ModuleSet {
 public:
  // `features`: what the machine has; another set than cpu_features() is for tests.
  explicit ModuleSet(CpuFeatures features) : features_(std::move(features)) {}

  // Add one module; what is wrong with it is in its report.
  void add_built_in(const ggufmill_module& module);
  void add_file(const std::string& path);
  // All `*.so` of a directory. False, and a report for the directory itself, when it is not there or not safe.
  bool add_directory(const std::string& directory);

  // In the order found.
  const std::vector<LoadedModule>& modules() const { return modules_; }
  const std::vector<ModuleReport>& reports() const { return reports_; }
  std::vector<ModuleReport>& reports() { return reports_; }

 private:
  std::string load_file(const std::string& path, ModuleReport& report);
  std::string accept(const ggufmill_module& module, std::shared_ptr<void> library, ModuleReport& report);
  void record(ModuleReport report, std::string refusal);

  CpuFeatures features_;
  std::vector<LoadedModule> modules_;
  std::vector<ModuleReport> reports_;
};

}  // namespace ggufmill
