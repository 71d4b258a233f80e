#include "pipeline/manifest/attestation.h"

#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

const std::string kAnySha256(64, 'a');

Attestation small_statement() {
  Attestation it;
  it.files = {{"a.gguf", kAnySha256, 96, "Q4_K_M", {{"t", 0xcd}}, {{"X3", "", "mine", "1", std::string(32, '0')}}}};
  it.pipeline = "version: 1\n";
  it.sources = {{"model.gguf", false, kAnySha256, 100}, {"hf://ORG/NAME@abc/x.safetensors", true, kAnySha256, 7}};
  it.ggufmill = "0.1.0";
  it.llama_cpp = "b1";
  it.isa = "scalar";
  it.modules = {{"simd", "1", "x86-64-v3", kAnySha256}};
  return it;
}

// Returns the error of a statement in which the first `what` is replaced.
std::string refusal_of_statement(const std::string& what, const std::string& by) {
  std::string text = write_statement(small_statement());
  const std::size_t at = text.find(what);
  REQUIRE(at != text.npos);
  const auto read = read_statement(text.replace(at, what.size(), by), "a.json");
  REQUIRE(!read);
  CHECK(read.error().code == ExitCode::kBadInput);
  return read.error().what;
}

}  // namespace

TEST_CASE("a statement is read as it was written") {
  const std::string text = write_statement(small_statement());
  CHECK(text.find('\n') == text.npos);
  const auto read = read_statement(text, "a.json");
  if (!read) FAIL(render(read.error()));
  CHECK(write_statement(read.value()) == text);
  CHECK(read.value().sources.back().is_address);
  CHECK(read.value().files.front().tensors == small_statement().files.front().tensors);
}

TEST_CASE("statements of others, and those that are not valid, are refused") {
  CHECK(refusal_of_statement("https://slsa.dev/provenance/v1", "https://slsa.dev/provenance/v0.2").find("v0.2") !=
        std::string::npos);
  CHECK(refusal_of_statement("https://in-toto.io/Statement/v1", "x").find("is a statement of type 'x'") == 0);
  CHECK(refusal_of_statement("#pipeline-v1", "#pipeline-v2").find("not one by ggufmill") != std::string::npos);
  CHECK(refusal_of_statement(kAnySha256, "aa").find("64 hexadecimal digits") != std::string::npos);
  CHECK(refusal_of_statement(kAnySha256, std::string(64, 'A')).find("64 hexadecimal digits") != std::string::npos);
  CHECK(refusal_of_statement("00000000000000cd", "cd").find("hexadecimal") != std::string::npos);
  CHECK(refusal_of_statement(R"("pipeline":)", R"("other":)").find("'pipeline'") != std::string::npos);
  CHECK(refusal_of_statement(R"("bytes":96)", R"("bytes":-1)").find("'bytes'") != std::string::npos);
}
