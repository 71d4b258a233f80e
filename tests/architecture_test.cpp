// Checks which folders may include which (DESIGN 2), using the #include lines of the source tree.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/catch.h"

namespace ggufmill {
namespace {

namespace fs = std::filesystem;

// Lists the project files that a folder may include, in addition to its own.
struct FolderRule {
  std::string_view folder;
  std::vector<std::string_view> may_include;
};

const std::vector<FolderRule> kFolderRules = {
    {"plugins/", {"plugins/"}},
    {"pipeline/core/", {}},
    {"pipeline/config/", {"pipeline/core/", "pipeline/plan/job.h"}},  // a pipeline file becomes a Job
    {"pipeline/io/", {"pipeline/core/"}},
    {"pipeline/remote/", {"pipeline/core/", "pipeline/io/"}},
    {"pipeline/kernels/", {"pipeline/core/", "plugins/abi/"}},
    {"pipeline/report/", {"pipeline/core/"}},
    {"pipeline/plan/", {"pipeline/core/", "pipeline/io/", "pipeline/kernels/", "pipeline/report/"}},
    {"pipeline/manifest/", {"pipeline/core/", "pipeline/plan/", "pipeline/io/"}},
    {"pipeline/journal/", {"pipeline/core/", "pipeline/plan/", "pipeline/io/"}},
    {"pipeline/graph/",
     {"pipeline/core/", "pipeline/plan/", "pipeline/io/", "pipeline/kernels/", "pipeline/report/", "plugins/abi/"}},
    {"pipeline/api/",
     {"pipeline/core/", "pipeline/config/", "pipeline/plan/", "pipeline/io/", "pipeline/kernels/", "pipeline/graph/",
      "pipeline/journal/", "pipeline/manifest/", "pipeline/report/", "stages/", "plugins/abi/"}},
    {"pipeline/cluster/",
     {"pipeline/core/", "pipeline/config/", "pipeline/plan/", "pipeline/io/", "pipeline/kernels/", "pipeline/graph/",
      "pipeline/report/", "pipeline/journal/", "pipeline/manifest/", "pipeline/api/"}},
    {"pipeline/cli/", {"pipeline/", "stages/", "plugins/"}},
    {"pipeline/python/",
     {"pipeline/core/", "pipeline/config/", "pipeline/plan/", "pipeline/graph/", "pipeline/report/", "pipeline/api/"}},
    {"stages/", {"pipeline/core/", "pipeline/config/", "pipeline/io/"}},
};

// Libraries that only one folder may include.
struct LibraryRule {
  std::string_view prefix;
  std::string_view folder;
};

constexpr LibraryRule kLibraryRules[] = {
    {"tbb/", "pipeline/graph/"},       {"oneapi/", "pipeline/graph/"},
    {"boost/asio", "pipeline/io/"},    {"boost/program_options", "pipeline/cli/"},
    {"yaml-cpp/", "pipeline/config/"}, {"pybind11/", "pipeline/python/"},
    {"curl/", "pipeline/remote/"},
};

constexpr std::string_view kTopFolders[] = {"pipeline/", "stages/", "plugins/", "tests/"};

bool starts_with_any(std::string_view text, const auto& prefixes) {
  return std::any_of(std::begin(prefixes), std::end(prefixes), [&](auto prefix) { return text.starts_with(prefix); });
}

// Returns the folder of a file: "stages/gguf/reader.cpp" -> "stages/gguf/".
std::string_view folder_of(std::string_view file) {
  const std::size_t top = file.find('/');
  return file.substr(0, file.find('/', top + 1) + 1);
}

bool project_include_allowed(std::string_view file, std::string_view included) {
  if (included.starts_with(folder_of(file))) return true;
  for (const FolderRule& rule : kFolderRules) {
    if (file.starts_with(rule.folder)) return starts_with_any(included, rule.may_include);
  }
  return false;
}

bool library_include_allowed(std::string_view file, std::string_view included) {
  for (const LibraryRule& rule : kLibraryRules) {
    if (included.starts_with(rule.prefix)) return file.starts_with(rule.folder);
  }
  return true;
}

// Catch2 2 and 3 have different headers; a single header hides the difference.
bool catch2_include_allowed(std::string_view file, std::string_view included) {
  return !included.starts_with("catch2/") || file == "tests/support/catch.h";
}

bool include_allowed(std::string_view file, std::string_view included) {
  return starts_with_any(included, kTopFolders) ? project_include_allowed(file, included)
                                                : library_include_allowed(file, included);
}

// Tests are stored next to the code that they test and may include anything they need.
bool is_test(std::string_view file) { return file.find("_test.") != file.npos || file.starts_with("tests/"); }

bool is_source(const fs::path& path) {
  return path.extension() == ".h" || path.extension() == ".cpp" || path.extension() == ".c";
}

// Returns the text between the quotes or brackets of an #include line; empty for any other line.
std::string_view included_by(std::string_view line) {
  if (!line.starts_with("#include ")) return {};
  const std::size_t open = line.find_first_of("\"<");
  const std::size_t close = open == line.npos ? open : line.find_first_of("\">", open + 1);
  return close == line.npos ? std::string_view() : line.substr(open + 1, close - open - 1);
}

void add_violations(const std::string& file, std::vector<std::string>& violations) {
  std::ifstream text(file);
  for (std::string line; std::getline(text, line);) {
    const std::string_view included = included_by(line);
    const bool quoted = line.find('"') != line.npos;
    if (included.empty()) continue;
    if (quoted && !starts_with_any(included, kTopFolders)) violations.push_back(file + ": not from the root: " + line);
    const bool allowed = catch2_include_allowed(file, included) && (is_test(file) || include_allowed(file, included));
    if (!allowed) violations.push_back(file + ": not allowed: " + line);
  }
}

std::vector<std::string> source_files() {
  std::vector<std::string> files;
  for (const std::string_view top : kTopFolders) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(top)) {
      if (entry.is_regular_file() && is_source(entry.path())) files.push_back(entry.path().generic_string());
    }
  }
  return files;
}

TEST_CASE("every include of the tree is one that its folder may have") {
  const std::vector<std::string> files = source_files();
  REQUIRE(files.size() > 10);
  std::vector<std::string> violations;
  for (const std::string& file : files) add_violations(file, violations);
  for (const std::string& violation : violations) FAIL_CHECK(violation);
}

TEST_CASE("the include rules bite") {
  CHECK(include_allowed("pipeline/plan/plan.cpp", "pipeline/core/error.h"));
  CHECK(include_allowed("stages/gguf/reader.cpp", "stages/gguf/layout.h"));
  CHECK(include_allowed("pipeline/io/file.cpp", "boost/asio.hpp"));
  CHECK(include_allowed("pipeline/config/job.h", "pipeline/plan/job.h"));
  CHECK_FALSE(include_allowed("pipeline/core/error.cpp", "pipeline/plan/plan.h"));
  CHECK_FALSE(include_allowed("pipeline/config/job.h", "pipeline/plan/plan.h"));
  CHECK_FALSE(include_allowed("pipeline/plan/plan.h", "pipeline/config/job.h"));
  CHECK_FALSE(include_allowed("stages/gguf/reader.cpp", "stages/quantize/rules.h"));
  CHECK_FALSE(include_allowed("plugins/reference/q4_k.cpp", "pipeline/core/types.h"));
  CHECK_FALSE(include_allowed("pipeline/graph/engine.cpp", "boost/asio.hpp"));
  CHECK_FALSE(include_allowed("pipeline/cli/run.cpp", "tests/support/synth.h"));
}

TEST_CASE("only one header includes Catch2") {
  CHECK(catch2_include_allowed("tests/support/catch.h", "catch2/catch.hpp"));
  CHECK_FALSE(catch2_include_allowed("pipeline/core/types_test.cpp", "catch2/catch.hpp"));
  CHECK_FALSE(catch2_include_allowed("tests/recipes_test.cpp", "catch2/catch_approx.hpp"));
}

TEST_CASE("include lines are told from others") {
  CHECK(included_by("#include \"pipeline/core/error.h\"  // first") == "pipeline/core/error.h");
  CHECK(included_by("#include <vector>") == "vector");
  CHECK(included_by("#include MACRO").empty());
  CHECK(included_by("// #include <vector>").empty());
}

}  // namespace
}  // namespace ggufmill
