// Files that are wrong: one clear error each.

#include <fmt/format.h>

#include <filesystem>

#include "stages/gguf/gguf.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/hostile_gguf.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

TEST_CASE("every hostile file gives one error with its file and byte") {
  const TempDir folder;
  const std::string path = folder.file("hostile.gguf");
  for (const HostileFile& file : hostile_files()) {
    CAPTURE(file.name);
    write_text(path, file.bytes);
    const auto model = read_gguf(path);
    REQUIRE_FALSE(model);
    const Error& error = model.error();
    CAPTURE(render(error));
    CHECK(error.code == ExitCode::kBadInput);
    CHECK(error.where == path);
    CHECK(error.what.find(file.says) != std::string::npos);
    CHECK(error.what.find('\n') == std::string::npos);
    CHECK(error.detail.find(fmt::format("at byte {:#x},", file.at)) == 0);
  }
}

TEST_CASE("a file cut anywhere gives an error") {
  GgufBuilder builder;
  builder.version = GENERATE(1u, 3u);
  builder.metadata = every_metadata_type();
  builder.add_tensor("a", {8}).add_tensor("b", {256, 2}, "Q6_K");
  const std::string whole = builder.build();
  const TempDir folder;
  const std::string path = folder.file("m.gguf");
  const std::size_t padding = 32 - 2 * 210 % 32;  // behind the last tensor; nobody needs it
  write_text(path, std::string_view(whole).substr(0, whole.size() - padding));
  CHECK(read_gguf(path));
  for (std::size_t bytes = whole.size() - padding; bytes-- > 0;) {
    CAPTURE(bytes);
    std::filesystem::resize_file(path, bytes);
    const auto model = read_gguf(path);
    REQUIRE_FALSE(model);
    REQUIRE(model.error().code == ExitCode::kBadInput);
  }
}

TEST_CASE("values over a gigabyte are refused before they are held") {
  const TempDir folder;
  const std::string path = folder.file("m.gguf");
  GgufBytes file;
  SECTION("a string") { file.head(0, 1).key("k", 8).u64((std::uint64_t{1} << 30) + 1); }
  SECTION("an array") { file.head(0, 1).key("k", 9).u32(10).u64((std::uint64_t{1} << 27) + 1); }
  SECTION("strings in an array") { file.head(0, 1).key("k", 9).u32(8).u64(2).u64(5).raw("12345").u64(1 << 30); }
  write_text(path, file.bytes());
  std::error_code error;
  std::filesystem::resize_file(path, std::uint64_t{1} << 36, error);
  if (error) GGUFMILL_SKIP("no sparse files of 64 GB here");
  const auto model = read_gguf(path);
  REQUIRE_FALSE(model);
  CHECK(model.error().what == "a value is larger than 1073741824 bytes, the most that is read");
}

TEST_CASE("a path that is no regular file is refused") {
  for (const char* path : {"/dev/zero", "/", "/proc/self"}) {
    const auto model = read_gguf(path);
    REQUIRE_FALSE(model);
    CHECK(model.error().code == ExitCode::kBadInput);
  }
}
