// The verbs that convert models, look at them, and edit them.

#include <algorithm>

#include "pipeline/cli/test_program.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/importance_files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::testing;

namespace {

// The number of lines of a text.
std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

// Writes an importance file of one matrix with four columns.
void write_importance(const std::string& path) {
  write_text(path, legacy_importance({legacy_entry("a.weight", 1, {1, 2, 3, 4})}, legacy_tail(1, "text")));
}

}  // namespace

TEST_CASE("run writes the outputs of a pipeline file") {
  const VerbFolder folder;
  CHECK(run_verb({"run", folder.path("job.yaml"), "--quiet"}).exit_code == 0);
  CHECK(folder.has("out.gguf"));
}

TEST_CASE("quantize writes the same as the pipeline file that it emits") {
  const VerbFolder folder;
  const Printed pipeline =
      run_verb({"quantize", "--emit-pipeline", folder.path("model.gguf"), folder.path("a.gguf"), "Q8_0"});
  write_text(folder.path("emitted.yaml"), pipeline.out);
  REQUIRE(run_verb({"run", folder.path("emitted.yaml"), "--quiet"}).exit_code == 0);
  REQUIRE(run_verb({"quantize", "-q", folder.path("model.gguf"), folder.path("b.gguf"), "Q8_0"}).exit_code == 0);
  CHECK(read_text(folder.path("a.gguf")) == read_text(folder.path("b.gguf")));
}

TEST_CASE("convert refuses a folder that does not exist") {
  const VerbFolder folder;
  CHECK(run_verb({"convert", folder.path("nowhere")}).exit_code == static_cast<int>(ExitCode::kBadInput));
}

TEST_CASE("convert-lora emits a pipeline file with the adapter and its base") {
  const Printed printed = run_verb({"convert-lora", "adapter", "--base", "base", "--emit-pipeline"});
  CHECK(has(printed.out, "lora:\n    adapter: 'adapter'\n    base: 'base'\n"));
}

TEST_CASE("check reads a pipeline file and writes nothing") {
  const VerbFolder folder;
  CHECK(has(run_verb({"check", folder.path("job.yaml")}).err, "job.yaml: ok: 2 tensors"));
  CHECK_FALSE(folder.has("out.gguf"));
}

TEST_CASE("plan lists every tensor with its type") {
  const VerbFolder folder;
  CHECK(has(run_verb({"plan", folder.path("job.yaml")}).out, "a.weight  256 x 4  F16   Q8_0  1,088"));
}

TEST_CASE("status says which outputs are missing") {
  const VerbFolder folder;
  CHECK(has(run_verb({"status", folder.path("job.yaml")}).out, "missing"));
}

TEST_CASE("inspect shows the metadata and tensors of a file") {
  const VerbFolder folder;
  const Printed printed = run_verb({"inspect", folder.path("model.gguf")});
  CHECK(has(printed.out, "general.name  string  \"tiny\""));
  CHECK(has(printed.out, "a.weight  256 x 4  F16   2,048"));
}

TEST_CASE("compare fails if a difference is larger than permitted") {
  const VerbFolder folder;
  REQUIRE(run_verb({"run", folder.path("job.yaml"), "--quiet"}).exit_code == 0);
  const std::string from = folder.path("model.gguf"), to = folder.path("out.gguf");
  CHECK(run_verb({"compare", from, to, "--max-rmse", "1"}).exit_code == 0);
  CHECK(run_verb({"compare", from, to, "--max-rmse", "0"}).exit_code == static_cast<int>(ExitCode::kVerification));
}

TEST_CASE("verify reads a file and says that it has no manifest") {
  const VerbFolder folder;
  CHECK(has(run_verb({"verify", folder.path("model.gguf")}).err, "no manifest to compare with"));
}

TEST_CASE("verify accepts an output of the model that it is compared with") {
  const VerbFolder folder;
  REQUIRE(run_verb({"run", folder.path("job.yaml"), "--quiet"}).exit_code == 0);
  const Printed printed = run_verb({"verify", folder.path("out.gguf"), "--against", folder.path("model.gguf")});
  CHECK(printed.exit_code == 0);
  CHECK(has(printed.err, "tensors compared with"));
}

TEST_CASE("verify finds a kept tensor with other values than the source's") {
  const VerbFolder folder;
  const std::string original = folder.path("model.gguf"), damaged = folder.path("damaged.gguf");
  std::string bytes = read_text(original);
  bytes[bytes.size() - 64] ^= 1;  // in the last tensor
  write_text(damaged, bytes);
  const Printed printed = run_verb({"verify", damaged, "--against", original});
  CHECK(printed.exit_code == static_cast<int>(ExitCode::kVerification));
  CHECK(has(printed.err, "1 tensor does not agree with"));
}

TEST_CASE("verify --spec reads no values to compare") {
  const VerbFolder folder;
  const std::string model = folder.path("model.gguf");
  const Printed printed = run_verb({"verify", model, "--spec", "--against", model});
  CHECK(printed.exit_code == static_cast<int>(ExitCode::kUsage));
  CHECK(has(printed.err, "--against and --spec cannot be used together"));
}

TEST_CASE("verify accepts replaced values that are not finite") {
  const VerbFolder folder;
  const std::string source = folder.path("nan.gguf"), out = folder.path("o.gguf");
  std::string bytes = read_text(folder.path("model.gguf"));
  bytes.replace(bytes.size() - 64, 4, "\xff\x7f\xff\x7f");  // NaN, as F16 and as F32
  write_text(source, bytes);
  write_text(folder.path("zero.yaml"),
             "version: 1\nnonfinite: zero\nsource: {gguf: " + source + "}\noutputs: [{gguf: " + out + "}]\n");
  REQUIRE(run_verb({"run", folder.path("zero.yaml"), "--quiet"}).exit_code == 0);
  CHECK(run_verb({"verify", out, "--against", source}).exit_code == 0);
}

TEST_CASE("verify accepts tensors without elements anywhere, and still finds padding that is not zero") {
  const TempDir folder;
  const std::string path = folder.file("empty.gguf");
  constexpr std::size_t kTensors = 24;  // so many that a sort of equal offsets changes their order
  for (std::size_t empty = 0; empty <= kTensors; ++empty) {
    GgufBuilder file;
    file.metadata = {{"general.architecture", metadata_string("llama")}};
    for (std::size_t i = 0; i <= kTensors; ++i) {
      if (i == empty) file.add_tensor("none", {0}).add_tensor("rows", {4, 0});
      if (i < kTensors) file.add_tensor("t" + std::to_string(i), {3}, "F32", 1);
    }
    for (GgufBuilder::TensorSpec& tensor : file.tensors)
      for (std::size_t i = 0; i + 3 < tensor.data.size(); i += 4) tensor.data.replace(i, 4, "\0\0\x80\x3f", 4);
    std::string bytes = file.build();
    write_text(path, bytes);
    CAPTURE(empty);
    CHECK(run_verb({"verify", path}).exit_code == 0);
    bytes[bytes.size() - 1] = 1;
    write_text(path, bytes);
    const Printed printed = run_verb({"verify", path});
    CHECK(printed.exit_code == static_cast<int>(ExitCode::kVerification));
    CHECK(has(printed.err, "padding but not zero"));
  }
}

TEST_CASE("hash prints a line for each tensor and one for all") {
  const VerbFolder folder;
  CHECK(lines_of(run_verb({"hash", folder.path("model.gguf")}).out) == 3);
}

TEST_CASE("merge restores the weights that split distributed") {
  const VerbFolder folder;
  REQUIRE(run_verb({"split", folder.path("model.gguf"), folder.path("part"), "--split-max-tensors", "1", "--quiet"})
              .exit_code == 0);
  REQUIRE(
      run_verb({"merge", folder.path("part-00001-of-00002.gguf"), folder.path("again.gguf"), "--quiet"}).exit_code ==
      0);
  const std::string of_file = run_verb({"hash", folder.path("model.gguf")}).out;
  const std::string of_merged = run_verb({"hash", folder.path("again.gguf")}).out;
  CHECK(of_file.substr(0, 27) == of_merged.substr(0, 27));  // kind and hash
}

TEST_CASE("edit changes nothing with --dry-run") {
  const VerbFolder folder;
  const std::string before = read_text(folder.path("model.gguf"));
  CHECK(run_verb({"edit", folder.path("model.gguf"), "--general-name", "mine", "--dry-run"}).exit_code == 0);
  CHECK(read_text(folder.path("model.gguf")) == before);
}

TEST_CASE("edit writes metadata to a new file") {
  const VerbFolder folder;
  const std::string edited = folder.path("edited.gguf");
  REQUIRE(run_verb({"edit", folder.path("model.gguf"), "--general-name", "mine", "--output", edited}).exit_code == 0);
  CHECK(has(run_verb({"inspect", edited}).out, "general.name  string  \"mine\""));
}

TEST_CASE("name splits a file name into its parts") {
  CHECK(has(run_verb({"name", "Mixtral-8x7B-v0.1-KQ2.gguf"}).out, "size_label                  8x7B\n"));
}

TEST_CASE("imatrix converts a legacy file and back") {
  const VerbFolder folder;
  write_importance(folder.path("a.dat"));
  REQUIRE(run_verb({"imatrix", "convert", folder.path("a.dat"), "--output", folder.path("a.gguf")}).exit_code == 0);
  REQUIRE(run_verb({"imatrix", "convert", folder.path("a.gguf"), "--output", folder.path("b.dat")}).exit_code == 0);
  CHECK(read_text(folder.path("a.dat")) == read_text(folder.path("b.dat")));
}
