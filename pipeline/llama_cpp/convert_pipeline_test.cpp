// Tests of the pipeline files generated for `ggufmill convert`.
#include <fmt/format.h>

#include "pipeline/core/option_reference.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/llama_cpp/convert_options.h"
#include "tests/support/catch.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

// A BF16 checkpoint named "Some Model".
struct Conversion {
  TempDir folder;
  bool opened = false;

  ConvertOptions options() const {
    ConvertOptions options;
    options.folder = folder.path();
    return options;
  }
  Result<std::string> convert(const ConvertOptions& options) {
    opened = false;
    return pipeline_of(options, [&](const huggingface::SourceOptions& source) -> Result<huggingface::CheckpointName> {
      CHECK(source.folder == folder.path());
      opened = true;
      huggingface::CheckpointName name;
      name.id.name = "Some Model";
      name.file_type = "BF16";
      return name;
    });
  }
  // Returns the pipeline file with the folder's path replaced by "F".
  std::string pipeline(const ConvertOptions& options) {
    auto text = convert(options);
    if (!text) return render(text.error());
    for (std::size_t at; (at = text.value().find(folder.path().string())) != std::string::npos;)
      text.value().replace(at, folder.path().string().size(), "F");
    return text.value();
  }
  // Returns the value of the last line, the output's path.
  std::string output(const ConvertOptions& options) {
    const std::string text = pipeline(options);
    return text.substr(text.rfind("- gguf: ") + 8);
  }
};

}  // namespace

TEST_CASE("the shortest conversion goes into the checkpoint's folder, under the model's name") {
  Conversion conversion;
  CHECK(conversion.pipeline(conversion.options()) ==
        "version: 1\n"
        "source:\n"
        "  huggingface:\n"
        "    path: 'F'\n"
        "    outtype: auto\n"
        "outputs:\n"
        "  - gguf: 'F/Some-Model-BF16.gguf'\n");
}

TEST_CASE("every argument has its place") {
  Conversion conversion;
  ConvertOptions all = conversion.options();
  all.outfile = "out.gguf";
  all.outtype = "q8_0";
  all.model_name = "It's";
  all.metadata = "m.json";
  all.split_max_size = "5M";
  all.split_max_tensors = 7;
  all.no_tensor_first_split = all.bigendian = all.mtp = all.fuse_gate_up_exps = all.fuse_qkv = all.fp8_as_q8 =
      all.allow_missing = all.mistral_format = all.sentence_transformers_dense_modules = true;
  all.architectures = {"maps", "it's.yaml"};
  CHECK(
      conversion.pipeline(all) ==
      "version: 1\n"
      "source:\n"
      "  huggingface:\n"
      "    path: 'F'\n"
      "    outtype: q8_0\n"
      "    part: draft\n"
      "    config: params.json\n"
      "    model_name: 'It''s'\n"
      "    metadata: 'm.json'\n"
      "    fuse_gate_up_experts: true\n"
      "    fuse_qkv: true\n"
      "    fp8_as_q8_0: true\n"
      "    allow_missing: true\n"
      "    dense_modules: true\n"
      "    architectures: ['maps', 'it''s.yaml']\n"
      "outputs:\n"
      "  - gguf: {path: 'out.gguf', shard_size: 5000000, shard_tensors: 7, metadata_shard: true, shard_rule: convert, "
      "byte_order: big}\n");
  CHECK(!conversion.opened);
}

TEST_CASE("a DSpark draft is an option of the source, and is named like a model") {
  Conversion conversion;
  ConvertOptions options = conversion.options();
  options.dspark = true;
  options.target_model_dir = "T";
  CHECK(conversion.pipeline(options).find("    dspark: true\n    target: 'T'\n") != std::string::npos);
  CHECK(conversion.output(options) == "'F/Some-Model-BF16.gguf'\n");
}

TEST_CASE("the output is named by the arguments, by a template, or by the model in a folder") {
  Conversion conversion;
  ConvertOptions options = conversion.options();
  options.outfile = conversion.folder.file("a-{ftype}-{FTYPE}.gguf");
  CHECK(conversion.output(options) == "'F/a-bf16-BF16.gguf'\n");
  CHECK(conversion.opened);
  options.outfile = conversion.folder.file("a.gguf");
  CHECK(conversion.output(options) == "'F/a.gguf'\n");
  CHECK(!conversion.opened);
  fs::create_directory(conversion.folder.file("out"));
  options.outfile = conversion.folder.file("out/");
  CHECK(conversion.output(options) == "'F/out/Some-Model-BF16.gguf'\n");
  options.outfile = conversion.folder.file("new/");
  CHECK(conversion.output(options) == "'F/new/Some-Model-BF16.gguf'\n");
  options.outfile = conversion.folder.file("out/");
  options.mtp = true;
  CHECK(conversion.output(options) == "'F/out/mtp-Some-Model-BF16.gguf'\n");
  options.mtp = false;
  options.vocab_only = true;
  CHECK(conversion.output(options) == "{path: 'F/out/Some-Model-vocab.gguf', shard_rule: convert}\n");
  options.outfile = conversion.folder.file("a-{type}.gguf");
  CHECK(conversion.pipeline(options) ==
        "error: unknown '{type}' in output name 'a-{type}.gguf'\n"
        "  help: {ftype} and {outtype} stand for the type, {FTYPE} and {OUTTYPE} for the type in upper case\n");
}

TEST_CASE("invalid arguments are refused") {
  Conversion conversion;
  const auto refusal = [&](auto change) {
    ConvertOptions options = conversion.options();
    change(options);
    const auto text = conversion.convert(options);
    REQUIRE_FALSE(text);
    const std::string what = replace_option_references(
        text.error().what, [](std::string_view name, std::string_view) { return fmt::format("<{}>", name); });
    return fmt::format("{}: {}", static_cast<int>(text.error().code), what);
  };
  CHECK(refusal([](ConvertOptions& options) { options.outtype = "Q4_K_M"; }) == "2: unknown <outtype> 'Q4_K_M'");
  CHECK(refusal([](ConvertOptions& options) { options.dspark = options.mtp = true; }) ==
        "2: <dspark> and <mtp> cannot be used together");
  CHECK(refusal([](ConvertOptions& options) { options.mtp = options.no_mtp = true; }) ==
        "2: <mtp> and <no_mtp> cannot be used together");
  CHECK(refusal([](ConvertOptions& options) {
          options.vocab_only = true;
          options.split_max_tensors = 1;
        }) == "2: <vocab_only> writes no tensors to split");
  CHECK(refusal([](ConvertOptions& options) { options.folder = "/nowhere"; }) == "4: the folder does not exist");
  CHECK(refusal([](ConvertOptions& options) { options.folder = "/dev/null"; }) == "4: is a device, not a folder");
}

TEST_CASE("a name is taken for a model on the hub only if it can be one") {
  Conversion conversion;
  const auto help = [&](const std::string& folder) {
    ConvertOptions options = conversion.options();
    options.folder = folder;
    return conversion.convert(options).error().help;
  };
  CHECK(help("meta-llama/Llama-3-8B") ==
        "for a model on the hub, use hf://meta-llama/Llama-3-8B; otherwise give the path of the checkpoint folder");
  for (const char* path : {"/nowhere", "./nowhere", "../nowhere", "nowhere", "a/b/c", "a/"})
    CHECK(help(path) ==
          "a checkpoint folder has config.json, a tokenizer, and weights: *.safetensors or pytorch_model*.bin");
}

TEST_CASE("sizes of splits are those of the reference") {
  const auto size = [](const char* word) { return parse_split_size(word); };
  CHECK(size("0").value() == 0);
  CHECK(size("123").value() == 123);
  CHECK(size("5K").value() == 5000);
  CHECK(size("5M").value() == 5000000);
  CHECK(size("20G").value() == 20000000000);
  for (const char* bad : {"", "K", "5k", "5MB", "5 M", "-1", "1.5G", "99999999999G"}) {
    CAPTURE(bad);
    REQUIRE_FALSE(size(bad));
    CHECK(size(bad).error().help == "give a number followed by K, M, or G, for example 20G");
  }
}
