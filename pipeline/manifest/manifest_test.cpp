#include "pipeline/manifest/manifest.h"

#include <cstring>

#include "pipeline/plan/written.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/plan_maker.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::testing;

namespace {

const std::string kSha256 = std::string(63, '0') + "1";

Manifest small_manifest() {
  Manifest manifest{"0.1.0", "id", "Q4_K_M", {{"model.gguf", 100, 0xab, -5}}, {7}, {}};
  manifest.files.push_back({"a.gguf", 96, kSha256, {{"t", 32, 64, 0xcd, "made"}}});
  return manifest;
}

Manifest read(const std::string& text) {
  auto manifest = read_manifest(text, "a.json");
  if (!manifest) FAIL(render(manifest.error()));
  return std::move(manifest).value();
}

// Returns the error of a manifest in which the first `what` is replaced.
std::string refusal(const std::string& what, const std::string& by) {
  std::string text = write_manifest(small_manifest());
  const std::size_t at = text.find(what);
  REQUIRE(at != text.npos);
  const auto manifest = read_manifest(text.replace(at, what.size(), by), "a.json");
  if (manifest) return "";
  CHECK(manifest.error().code == ExitCode::kBadInput);
  return manifest.error().what;
}

FileReader reader_of(const std::string& text) {
  return [&text](std::size_t, std::uint64_t offset, std::span<std::byte> into) {
    std::memcpy(into.data(), text.data() + offset, into.size());
    return Status(ok());
  };
}

}  // namespace

TEST_CASE("a manifest is one line of JSON") {
  CHECK(write_manifest(small_manifest()) ==
        "{\"format\":\"ggufmill manifest\",\"version\":1,\"ggufmill\":\"0.1.0\",\"identity\":\"id\","
        "\"recipe\":\"Q4_K_M\",\"sources\":[{\"path\":\"model.gguf\",\"bytes\":100,"
        "\"header_hash\":\"00000000000000ab\",\"modified\":-5,\"changed\":7}],\"modules\":[],\"files\":[{"
        "\"name\":\"a.gguf\",\"bytes\":96,\"sha256\":\"" +
            kSha256 +
            "\",\"tensors\":[{\"name\":\"t\",\"offset\":32,\"bytes\":64,\"xxh3\":\"00000000000000cd\","
            "\"made_of\":\"made\"}]}]}\n");
}

TEST_CASE("a manifest is read as it was written") {
  Manifest manifest = small_manifest();
  manifest.modules.push_back({"X3_EXAMPLE", "", "mine", "1.0", "00ff"});
  manifest.files[0].tensors[0].encoder = "search";
  manifest.files[0].tensors[0].exact = true;
  const std::string text = write_manifest(manifest);
  CHECK(write_manifest(read(text)) == text);
}

TEST_CASE("a manifest without modules, as earlier versions wrote it, is read") {
  CHECK(refusal(",\"modules\":[]", "").empty());
}

TEST_CASE("a manifest of something else is refused") {
  CHECK(refusal("ggufmill manifest", "another") == "is not a ggufmill manifest");
}

TEST_CASE("a manifest of a later version is refused") {
  CHECK(refusal("\"version\":1", "\"version\":2") == "is a manifest of version 2; only version 1 is supported");
}

TEST_CASE("a manifest names only files in its folder") {
  for (const char* name : {"../a.gguf", "/a.gguf", "..", ".", ""}) {
    CAPTURE(name);
    CHECK(refusal("a.gguf", name) ==
          "is not a valid manifest: the file '" + std::string(name) + "' is not next to the manifest");
  }
}

TEST_CASE("the tensors of a manifest are within their file") {
  const std::string wrong = "is not a valid manifest: tensor 't' is not within its file or overlaps the one before it";
  CHECK(refusal("\"bytes\":64", "\"bytes\":65") == wrong);
  CHECK(refusal("\"offset\":32", "\"offset\":18446744073709551615") == wrong);
}

TEST_CASE("a manifest lists at least one file") {
  Manifest manifest = small_manifest();
  manifest.files.clear();
  const auto read = read_manifest(write_manifest(manifest), "a.json");
  REQUIRE_FALSE(read);
  CHECK(read.error().what == "is not a valid manifest: it lists no files");
}

TEST_CASE("sums have the format of sha256sum") { CHECK(write_sums(small_manifest()) == kSha256 + "  a.gguf\n"); }

TEST_CASE("sums of names with a backslash or a line break are escaped, as sha256sum does") {
  Manifest manifest = small_manifest();
  manifest.files[0].name = "a\\b\nc";
  CHECK(write_sums(manifest) == "\\" + kSha256 + "  a\\\\b\\nc\n");
}

TEST_CASE("checksums are those of a file and of its tensors") {
  Manifest manifest{"", "", "", {}, {}, {}};
  manifest.files.push_back({"abc", 3, "", {{"all", 0, 3, 0, ""}, {"none", 3, 0, 0, ""}}});
  REQUIRE(sum_up(manifest, reader_of("abc"), 2, nullptr));
  CHECK(manifest.files[0].sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");  // FIPS 180
  CHECK(manifest.files[0].tensors[0].xxh3 == 0x78af5f94892f3950);                                         // XXH3 of abc
  CHECK(manifest.files[0].tensors[1].xxh3 == 0x2d06800538d394c2);  // XXH3 of nothing
}

TEST_CASE("all bytes that are read for checksums are counted") {
  Manifest manifest = small_manifest();
  std::uint64_t bytes = 0;
  REQUIRE(sum_up(manifest, reader_of(std::string(96, 'x')), 1, nullptr, [&](std::uint64_t more) { bytes += more; }));
  CHECK(bytes == 96);
}

TEST_CASE("checksums can be interrupted") {
  Manifest manifest = small_manifest();
  const std::atomic<bool> stop{true};
  const Status status = sum_up(manifest, reader_of(std::string(96, 'x')), 1, &stop);
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ExitCode::kInterrupted);
}

TEST_CASE("the manifest of an output has its files, tensors, and sources") {
  const Plan plan = plan_of({{"a", shape_of({32, 4}), "F32", {"F16", "BF16"}, false}}, "folder");
  const Manifest manifest = manifest_of(plan, 1);
  CHECK(manifest.ggufmill == GGUFMILL_VERSION);
  CHECK(manifest.identity == identity_of(plan, 1));
  REQUIRE(manifest.sources.size() == 1);
  CHECK(manifest.sources[0].path == "folder/source.gguf");
  REQUIRE(manifest.files.size() == 1);
  CHECK(manifest.files[0].name == "out-1.gguf");
  CHECK(manifest.files[0].bytes == plan.outputs[1].files[0].bytes);
  REQUIRE(manifest.files[0].tensors.size() == 1);
  CHECK(manifest.files[0].tensors[0].made_of == identity_of(plan, plan.steps[0], plan.steps[0].encodings[1]));
}

TEST_CASE("an output is described by the manifest next to it, whether the output exists or not") {
  const TempDir folder;
  const Plan plan = plan_of({{"a", shape_of({32, 4}), "F32", {"F16"}, false}}, folder.path());
  CHECK_FALSE(is_described(plan, 0));
  Manifest manifest = manifest_of(plan, 0);
  write_text(plan.manifest_path(0), write_manifest(manifest));
  CHECK(is_described(plan, 0));
  manifest.identity = "another";
  write_text(plan.manifest_path(0), write_manifest(manifest));
  CHECK_FALSE(is_described(plan, 0));
}

TEST_CASE("a manifest whose output was removed is orphaned") {
  const TempDir folder;
  Plan plan = plan_of({{"a", shape_of({32, 4}), "F32", {"F16"}, false}}, folder.path());
  plan.manifest = true;
  write_text(plan.manifest_path(0), write_manifest(manifest_of(plan, 0)));
  CHECK(orphaned_manifests(plan) == std::vector<std::string>{plan.manifest_path(0), plan.sums_path(0)});
  write_text(plan.outputs[0].files[0].path, "there");
  CHECK(orphaned_manifests(plan).empty());
}
