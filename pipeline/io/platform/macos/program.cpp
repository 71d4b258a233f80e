// Unproven: compiled with stub headers, never run.
#include "pipeline/io/platform/program.h"

#include <dlfcn.h>
#include <mach-o/loader.h>

#include <filesystem>

namespace ggufmill {
namespace {

// Returns false if the dynamic loader does not know this code.
bool find_own_image(Dl_info& info) { return ::dladdr(reinterpret_cast<const void*>(&own_file), &info) != 0; }

}  // namespace

const std::string& own_file() {
  static const std::string path = [] {
    Dl_info info;
    std::error_code error;
    const auto found =
        find_own_image(info) ? std::filesystem::canonical(info.dli_fname, error) : std::filesystem::path();
    return error ? std::string() : found.string();
  }();
  return path;
}

bool is_in_program() {
  Dl_info info;
  return find_own_image(info) && static_cast<const mach_header_64*>(info.dli_fbase)->filetype == MH_EXECUTE;
}

bool is_started_by_loader() { return false; }

bool is_library_name(std::string_view name) {
  return (name.size() > 6 && name.ends_with(".dylib")) || (name.size() > 3 && name.ends_with(".so"));
}

}  // namespace ggufmill
