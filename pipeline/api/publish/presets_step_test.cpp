// Files with which other programs run the outputs of a job.
#include <fmt/format.h>

#include "pipeline/io/command.h"
#include "pipeline/io/platform/filesystem.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/importance_files.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

// The template of ChatML.
constexpr const char* kTemplate =
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

class PresetFolder {
 public:
  explicit PresetFolder(const char* chat_template = kTemplate) {
    fs::current_path(folder_.path());
    ::setenv("GGUFMILL_CACHE", folder_.file("cache").c_str(), 1);
    GgufBuilder model;
    model.metadata.push_back({"general.architecture", metadata_string("llama")});
    model.metadata.push_back({"general.name", metadata_string("Tiny")});
    model.metadata.push_back({"llama.context_length", metadata_unsigned(MetadataType::kUint32, 2048)});
    model.metadata.push_back({"general.sampling.temp", metadata_float(MetadataType::kFloat32, 0.7)});
    model.metadata.push_back({"tokenizer.ggml.model", metadata_string("gpt2")});
    if (chat_template) model.metadata.push_back({"tokenizer.chat_template", metadata_string(chat_template)});
    model.add_tensor("token_embd.weight", {256, 40}).add_tensor("blk.0.ffn_down.weight", {256, 33});
    for (auto& tensor : model.tensors) tensor.data = float_bytes(std::vector<float>(tensor.data.size() / 4, 0.5F));
    model.write("model.gguf");
  }
  ~PresetFolder() { fs::current_path("/"); }
  PresetFolder(const PresetFolder&) = delete;
  PresetFolder& operator=(const PresetFolder&) = delete;

  static ProcessResult run(const std::string& presets, const char* verb = "run") {
    write_text("job.yaml", fmt::format("version: 1\nsource: {{gguf: model.gguf}}\noutputs:\n"
                                       "- {{gguf: out/Tiny-Q8_0.gguf, quantize: Q8_0}}\n"
                                       "- {{gguf: out/Tiny-Q4_K_M.gguf, quantize: Q4_K_M}}\n"
                                       "- {{gguf: {{path: out/Tiny-F16.gguf, shard_size: 4K}}}}\npresets: {}\n",
                                       presets));
    return run_process({GGUFMILL_PROGRAM, verb, "-q", "job.yaml"});
  }

 private:
  TempDir folder_;
};

bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

bool has_jinja() {
  for (const char* const name : {"python3", "python"})
    if (const auto ran = run_command({name, "-c", "import jinja2"}); ran && ran.value().exit_code == 0) return true;
  WARN("skipped: Python has no module jinja2");
  return false;
}

}  // namespace

TEST_CASE("presets name the outputs from their own folders") {
  const PresetFolder folder;
  const ProcessResult made =
      folder.run("{ollama: out/Modelfile, llama_server: models.ini, lm_studio: out/Tiny.preset.json, context: 1024}");
  CAPTURE(made.err);
  REQUIRE(made.exit_code == 0);
  const std::string modelfile = read_text("out/Modelfile"), server = read_text("models.ini");
  CAPTURE(modelfile, server);
  CHECK(
      modelfile.starts_with("# Tiny for Ollama: ollama create NAME -f Modelfile\nFROM ./Tiny-Q4_K_M.gguf\n"
                            "PARAMETER num_ctx 1024\nPARAMETER temperature 0.7\n"));
  CHECK(has(server, "[Tiny-Q8_0]\nmodel = ./out/Tiny-Q8_0.gguf\nctx-size = 1024\n"));
  CHECK(has(server, "\nmodel = ./out/Tiny-F16-00001-of-0000"));
  CHECK(has(read_text("out/Tiny.preset.json"), "\"llm.load.contextLength\""));
  if (has_jinja()) {
    CHECK(has(modelfile, "PARAMETER stop <|im_end|>\n"));
    CHECK(has(modelfile, "TEMPLATE \"\"\"{{- range .Messages }}<|im_start|>"));
  }
  const ProcessResult status = run_process({GGUFMILL_PROGRAM, "status", "job.yaml"});
  CHECK(has(status.out, "presets  done  out/Modelfile, models.ini, out/Tiny.preset.json"));
}

TEST_CASE("a model without a chat template, or with one of its own, has a Modelfile that says so") {
  const auto [text, reason] = GENERATE(
      std::pair<const char*, const char*>(nullptr, "# There is no TEMPLATE: the model has no chat template.\n"),
      std::pair("{% for m in messages %}<mine>{{ m.content }}{% endfor %}", "renders the same text.\n"));
  if (text && !has_jinja()) return;
  const PresetFolder folder(text);
  const ProcessResult made = folder.run("{ollama: out/Modelfile}");
  REQUIRE(made.exit_code == 0);
  CHECK(has(read_text("out/Modelfile"), reason));
  CHECK(has(read_text("out/Modelfile"), "PARAMETER num_ctx 2048\n"));
  CHECK(has(made.err, "it has no TEMPLATE") == (text != nullptr));
}

TEST_CASE("presets that cannot be made are refused before the first step") {
  const PresetFolder folder;
  const auto [presets, message] = GENERATE(table<const char*, const char*>({
      {"{context: 4096}", "no file is asked for"},
      {"{ollama: Modelfile, model: out/other.gguf}", "no output of this job is 'out/other.gguf'"},
      {"{ollama: out/Tiny-Q8_0.gguf}", "out/Tiny-Q8_0.gguf"},
      {"{ollama: job.yaml}", "job.yaml"},
  }));
  CAPTURE(presets);
  const ProcessResult refused = folder.run(presets);
  CHECK(refused.exit_code == 2);
  CAPTURE(refused.err);
  CHECK(has(refused.err, message));
  CHECK(!fs::exists("out"));
}
