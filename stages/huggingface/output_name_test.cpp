#include "stages/huggingface/output_name.h"

#include "tests/support/catch.h"

using namespace ggufmill;
using namespace ggufmill::huggingface;

namespace {

std::string filled(std::string_view name) {
  const auto file = fill_output_name(name, "Q8_0");
  return file ? file.value() : render(file.error());
}

}  // namespace

TEST_CASE("an output is named after the model") {
  ModelId id;
  id.name = " Some Model/x ";
  const auto named = [&](OutputContent content) { return default_output_name(id, "mxfp4_moe", content).value(); };
  CHECK(named(OutputContent::kModel) == "Some-Model-x-MXFP4_MOE.gguf");
  id.basename = "Some-Model";
  id.size_label = "7B";
  id.finetune = "my chat";
  id.version = "v2";
  CHECK(named(OutputContent::kModel) == "Some-Model-7B-my-chat-v2-MXFP4_MOE.gguf");
  CHECK(named(OutputContent::kVocabulary) == "Some-Model-my-chat-v2-vocab.gguf");
  CHECK(named(OutputContent::kDraftHead) == "mtp-Some-Model-my-chat-v2-MXFP4_MOE.gguf");
  CHECK(default_output_name({}, "F16", OutputContent::kModel).value() == "ggml-model-F16.gguf");
}

TEST_CASE("checkpoint metadata cannot lead out of the folder") {
  ModelId id;
  id.name = "x";
  for (const char* bad : {"../../y", "a\nb", "a\x7f"}) {
    id.finetune = bad;
    const auto named = default_output_name(id, "F16", OutputContent::kModel);
    REQUIRE(!named);
    CHECK(named.error().code == ExitCode::kBadInput);
  }
}

TEST_CASE("a name may contain the file type") {
  CHECK(filled("model.gguf") == "model.gguf");
  CHECK(filled("a-{ftype}-{outtype}-{FTYPE}-{OUTTYPE}-{}-{0}.gguf") == "a-q8_0-q8_0-Q8_0-Q8_0-q8_0-q8_0.gguf");
  CHECK(filled("{{ftype}}") == "{ftype}");
  CHECK(filled("{name}.gguf") ==
        "error: unknown '{name}' in output name '{name}.gguf'\n"
        "  help: {ftype} and {outtype} stand for the type, {FTYPE} and {OUTTYPE} for the type in upper case\n");
  CHECK(filled("a{") == "error: unmatched '{' in output name 'a{'\n  help: write {{ for the character itself\n");
  CHECK(filled("a}") == "error: unmatched '}' in output name 'a}'\n  help: write }} for the character itself\n");
}
