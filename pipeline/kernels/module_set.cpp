#include "pipeline/kernels/module_set.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <mutex>
#include <new>
#include <tuple>

#include "pipeline/core/installation.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/paths.h"
#include "pipeline/io/platform/process.h"
#include "pipeline/io/platform/program.h"
#include "pipeline/kernels/module_file.h"

namespace ggufmill {
namespace {

// Lists the paths of the shared libraries in a directory, sorted by name. Returns false if it cannot be read, with the
// system's message in `reason`.
bool list_modules(const std::string& directory, std::vector<std::string>& paths, std::string& reason) {
  int error = 0;
  for (const std::string& name : names_in_folder(directory, error))
    if (is_library_name(name)) paths.push_back((fs::path(directory) / name).string());
  if (error != 0) reason = fmt::format("cannot be read: {}", std::strerror(error));
  return error == 0;
}

void describe(const ModuleWords& words, ModuleReport& report) {
  report.name = words.name;
  report.version = words.version;
  report.isa = words.isa;
  report.cpu_features = words.cpu_features;
}

const ggufmill_module* module_in(void* library, std::string& reason) {
  const auto* module = static_cast<const ggufmill_module*>(find_symbol(library, GGUFMILL_SYMBOL));
  if (!module) reason = kExportsNothing;
  return module;
}

// Sets `hash` to the XXH3 (128 bits) of a file's bytes; returns an error message if it cannot be read.
std::string hash_file(const std::string& path, std::string& hash) {
  std::ifstream file(stream_path(path), std::ios::binary);
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), &XXH3_freeState);
  if (!state) throw std::bad_alloc();
  XXH3_128bits_reset(state.get());
  std::vector<char> piece(64 << 10);
  while (file) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    XXH3_128bits_update(state.get(), piece.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (!file.eof()) return fmt::format("cannot be read: {}", std::strerror(errno));
  const XXH128_hash_t digest = XXH3_128bits_digest(state.get());
  hash = fmt::format("{:016x}{:016x}", digest.high64, digest.low64);
  return {};
}

// The loader's lock is per process: a child forked while another thread loads a library would find it locked.
std::mutex& loading() {
  static std::mutex instance;
  return instance;
}

constexpr const char* kTrialProgram = "ggufmill-module-trial";  // trial_main.cpp

std::string try_to_load(const std::string& path) {
  const std::vector<std::string> helper{own_data_folder() + "/" + kTrialProgram, path};
  const ChildAnswer answer = ask_child([&] { return load_and_unload(path); }, {}, helper);
  return answer.fault.empty() ? answer.text : fmt::format("is damaged: a process that loads it {}", answer.fault);
}

}  // namespace

std::string load_and_unload(const std::string& path) {
  std::string reason;
  const std::shared_ptr<void> library = open_library(path, reason);
  const ggufmill_module* module = library ? module_in(library.get(), reason) : nullptr;
  ModuleWords words;
  Types types;
  KernelOwners owners;
  std::vector<ggufmill_kernel> usable;
  std::vector<std::string> passed_over;
  if (module && check_abi(*module).empty() && copy_words(*module, words).empty())
    check_kernels(*module, types, owners, usable, passed_over);
  return reason;
}

void ModuleSet::add_built_in(const ggufmill_module& module) {
  ModuleReport report;
  report.path = "(built in)";
  std::string refusal = accept(module, nullptr, report);
  record(std::move(report), std::move(refusal));
}

void ModuleSet::add_file(const std::string& path, Trial trial) {
  ModuleReport report;
  report.path = path;
  std::string refusal = load_file(path, trial, report);
  record(std::move(report), std::move(refusal));
}

bool ModuleSet::add_directory(const std::string& directory, Trial trial) {
  std::vector<std::string> paths;
  std::string refusal = why_unsafe_to_load(directory, trial == Trial::kNone);
  if (refusal.empty() && list_modules(directory, paths, refusal)) {
    for (const std::string& path : paths) add_file(path, trial);
    return true;
  }
  ModuleReport report;
  report.path = directory;
  record(std::move(report), std::move(refusal));
  return false;
}

// The module's strings are checked in the file before any of its instructions run, and again in memory, because the
// file may have changed in between.
std::string ModuleSet::load_file(const std::string& path, Trial trial, ModuleReport& report) {
  const std::lock_guard lock(loading());
  std::string reason = why_unsafe_to_load(path, trial == Trial::kNone);
  ModuleFile file;
  if (reason.empty()) reason = read_module_file(path, file);
  describe(file.words, report);
  if (reason.empty()) reason = check_words(file.words, features_);
  if (reason.empty() && trial == Trial::kInChild) reason = try_to_load(path);
  if (!reason.empty()) return reason;

  std::shared_ptr<void> library = open_library(path, reason);
  const ggufmill_module* module = library ? module_in(library.get(), reason) : nullptr;
  if (!module) return reason;
  reason = accept(*module, std::move(library), report);
  if (reason.empty()) modules_.back().is_own = trial == Trial::kNone;
  if (!reason.empty() || std::ranges::none_of(modules_.back().kernels, is_foreign_kernel)) return reason;
  reason = hash_file(path, report.xxh3);
  if (!reason.empty()) modules_.pop_back();
  return reason;
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
      return fmt::format("module '{}' for {} is already loaded from {}", words.name, words.isa,
                         reports_[other.report].path);

  LoadedModule loaded{std::move(library), &module, find_isa(words.isa), {}, {}, reports_.size()};
  reason = check_kernels(module, types_, owners_, loaded.kernels, report.kernel_refusals);
  if (!reason.empty()) return reason;
  loaded.path = report.path;
  report.kernels = loaded.kernels.size();
  modules_.push_back(std::move(loaded));
  return {};
}

void ModuleSet::record(ModuleReport report, std::string refusal) {
  report.loaded = refusal.empty();
  report.refusal = std::move(refusal);
  reports_.push_back(std::move(report));
}

std::vector<const LoadedModule*> ranked(std::span<const LoadedModule> modules) {
  std::vector<const LoadedModule*> order;
  for (const LoadedModule& module : modules) order.push_back(&module);
  auto merit = [](const LoadedModule* module) { return std::tuple(module->isa->rank, module->library != nullptr); };
  std::stable_sort(order.begin(), order.end(), [&](auto* a, auto* b) { return merit(a) > merit(b); });
  return order;
}

KernelTable choose(std::span<const LoadedModule> modules, std::string_view isa) {
  const std::vector<const LoadedModule*> order = ranked(modules);
  KernelTable table;
  const auto is_search = [](const ggufmill_kernel& kernel) {
    return kernel.encoder && kernel.encoder == search_method().name;
  };
  for (const bool is_asked : {true, false})
    for (const LoadedModule* module : order)
      for (const ggufmill_kernel& kernel : module->kernels)
        if (is_asked ? isa.empty() || module->isa->name == isa
                     : is_foreign_kernel(kernel) || (!module->library && is_search(kernel)))
          table.try_emplace(key_of(kernel), Chosen{module->choice(kernel), module->report});
  return table;
}

}  // namespace ggufmill
