// Checks which folders may include and link which (DESIGN 2), using the #include lines of the source tree and the
// ggufmill_library() lines of its CMake files.
#include <fnmatch.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <map>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/tsv.h"

namespace ggufmill {
namespace {

namespace fs = std::filesystem;

// A row of configs/wings.tsv: a part of the tree that a build can omit.
struct Wing {
  std::string name;
  std::vector<std::string> folders, identifiers;
};

std::vector<std::string> words_in(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), std::istream_iterator<std::string>()};
}

const std::vector<Wing>& wings() {
  static const std::vector<Wing> all = [] {
    std::vector<Wing> read;
    for (const std::vector<std::string>& row : read_tsv("configs/wings.tsv").rows)
      read.push_back({row[0], words_in(row[1]), words_in(row[4])});
    return read;
  }();
  return all;
}

// Lists the project files that a folder may include, in addition to its own. The first rule that a file falls under
// applies.
struct FolderRule {
  std::string_view folder;
  std::vector<std::string_view> may_include;
};

const std::vector<FolderRule> kFolderRulesOfAll = {
    {"plugins/", {"plugins/"}},
    // The system's calls include nothing of the project, so that every folder may include them.
    {"pipeline/io/platform/", {}},
    {"pipeline/core/", {"pipeline/io/platform/"}},
    {"pipeline/config/", {"pipeline/core/", "pipeline/io/platform/"}},
    {"pipeline/io/", {"pipeline/core/"}},
    {"pipeline/kernels/", {"pipeline/core/", "pipeline/io/platform/", "plugins/abi/"}},
    {"pipeline/report/", {"pipeline/core/"}},
    {"pipeline/plan/", {"pipeline/core/", "pipeline/io/", "pipeline/kernels/", "pipeline/report/"}},
    {"pipeline/manifest/", {"pipeline/core/", "pipeline/plan/", "pipeline/io/"}},
    {"pipeline/journal/", {"pipeline/core/", "pipeline/plan/", "pipeline/io/"}},
    {"pipeline/graph/",
     {"pipeline/core/", "pipeline/plan/", "pipeline/io/", "pipeline/kernels/", "pipeline/report/", "plugins/abi/"}},
    {"pipeline/api/operations/",
     {"pipeline/core/", "pipeline/config/", "pipeline/plan/", "pipeline/io/", "pipeline/kernels/", "pipeline/graph/",
      "pipeline/journal/", "pipeline/report/", "pipeline/api/", "pipeline/llama_cpp/", "stages/"}},
    {"pipeline/api/",
     {"pipeline/core/", "pipeline/config/", "pipeline/plan/", "pipeline/io/", "pipeline/kernels/", "pipeline/graph/",
      "pipeline/journal/", "pipeline/manifest/", "pipeline/report/", "stages/", "plugins/abi/"}},
    {"pipeline/llama_cpp/", {"pipeline/core/", "pipeline/config/", "pipeline/io/", "pipeline/api/", "stages/"}},
    {"pipeline/cluster/",
     {"pipeline/core/", "pipeline/config/", "pipeline/plan/", "pipeline/io/", "pipeline/kernels/", "pipeline/graph/",
      "pipeline/report/", "pipeline/journal/", "pipeline/manifest/", "pipeline/api/"}},
    {"pipeline/call/", {"pipeline/core/", "pipeline/config/", "pipeline/report/", "pipeline/api/", "stages/"}},
    {"pipeline/c_api/", {"pipeline/", "stages/"}},
    {"pipeline/cli/", {"pipeline/", "stages/", "plugins/"}},
    {"stages/huggingface/tokenizer/", {"pipeline/core/", "pipeline/io/"}},
    {"stages/huggingface/checkpoint/", {"pipeline/core/", "pipeline/io/"}},
    {"stages/huggingface/map/",
     {"pipeline/core/", "pipeline/config/", "pipeline/io/", "stages/huggingface/checkpoint/",
      "stages/huggingface/tokenizer/"}},
    {"stages/", {"pipeline/core/", "pipeline/config/", "pipeline/io/"}},
};

// Sources of wings that are compiled into folders of the program: they include what these do.
constexpr std::pair<std::string_view, std::string_view> kPartsOfWings[] = {{"host/", "pipeline/core/"},
                                                                           {"fields/", "pipeline/config/"},
                                                                           {"card/", "pipeline/config/"},
                                                                           {"operations/", "pipeline/api/operations/"}};

// The rules of all folders, with those for parts of wings first.
const std::vector<FolderRule>& folder_rules() {
  static std::vector<std::string> parts;
  static const std::vector<FolderRule> rules = [] {
    std::vector<FolderRule> all = kFolderRulesOfAll;
    for (const Wing& wing : wings())
      for (const std::string& folder : wing.folders)
        for (const auto& [part, home] : kPartsOfWings) parts.push_back(folder + "/" + std::string(part));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      FolderRule rule{parts[i], {}};
      const std::string_view home = kPartsOfWings[i % std::size(kPartsOfWings)].second;
      for (const FolderRule& each : kFolderRulesOfAll)
        if (each.folder == home) rule.may_include = each.may_include;
      rule.may_include.push_back(home);
      all.insert(all.begin(), std::move(rule));
    }
    return all;
  }();
  return rules;
}

// Folders that a folder may link, in addition to those that it may include.
const std::vector<FolderRule> kLinkRules = {
    {"pipeline/kernels/", {"plugins/reference/"}},  // the kernels that are always there
};

// Libraries that only one folder, or the precompiled header, may include.
struct LibraryRule {
  std::string_view prefix;
  std::string_view folder;
};

constexpr LibraryRule kLibraryRules[] = {
    {"tbb/", "pipeline/graph/"},
    {"oneapi/", "pipeline/graph/"},
    {"boost/asio", "pipeline/io/"},
    {"boost/program_options", "pipeline/cli/"},
    {"yaml-cpp/", "pipeline/config/"},
    {"curl/", "pipeline/io/"},
    {"filesystem", "pipeline/io/platform/"},
    {"filesystem", "pipeline/precompiled.h"},
};

// Headers of operating systems, which only the folder of system calls may include.
constexpr std::string_view kSystemHeaders[] = {
    "aclapi.h", "arpa/",     "direct.h",   "dirent.h", "dlfcn.h",    "elf.h",     "fcntl.h",    "fnmatch.h",
    "glob.h",   "grp.h",     "ifaddrs.h",  "io.h",     "liburing",   "link.h",    "linux/",     "mach/",
    "mach-o/",  "malloc.h",  "net/",       "netdb.h",  "netinet/",   "nss.h",     "poll.h",     "process.h",
    "psapi.h",  "pthread.h", "pwd.h",      "sched.h",  "shellapi.h", "shlobj.h",  "signal.h",   "spawn.h",
    "sys/",     "termios.h", "ucontext.h", "unistd.h", "utime.h",    "windows.h", "winioctl.h", "winsock"};
constexpr std::string_view kSystemFolder = "pipeline/io/platform/";

// Files that must include such headers themselves.
constexpr std::string_view kSystemFiles[] = {
    "pipeline/graph/tbb_for_tsan.cpp",           // replaces functions of the C library under ThreadSanitizer
    "pipeline/packages/launcher.c",              // a program without any library
    "pipeline/kernels/check/kernel_checks.cpp",  // the allocations of a kernel
};

constexpr std::string_view kTopFolders[] = {"pipeline/", "stages/", "plugins/", "tests/"};

bool starts_with_any(std::string_view text, const auto& prefixes) {
  return std::any_of(std::begin(prefixes), std::end(prefixes), [&](auto prefix) { return text.starts_with(prefix); });
}

// Returns the folder of a file: "stages/gguf/reader.cpp" -> "stages/gguf/". Folders further down are part of it unless
// they have a rule of their own.
std::string_view folder_of(std::string_view file) {
  const std::size_t top = file.find('/');
  std::string_view folder = file.substr(0, file.find('/', top + 1) + 1);
  for (const FolderRule& rule : folder_rules())
    if (file.starts_with(rule.folder) && rule.folder.size() > folder.size()) folder = rule.folder;
  return folder;
}

bool project_include_allowed(std::string_view file, std::string_view included) {
  if (included.starts_with(folder_of(file))) return true;
  for (const FolderRule& rule : folder_rules()) {
    if (file.starts_with(rule.folder)) return starts_with_any(included, rule.may_include);
  }
  return false;
}

// Returns true for files of the cards of a wing, which alone may include Mustache.
bool is_card(std::string_view file) {
  return std::ranges::any_of(wings(), [&](const Wing& wing) {
    return std::ranges::any_of(wing.folders, [&](const auto& folder) { return file.starts_with(folder + "/card/"); });
  });
}

bool library_include_allowed(std::string_view file, std::string_view included) {
  if (included.starts_with("kainjow/")) return is_card(file);
  bool is_limited = false;
  for (const LibraryRule& rule : kLibraryRules) {
    if (!included.starts_with(rule.prefix)) continue;
    if (file.starts_with(rule.folder)) return true;
    is_limited = true;
  }
  return !is_limited;
}

bool system_include_allowed(std::string_view file, std::string_view included) {
  return !starts_with_any(included, kSystemHeaders) || file.starts_with(kSystemFolder) ||
         std::ranges::count(kSystemFiles, file) != 0;
}

// Catch2 2 and 3 have different headers; a single header hides the difference.
bool catch2_include_allowed(std::string_view file, std::string_view included) {
  return !included.starts_with("catch2/") || file == "tests/support/catch.h";
}

bool include_allowed(std::string_view file, std::string_view included) {
  return starts_with_any(included, kTopFolders)
             ? project_include_allowed(file, included)
             : library_include_allowed(file, included) && system_include_allowed(file, included);
}

// Tests, and what several of them share (test_NAME.h), are next to the code that they test and may include anything.
bool is_test(std::string_view file) {
  return file.find("_test.") != file.npos || file.find("/test_") != file.npos || file.starts_with("tests/");
}

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

// Returns the files for which `wanted` is true, in all folders.
std::vector<std::string> files_where(bool (*wanted)(const fs::path&)) {
  std::vector<std::string> files;
  for (const std::string_view top : kTopFolders) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(top)) {
      if (entry.is_regular_file() && wanted(entry.path())) files.push_back(entry.path().generic_string());
    }
  }
  return files;
}

std::string text_of(const std::string& file) {
  std::ifstream text(file);
  return {std::istreambuf_iterator<char>(text), {}};
}

// A library of a CMake file, and what it links.
struct LinkedLibrary {
  std::string name;                  // "ggufmill_io"
  std::vector<std::string> depends;  // all targets that follow DEPENDS, or that target_link_libraries() lists
};

// Returns the words between the parentheses of each call of a CMake function.
std::vector<std::vector<std::string>> calls_in(const std::string& cmake, const std::string& function) {
  std::vector<std::vector<std::string>> calls;
  const std::string call = function + "(";
  for (std::size_t at = cmake.find(call); at != cmake.npos; at = cmake.find(call, at + 1)) {
    if (at != 0 && cmake[at - 1] != '\n' && cmake[at - 1] != ' ') continue;
    const std::size_t begin = at + call.size();
    std::istringstream words(cmake.substr(begin, cmake.find(')', begin) - begin));
    calls.emplace_back(std::istream_iterator<std::string>(words), std::istream_iterator<std::string>());
  }
  return calls;
}

std::vector<LinkedLibrary> libraries_in(const std::string& cmake) {
  std::vector<LinkedLibrary> libraries;
  for (const auto& words : calls_in(cmake, "ggufmill_library")) {
    const auto depends = std::ranges::find(words, "DEPENDS");
    libraries.push_back({"ggufmill_" + words.front(), {depends, words.end()}});
  }
  for (const auto& words : calls_in(cmake, "target_link_libraries")) libraries.push_back({words.front(), words});
  return libraries;
}

bool is_cmake_file(const fs::path& path) { return path.filename() == "CMakeLists.txt"; }

bool link_allowed(std::string_view folder, std::string_view linked) {
  if (project_include_allowed(folder, linked)) return true;
  return std::ranges::any_of(kLinkRules, [&](const FolderRule& rule) {
    return rule.folder == folder && starts_with_any(linked, rule.may_include);
  });
}

// The folders that each folder needs, by its includes or its links; tests are not counted.
using Needs = std::map<std::string, std::set<std::string>, std::less<>>;

void add_included(Needs& needs) {
  for (const std::string& file : files_where(is_source)) {
    if (is_test(file)) continue;
    std::ifstream text(file);
    for (std::string line; std::getline(text, line);)
      if (const std::string_view included = included_by(line); starts_with_any(included, kTopFolders))
        needs[std::string(folder_of(file))].emplace(folder_of(included));
  }
}

Needs linked_folders() {
  std::map<std::string, std::string> folders;  // of the libraries, by name
  std::vector<LinkedLibrary> libraries;
  for (const std::string& file : files_where(is_cmake_file)) {
    if (is_test(file)) continue;
    for (LinkedLibrary& library : libraries_in(text_of(file))) {
      folders.emplace(library.name, folder_of(file));
      libraries.push_back(std::move(library));
    }
  }
  Needs needs;
  for (const LinkedLibrary& library : libraries)
    for (const std::string& target : library.depends)
      if (const auto linked = folders.find(target); linked != folders.end() && target != library.name)
        needs[folders[library.name]].insert(linked->second);
  return needs;
}

// Returns "a and b" for all folders that need each other.
std::vector<std::string> mutual_needs(const Needs& needs) {
  std::vector<std::string> mutual;
  for (const auto& [folder, needed] : needs)
    for (const std::string& other : needed)
      if (const auto back = needs.find(other); folder < other && back != needs.end() && back->second.contains(folder))
        mutual.push_back(folder + " and " + other);
  return mutual;
}

TEST_CASE("every include of the tree is one that its folder may have") {
  const std::vector<std::string> files = files_where(is_source);
  REQUIRE(files.size() > 10);
  std::vector<std::string> violations;
  for (const std::string& file : files) add_violations(file, violations);
  for (const std::string& violation : violations) FAIL_CHECK(violation);
}

TEST_CASE("the include rules bite") {
  CHECK(include_allowed("pipeline/plan/plan.cpp", "pipeline/core/error.h"));
  CHECK(include_allowed("stages/gguf/reader.cpp", "stages/gguf/layout.h"));
  CHECK(include_allowed("pipeline/io/file.cpp", "boost/asio.hpp"));
  CHECK(include_allowed("pipeline/config/job.h", "pipeline/core/job.h"));
  CHECK_FALSE(include_allowed("pipeline/core/error.cpp", "pipeline/plan/plan.h"));
  CHECK_FALSE(include_allowed("pipeline/config/job.h", "pipeline/plan/plan.h"));
  CHECK_FALSE(include_allowed("pipeline/plan/plan.h", "pipeline/config/job.h"));
  for (const Wing& wing : wings())
    for (const std::string& folder : wing.folders)
      CHECK_FALSE(include_allowed(folder + "/card/card.cpp", "pipeline/io/file.h"));
  CHECK_FALSE(include_allowed("pipeline/api/reports.cpp", "kainjow/mustache.hpp"));
  CHECK_FALSE(include_allowed("stages/gguf/reader.cpp", "stages/quantize/rules.h"));
  CHECK(include_allowed("stages/huggingface/conversion.cpp", "stages/huggingface/map/values.h"));
  CHECK(include_allowed("stages/huggingface/map/values.cpp", "stages/huggingface/checkpoint/adapter.h"));
  CHECK_FALSE(include_allowed("stages/huggingface/map/values.cpp", "stages/huggingface/conversion.h"));
  CHECK_FALSE(include_allowed("stages/huggingface/checkpoint/adapter.cpp", "stages/huggingface/map/values.h"));
  CHECK_FALSE(include_allowed("stages/huggingface/checkpoint/adapter.cpp", "stages/huggingface/tokenizer/regex.h"));
  CHECK_FALSE(include_allowed("stages/huggingface/tokenizer/regex.cpp", "stages/huggingface/checkpoint/adapter.h"));
  CHECK_FALSE(include_allowed("plugins/reference/q4_k.cpp", "pipeline/core/types.h"));
  CHECK_FALSE(include_allowed("pipeline/graph/engine.cpp", "boost/asio.hpp"));
  CHECK_FALSE(include_allowed("pipeline/cli/run.cpp", "tests/support/synth.h"));
}

TEST_CASE("only the folder of system calls includes headers of operating systems") {
  CHECK(include_allowed("pipeline/io/platform/linux/files.cpp", "linux/fs.h"));
  CHECK(include_allowed("pipeline/io/platform/windows/files.cpp", "windows.h"));
  CHECK(include_allowed("pipeline/packages/launcher.c", "unistd.h"));
  CHECK(include_allowed("pipeline/core/text.cpp", "string"));
  CHECK(include_allowed("pipeline/core/error.cpp", "pipeline/io/platform/paths.h"));
  CHECK(include_allowed("stages/gguf/reader.cpp", "pipeline/io/platform/paths.h"));
  CHECK_FALSE(include_allowed("pipeline/io/input_file.cpp", "sys/stat.h"));
  CHECK_FALSE(include_allowed("pipeline/cli/main.cpp", "unistd.h"));
  CHECK_FALSE(include_allowed("pipeline/cli/main.cpp", "filesystem"));
  CHECK_FALSE(include_allowed("pipeline/io/platform/files.h", "pipeline/core/error.h"));
  CHECK_FALSE(include_allowed("pipeline/core/error.cpp", "pipeline/io/input_file.h"));
  CHECK_FALSE(include_allowed("plugins/simd/lanes.h", "sys/auxv.h"));
}

TEST_CASE("every library links only folders that its own folder may need") {
  const Needs links = linked_folders();
  REQUIRE(links.size() > 10);
  for (const auto& [folder, linked] : links)
    for (const std::string& other : linked)
      if (!link_allowed(folder, other)) FAIL_CHECK(folder + ": may not link " + other);
}

TEST_CASE("no two folders need each other") {
  Needs needs = linked_folders();
  add_included(needs);
  for (const std::string& folders : mutual_needs(needs)) FAIL_CHECK(folders);
}

TEST_CASE("the link rules bite") {
  const auto libraries = libraries_in(
      "# text\nggufmill_library(io a.cpp\n  b.cpp DEPENDS ggufmill_core\n  Boost::json)\n"
      "  target_link_libraries(ggufmill_io PUBLIC ggufmill_plan)\n");
  REQUIRE(libraries.size() == 2);
  CHECK(libraries[0].name == "ggufmill_io");
  CHECK(libraries[0].depends == std::vector<std::string>{"DEPENDS", "ggufmill_core", "Boost::json"});
  CHECK(libraries[1].depends == std::vector<std::string>{"ggufmill_io", "PUBLIC", "ggufmill_plan"});
  CHECK(link_allowed("pipeline/io/", "pipeline/core/"));
  CHECK(link_allowed("pipeline/kernels/", "plugins/reference/"));
  CHECK_FALSE(link_allowed("pipeline/io/", "pipeline/plan/"));
  CHECK_FALSE(link_allowed("stages/gguf/", "stages/safetensors/"));
  CHECK(link_allowed("stages/huggingface/", "stages/huggingface/map/"));
  CHECK_FALSE(link_allowed("stages/huggingface/map/", "stages/huggingface/"));
  CHECK_FALSE(link_allowed("stages/huggingface/tokenizer/", "stages/huggingface/map/"));
  CHECK(mutual_needs({{"a/", {"b/"}}, {"b/", {"a/", "c/"}}}) == std::vector<std::string>{"a/ and b/"});
}

// Files that start threads: pipeline/DESIGN.md has the reason of each. TBB, which has threads too, is a library of
// graph.
constexpr std::string_view kThreadFiles[] = {
    "pipeline/api/run.cpp",
    "pipeline/cluster/part.cpp",
    "pipeline/io/services.h",
    "pipeline/io/threads.cpp",
    "pipeline/kernels/check/kernel_checks.cpp",
};

// Returns true if a line of C++ names a class or a function that starts a thread.
bool starts_thread(std::string_view line) {
  const std::string_view code = line.substr(0, line.find("//"));
  return std::ranges::any_of(std::initializer_list<std::string_view>{"std::jthread", "std::async", "std::thread ",
                                                                     "std::thread>", "std::thread("},
                             [&](std::string_view word) { return code.find(word) != code.npos; });
}

TEST_CASE("only the files of the list start threads") {
  CHECK(starts_thread("  std::vector<std::thread> threads;"));
  CHECK_FALSE(starts_thread("  std::this_thread::sleep_for(a);  // not a std::thread "));
  std::set<std::string> found;
  for (const std::string& file : files_where(is_source)) {
    if (is_test(file)) continue;
    std::ifstream text(file);
    for (std::string line; std::getline(text, line);)
      if (starts_thread(line)) found.insert(file);
  }
  CHECK(found == std::set<std::string>(std::begin(kThreadFiles), std::end(kThreadFiles)));
}

// Files that name a wing although they are outside of its folders, and why.
struct NamesWings {
  std::string_view files;  // a path, or the start of paths
  std::string_view why;
};
constexpr NamesWings kNamesWings[] = {
    {"plugins/abi/ggufmill_kernels.h", "the ids that modules may define are part of the ABI of every build"},
    {"pipeline/kernels/module_check.cpp", "checks these ids"},
    {"tests/bench/contenders.cpp", "other programs do not have the types with these ids"},
    {"pipeline/packages/Containerfile", "an image of the complete build, which alone is published"},
    {"pipeline/packages/archive.py", "an archive of the complete build"},
    {"pipeline/packages/windows/windows_archive.py", "an archive of the complete build"},
    {"tests/windows/archive", "tests that archive"},
    {"configs/exclusions/llama.cpp.yaml", "says what llama.cpp does not read"},
};

// Windows is a system and no option: CMake and ./dev choose its folders by the name of the system that they build for.
const Wing kWindows{
    "Windows",
    {"pipeline/io/platform/windows", "pipeline/packages/windows", "tests/windows"},
    {"*WIN32*", "Windows", "*_on_windows", "[Ww]indows_archive", "[Mm]in[Gg][Ww]*", "*-mingw32", "[Ww]ine"}};
constexpr NamesWings kNamesWindows[] = {
    {"pipeline/io/platform/", "the headers of systems: what code of every system may use"},
    {"pipeline/c_api/ggufmill.h", "is compiled by programs of every system"},
    {"plugins/abi/ggufmill_kernels.h", "is compiled by modules of every system"},
    {"pipeline/python/ggufmill/calibrate/command.py", "says what users of Windows can do"},
    {"pipeline/python/tests/calibrate_test.py", "tests that"},
    {"CMakePresets.json", "the one list of presets"},
    {"tests/architecture_test.cpp", "this list"},
};

// Documents describe the complete build, and so do the outputs of golden cases.
bool describes_complete_build(const fs::path& path) {
  return path.extension() == ".md" || path.generic_string().starts_with("tests/cli/cases/");
}

bool is_read_for_names(const fs::path& path) {
  static const std::set<std::string> kEndings = {".h",     ".cpp", ".c",  ".in",   ".py",
                                                 ".cmake", ".txt", ".sh", ".yaml", ""};
  return kEndings.contains(path.extension().string()) && !describes_complete_build(path);
}

std::vector<std::string> identifiers_in(std::string_view text) {
  std::vector<std::string> found;
  std::string word;
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_')
      word += c;
    else if (!word.empty())
      found.push_back(std::move(word)), word.clear();
  }
  if (!word.empty()) found.push_back(std::move(word));
  return found;
}

bool is_identifier_of(const Wing& wing, const std::string& word) {
  return std::ranges::any_of(
      wing.identifiers, [&](const std::string& pattern) { return ::fnmatch(pattern.c_str(), word.c_str(), 0) == 0; });
}

// Returns by what a text names a wing; empty if it does not.
std::string name_in(const std::string& text, const Wing& wing) {
  for (const std::string& folder : wing.folders)
    if (text.find(folder + "/") != text.npos) return folder;
  for (const std::string& word : identifiers_in(text))
    if (is_identifier_of(wing, word)) return word;
  return {};
}

// Fails for each file that is outside of the wing's folders and names it, unless it is one of the exceptions.
void check_names(const Wing& wing, std::span<const NamesWings> exceptions, std::set<std::string_view>& used) {
  std::vector<std::string> files = files_where(is_read_for_names);
  for (const char* file : {"CMakeLists.txt", "CMakePresets.json", "dev", ".ci/run"}) files.emplace_back(file);
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator("configs"))
    if (entry.is_regular_file() && is_read_for_names(entry.path())) files.push_back(entry.path().generic_string());
  for (const std::string& file : files) {
    if (std::ranges::any_of(wing.folders, [&](const auto& folder) { return file.starts_with(folder + "/"); })) continue;
    const std::string named = name_in(text_of(file), wing);
    if (named.empty()) continue;
    const auto exception =
        std::ranges::find_if(exceptions, [&](const NamesWings& each) { return file.starts_with(each.files); });
    if (exception == exceptions.end())
      FAIL_CHECK(file + " names " + wing.name + ": " + named);
    else
      used.insert(exception->files);
  }
}

void check_used(std::span<const NamesWings> exceptions, const std::set<std::string_view>& used) {
  for (const NamesWings& each : exceptions) {
    CAPTURE(each.files);
    CHECK(used.contains(each.files));
  }
}

// Returns the names that a text takes from fs, which is <filesystem> or, on Windows, this project's own part of it.
std::set<std::string> names_from_fs(const std::string& text) {
  std::set<std::string> found;
  constexpr std::string_view kPrefix = "fs::";
  for (std::size_t at = text.find(kPrefix); at != text.npos; at = text.find(kPrefix, at + 1)) {
    const char before = at == 0 ? ' ' : text[at - 1];
    if (std::isalnum(static_cast<unsigned char>(before)) || before == '_') continue;
    const std::vector<std::string> names = identifiers_in(text.substr(at + kPrefix.size(), 80));
    if (!names.empty()) found.insert(names.front());
  }
  return found;
}

TEST_CASE("the program uses only what Windows has of <filesystem>") {
  CHECK(names_from_fs("fs::path a = x_fs::b(fs::copy(c));") == std::set<std::string>{"path", "copy"});
  const std::vector<std::string> declared = identifiers_in(text_of("pipeline/io/platform/windows/filesystem.h"));
  const std::set<std::string> known(declared.begin(), declared.end());
  for (const std::string& file : files_where(is_source)) {
    if (is_test(file)) continue;
    for (const std::string& name : names_from_fs(text_of(file)))
      if (!known.contains(name)) FAIL_CHECK(file + " uses fs::" + name + ", which pipeline/io/platform/windows lacks");
  }
}

TEST_CASE("no file outside a wing names it, but for the list of wings") {
  std::set<std::string_view> used;
  for (const Wing& wing : wings()) check_names(wing, kNamesWings, used);
  check_used(kNamesWings, used);
}

TEST_CASE("no file outside its folders names Windows") {
  std::set<std::string_view> used;
  check_names(kWindows, kNamesWindows, used);
  check_used(kNamesWindows, used);
}

TEST_CASE("the names of wings bite") {
  const Wing wing{"one", {"plugins/one"}, {"one", "One[A-Z]*", "*_one_*"}};
  for (const char* text : {"#include \"plugins/one/a.h\"", "x.one()", "OneType x;", "ggufmill_one_module", "\"one\""}) {
    CAPTURE(text);
    CHECK_FALSE(name_in(text, wing).empty());
  }
  for (const char* text : {"plugins/ones/a.h", "none ones", "phone"}) {
    CAPTURE(text);
    CHECK(name_in(text, wing).empty());
  }
}

TEST_CASE("only one header includes Catch2") {
  CHECK(catch2_include_allowed("tests/support/catch.h", "catch2/catch.hpp"));
  CHECK_FALSE(catch2_include_allowed("pipeline/core/types_test.cpp", "catch2/catch.hpp"));
  CHECK_FALSE(catch2_include_allowed("tests/recipes_test.cpp", "catch2/catch_approx.hpp"));
}

TEST_CASE("include lines are distinguished from others") {
  CHECK(included_by("#include \"pipeline/core/error.h\"  // first") == "pipeline/core/error.h");
  CHECK(included_by("#include <vector>") == "vector");
  CHECK(included_by("#include MACRO").empty());
  CHECK(included_by("// #include <vector>").empty());
}

}  // namespace
}  // namespace ggufmill
