#include "pipeline/cli/program.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <pcre2.h>
#include <unicode/uversion.h>
#include <xxhash.h>

#include <array>
#include <boost/version.hpp>
#include <fstream>
#include <vector>
#ifdef __GLIBC__
#include <gnu/libc-version.h>
#endif

#include "pipeline/api/table.h"
#include "pipeline/core/installation.h"
#include "pipeline/core/text.h"
#include "pipeline/core/upstream.h"
#include "pipeline/graph/engine.h"
#include "pipeline/io/machine.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/remote/http.h"

namespace ggufmill {
namespace {

std::string icu_version() {
  UVersionInfo version;
  u_getVersion(version);
  return fmt::format("{}.{}", version[0], version[1]);
}

std::string pcre2_version() {
  std::array<char, 64> text{};
  pcre2_config(PCRE2_CONFIG_VERSION, text.data());
  return text.data();
}

// 10203 -> "1.2.3"
std::string version_text(unsigned number) {
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100, number % 100);
}

void add(std::vector<Row>& rows, const char* name, const std::string& value) {
  if (!value.empty()) rows.push_back({name, printable(value)});
}

// Versions at run time; those of libraries that do not report it, and of headers, are from when the program was built.
void add_libraries(std::vector<Row>& rows) {
#ifdef __GLIBC__
  add(rows, "glibc", ::gnu_get_libc_version());
#endif
  add(rows, "compiler", GGUFMILL_COMPILER);
  add(rows, "Boost", fmt::format("{}.{}.{}", BOOST_VERSION / 100000, BOOST_VERSION / 100 % 1000, BOOST_VERSION % 100));
  add(rows, "oneTBB", engine_library_version());
  add(rows, "OpenSSL", ::OpenSSL_version(OPENSSL_VERSION_STRING));
  add(rows, "libcurl", remote::http_libraries());
  add(rows, "liburing", GGUFMILL_LIBURING_VERSION);
  add(rows, "ICU", icu_version());
  add(rows, "PCRE2", pcre2_version());
  add(rows, "xxHash", version_text(XXH_versionNumber()));
  add(rows, "yaml-cpp", GGUFMILL_YAML_CPP_VERSION);
  add(rows, "fmt", version_text(FMT_VERSION));
}

// Returns the table of the programs and libraries whose output ggufmill reproduces byte for byte.
std::string followed_versions() {
  std::vector<Row> rows{{"llama.cpp", fmt::format("{} of {}", upstream_version(), upstream_date())}};
  for (const UpstreamLibrary& library : upstream_libraries())
    rows.push_back({std::string(library.name), std::string(library.version)});
  return "\n" + render_table({{"followed"}, {"version"}}, rows);
}

// The packages whose libraries are in an archive; empty elsewhere.
std::string bundled_packages() {
  std::ifstream file(stream_path(own_data_folder() + "/packages.tsv"));
  std::vector<Row> rows;
  for (std::string line; std::getline(file, line);)
    if (const std::size_t tab = line.find('\t'); tab != line.npos)
      rows.push_back({line.substr(0, tab), line.substr(tab + 1)});
  if (rows.empty()) return {};
  return "\n" + render_table({{"bundled package"}, {"version"}}, rows);
}

}  // namespace

std::string verbose_version() {
  std::vector<Row> rows;
  add_libraries(rows);
  add(rows, "program", own_program());
  add(rows, "modules", own_data_folder());
  add(rows, "certificates", remote::certificate_file());
  add(rows, "threads", fmt::format("{}: {}", threads_for(0), describe(cpu_limits())));
  return fmt::format("ggufmill {}\n\n{}{}{}", GGUFMILL_VERSION, render_table({{"library"}, {"version"}}, rows),
                     followed_versions(), bundled_packages());
}

}  // namespace ggufmill
