#include "pipeline/core/installation.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

#include <array>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace ggufmill {
namespace {

namespace fs = std::filesystem;

// Data folders, relative to the folder above a program's, and to the folder of a library. The first that exists is
// used: GGUFMILL_LIBDIR for an installed program and lib for one in a build folder; the last for a library in the
// package of a Python module.
constexpr std::array kProgramData = {GGUFMILL_LIBDIR "/ggufmill", "lib/ggufmill"};
constexpr std::array kLibraryData = {"ggufmill", "lib/ggufmill"};

constexpr const char* kLauncher = "bin/ggufmill";  // in an archive

// Returns null if the dynamic loader does not know this code.
const link_map* own_object() {
  Dl_info info;
  void* object = nullptr;
  if (::dladdr1(reinterpret_cast<const void*>(&own_object), &info, &object, RTLD_DL_LINKMAP) == 0) return nullptr;
  return static_cast<const link_map*>(object);
}

// The program is the first object of the list. /proc/self/exe does not name it if a loader was started with the program
// as its argument.
bool is_program() {
  const link_map* const own = own_object();
  return own && !own->l_prev;
}

std::string mapped_file() {
  const auto here = reinterpret_cast<std::uintptr_t>(&own_file);
  std::ifstream maps("/proc/self/maps");
  maps.exceptions(std::ios::badbit);  // "7f1c00000-7f1c02000 r-xp 00000000 08:01 1234    /usr/lib/libggufmill.so"
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0, end = 0;
    const std::size_t slash = line.find('/');
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR, &begin, &end) != 2 || here < begin || here >= end) continue;
    return slash == std::string::npos ? std::string() : line.substr(slash);
  }
  return {};
}

// Used if /proc is not mounted: the path by which the object was loaded or the program started.
std::string loaded_file() {
  const link_map* const own = own_object();
  if (!own) return {};
  // The kernel gives the address as a number.
  const auto* const started =
      reinterpret_cast<const char*>(::getauxval(AT_EXECFN));  // NOLINT(performance-no-int-to-ptr)
  const char* const name = own->l_name && *own->l_name ? own->l_name : started;
  std::error_code error;
  const fs::path path = name ? fs::canonical(name, error) : fs::path();
  return error ? std::string() : path.string();
}

}  // namespace

const std::string& own_file() {
  static const std::string path = [] {
    std::string mapped = mapped_file();
    return mapped.empty() ? loaded_file() : mapped;
  }();
  return path;
}

std::string own_data_folder() {
  const fs::path own = own_file();
  if (own.empty()) return {};
  const fs::path folder = is_program() ? own.parent_path().parent_path() : own.parent_path();
  const auto& candidates = is_program() ? kProgramData : kLibraryData;
  std::error_code error;
  for (const char* const candidate : candidates)
    if (fs::is_directory(folder / candidate, error)) return folder / candidate;
  return folder / candidates.back();
}

bool is_in_archive() {
  // the kernel reports no loader of a loader
  static const bool is = is_program() && ::getauxval(AT_BASE) == 0 && own_program() != own_file();
  return is;
}

std::string own_program() {
  const fs::path own = own_file(), launcher = own.parent_path().parent_path() / kLauncher;
  std::error_code error;
  const bool is_launched = own.parent_path().filename() == "libexec" && fs::is_regular_file(launcher, error);
  return is_launched ? launcher : own;
}

}  // namespace ggufmill
