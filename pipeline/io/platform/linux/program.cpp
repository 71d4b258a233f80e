#include "pipeline/io/platform/program.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

#include <cinttypes>
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace ggufmill {
namespace {

namespace fs = std::filesystem;

// Returns null if the dynamic loader does not know this code.
const link_map* own_object() {
  Dl_info info;
  void* object = nullptr;
  if (::dladdr1(reinterpret_cast<const void*>(&own_object), &info, &object, RTLD_DL_LINKMAP) == 0) return nullptr;
  return static_cast<const link_map*>(object);
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

// The program is the first object of the list. /proc/self/exe does not name it if a loader was started with the program
// as its argument.
bool is_in_program() {
  const link_map* const own = own_object();
  return own && !own->l_prev;
}

bool is_started_by_loader() { return ::getauxval(AT_BASE) == 0; }  // the kernel reports no loader of a loader

bool is_library_name(std::string_view name) { return name.size() > 3 && name.ends_with(".so"); }

}  // namespace ggufmill
