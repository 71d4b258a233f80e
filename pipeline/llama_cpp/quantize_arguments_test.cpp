
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/llama_cpp/quantize_options.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/needs.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

Status read_positional(const std::vector<std::string>& words, QuantizeOptions& options,
                       std::vector<std::string>& warnings) {
  BOOST_OUTCOME_TRY(const QuantizeWords arranged, arrange_words(words));
  return read_words(arranged, options, warnings);
}

QuantizeOptions read(const std::vector<std::string>& words) {
  QuantizeOptions options;
  std::vector<std::string> warnings;
  const Status status = read_positional(words, options, warnings);
  if (!status) FAIL(render(status.error()));
  return options;
}

std::string error(const std::vector<std::string>& words) {
  QuantizeOptions options;
  std::vector<std::string> warnings;
  const Status status = read_positional(words, options, warnings);
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ExitCode::kUsage);
  return status.error().what;
}

std::vector<std::string> warnings(const std::vector<std::string>& words) {
  QuantizeOptions options;
  std::vector<std::string> warnings;
  CHECK(read_positional(words, options, warnings));
  return warnings;
}

}  // namespace

TEST_CASE("input, output, type and threads") {
  const QuantizeOptions options = read({"a/in.gguf", "b/out.gguf", "Q4_K_M", "8"});
  CHECK(options.input == "a/in.gguf");
  REQUIRE(options.outputs.size() == 1);
  CHECK(options.outputs[0].path == "b/out.gguf");
  CHECK(options.outputs[0].recipe == "Q4_K_M");
  CHECK(options.threads == 8u);
}

TEST_CASE("the type is known by name, alias and number, in any letter case") {
  for (const char* word : {"Q4_K_M", "q4_k_m", "Q4_K", "q4_k", "15"}) {
    CAPTURE(word);
    CHECK(read({"in.gguf", "out.gguf", word}).outputs.at(0).recipe == "Q4_K_M");
  }
  CHECK(read({"in.gguf", "out.gguf", "0"}).outputs.at(0).recipe == "F32");
  CHECK(read({"in.gguf", "out.gguf", "copy"}).outputs.at(0).recipe == "COPY");
}

TEST_CASE("the type may be a recipe file") {
  const TempDir folder;
  const std::string path = folder.file("mine.yaml");
  write_text(path, "");
  CHECK(read({"in.gguf", "out.gguf", path}).outputs.at(0).recipe == path);
  const QuantizeOptions several = read({"a/in.gguf", path + ",Q6_K"});
  REQUIRE(several.outputs.size() == 2);
  CHECK(several.outputs[0].path == "a/in-mine.gguf");
  CHECK(error({"in.gguf", "out.gguf", "none.yaml"}) == "the recipe file 'none.yaml' does not exist");
}

TEST_CASE("without OUTPUT, the output is named after the type, next to the input") {
  CHECK(read({"in.gguf", "q8_0"}).outputs.at(0).path == "ggml-model-Q8_0.gguf");
  CHECK(read({"a/b/in.gguf", "Q4_K_M"}).outputs.at(0).path == "a/b/ggml-model-Q4_K_M.gguf");
  CHECK(read({"a/in.gguf", "COPY"}).outputs.at(0).path == "a/ggml-model-COPY.gguf");
}

TEST_CASE("without OUTPUT, the output is named after the alias if that or the number was given") {
  CHECK(read({"in.gguf", "q4_k"}).outputs.at(0).path == "ggml-model-Q4_K.gguf");
  CHECK(read({"in.gguf", "15"}).outputs.at(0).path == "ggml-model-Q4_K.gguf");
  CHECK(read({"in.gguf", "7"}).outputs.at(0).path == "ggml-model-Q8_0.gguf");
}

TEST_CASE("without THREADS, or with 0, the machine's number is used") {
  CHECK_FALSE(read({"in.gguf", "Q8_0"}).threads);
  CHECK_FALSE(read({"in.gguf", "Q8_0", "0"}).threads);
  CHECK(read({"in.gguf", "Q8_0", "3"}).threads == 3u);
  CHECK(warnings({"in.gguf", "Q8_0", "0"}).empty());
}

TEST_CASE("what the reference reads as a number of threads is read, with a warning") {
  using Texts = std::vector<std::string>;
  CHECK_FALSE(read({"in.gguf", "Q8_0", "-1"}).threads);
  CHECK(warnings({"in.gguf", "Q8_0", " -1"}) == Texts{"-1 threads: using as many as the machine has"});
  CHECK(read({"in.gguf", "Q8_0", "+8x"}).threads == 8u);
  CHECK(warnings({"in.gguf", "Q8_0", "8x"}) == Texts{"'8x' is read as 8 threads"});
  CHECK(read({"in.gguf", "Q8_0", "5000"}).threads == 1024u);
  CHECK(warnings({"in.gguf", "Q8_0", "5000"}) == Texts{"5000 threads are too many: using 1024"});
  CHECK(error({"in.gguf", "Q8_0", "99999999999"}) == "'99999999999' is not a number of threads");
}

TEST_CASE("words after the threads are refused") {
  CHECK(error({"in.gguf", "Q8_0", "2", "x", "y"}) == "unexpected argument 'x'");
}

namespace {

std::vector<std::string> paths(const std::vector<std::string>& words) {
  std::vector<std::string> paths;
  for (const QuantizedOutput& output : read(words).outputs) paths.push_back(output.path);
  return paths;
}

}  // namespace

TEST_CASE("several types are several outputs, named by model and type") {
  using Texts = std::vector<std::string>;
  CHECK(paths({"a/model-F16.gguf", "q4_k_m,Q6_K"}) == Texts{"a/model-Q4_K_M.gguf", "a/model-Q6_K.gguf"});
  CHECK(paths({"a/model-F16.gguf", "out/", "Q4_K,8"}) == Texts{"out/model-Q4_K.gguf", "out/model-Q5_0.gguf"});
  CHECK(paths({"a/in.gguf", "b/x-{recipe}.gguf", "Q4_0,Q8_0"}) == Texts{"b/x-{recipe}.gguf", "b/x-{recipe}.gguf"});
  CHECK(paths({"hf://org/Llama-3-8B@main", "Q8_0"}) == Texts{"Llama-3-8B-Q8_0.gguf"});
  CHECK(read({"in.gguf", "Q4_K,Q8_0"}).outputs.at(1).recipe == "Q8_0");
}

TEST_CASE("outputs of a checkpoint go into its folder and are named after it") {
  const TempDir folder;
  fs::create_directory(folder.file("Llama-3-8B"));
  CHECK(paths({folder.file("Llama-3-8B"), "Q8_0"}) ==
        std::vector<std::string>{folder.file("Llama-3-8B/Llama-3-8B-Q8_0.gguf")});
}

TEST_CASE("the output of a diffusion model is named after it") {
  CHECK(paths({"a/flux1-dev.safetensors", "Q8_0"}) == std::vector<std::string>{"a/flux1-dev-Q8_0.gguf"});
}

TEST_CASE("one name for several outputs is refused, and so is a type twice") {
  CHECK(error({"in.gguf", "out.gguf", "Q4_0,Q8_0"}) == "'out.gguf' is a single name for 2 outputs");
  CHECK(error({"in.gguf", "Q4_K,q4_k_m"}) == "'Q4_K,q4_k_m' names the type Q4_K_M twice");
  CHECK(error({"in.gguf", "Q4_K,"}) == "unknown quantization type ''");
}

TEST_CASE("types without a recipe are refused with the reason") {
  GGUFMILL_NEEDS("Q4_K_R4");
  CHECK(error({"in.gguf", "Q4_K_R4"}) == "Q4_K_R4 is a type, but TYPE names a recipe");
  CHECK(error({"in.gguf", "BF16_R16"}).starts_with("the type BF16_R16 is not supported: "));
}

TEST_CASE("a mistyped type is not taken for the name of an output") {
  CHECK(error({"in.gguf", "Q4_K_M,Q6K", "8"}) == "unknown quantization type 'Q6K'");
  CHECK(error({"in.gguf", "Q4KM", "8"}) == "unknown quantization type 'Q4KM'");
  CHECK(paths({"in.gguf", "./Q4KM", "8"}) == std::vector<std::string>{"./Q4KM"});
}

TEST_CASE("a number followed by letters is not a type, but may be an output") {
  CHECK(error({"in.gguf", "out.gguf", "15abc"}) == "unknown quantization type '15abc'");
  const QuantizeOptions options = read({"in.gguf", "7b.gguf", "Q4_K_M"});
  CHECK(options.outputs.at(0).path == "7b.gguf");
  CHECK(options.outputs.at(0).recipe == "Q4_K_M");
}

TEST_CASE("words that are missing, wrong or too many are refused") {
  CHECK(error({"in.gguf"}) == "an input and a type are required");
  CHECK(error({"in.gguf", "out.gguf"}) == "unknown quantization type 'out.gguf'");
  CHECK(error({"in.gguf", "out.gguf", "Q4_N"}) == "unknown quantization type 'Q4_N'");
  CHECK(error({"in.gguf", "out.gguf", "99"}) == "unknown quantization type '99'");
  CHECK(error({"in.gguf", "Q8_0", "two"}) == "'two' is not a number of threads");
}

TEST_CASE("recipes meant for extension are not types") {
  CHECK(error({"in.gguf", "out.gguf", "mix"}) == "unknown quantization type 'mix'");
}

TEST_CASE("a tensor type file contains words separated by spaces and newlines") {
  const TempDir folder;
  write_text(folder.file("types.txt"), "a=q8_0  b=q4_k\n\n\tc\\.d=f16\n");
  CHECK(read_tensor_type_file(folder.file("types.txt")).value() ==
        std::vector<std::string>{"a=q8_0", "b=q4_k", "c\\.d=f16"});
  CHECK_FALSE(read_tensor_type_file(folder.file("nothing.txt")));
}

TEST_CASE("a number is a word of digits alone") {
  CHECK(whole_number<unsigned>("12") == 12u);
  for (const char* word : {"", "12x", " 12", "-1", "99999999999"}) CHECK_FALSE(whole_number<unsigned>(word));
}
