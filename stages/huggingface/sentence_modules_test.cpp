#include "stages/huggingface/sentence_modules.h"

#include <fmt/format.h>

#include "pipeline/core/option_reference.h"
#include "pipeline/io/platform/filesystem.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::huggingface;

namespace {

// A checkpoint of hidden size 64 with modules behind the transformer.
class Folder {
 public:
  // `module`: folder and kind.
  Folder& list(const std::vector<std::pair<std::string, std::string>>& modules) {
    std::string text = R"([{"path": "", "type": "sentence_transformers.models.Transformer"})";
    for (const auto& [folder, kind] : modules)
      text += fmt::format(R"(, {{"path": "{}", "type": "a.b.{}"}})", folder, kind);
    write_text(dir_.file("modules.json"), text + "]");
    return *this;
  }
  Folder& dense(const std::string& folder, int in, int out, const std::string& more = "") {
    fs::create_directories(dir_.path() / folder);
    write_text(dir_.path() / folder / "config.json",
               fmt::format(R"({{"in_features": {}, "out_features": {}{}}})", in, out, more));
    return *this;
  }
  // Returns "FOLDER NAME;" for each Dense module, then the warnings; or the error.
  std::string read(bool includes_dense, bool is_supported = true, std::vector<std::string> further = {}) const {
    Architecture map;
    map.name = "m";
    map.dense_modules = is_supported;
    map.further_weights = std::move(further);
    Facts facts(dir_.path(), {{"hidden_size", 64}}, map.values);
    std::vector<std::string> warnings;
    const auto modules = read_dense_modules(map, includes_dense, facts, warnings);
    if (!modules) return modules.error().what;
    std::string text;
    for (const DenseModule& module : modules.value()) text += fmt::format("{} {};", module.folder, module.name);
    for (const std::string& warning : warnings) text += warning;
    return text;
  }

 private:
  TempDir dir_;
};

const std::string kIdentity = R"(, "bias": false, "activation_function": "torch.nn.modules.linear.Identity")";

}  // namespace

TEST_CASE("Dense modules have the names of the reference, in the order of modules.json") {
  CHECK(Folder().read(false).empty());
  Folder one, other, two;
  one.list({{"1_Pooling", "Pooling"}, {"2_Dense", "Dense"}}).dense("2_Dense", 64, 64, kIdentity);
  CHECK(one.read(true) == "2_Dense dense_2;");
  other.list({{"3_Dense", "Dense"}, {"", "Normalize"}}).dense("3_Dense", 64, 64, kIdentity);
  CHECK(other.read(true) == "3_Dense dense_3;");
  two.list({{"7_Dense", "Dense"}, {"8_Dropout", "Dropout"}, {"3_Dense", "Dense"}});
  two.dense("7_Dense", 64, 128, kIdentity).dense("3_Dense", 128, 64, kIdentity);
  CHECK(two.read(true) == "7_Dense dense_2;3_Dense dense_3;");
}

TEST_CASE("Dense modules that are omitted are named in a warning") {
  Folder folder;
  folder.list({{"2_Dense", "Dense"}, {"3_Dense", "Dense"}}).dense("2_Dense", 64, 9).dense("3_Dense", 9, 64);
  CHECK(folder.read(false).find("the Dense modules 2_Dense, 3_Dense are omitted") != std::string::npos);
  CHECK(folder.read(false).find(option_reference("sentence_transformers_dense_modules", "true")) != std::string::npos);
  CHECK(folder.read(false, false).find("llama.cpp does not support them in 'm'") != std::string::npos);
}

TEST_CASE("modules that change the embedding and have no counterpart are refused") {
  const auto dense = [](const std::string& more) {
    Folder folder;
    folder.list({{"2_Dense", "Dense"}}).dense("2_Dense", 64, 32, more);
    CHECK(folder.read(false, true, {"2_Dense/model.safetensors"}) == folder.read(true));
    return folder.read(true);
  };
  CHECK(dense(R"(, "bias": true)") ==
        "the Dense module '2_Dense' has the activation 'Tanh' and a bias, which llama.cpp does not support in 'm'");
  CHECK(dense(R"(, "activation_function": "torch.nn.modules.activation.GELU")") ==
        "the Dense module '2_Dense' has the activation 'GELU', which llama.cpp does not support in 'm'");
  Folder other, three, wrong, none;
  other.list({{"2_LayerNorm", "LayerNorm"}});
  CHECK(other.read(false) == "the module '2_LayerNorm' is of the kind 'LayerNorm', which llama.cpp does not support");
  three.list({{"2_Dense", "Dense"}, {"3_Dense", "Dense"}, {"4_Dense", "Dense"}});
  for (const char* each : {"2_Dense", "3_Dense", "4_Dense"}) three.dense(each, 64, 64, kIdentity);
  CHECK(three.read(true) == "lists 3 Dense modules (2_Dense, 3_Dense, 4_Dense), but llama.cpp supports two");
  wrong.list({{"2_Dense", "Dense"}, {"3_Dense", "Dense"}}).dense("2_Dense", 64, 128, kIdentity);
  wrong.dense("3_Dense", 96, 64, kIdentity);
  CHECK(wrong.read(true) ==
        "the Dense module '3_Dense' takes 96 values, but the number of values that '2_Dense' makes is 128");
  wrong.dense("3_Dense", 128, 96, kIdentity);
  CHECK(wrong.read(true).starts_with("the Dense module '3_Dense' makes 96 values"));
  none.list({{"1_Pooling", "Pooling"}});
  CHECK(none.read(true) == "lists no Dense modules");
  CHECK(Folder().read(true) == "is missing, so the checkpoint has no Dense modules");
}
