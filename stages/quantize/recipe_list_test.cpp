#include "stages/quantize/recipe_list.h"

#include "stages/quantize/quantize_stage.h"
#include "tests/support/apply_stage.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/needs.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

// Returns "PATTERN=TYPE" for each rule.
std::vector<std::string> read(std::string_view text) {
  const auto rules = parse_recipe_list(text, "a.recipe", {});
  if (!rules) FAIL(render(rules.error()));
  std::vector<std::string> words;
  for (const Rule& rule : rules.value())
    words.push_back(rule.condition.match->text() + "=" + std::string(rule.type->name));
  return words;
}

// Returns all errors as text.
std::string errors(std::string_view text) {
  const auto rules = parse_recipe_list(text, "a.recipe", {});
  REQUIRE_FALSE(rules);
  std::string all = render(rules.error());
  for (const Error& error : rules.error().also) all += render(error);
  return all;
}

using Words = std::vector<std::string>;

Model small_model() {
  Model model;
  model.metadata.add("general.architecture", metadata_string("llama"));
  model.metadata.add("general.file_type", metadata_unsigned(MetadataType::kUint32, 32));
  for (const char* name : {"token_embd.weight", "blk.0.ffn_down.weight", "blk.0.ffn_up.weight"})
    model.tensors.push_back(bare_tensor(name, {512, 64}));
  return model;
}

Model quantized(const std::string& list) {
  const TempDir folder;
  write_text(folder.file("mine.recipe"), list);
  auto model = apply_stage(quantize_stage(), "'" + folder.file("mine.recipe") + "'", small_model());
  if (!model) FAIL(render(model.error()));
  return std::move(model).value();
}

}  // namespace

TEST_CASE("a list has one rule a line, comments, and blank lines") {
  CHECK(read("## Model head & embeddings — qbits: 32 5\n^token_embd\\.weight$=iq4_xs\n\n  # comment\n"
             "^blk\\.([0-9]|1[0-7])\\.ffn_up\\.weight$=q6_K\r\n.*=bf16") ==
        Words{"^token_embd\\.weight$=IQ4_XS", "^blk\\.([0-9]|1[0-7])\\.ffn_up\\.weight$=Q6_K", ".*=BF16"});
}

TEST_CASE("the type follows the last equals sign") { CHECK(read("(?=ffn)x = q8_0") == Words{"(?=ffn)x=Q8_0"}); }

TEST_CASE("all errors of a list are reported with their lines") {
  const std::string text = errors("a=q8_0\nffn_down\n=q8_0\nb=q5_M\nc(=q8_0\n");
  for (const char* part :
       {"a.recipe:2:1: error: this line is neither REGEX=TYPE nor a comment (#)\n     2 | ffn_down\n       | ^^^^^^^^",
        "a.recipe:3:1: error: REGEX=TYPE needs both", "a.recipe:4:3: error: unknown quantization type 'q5_M'",
        "a.recipe:5:1: error: "}) {
    CAPTURE(text, part);
    CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("a type that is not supported is an error at its line") {
  GGUFMILL_NEEDS("Q4_K_R4");
  CHECK(errors("a=q8_0\nd=bf16_r16\n")
            .find("a.recipe:2:3: error: the type BF16_R16 is not supported: it is for processors with AVX512-BF16") !=
        std::string::npos);
}

TEST_CASE("a list without a rule is an error") {
  CHECK(errors("# nothing\n").find("a.recipe: error: has no line REGEX=TYPE") != std::string::npos);
}

TEST_CASE("the first line that matches decides, with the fallbacks of recipes") {
  const Model model = quantized("ffn_down=q6_K\nffn=q4_K\ntoken=q8_0\n");
  CHECK(model.tensors[0].type->name == "Q8_0");
  CHECK(model.tensors[1].type->name == "Q6_K");
  CHECK(model.tensors[1].reason == "mine: line 1: ffn_down");
  CHECK(model.tensors[2].type->name == "Q4_K");
  CHECK(model.warnings.empty());
}

TEST_CASE("tensors that no line matches keep their type, with a warning") {
  const Model model = quantized("ffn_down=q6_K\n");
  CHECK(model.tensors[0].type->name == "F32");
  CHECK(model.warnings ==
        Words{"2 of 3 tensors keep their type, because no line of mine matches them: 'token_embd.weight', ..."});
}

TEST_CASE("the file type is guessed from the types of a list") {
  CHECK(as_unsigned(*quantized("ffn=q6_K\n.=q8_0").metadata.find("general.file_type")) == (18u | 1024u));
}
