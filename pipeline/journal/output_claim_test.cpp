#include "pipeline/journal/output_claim.h"

#include "pipeline/io/platform/filesystem.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

OutputClaim claim_of(const TempDir& folder) { return {"id.1", folder.path(), folder.path()}; }

void write_job(const TempDir& folder, const std::string& id) {
  write_text(folder.file(kJobFile), "{\"identity\": \"id\", \"id\": \"" + id + "\"}");
}

}  // namespace

TEST_CASE("a claim is a hidden file next to its output") {
  CHECK(claim_path("out/a.gguf", "id.1") == "out/.a.gguf.ggufmill-id.1.job");
}

TEST_CASE("a claim is read as it was written") {
  const TempDir folder;
  REQUIRE(write_claim(folder.file("a.gguf"), {"id.1", "/jobs/matrix/0-a", "/jobs/matrix"}));
  const auto claim = read_claim(claim_path(folder.file("a.gguf"), "id.1"));
  REQUIRE(claim);
  CHECK(claim->key == "id.1");
  CHECK(claim->folder == "/jobs/matrix/0-a");
  CHECK(claim->shown_folder == "/jobs/matrix");
}

TEST_CASE("a file that is not a claim is none") {
  const TempDir folder;
  for (const char* text : {"", "{}", "[]", "{\"format\": \"ggufmill output claim\", \"version\": 2}"}) {
    CAPTURE(text);
    write_text(folder.file("claim"), text);
    CHECK_FALSE(read_claim(folder.file("claim")));
  }
}

TEST_CASE("a claim is held while its job is in its folder") {
  const TempDir folder;
  write_job(folder, "1");
  CHECK(is_held(claim_of(folder)));
}

TEST_CASE("a claim is not held once its job is removed") {
  const TempDir folder;
  CHECK_FALSE(is_held(claim_of(folder)));
}

TEST_CASE("a claim is not held if its folder contains another job") {
  const TempDir folder;
  write_job(folder, "2");
  CHECK_FALSE(is_held(claim_of(folder)));
}

TEST_CASE("a claim is held if its job cannot be read") {
  const TempDir folder;
  write_text(folder.file(kJobFile), "damaged");
  CHECK(is_held(claim_of(folder)));
}

TEST_CASE("a claim that is removed is gone") {
  const TempDir folder;
  REQUIRE(write_claim(folder.file("a.gguf"), claim_of(folder)));
  CHECK(remove_claim(folder.file("a.gguf"), "id.1"));
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("a claim that does not exist can be removed") {
  const TempDir folder;
  CHECK(remove_claim(folder.file("a.gguf"), "id.1"));
}
