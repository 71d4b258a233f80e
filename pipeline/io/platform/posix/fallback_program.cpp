#include <dlfcn.h>

#include <filesystem>

#include "pipeline/io/platform/program.h"

namespace ggufmill {
namespace {

// Returns the path by which the object with the given code was loaded; empty if unknown.
std::string file_of(const void* code) {
  Dl_info info;
  if (::dladdr(code, &info) == 0 || !info.dli_fname) return {};
  std::error_code error;
  const std::filesystem::path path = std::filesystem::canonical(info.dli_fname, error);
  return error ? std::string() : path.string();
}

}  // namespace

const std::string& own_file() {
  static const std::string path = file_of(reinterpret_cast<const void*>(&own_file));
  return path;
}

// Only a program has the symbol main(), and only if it exports its symbols; otherwise a library is recognized by its
// ending.
bool is_in_program() { return !is_library_name(own_file()) && own_file().find(".so.") == std::string::npos; }

bool is_started_by_loader() { return false; }

bool is_library_name(std::string_view name) { return name.size() > 3 && name.ends_with(".so"); }

}  // namespace ggufmill
