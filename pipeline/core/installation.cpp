#include "pipeline/core/installation.h"

#include <array>

#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/program.h"
#include "pipeline/io/platform/system.h"

namespace ggufmill {
namespace {

// Data folders, relative to the folder above a program's, and to the folder of a library. The first that exists is
// used: GGUFMILL_LIBDIR for an installed program and lib for one in a build folder; the last for a library in the
// package of a Python module.
constexpr std::array kProgramData = {GGUFMILL_LIBDIR "/ggufmill", "lib/ggufmill"};
constexpr std::array kLibraryData = kLibrariesBesidePrograms
                                        ? std::array{"../" GGUFMILL_LIBDIR "/ggufmill", "../lib/ggufmill"}
                                        : std::array{"ggufmill", "lib/ggufmill"};

constexpr const char* kLauncher = "bin/ggufmill";  // in an archive

}  // namespace

std::string own_data_folder() {
  const fs::path own = own_file();
  if (own.empty()) return {};
  const fs::path folder = is_in_program() ? own.parent_path().parent_path() : own.parent_path();
  const auto& candidates = is_in_program() ? kProgramData : kLibraryData;
  std::error_code error;
  for (const char* const candidate : candidates)
    if (fs::is_directory(folder / candidate, error)) return folder / candidate;
  return folder / candidates.back();
}

bool is_in_archive() {
  static const bool is = is_in_program() && is_started_by_loader() && own_program() != own_file();
  return is;
}

std::string own_program() {
  const fs::path own = own_file(), launcher = own.parent_path().parent_path() / kLauncher;
  std::error_code error;
  const bool is_launched = own.parent_path().filename() == "libexec" && fs::is_regular_file(launcher, error);
  return is_launched ? launcher : own;
}

}  // namespace ggufmill
