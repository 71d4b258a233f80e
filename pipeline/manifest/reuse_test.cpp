#include "pipeline/manifest/reuse.h"

#include <algorithm>

#include "pipeline/manifest/manifest.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/plan_maker.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::testing;

namespace {

// A plan with two tensors and two outputs, and a file that an earlier run of it wrote as the first of them.
struct Earlier {
  TempDir folder;
  Plan plan = plan_of(
      {{"a", shape_of({32, 4}), "F32", {"F16", "BF16"}, false}, {"b", shape_of({64}), "F32", {"F16", "BF16"}, false}},
      folder.path());
  std::string path = folder.file("earlier.gguf");
  Manifest manifest = manifest_of(plan, 0);

  Earlier() {
    const std::string bytes(plan.outputs[0].files[0].bytes, 'x');
    write_text(path, bytes);
    manifest.files[0].name = "earlier.gguf";
    const FileReader read = [&](std::size_t, std::uint64_t, std::span<std::byte> into) {
      std::ranges::fill(into, std::byte{'x'});
      return Status(ok());
    };
    REQUIRE(sum_up(manifest, read, 1, nullptr));
    write_manifest_file();
  }
  void write_manifest_file() const { write_text(path + ".manifest.json", write_manifest(manifest)); }
  Status reuse(std::size_t output = 0) { return reuse_earlier(plan, output, path); }
  std::size_t taken() const {
    return static_cast<std::size_t>(
        std::ranges::count_if(plan.steps, [](const Step& step) { return step.encodings[0].taken.has_value(); }));
  }
  // Returns the error of reuse(), which must fail because of the input.
  Error refusal() {
    const Status status = reuse();
    if (status) FAIL("it is reused");
    CHECK(status.error().code == ExitCode::kBadInput);
    return status.error();
  }
};

}  // namespace

TEST_CASE("tensors that an earlier output has are copied from it") {
  Earlier earlier;
  REQUIRE(earlier.reuse());
  CHECK(earlier.taken() == 2);
  REQUIRE(earlier.plan.steps.size() == 4);
  const Extent& copied = *earlier.plan.steps[2].expression->as_extent();
  CHECK(copied.source->path == earlier.path);
  CHECK(copied.offset == earlier.manifest.files[0].tensors[0].offset);
  CHECK(copied.bytes == earlier.manifest.files[0].tensors[0].bytes);
  CHECK(earlier.plan.outputs[0].tensors[0].reason.ends_with("; taken from earlier.gguf"));
}

TEST_CASE("the other outputs are made as before") {
  Earlier earlier;
  REQUIRE(earlier.reuse());
  for (const std::size_t step : {0, 1}) {
    REQUIRE(earlier.plan.steps[step].encodings.size() == 1);
    CHECK(earlier.plan.steps[step].encodings[0].places[0].output == 1);
  }
}

TEST_CASE("an earlier output and its manifest are inputs, which are never written") {
  Earlier earlier;
  REQUIRE(earlier.reuse());
  CHECK(earlier.plan.other_inputs == std::vector<std::string>{earlier.path + ".manifest.json", earlier.path});
}

TEST_CASE("nothing is copied if the tensors are made in another way, which is a warning") {
  Earlier earlier;
  REQUIRE(earlier.reuse(1));
  CHECK(earlier.taken() == 0);
  CHECK(earlier.plan.warnings == std::vector<std::string>{earlier.plan.outputs[1].files[0].path + ": '" + earlier.path +
                                                          "' has no tensors that this output can reuse"});
}

TEST_CASE("a manifest of another version is named as the reason that nothing can be copied") {
  Earlier earlier;
  earlier.manifest.ggufmill = "0.0.1";
  earlier.write_manifest_file();
  REQUIRE(earlier.reuse(1));
  CHECK(earlier.plan.warnings.at(0).ends_with(": it was written by ggufmill 0.0.1"));
}

TEST_CASE("an earlier output without a manifest is refused") {
  Earlier earlier;
  earlier.path += "2";
  write_text(earlier.path, "");
  CHECK(earlier.refusal().what.starts_with("has no manifest"));
}

TEST_CASE("an earlier output that does not exist is refused, with the output that wants it") {
  Earlier earlier;
  earlier.path += "2";
  CHECK(earlier.refusal().what ==
        "does not exist, but '" + earlier.plan.outputs[0].files[0].path + "' reuses tensors from it");
}

TEST_CASE("a manifest of another file is refused") {
  Earlier earlier;
  earlier.manifest.files[0].name = "other.gguf";
  earlier.write_manifest_file();
  CHECK(earlier.refusal().what == "describes 'other.gguf', not 'earlier.gguf'");
}

TEST_CASE("an earlier output of another size is refused") {
  Earlier earlier;
  write_text(earlier.path, "short");
  CHECK(earlier.refusal().what ==
        "has 5 bytes, but its manifest lists " + std::to_string(earlier.plan.outputs[0].files[0].bytes));
}

TEST_CASE("copied tensors have the bytes of the manifest") {
  Earlier earlier;
  REQUIRE(earlier.reuse());
  CHECK(check_taken(earlier.plan, nullptr));
}

TEST_CASE("a copied tensor with other bytes than in the manifest is found") {
  Earlier earlier;
  earlier.manifest.files[0].tensors[1].xxh3 ^= 1;
  earlier.write_manifest_file();
  REQUIRE(earlier.reuse());
  const Status status = check_taken(earlier.plan, nullptr);
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ExitCode::kVerification);
  CHECK(status.error().what == "the bytes of tensor 'b' do not match its manifest");
}

TEST_CASE("a check of copied tensors can be interrupted") {
  Earlier earlier;
  REQUIRE(earlier.reuse());
  const std::atomic<bool> stop{true};
  const Status status = check_taken(earlier.plan, &stop);
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ExitCode::kInterrupted);
}
