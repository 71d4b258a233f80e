// Compares the tokenizers and the checkpoints in ../shared/hf with the reference's output.
#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <iostream>
#include <map>

#include "pipeline/io/json_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "stages/huggingface/tokenizer/encoder.h"
#include "stages/huggingface/tokenizer/tokenizer.h"
#include "tests/support/catch.h"
#include "tests/support/checkpoint_maker.h"
#include "tests/support/files.h"
#include "tests/support/sha256.h"
#include "tests/support/shared_data.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tsv.h"

using namespace ggufmill;
using namespace ggufmill::huggingface;
namespace json = boost::json;

namespace {

using Reader = TokenizerReader;

json::value parsed(const std::string& text) { return json::parse(text); }

// Returns the tokenizer options that the architectures' maps specify.
TokenizerOptions options_of(const std::string& architecture, const json::value& config) {
  TokenizerOptions options;
  const json::value* text = json_member(config, "text_config");
  const auto number = [&](std::string_view key) -> std::optional<std::uint64_t> {
    const json::value* value = json_member(config, key);
    if (!value && text) value = json_member(*text, key);
    return value && value->is_int64() ? std::optional<std::uint64_t>(value->as_int64()) : std::nullopt;
  };
  options.vocabulary_size = number("vocab_size");
  const std::map<std::string, std::vector<TokenizerChoice>> kReaders{
      {"BertModel", {{Reader::kWordPiece}}},
      {"NomicBertModel", {{Reader::kWordPiece}}},
      {"XLMRobertaModel", {{Reader::kUnigramFairseq}}},
      {"T5ForConditionalGeneration", {{Reader::kUnigram}}},
      {"Gemma2ForCausalLM", {{Reader::kSentencePiece, {}, false}}},
      {"Gemma3ForCausalLM", {{Reader::kSentencePiece, {}, false}, {Reader::kBpe}}},
      {"Gemma3ForConditionalGeneration", {{Reader::kSentencePiece, {}, false}, {Reader::kBpe}}},
      {"Phi3ForCausalLM", {{Reader::kBpe, "GPT2Tokenizer"}, {Reader::kSentencePieceListed}}},
      {"InternLM2ForCausalLM", {{Reader::kSentencePieceAppended}}},
      {"MiniCPMForCausalLM", {{Reader::kSentencePiece}}},
  };
  const auto found = kReaders.find(architecture);
  const bool llama = architecture.starts_with("Llama") || architecture.starts_with("Mistral") ||
                     architecture == "MixtralForCausalLM" || architecture.starts_with("Granite") ||
                     architecture == "SmolLM3ForCausalLM" || architecture == "Mistral3ForConditionalGeneration";
  if (found != kReaders.end())
    options.readers = found->second;
  else if (llama)
    options.readers = {{Reader::kSentencePiece}, {Reader::kByteFallbackBpe}, {Reader::kBpe}};
  else if (architecture.starts_with("Qwen") || architecture.starts_with("Deepseek"))
    options.readers = {{Reader::kSentencePiece}, {Reader::kBpe}};
  else
    options.readers = {{Reader::kBpe}};
  options.space_prefix_of_config = llama;
  if (architecture.find("Bert") != architecture.npos || architecture == "XLMRobertaModel")
    options.token_types = static_cast<std::uint32_t>(number("type_vocab_size").value_or(1));
  if (architecture == "InternLM2ForCausalLM") options.special_tokens = {{"eos", "<|im_end|>", {}, true, false}};
  if (architecture == "Glm4ForCausalLM" || architecture == "Glm4MoeForCausalLM") {
    options.special_tokens = {{"eot", "<|user|>"}, {"unk", "<|endoftext|>"}};
    if (architecture == "Glm4MoeForCausalLM") {
      options.special_tokens.insert(options.special_tokens.begin(), {"bos", "[gMASK]"});
      options.special_tokens.push_back({"eom", "<|observation|>"});
    } else {
      options.special_tokens.insert(options.special_tokens.begin(), {"eos", "<|endoftext|>"});
      options.special_tokens.push_back({"bos", "<|endoftext|>"});
    }
  }
  return options;
}

// Returns a value in the format of the files in expected/: [type, value].
json::array shown(const MetadataValue& value) {
  const auto text = [](std::string_view all) -> json::value {
    if (all.size() <= 200) return json::value(std::string(all));
    return json::object{{"bytes", all.size()}, {"sha256", sha256_hex(as_bytes(all))}};
  };
  switch (value.type) {
    case MetadataType::kString:
      return {"str", text(*as_string(value))};
    case MetadataType::kBool:
      return {"bool", *as_bool(value)};
    case MetadataType::kUint32:
      return {"u32", *as_unsigned(value)};
    case MetadataType::kArray: {
      const ArrayView array = *as_array(value);
      const std::map<MetadataType, std::string> kNames{{MetadataType::kString, "arr[str]"},
                                                       {MetadataType::kFloat32, "arr[f32]"},
                                                       {MetadataType::kInt32, "arr[i32]"},
                                                       {MetadataType::kUint8, "arr[u8]"}};
      return {kNames.at(array.element), json::object{{"count", array.count},
                                                     {"bytes", array.bytes.size()},
                                                     {"sha256", sha256_hex(as_bytes(array.bytes))}}};
    }
    default:
      return {"?", nullptr};
  }
}

// Reduces an object to the members that identify the value.
json::value identifying(const json::value& value) {
  if (!value.is_object()) return value;
  json::object out;
  for (const char* key : {"count", "bytes", "sha256"}) {
    if (const json::value* member = value.as_object().if_contains(key)) out[key] = *member;
  }
  return out;
}

std::string listed(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += line + "\n";
  return out;
}

}  // namespace

TEST_CASE("check texts yield the ids and hashes of the reference") {
  const auto shared = shared_data();
  if (!shared || !fs::exists(*shared / "hf")) GGUFMILL_SKIP("no ../shared/hf");
  const fs::path hf = *shared / "hf";
  const Tsv table = read_tsv(hf / "tokenizers.tsv");
  std::size_t right = 0;
  for (const std::vector<std::string>& row : table.rows) {
    const TempDir folder;
    make_checkpoint_files(hf, parsed(R"({"tokenizer": {"from": ")" + row[0] + "\"}}"), folder.path());
    const auto file = read_tokenizer_json(folder.file("tokenizer.json"));
    const auto config = read_checkpoint_json(folder.file("tokenizer_config.json"));
    REQUIRE(file);
    REQUIRE(config);
    const auto loaded = LoadedTokenizer::load(file.value(), config.value());
    CAPTURE(row[0], loaded ? "" : render(loaded.error()));
    REQUIRE(loaded);
    const auto hash = pre_tokenizer_hash(loaded.value());
    CHECK((hash ? hash.value() : render(hash.error())) == row[5]);
    if (hash && row[6] != "-") CHECK(pre_tokenizer_named(hash.value()) == row[6]);
    right += hash && hash.value() == row[5];
  }
  std::cout << right << " of " << table.rows.size() << " tokenizers have the reference's hash\n";
}

TEST_CASE("checkpoints yield the reference's tokenizer keys") {
  const auto shared = shared_data();
  if (!shared || !fs::exists(*shared / "hf")) GGUFMILL_SKIP("no ../shared/hf");
  const fs::path hf = *shared / "hf";
  std::map<std::string, std::vector<fs::path>> expected;  // by case
  for (const fs::directory_entry& entry : fs::directory_iterator(hf / "expected"))
    expected[entry.path().filename().string().substr(0, entry.path().filename().string().find('.'))].push_back(
        entry.path());
  std::size_t cases = 0, right = 0, keys = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(hf / "specs")) {
    const json::value spec = parsed(read_text(entry.path()));
    const TempDir folder;
    make_checkpoint_files(hf, spec, folder.path());
    const std::string architecture(spec.at("config").at("architectures").at(0).as_string());
    const auto made = read_tokenizer(folder.path(), options_of(architecture, spec.at("config")));
    const std::string name = entry.path().stem();
    CAPTURE(name, architecture, made ? "" : render(made.error()));
    CHECK(made);
    if (!made) continue;
    Metadata metadata;
    if (architecture == "PhiForCausalLM") metadata.set("tokenizer.ggml.add_bos_token", metadata_bool(false));
    for (const MetadataEntry& one : made.value().metadata.entries()) metadata.set(one.key, one.value);

    // spec.case contains dots; the files are CASE.RUN.json.xz or CASE.RUN.PART.json.xz.
    std::vector<fs::path> files;
    for (const auto& [prefix, paths] : expected) {
      for (const fs::path& path : paths) {
        if (path.filename().string().starts_with(name + ".")) files.push_back(path);
      }
    }
    CHECK(!files.empty());
    std::sort(files.begin(), files.end());
    files.resize(std::min<std::size_t>(files.size(), 1));  // the runs of a case differ only in the weights
    for (const fs::path& path : files) {
      const json::value document = read_xz_json(path);
      std::vector<std::string> ours, theirs;
      for (const json::value& row : document.at("kv").as_array()) {
        if (!std::string_view(row.at(0).as_string()).starts_with("tokenizer.")) continue;
        theirs.push_back(json::serialize(json::array{row.at(0), row.at(1), identifying(row.at(2))}));
      }
      for (const MetadataEntry& one : metadata.entries()) {
        const json::array value = shown(one.value);
        ours.push_back(json::serialize(json::array{json::value(one.key), value[0], value[1]}));
      }
      CHECK(listed(ours) == listed(theirs));
      ++cases;
      right += ours == theirs;
      keys += theirs.size();
    }
  }
  std::cout << right << " of " << cases << " checkpoints have the reference's tokenizer keys (" << keys << " keys)\n";
}

TEST_CASE("checkpoints whose tokenizer the reference rejects are rejected with a helpful message") {
  const auto shared = shared_data();
  if (!shared || !fs::exists(*shared / "hf")) GGUFMILL_SKIP("no ../shared/hf");
  const fs::path hf = *shared / "hf";
  const std::pair<std::string, std::string> kCases[] = {
      {"no-tokenizer", "no tokenizer: tokenizer.json is missing; tokenizer.model is missing"},
      {"unknown-pretokenizer", "llama.cpp does not know the hash of its check text, "},
      {"vocabulary-too-big", "but config.json has a vocabulary of "},
  };
  for (const auto& [name, message] : kCases) {
    const json::value spec = parsed(read_text(hf / "refused" / (name + ".json")));
    const TempDir folder;
    make_checkpoint_files(hf, spec, folder.path());
    const std::string architecture(spec.at("config").at("architectures").at(0).as_string());
    const auto made = read_tokenizer(folder.path(), options_of(architecture, spec.at("config")));
    const std::string error = made ? "" : render(made.error());
    CAPTURE(name, error);
    CHECK(error.find(message) != error.npos);
    std::cout << error;
  }
}
