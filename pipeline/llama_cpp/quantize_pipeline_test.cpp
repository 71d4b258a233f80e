// Tests of the pipeline files generated for `ggufmill quantize`.
#include "pipeline/api/operations/option_names.h"
#include "pipeline/api/registry.h"
#include "pipeline/config/job.h"
#include "pipeline/llama_cpp/quantize_options.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/synth_model.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

QuantizeOptions options(const std::string& recipe = "Q4_K_M") {
  QuantizeOptions options;
  options.input = "in.gguf";
  options.outputs = {{"out.gguf", recipe}};
  return options;
}

// Returns the pipeline file after checking that it parses without errors.
std::string pipeline(const QuantizeOptions& options) {
  std::vector<std::string> warnings;
  const auto text = pipeline_of(options, warnings);
  if (!text) FAIL(render(text.error()));
  Diagnostics errors;
  CHECK(parse_job(text.value(), "job.yaml", make_registry(), {}, errors));
  for (const Error& error : errors.errors()) FAIL_CHECK(render(error));
  return text.value();
}

// Returns the text that follows the first line `head`, up to a line that is not indented by `spaces`.
std::string part(const std::string& text, const std::string& head, std::size_t spaces) {
  const std::size_t at = text.find(head);
  if (at == std::string::npos) return "";
  std::size_t begin = at + head.size(), end = begin;
  while (text.substr(end, spaces) == std::string(spaces, ' ')) end = text.find('\n', end) + 1;
  return text.substr(begin, end - begin);
}

std::string overrides(const std::vector<std::string>& words) {
  QuantizeOptions with = options();
  with.override_kv = words;
  return part(pipeline(with), "    metadata:\n      append:\n", 8);
}

std::string error(const QuantizeOptions& options) {
  std::vector<std::string> warnings;
  const auto text = pipeline_of(options, warnings);
  REQUIRE_FALSE(text);
  CHECK(text.error().code == ExitCode::kUsage);
  return OptionNames(Caller::kCommandLine, {}).in_message(text.error().what);
}

// Returns the options for a recipe that leaves keys in their places, in a file of the folder.
QuantizeOptions in_place(const TempDir& folder) {
  write_text(folder.file("mine.yaml"), "{extends: base, type: Q4_K, file_type: 140, keys: in_place}");
  return options(folder.file("mine.yaml"));
}

using Strings = std::vector<std::string>;

Strings warnings(const QuantizeOptions& options) {
  Strings warnings;
  CHECK(pipeline_of(options, warnings));
  for (std::string& warning : warnings) warning = OptionNames(Caller::kCommandLine, {}).in_message(warning);
  return warnings;
}

}  // namespace

TEST_CASE("the shortest pipeline file") {
  CHECK(pipeline(options()) == R"(version: 1
source: {gguf: 'in.gguf'}
outputs:
  - gguf: 'out.gguf'
    quantize:
      recipe: Q4_K_M
      requantize: false
)");
}

TEST_CASE("a recipe file is named by its path") {
  const TempDir folder;
  write_text(folder.file("it's mine.yaml"), "extends: Q4_K_M\n");
  CHECK(pipeline(options(folder.file("it's mine.yaml"))).find("/it''s mine.yaml'\n") != std::string::npos);
}

TEST_CASE("several outputs share the source and the stages") {
  QuantizeOptions with = options();
  with.outputs.push_back({"other.gguf", "Q8_0"});
  with.override_kv = {"general.name=str:mine"};
  with.tensor_types = {"ATTN_V=q6_k"};
  CHECK(pipeline(with) == R"(version: 1
source: {gguf: 'in.gguf'}
outputs:
  - gguf: 'out.gguf'
    quantize:
      recipe: Q4_K_M
      requantize: false
      unused_rules: warn
      tensors:
        - {match: 'ATTN_V', type: Q6_K, misfit: fallback}
    metadata:
      append:
        'general.name': {type: 'string', value: 'mine'}
  - gguf: 'other.gguf'
    quantize:
      recipe: Q8_0
      requantize: false
      unused_rules: warn
      tensors:
        - {match: 'ATTN_V', type: Q6_K, misfit: fallback}
    metadata:
      append:
        'general.name': {type: 'string', value: 'mine'}
)");
  CHECK(warnings(with).size() == 1);
}

TEST_CASE("a safetensors file is a diffusion model") {
  QuantizeOptions with = options();
  with.input = "flux1-dev.safetensors";
  CHECK(pipeline(with).find("source: {diffusion: 'flux1-dev.safetensors'}\n") != std::string::npos);
}

TEST_CASE("a folder is a checkpoint, whose shards cannot be kept") {
  const TempDir folder;
  QuantizeOptions with = options();
  with.input = folder.path();
  CHECK(pipeline(with).find("source: {huggingface: '" + with.input + "'}\n") != std::string::npos);
  with.keep_split = true;
  CHECK(error(with) == "--keep-split keeps the shards of a GGUF, but '" + with.input + "' is a checkpoint");
}

TEST_CASE("switches") {
  QuantizeOptions with = options();
  with.allow_requantize = with.pure = with.keep_split = true;
  with.threads = 3;
  CHECK(pipeline(with) == R"(version: 1
source: {gguf: 'in.gguf'}
outputs:
  - gguf: {path: 'out.gguf', shards: source}
    quantize:
      recipe: Q4_K_M
      requantize: true
      pure: true
      order: source
limits: {threads: 3}
)");
}

TEST_CASE("an encoder is that of the stage") {
  QuantizeOptions with = options();
  with.encoder = "{search: {effort: 3}}";
  CHECK(pipeline(with).find("      encoder: {search: {effort: 3}}\n") != std::string::npos);
}

TEST_CASE("an encoder may be that of a kernel module") {
  Types types;
  types.add_encoder("rounder", types.find("Q4_K")->id);
  QuantizeOptions with = options();
  with.encoder = "rounder";
  std::vector<std::string> warnings;
  const auto text = pipeline_of(with, warnings, RecipeCatalog(types));
  if (!text) FAIL(render(text.error()));
  CHECK(text.value().find("      encoder: rounder\n") != std::string::npos);
}

TEST_CASE("an unknown encoder is refused") {
  QuantizeOptions with = options();
  with.encoder = "serch";
  CHECK(error(with).find("'serch'") != std::string::npos);
}

TEST_CASE("tensor types are rules in the order in which the reference asks them") {
  QuantizeOptions with = options();
  with.leave_output_tensor = true;
  with.output_tensor_type = "q8_0";
  with.token_embedding_type = "q3_k";
  with.tensor_types = {"attn_v=q6_k", "a'b=F16"};
  CHECK(part(pipeline(with), "      tensors:\n", 8) ==
        R"(        - {match: '^output\.weight$', type: keep, optional: true}
        - {match: '^(per_layer_)?token_embd\.weight$', type: Q3_K, optional: true, misfit: refuse}
        - {match: '^output\.weight$', type: Q8_0, optional: true, misfit: refuse}
        - {match: 'attn_v', type: Q6_K, misfit: fallback}
        - {match: 'a''b', type: F16, misfit: fallback}
)");
  CHECK(pipeline(with).find("      rules: [{class: head, type: Q8_0}]\n      misfit: fallback\n") != std::string::npos);
}

TEST_CASE("the embedding of each layer follows a pattern that matches it") {
  const auto rules = [](const std::string& recipe, const Strings& patterns) {
    QuantizeOptions with = options(recipe);
    with.token_embedding_type = "q6_k";
    with.tensor_types = patterns;
    return part(pipeline(with), "      tensors:\n", 8);
  };
  const std::string token = "        - {match: '^token_embd\\.weight$', type: Q6_K, optional: true, misfit: refuse}\n";
  const std::string both =
      "        - {match: '^(per_layer_)?token_embd\\.weight$', type: Q6_K, optional: true, misfit: refuse}\n";
  CHECK(rules("Q4_K_M", {"per_layer_token_embd=q8_0"}) ==
        token + "        - {match: 'per_layer_token_embd', type: Q8_0, misfit: fallback}\n");
  CHECK(rules("Q4_K_M", {"token_embd=q8_0"}).starts_with(token));
  CHECK(rules("Q4_K_M", {"^token_embd=q8_0"}).starts_with(both));
  CHECK(rules("F16", {"per_layer_token_embd=q8_0"}) == token);
}

TEST_CASE("the size of a buffer has no effect") {
  QuantizeOptions with = options();
  const std::string without = pipeline(with);
  with.max_buffer_size = "64";
  CHECK(pipeline(with) == without);
  CHECK(warnings(with) ==
        Strings{"--max-buffer-size 64 has no effect: the memory of every job is bounded (limits.memory)"});
}

TEST_CASE("the size of a buffer must be above 0") {
  const std::string size = GENERATE("0", "-1", "x", "8x", "");
  QuantizeOptions with = options();
  with.max_buffer_size = size;
  CHECK(error(with) == "--max-buffer-size '" + size + "' is not a number of MiB above 0");
}

TEST_CASE("a pattern with capitals is taken as it is written, with a warning") {
  QuantizeOptions with = options();
  with.tensor_types = {"ATTN_\\D=q6_k"};
  CHECK(warnings(with) == Strings{"the pattern 'ATTN_\\D' is matched as written; llama-quantize would match "
                                  "'attn_\\d'"});
  CHECK(pipeline(with).find("{match: 'ATTN_\\D', type: Q6_K") != std::string::npos);
}

TEST_CASE("patterns count only where the recipe's main type is quantized") {
  QuantizeOptions with = options("F16");
  with.output_tensor_type = "q8_0";
  with.tensor_types = {"attn_v=q6_k"};
  CHECK(part(pipeline(with), "      tensors:\n", 8) ==
        "        - {match: '^output\\.weight$', type: Q8_0, optional: true, misfit: refuse}\n");
  CHECK(pipeline(with).find("rules:") == std::string::npos);
  CHECK(warnings(with) == Strings{"--tensor-type is ignored: with F16 there is no mix of types to change"});
  with.outputs[0].recipe = "COPY";
  CHECK(warnings(with) == Strings{"--tensor-type is ignored: with COPY there is no mix of types to change",
                                  "--output-tensor-type and --token-embedding-type are ignored: COPY changes no type"});
}

TEST_CASE("pure leaves the type of a tied head alone") {
  QuantizeOptions with = options();
  with.output_tensor_type = "q8_0";
  with.pure = true;
  CHECK(pipeline(with).find("rules:") == std::string::npos);
}

TEST_CASE("overrides are metadata of their types") {
  CHECK(
      overrides({"a=int:7", "b=float:0.5", "c=bool:true", "d=str:x: y", "e=uint64:5000000000", "f=string[]:[x, y]"}) ==
      R"(        'a': {type: 'uint32', value: 7}
        'b': {type: 'float32', value: '0.5'}
        'c': {type: 'bool', value: 'true'}
        'd': {type: 'string', value: 'x: y'}
        'e': {type: 'uint64', value: '5000000000'}
        'f': {type: 'string[]', value: [x, y]}
)");
}

TEST_CASE("an int is its absolute value, as in the reference") {
  CHECK(overrides({"a=int:-7"}) == "        'a': {type: 'uint32', value: 7}\n");
  QuantizeOptions with = options();
  with.override_kv = {"a=int:-7", "b=str:=int:-7"};
  CHECK(warnings(with) == Strings{"'a=int:-7' is written as 7, as in llama-quantize; for a negative number, use "
                                  "a=int32:-7"});
}

TEST_CASE("if a key is overridden twice, the last value counts, at its position") {
  CHECK(overrides({"a=int:1", "b=int:2", "a=int:3"}) ==
        "        'b': {type: 'uint32', value: 2}\n        'a': {type: 'uint32', value: 3}\n");
}

TEST_CASE("overrides that recipes ask for are set before them as well") {
  QuantizeOptions with = options();
  with.override_kv = {"llama.expert_count=int:8", "general.name=str:x"};
  CHECK(part(pipeline(with), "stages:\n  - metadata:\n      set:\n", 8) ==
        "        'llama.expert_count': {type: 'uint32', value: 8}\n");
}

TEST_CASE("overrides of head counts that are missing from the model do not reach recipes") {
  QuantizeOptions with = options();
  with.override_kv = {"llama.attention.head_count_kv=int:2"};
  CHECK(part(pipeline(with), "stages:\n  - metadata:\n      replace:\n", 8) ==
        "        'llama.attention.head_count_kv': {type: 'uint32', value: 2}\n");
}

TEST_CASE("overrides with an invalid form, type, or value are refused") {
  const auto refused = [](const std::string& word) {
    QuantizeOptions with = options();
    with.override_kv = {word};
    return error(with);
  };
  CHECK(refused("a") == "'a' is not of the form KEY=TYPE:VALUE");
  CHECK(refused("a=1") == "'a=1' is not of the form KEY=TYPE:VALUE");
  CHECK(refused("=int:1") == "'=int:1' is not of the form KEY=TYPE:VALUE");
  CHECK(refused("a=long:1") == "unknown type 'long' in 'a=long:1'");
  CHECK(refused("a=int:seven") == "'seven' in 'a=int:seven' is not a 32-bit integer");
  CHECK(refused("a=int:4294967296") == "'4294967296' in 'a=int:4294967296' is not a 32-bit integer");
}

TEST_CASE("unknown types and invalid patterns are refused") {
  QuantizeOptions with = options();
  with.tensor_types = {"attn_v=q9"};
  CHECK(error(with) == "unknown quantization type 'q9'");
  with.tensor_types = {"attn_v"};
  CHECK(error(with) == "'attn_v' is not of the form PATTERN=TYPE");
  with.tensor_types = {"(=q8_0"};
  CHECK(error(with).find("bad regular expression '('") != std::string::npos);
  with = options();
  with.output_tensor_type = "q9";
  CHECK(error(with) == "unknown quantization type 'q9'");
}

TEST_CASE("weights are included or excluded, not both") {
  QuantizeOptions with = options();
  with.include_weights = {"a"};
  with.exclude_weights = {"b"};
  CHECK(error(with) == "--include-weights and --exclude-weights cannot be used together");
}

TEST_CASE("layers that the model does not have are not pruned, with a warning") {
  const TempDir folder;
  const synth::ModelSpec spec = synth::load_spec("tests/golden/models/tiny-phi3.json");
  synth::write_model(spec, folder.file("in.gguf"), true);
  QuantizeOptions with = options();
  with.input = folder.file("in.gguf");
  with.prune_layers = "1,99";
  CHECK(pipeline(with).find("  - prune: {layers: '1'}\n") != std::string::npos);
  CHECK(warnings(with).size() == 1);
  with.prune_layers = "99";
  const std::string text = pipeline(with);
  CHECK(text.find("prune:") == std::string::npos);
  CHECK(text.find("        'phi3.block_count': {type: 'uint32', value: 4}\n") != std::string::npos);
}

TEST_CASE("importance is a stage, recorded after the overrides; pruning's count comes last") {
  const TempDir folder;
  const synth::ModelSpec spec = synth::load_spec("tests/golden/models/tiny-phi3.json");
  synth::write_model(spec, folder.file("in.gguf"), true);
  synth::write_imatrix(spec, 70, folder.file("imatrix.gguf"));
  QuantizeOptions with = options();
  with.input = folder.file("in.gguf");
  with.imatrix = folder.file("imatrix.gguf");
  with.include_weights = {"blk.0", "ffn_(up)"};
  with.prune_layers = "1";
  with.override_kv = {"general.name=str:x", "phi3.block_count=int:9"};
  const std::string text = pipeline(with);
  CHECK(part(text, "  - importance:\n", 6) == "      file: '" + with.imatrix +
                                                  "'\n      any_model: true\n      record: false\n"
                                                  "      include: ['blk\\.0', 'ffn_\\(up\\)']\n");
  CHECK(text.find("  - prune: {layers: '1'}\n") > text.find("  - importance:\n"));
  const std::string metadata = part(text, "    metadata:\n      append:\n", 8);
  CHECK(
      metadata.starts_with("        'general.name': {type: 'string', value: 'x'}\n        'quantize.imatrix.file': "));
  CHECK(metadata.find("        'quantize.imatrix.entries_count': {type: 'uint32', value: ") != std::string::npos);
  CHECK(metadata.find("        'phi3.block_count': {type: 'uint32', value: ") ==
        metadata.rfind("        'phi3.block_count'"));
  CHECK(metadata.rfind("        '") == metadata.find("        'phi3.block_count'"));
}

TEST_CASE("custom types are rules in the order given, which fall back") {
  QuantizeOptions with = options();
  with.custom_types = {"attn_v=q6_K,ffn_down=q5_0", "Output=q8_0"};
  CHECK(part(pipeline(with), "      tensors:\n", 8) ==
        "        - {match: 'attn_v', type: Q6_K, misfit: fallback}\n"
        "        - {match: 'ffn_down', type: Q5_0, misfit: fallback}\n"
        "        - {match: 'Output', type: Q8_0, misfit: fallback}\n");
  CHECK(warnings(with).empty());
}

TEST_CASE("custom types change no pure quantization, as in ik_llama.cpp") {
  QuantizeOptions with = options();
  with.custom_types = {"attn_v=q6_K"};
  with.pure = true;
  CHECK(part(pipeline(with), "      tensors:\n", 8).empty());
  CHECK(warnings(with) == Strings{"--custom-q is ignored: with --pure there is no mix of types to change"});
}

TEST_CASE("a custom type that is unknown or has no pattern is an error") {
  QuantizeOptions with = options();
  with.custom_types = {"attn_v=q6_K,ffn_down"};
  CHECK(error(with) == "'ffn_down' is not of the form REGEX=TYPE");
  with.custom_types = {"attn_v=iq6_k"};
  CHECK(error(with) == "unknown quantization type 'iq6_k'");
}

TEST_CASE("repacking is a stage that only rearranges rows") {
  QuantizeOptions with = options();
  with.repack = true;
  CHECK(part(pipeline(with), "    quantize:\n", 6) == "      repack: interleaved\n");
  with.repack_patterns = {"ffn,attn_v", "^output"};
  CHECK(part(pipeline(with), "    quantize:\n", 6) ==
        "      repack: {rows: interleaved, match: '(ffn)|(attn_v)|(^output)'}\n");
  CHECK(warnings(with).empty());
}

TEST_CASE("repacking is refused with options that change types, and its patterns without it") {
  QuantizeOptions with = options();
  with.repack_patterns = {"ffn"};
  CHECK(error(with) == "--repack-pattern needs --repack");
  with.repack = true;
  with.custom_types = {"attn_v=q6_K"};
  CHECK(error(with) == "--repack changes no type, and options that change types are given with it");
  with.custom_types.clear();
  with.repack_patterns = {"ffn("};
  CHECK(error(with).find("ffn(") != std::string::npos);
}

TEST_CASE("with keys in their places, the metadata comes before the file type and its numbers are signed") {
  const TempDir folder;
  QuantizeOptions with = in_place(folder);
  with.override_kv = {"a.b=int:-5"};
  const std::string text = pipeline(with);
  CHECK(part(text, "    metadata:\n      set:\n", 8) ==
        "        'general.quantization_version': {type: 'uint32', value: 2}\n"
        "        'a.b': {type: 'int32', value: '-5'}\n");
  CHECK(text.find("metadata:") < text.find("quantize:"));
  CHECK(warnings(with).empty());
}

TEST_CASE("a hidden importance matrix is recorded without its name and numbers") {
  const TempDir folder;
  const synth::ModelSpec spec = synth::load_spec("tests/golden/models/tiny-llama.json");
  synth::write_imatrix(spec, 70, folder.file("imatrix.dat"));
  QuantizeOptions with = in_place(folder);
  with.imatrix = folder.file("imatrix.dat");
  with.hide_imatrix = true;
  CHECK(part(pipeline(with), "    metadata:\n      set:\n", 8) ==
        "        'general.quantization_version': {type: 'uint32', value: 2}\n"
        "        'quantize.imatrix.file': {type: 'string', value: 'top_secret'}\n"
        "        'quantize.imatrix.dataset': {type: 'string', value: 'top_secret'}\n"
        "        'quantize.imatrix.entries_count': {type: 'int32', value: 0}\n"
        "        'quantize.imatrix.chunks_count': {type: 'int32', value: 0}\n");
}
