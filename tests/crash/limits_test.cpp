// Runs the program with limits on memory or threads: it must report an error immediately, lose no data and never hang.

#include <fmt/format.h>
#include <unistd.h>

#include "pipeline/io/platform/filesystem.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/importance_files.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
namespace {

const std::string kProgram = GGUFMILL_BUILD_DIR "/bin/ggufmill";

// A model of 12 tensors and its expected output.
class JobFolder {
 public:
  JobFolder() {
    GgufBuilder model;
    for (int i = 0; i < 12; ++i) model.add_tensor(fmt::format("blk.{}.ffn_down.weight", i), {2048, 256});
    for (auto& tensor : model.tensors) tensor.data = float_bytes(std::vector<float>(tensor.data.size() / 4, 0.5f));
    model.write(folder_.file("model.gguf"));
    write_text(folder_.file("job.yaml"),
               "version: 1\nsource: {gguf: model.gguf}\noutputs: [{gguf: out.gguf, quantize: {type: Q4_K}}]\n");
    const ProcessResult right = run("", "run job.yaml -q");
    REQUIRE(right.exit_code == 0);
    right_ = read_text(folder_.file("out.gguf"));
    fs::rename(folder_.file("out.gguf"), folder_.file("right.gguf"));
    fs::permissions(folder_.path(), fs::perms::all);
  }

  // Runs the program in a shell, after `limit`: a command and " &&", a command that runs another one, or an empty
  // string.
  ProcessResult run(const std::string& limit, const std::string& words) const {
    return run_process({"/bin/sh", "-c", fmt::format("{} {} {}", limit, kProgram, words)}, folder_.path());
  }

  void check(const std::string& limit, const std::string& words) const {
    CAPTURE(limit, words);
    fs::remove(folder_.file("out.gguf"));
    const ProcessResult result = run(limit, words);
    CAPTURE(result.err);
    // If the loader cannot map the program's libraries, it exits with its own code, 127.
    CHECK((result.exit_code == 0 || result.exit_code == 75 || result.exit_code == 127));
    CHECK(result.seconds < 20);
    if (result.exit_code == 75) CHECK(result.err.starts_with("error: "));
    if (fs::exists(folder_.file("out.gguf"))) CHECK((read_text(folder_.file("out.gguf")) == right_));
    if (!words.starts_with("run") || result.exit_code == 0) return;
    REQUIRE(run("", "run job.yaml -q").exit_code == 0);  // the next run succeeds
    CHECK((read_text(folder_.file("out.gguf")) == right_));
    CHECK(names_in(folder_.path()).size() == 4);
  }

 private:
  TempDir folder_;
  std::string right_;
};

}  // namespace

TEST_CASE("with little memory a verb succeeds or says that it has none") {
  const JobFolder folder;
  for (const char* words : {"run job.yaml -q", "plan job.yaml", "compare model.gguf right.gguf -q"})
    for (int megabytes = 20; megabytes <= 200; megabytes += 10)
      folder.check(fmt::format("ulimit -v {} &&", megabytes * 1000), words);
}

TEST_CASE("a tensor of many columns is transposed by 16 threads within the budget and 64 MiB") {
  const TempDir folder;
  constexpr std::uint64_t kSmall = 512, kLarge = 131072;
  std::string header;
  std::uint64_t bytes = 0;
  const auto add = [&](const std::string& name, const std::string& shape, std::uint64_t elements) {
    header += fmt::format(R"({}"{}":{{"dtype":"BF16","shape":[{}],"data_offsets":[{},{}]}})", header.empty() ? "" : ",",
                          name, shape, bytes, bytes + elements * 2);
    bytes += elements * 2;
  };
  const auto add_vector = [&](const std::string& name, std::uint64_t n) { add(name, std::to_string(n), n); };
  const auto add_matrix = [&](const std::string& name, std::uint64_t m, std::uint64_t n) {
    add(name, fmt::format("{},{}", m, n), m * n);
  };
  add_matrix("wte.weight", 5, kSmall);
  add_matrix("wpe.weight", 16, kSmall);
  for (const char* name : {"ln_f", "h.0.ln_1", "h.0.ln_2"})
    for (const char* part : {"weight", "bias"}) add_vector(fmt::format("{}.{}", name, part), kSmall);
  add_matrix("h.0.attn.c_attn.weight", kSmall, 3 * kSmall);
  add_vector("h.0.attn.c_attn.bias", 3 * kSmall);
  add_matrix("h.0.attn.c_proj.weight", kSmall, kSmall);
  add_vector("h.0.attn.c_proj.bias", kSmall);
  add_matrix("h.0.mlp.c_fc.weight", kSmall, kLarge);
  add_vector("h.0.mlp.c_fc.bias", kLarge);
  add_matrix("h.0.mlp.c_proj.weight", kLarge, kSmall);
  add_vector("h.0.mlp.c_proj.bias", kSmall);
  header = "{" + header + "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::string length(8, '\0');
  for (std::size_t i = 0; i < length.size(); ++i) length[i] = static_cast<char>(header.size() >> (8 * i));
  fs::create_directory(folder.file("model"));
  const std::string weights = folder.file("model/model.safetensors");
  write_text(weights, length + header);
  fs::resize_file(weights, length.size() + header.size() + bytes);  // a hole of zeros, without disk space
  write_text(folder.file("model/config.json"),
             fmt::format(R"({{"architectures": ["GPT2LMHeadModel"], "n_embd": {}, "n_head": 8, "n_layer": 1,
                             "n_ctx": 16, "n_positions": 16, "n_inner": {}, "vocab_size": 5,
                             "layer_norm_epsilon": 1e-5}})",
                         kSmall, kLarge));
  write_text(folder.file("model/tokenizer.json"),
             R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "c": 3, "d": 4}, "merges": ["a b"]},
                 "pre_tokenizer": {"type": "ByteLevel"}, "decoder": {"type": "ByteLevel"}})");
  write_text(folder.file("model/tokenizer_config.json"), R"({"model_max_length": 16})");
  write_text(
      folder.file("job.yaml"),
      "version: 1\nsource: {huggingface: {path: model, pre: llama-bpe, allow_missing: true}}\n"  // n_inner is odd
      "outputs: [{gguf: out.gguf, quantize: {type: F32}}]\nlimits: {memory: 64MiB, threads: 16}\n");
  const ProcessResult run = run_process({kProgram, "run", "job.yaml", "-q"}, folder.path());
  CAPTURE(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK(run.peak_memory_kib < 128 << 10);
}

TEST_CASE("with few processes a verb succeeds or says that it may have no more") {
  const JobFolder folder;
  // Limits do not apply to root and count all processes of a user, so a user without any processes is needed.
  const std::string other = "setpriv --reuid 4000123 --regid 4000123 --clear-groups prlimit";
  if (::getuid() != 0 || run_process({"/bin/sh", "-c", other + " --nproc=99 " + kProgram + " types"}).exit_code != 0)
    GGUFMILL_SKIP("needs root, setpriv, and a build folder that every user may enter");
  for (const char* words : {"run job.yaml -q", "plan job.yaml", "compare model.gguf right.gguf -q"})
    for (int processes = 1; processes <= 12; ++processes)
      folder.check(fmt::format("{} --nproc={}", other, processes), words);
}
