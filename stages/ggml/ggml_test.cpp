#include "stages/ggml/ggml.h"

#include <fmt/format.h>

#include "stages/gguf/gguf.h"

#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/sha256.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

std::string number(std::uint32_t value) {
  std::string bytes;
  for (unsigned i = 0; i < 4; ++i) bytes += static_cast<char>(value >> (8 * i));
  return bytes;
}

// A model with one layer, 64 columns, 260 tokens and weights of zero.
struct File {
  std::string magic = "tjgg";
  std::uint32_t version = 3, file_type = 1, type = 1, heads = 4;
  std::uint64_t block = 1, block_bytes = 2;
  std::string odd_name{};  // name of an additional tensor at the end; empty: none

  bool padded() const { return magic == "tjgg"; }

  std::string build() const {
    std::string out = magic;
    if (magic != "lmgg") out += number(version);
    for (const std::uint32_t value : {260u, 64u, 256u, heads, 1u, 16u, file_type}) out += number(value);
    for (std::uint32_t id = 0; id < 260; ++id) {
      const std::string token = id < 3 ? "" : id < 259 ? std::string(1, static_cast<char>(id - 3)) : " a token";
      out += number(static_cast<std::uint32_t>(token.size())) + token;
      if (magic != "lmgg") out += number(id == 259 ? 0xc0000000 : 0);  // -2
    }
    add(out, "tok_embeddings.weight", {64, 260}, type);
    add(out, "norm.weight", {64}, 0);
    add(out, "output.weight", {64, 260}, type);
    for (const char* part : {"wq", "wk", "wv", "wo"})
      add(out, fmt::format("layers.0.attention.{}.weight", part), {64, 64}, type);
    add(out, "layers.0.attention_norm.weight", {64}, 0);
    add(out, "layers.0.feed_forward.w1.weight", {64, 96}, type);
    add(out, "layers.0.feed_forward.w2.weight", {96, 64}, type);
    add(out, "layers.0.feed_forward.w3.weight", {64, 96}, type);
    add(out, "layers.0.ffn_norm.weight", {64}, 0);
    if (!odd_name.empty()) add(out, odd_name, {64}, 0);
    return out;
  }

 private:
  void add(std::string& out, const std::string& name, const std::vector<std::uint32_t>& dims, std::uint32_t of) const {
    out +=
        number(static_cast<std::uint32_t>(dims.size())) + number(static_cast<std::uint32_t>(name.size())) + number(of);
    std::uint64_t elements = 1;
    for (const std::uint32_t dim : dims) {
      out += number(dim);
      elements *= dim;
    }
    out += name;
    while (padded() && out.size() % 32 != 0) out += '\0';
    out.append(of == 0 ? 4 * elements : elements / block * block_bytes, '\0');
  }
};

Result<Model> opened(const std::string& bytes, ggml::SourceOptions options = {}) {
  const TempDir folder;
  options.file = folder.file("llama.bin");
  write_text(options.file, bytes);
  return make_ggml_source(options)->open();
}

std::string fault(const std::string& bytes) {
  const auto model = opened(bytes);
  if (model) return "none";
  CHECK(model.error().code == ExitCode::kBadInput);
  return model.error().what;
}

std::string text_of(const Model& model, const char* key) { return describe(*model.metadata.find(key)); }

}  // namespace

TEST_CASE("all formats give the same model, with scores if they have them") {
  for (const auto& [magic, version] : {std::pair("lmgg", 1u), {"fmgg", 1u}, {"tjgg", 1u}, {"tjgg", 2u}, {"tjgg", 3u}}) {
    CAPTURE(magic, version);
    File file{magic, version};
    const auto model = opened(file.build());
    REQUIRE(model);
    REQUIRE(model.value().tensors.size() == 12);
    CHECK(model.value().tensors[3].name == "blk.0.attn_q.weight");
    CHECK(model.value().tensors[9].name == "blk.0.ffn_down.weight");
    CHECK(describe(model.value().tensors[9].shape()) == "96 x 64");
    CHECK(model.value().tensors[9].type->name == "F16");
    const auto scores = array_items(*model.value().metadata.find("tokenizer.ggml.scores"));
    CHECK(as_number(scores.at(259)) == (std::string_view(magic) == "lmgg" ? 0 : -2));
    CHECK(model.value().warnings.size() == (std::string_view(magic) == "lmgg" ? 1 : 0));
  }
}

TEST_CASE("tokens match SentencePiece") {
  const Model model = opened(File{}.build()).value();
  const auto tokens = array_items(*model.metadata.find("tokenizer.ggml.tokens"));
  REQUIRE(tokens.size() == 260);
  CHECK(as_string(tokens[0]) == "<unk>");
  CHECK(as_string(tokens[2]) == "</s>");
  CHECK(as_string(tokens[13]) == "<0x0A>");
  CHECK(as_string(tokens[259]) == "\u2581a\u2581token");
  const auto kinds = array_items(*model.metadata.find("tokenizer.ggml.token_type"));
  CHECK(as_signed(kinds[0]) == 2);
  CHECK(as_signed(kinds[1]) == 3);
  CHECK(as_signed(kinds[13]) == 6);
  CHECK(as_signed(kinds[259]) == 1);
}

TEST_CASE("information missing from the file can be set with options") {
  const Model plain = opened(File{}.build()).value();
  CHECK(text_of(plain, "general.name") == "\"llama.bin\"");
  CHECK(text_of(plain, "general.description") == "\"converted from legacy GGJTv3 MOSTLY_F16 format\"");
  CHECK(text_of(plain, "llama.attention.head_count_kv") == "4");
  CHECK(text_of(plain, "llama.feed_forward_length") == "96");
  const Model said =
      opened(File{}.build(),
             {.name = "Mine", .description = "text", .query_groups = 2, .epsilon = 1e-5, .context_length = 4096})
          .value();
  CHECK(text_of(said, "general.name") == "\"Mine\"");
  CHECK(text_of(said, "llama.attention.head_count_kv") == "2");
  CHECK(text_of(said, "llama.context_length") == "4096");
  const auto wrong = opened(File{}.build(), {.query_groups = 3});
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().code == ExitCode::kUsage);
}

TEST_CASE("outdated block layouts are refused") {
  CHECK(fault(File{"tjgg", 1, 8, 6, 4, 32, 22}.build()) ==
        "its MOSTLY_Q5_0 blocks use an outdated layout: GGJT version 1");
  CHECK(fault(File{"tjgg", 2, 2, 2, 4, 32, 18}.build()) ==
        "its MOSTLY_Q4_0 blocks use an outdated layout: GGJT version 2");
  CHECK(fault(File{"tjgg", 2, 8, 6, 4, 32, 22}.build()) == "none");
  CHECK(fault(File{"tjgg", 3, 2, 2, 4, 32, 18}.build()) == "none");
}

TEST_CASE("invalid files, truncated files, and impossible numbers give one error each") {
  const std::string good = File{}.build();
  CHECK(fault("") == "the file ends where 4 bytes are expected");
  CHECK(fault("GGUF" + good.substr(4)) == "this is a GGUF file");
  CHECK(fault("abcd" + good.substr(4)) == "the magic is 'abcd', not that of a GGML, GGMF, or GGJT file");
  CHECK(fault(File{"tjgg", 4}.build()) == "GGJT version 4 is not supported (supported: 1 to 3)");
  CHECK(fault(File{"tjgg", 3, 5}.build()) == "file type 5 is unknown");
  CHECK(fault(File{"tjgg", 3, 1, 1, 0}.build()) == "0 heads and 260 tokens do not match any model");
  CHECK(fault(File{"tjgg", 3, 1, 99}.build()) == "tensor 'tok_embeddings.weight' has unknown type 99");
  CHECK(fault(File{"tjgg", 3, 1, 1, 4, 1, 2, "layers.0.strange.weight"}.build()) ==
        "tensor 'layers.0.strange.weight' is not a LLaMA tensor");
  CHECK(fault(good.substr(0, good.size() - 1))
            .starts_with("tensor 'layers.0.ffn_norm.weight' of 256 bytes does not fit"));
  CHECK(fault(good.substr(0, 200)).starts_with("260 tokens do not fit in the "));
  std::string tokens = good;
  tokens.replace(8, 4, number(0xffffffff));
  CHECK(fault(tokens) == "4 heads and 4294967295 tokens do not match any model");
  std::string length = good;
  length.replace(36, 4, number(5000));
  CHECK(fault(length) == "a token of 5000 bytes is longer than the limit of 4095");
  for (std::size_t size = 0; size < 3000; size += 7) CHECK(fault(good.substr(0, size)) != "none");
}

TEST_CASE("the converted file matches the reference script's") {
  const Model model = opened(File{}.build()).value();
  const auto files = make_gguf_sink({.path = "llama.gguf"}).value()->layout(model).value();
  REQUIRE(files.size() == 1);
  std::string bytes = files[0].header;
  bytes.resize(files[0].bytes);  // all weights are zero
  CHECK(sha256_hex(std::as_bytes(std::span(bytes))) ==
        "fa9ca65f3750197dbc51a1cd56c20ea3bae6529594ea9bcf434c95a87481360b");
}
