// Paths that are refused as outputs.

#include <fmt/format.h>
#include <unistd.h>

#include "pipeline/core/option_reference.h"
#include "pipeline/io/atomic_file.h"
#include "pipeline/io/output_target.h"
#include "pipeline/io/platform/filesystem.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

using Names = std::vector<std::string>;

Error create_error(const std::string& path, const AtomicFile::Options& options) {
  auto file = AtomicFile::create(path, 6, options);
  return file ? Error{ExitCode::kOk, "", "no error", "", ""} : file.error();
}

}  // namespace

TEST_CASE("an existing file is refused, naming --overwrite") {
  const TempDir folder;
  write_text(folder.file("out"), "old");
  const Error error = create_error(folder.file("out"), {});
  CHECK(error.code == ExitCode::kUsage);
  CHECK(error.help.find(option_reference("overwrite", "true")) != std::string::npos);
  CHECK(read_text(folder.file("out")) == "old");
}

TEST_CASE("an input is never the target, however it is spelled") {
  const TempDir folder;
  write_text(folder.file("in"), "weights");
  fs::create_symlink("in", folder.file("symbolic"));
  fs::create_hard_link(folder.file("in"), folder.file("hard"));
  const std::string name = GENERATE(as<std::string>(), "in", "./in", "symbolic", "hard", "new/../in", "new/../hard");
  const std::string input = GENERATE(as<std::string>(), "in", "symbolic", "hard");
  CAPTURE(name, input);
  const WrittenPath written[] = {{folder.file("other")}, {folder.file(name)}};
  const std::string read[] = {folder.file("missing"), folder.file(input)};
  Diagnostics errors;
  CHECK(check_distinct(written, read, errors) == Names{folder.file(name)});
  REQUIRE(errors.errors().size() == 1);
  CHECK(errors.errors()[0].code == ExitCode::kUsage);
  CHECK(errors.errors()[0].what == fmt::format("the output is the same file as the input '{}'", folder.file(input)));
  CHECK(names_in(folder.path()) == Names{"hard", "in", "symbolic"});
}

TEST_CASE("a duplicate output is refused at its position, naming the first") {
  const TempDir folder;
  const std::string path = folder.file("out");
  const WrittenPath written[] = {{path, "output", {"job.yaml:4:5", ""}}, {path, "report", {"job.yaml:6:7", "| line"}}};
  Diagnostics errors;
  check_distinct(written, {}, errors);
  REQUIRE(errors.errors().size() == 1);
  CHECK(errors.errors()[0].where == "job.yaml:6:7");
  CHECK(errors.errors()[0].what ==
        fmt::format("the report '{0}' is the same file as the output '{0}' of job.yaml:4:5", path));
  CHECK(errors.errors()[0].detail == "| line");
}

TEST_CASE("anything but a regular file is refused as a target") {
  const TempDir folder;
  fs::create_directory(folder.file("folder"));
  write_text(folder.file("file"), "x");
  fs::create_symlink("file", folder.file("link"));
  fs::create_symlink("nowhere", folder.file("dangling"));
  const std::string name = GENERATE(as<std::string>(), "folder", "folder/", "folder/..", "", "link", "dangling");
  CAPTURE(name);
  CHECK(create_error(folder.file(name), {true}).code == ExitCode::kUsage);
  CHECK(create_error("/dev/null", {true}).code == ExitCode::kUsage);
  CHECK(create_error("", {true}).code == ExitCode::kUsage);
  CHECK(create_error(folder.file(std::string_view("a\0b", 3)), {}).code == ExitCode::kUsage);
}

TEST_CASE("a file in place of a folder is an error that names it") {
  const TempDir folder;
  write_text(folder.file("file"), "x");
  const Error error = create_error(folder.file("file/out"), {});
  CHECK(error.code == ExitCode::kIo);
  CHECK(error.where == folder.file("file/"));
}

TEST_CASE("a folder that may not be written is an error") {
  if (::geteuid() == 0) GGUFMILL_SKIP("nothing is forbidden to root");
  const TempDir folder;
  fs::permissions(folder.path(), fs::perms(0500));
  CHECK(create_error(folder.file("out"), {}).code == ExitCode::kIo);
  CHECK(create_error(folder.file("new/out"), {}).code == ExitCode::kIo);
}

TEST_CASE("an impossible file size is an error at the start") {
  const TempDir folder;
  for (const std::uint64_t bytes : {~0ull, 1ull << 63, 1ull << 61}) {
    const auto file = AtomicFile::create(folder.file("out"), bytes, {});
    REQUIRE_FALSE(file);
    CHECK(file.error().code == ExitCode::kIo);
  }
  CHECK(names_in(folder.path()).empty());
}
