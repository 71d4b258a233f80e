#include "pipeline/api/publish/presets/preset_files.h"

#include <boost/json.hpp>

#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

Metadata sampled() {
  Metadata metadata;
  metadata.add("general.sampling.temp", metadata_float(MetadataType::kFloat32, 0.6));
  metadata.add("general.sampling.top_k", metadata_unsigned(MetadataType::kInt32, 20));
  metadata.add("general.sampling.top_p", metadata_float(MetadataType::kFloat32, 0.95));
  return metadata;
}

}  // namespace

TEST_CASE("a Modelfile has the model, its sampling parameters, and the template with its stops") {
  const GoTemplate made{"mine", "{{ .Prompt }}\n", {"<|end|>"}, {}, false};
  const std::string text =
      modelfile({"A model", "./a b.gguf", "./mmproj.gguf"}, {sampling_of(sampled()), 8192, {&made, "renders it"}});
  CHECK(text ==
        "# A model for Ollama: ollama create NAME -f Modelfile\nFROM ./a b.gguf\nFROM ./mmproj.gguf\n"
        "PARAMETER num_ctx 8192\nPARAMETER temperature 0.6\nPARAMETER top_k 20\nPARAMETER top_p 0.95\n"
        "PARAMETER stop <|end|>\n# This template renders it.\nTEMPLATE \"\"\"{{ .Prompt }}\n\"\"\"\n");
}

TEST_CASE("a Modelfile without a template says why, in a line") {
  const std::string text = modelfile({"A\nmodel", "./a.gguf"}, {{}, {}, {nullptr, "the\nreason"}});
  CHECK(text ==
        "# A model for Ollama: ollama create NAME -f Modelfile\nFROM ./a.gguf\n# There is no TEMPLATE: the reason.\n"
        "# Ollama takes one of its own that resembles it, or none: check what it answers.\n");
}

TEST_CASE("llama-server gets a section for each model") {
  CHECK(llama_server_presets({{"n", "./a.gguf", "./p.gguf"}, {"n", "./b;c.gguf"}, {"n", "./d.gguf", "", true}}, 4096)
            .substr(0) ==
        "; Start llama-server in the folder of this file: llama-server --models-preset FILE\n"
        "; Sampling and the chat template are in the models.\nversion = 1\n"
        "\n[a]\nmodel = ./a.gguf\nmmproj = ./p.gguf\nctx-size = 4096\n"
        "\n; ./b;c.gguf is missing: its name has a character that ends a value here\n"
        "\n[d]\nmodel = ./d.gguf\nembeddings = true\nctx-size = 4096\n");
}

TEST_CASE("LM Studio gets numbers as they were written") {
  const auto made = boost::json::parse(lm_studio_preset("A \"model\"", {sampling_of(sampled()), 8192, {}}));
  CHECK(made.at("name").as_string() == "A \"model\"");
  const auto& fields = made.at("operation").at("fields").as_array();
  REQUIRE(fields.size() == 3);
  CHECK(fields[0].at("key").as_string() == "llm.prediction.temperature");
  CHECK(fields[0].at("value").as_double() == 0.6);
  CHECK(fields[2].at("value").at("value").as_double() == 0.95);
  CHECK(made.at("load").at("fields").at(0).at("value").as_int64() == 8192);
}
