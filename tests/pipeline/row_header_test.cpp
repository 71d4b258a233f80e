// A module of a type whose rows begin with a header, as somebody else would write it, through all of the program.
#include <fmt/format.h>

#include <cstring>

#include "pipeline/api/context.h"
#include "pipeline/io/platform/filesystem.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/importance_files.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
namespace {

constexpr std::uint64_t kColumns = 256, kRows = 96, kTensors = 6;
constexpr std::uint64_t kTensorBytes = kRows * (4 + kColumns);

// A folder with a model of F32, in which the program runs with the module.
class RowFolder {
 public:
  RowFolder() {
    GgufBuilder model;
    for (std::uint64_t t = 0; t < kTensors; ++t) {
      model.add_tensor(fmt::format("blk.{}.ffn_down.weight", t), {kColumns, kRows});
      std::vector<float> values(kColumns * kRows);
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>((i * 2654435761U + t) % 2001) / 1000 - 1;
      model.tensors.back().data = float_bytes(values);
    }
    model.write(file("in.gguf"));
  }
  std::string file(const std::string& name) const { return folder_.file(name); }

  // Runs a verb. Returns what it prints.
  std::string run(std::vector<std::string> words, int code = 0) const {
    words.insert(words.end(), {"--kernel-dir", GGUFMILL_TEST_MODULES "/row_header"});
    return run_alone(std::move(words), code);
  }
  // Same for a verb that knows the module from its job.
  std::string run_alone(std::vector<std::string> words, int code = 0) const {
    words.insert(words.begin(), GGUFMILL_PROGRAM);
    const ProcessResult result = run_process(words, folder_.path());
    CAPTURE(result.out, result.err);
    CHECK(result.exit_code == code);
    return result.out + result.err;
  }
  // Writes out.gguf with rows that have a header.
  std::string made(const std::string& more = "", const std::string& output = "out.gguf") const {
    write_text(file("job.yaml"), fmt::format("version: 1\nmanifest: true\n{}source: {{gguf: in.gguf}}\n"
                                             "outputs: [{{gguf: {}, quantize: {{type: X8_ROW}}}}]\n",
                                             more, output));
    run({"run", "job.yaml", "--overwrite"});
    return fs::exists(file(output)) ? read_text(file(output)) : "";
  }

 private:
  TempDir folder_;
};

// Returns the rows of a file whose tensors are not padded: kTensorBytes is a multiple of the alignment.
std::string rows_of(const std::string& file) { return file.substr(file.size() - kTensors * kTensorBytes); }

}  // namespace

TEST_CASE("every row has its header") {
  static_assert(kTensorBytes % 32 == 0);
  const std::string rows = rows_of(RowFolder().made());
  for (std::size_t row = 0; row < kTensors * kRows; ++row) {
    float scale = 0;
    std::memcpy(&scale, rows.data() + row * (4 + kColumns), sizeof scale);
    CHECK(scale > 0.9F / 127);
    CHECK(scale <= 1.0F / 127);
  }
}

TEST_CASE("the bytes do not depend on memory, threads, or I/O") {
  const RowFolder folder;
  const std::string expected = folder.made();
  const char* more = GENERATE("limits: {memory: 1MiB, threads: 1}\n", "limits: {threads: 4, io: direct}\n");
  CHECK((folder.made(more) == expected));
}

TEST_CASE("files with row headers are read, copied, compared, and verified") {
  const RowFolder folder;
  const std::string made = folder.made();
  CHECK(folder.run({"inspect", "out.gguf"}).find("X8_ROW") != std::string::npos);
  folder.run({"verify", "out.gguf"});
  folder.run({"compare", "in.gguf", "out.gguf"});
  folder.run({"compare", "out.gguf", "out.gguf"});
  write_text(folder.file("back.yaml"),
             "version: 1\nsource: {gguf: out.gguf}\noutputs: [{gguf: copy.gguf}, {gguf: f32.gguf, quantize: F32}]\n");
  folder.run({"run", "back.yaml"});
  CHECK((rows_of(read_text(folder.file("copy.gguf"))) == rows_of(made)));
  const std::string floats = read_text(folder.file("f32.gguf"));
  const std::string original = read_text(folder.file("in.gguf"));
  constexpr std::size_t kBytes = kTensors * kRows * kColumns * sizeof(float);
  for (std::size_t i = 0; i < kBytes; i += sizeof(float)) {
    float a = 0, b = 0;
    std::memcpy(&a, floats.data() + floats.size() - kBytes + i, sizeof a);
    std::memcpy(&b, original.data() + original.size() - kBytes + i, sizeof b);
    if (!(std::abs(a - b) <= 0.5F / 127 + 1e-6F)) FAIL(i);
  }
}

TEST_CASE("raw rows with headers are read") {
  const RowFolder folder;
  const std::string rows = rows_of(folder.made()).substr(0, kTensorBytes);
  write_text(folder.file("rows.bin"), rows);
  write_text(folder.file("arrays.yaml"),
             fmt::format("metadata: {{general.architecture: llama}}\n"
                         "tensors: [{{name: a, raw: rows.bin, type: X8_ROW, shape: [{}, {}]}}]\n",
                         kRows, kColumns));
  write_text(folder.file("raw.yaml"), "version: 1\nsource: {arrays: arrays.yaml}\noutputs: [{gguf: raw.gguf}]\n");
  folder.run({"run", "raw.yaml"});
  const std::string made = read_text(folder.file("raw.gguf"));
  CHECK((made.substr(made.size() - kTensorBytes) == rows));
}

TEST_CASE("files of the other byte order have swapped headers, and are read back") {
  const RowFolder folder;
  const std::string rows = rows_of(folder.made());
  write_text(folder.file("swap.yaml"),
             "version: 1\nsource: {gguf: out.gguf}\noutputs: [{gguf: {path: big.gguf, byte_order: big}}]\n");
  folder.run({"run", "swap.yaml"});
  const std::string big = rows_of(read_text(folder.file("big.gguf")));
  for (std::size_t row = 0; row < rows.size(); row += 4 + kColumns) {
    for (std::size_t i = 0; i < 4; ++i) CHECK(big[row + i] == rows[row + 3 - i]);
    CHECK(big.compare(row + 4, kColumns, rows, row + 4, kColumns) == 0);
  }
  write_text(folder.file("back.yaml"), "version: 1\nsource: {gguf: big.gguf}\noutputs: [{gguf: little.gguf}]\n");
  folder.run({"run", "back.yaml"});
  CHECK((rows_of(read_text(folder.file("little.gguf"))) == rows));
  folder.run({"compare", "big.gguf", "out.gguf"});
  folder.run({"verify", "big.gguf"});
}

TEST_CASE("a header that is not finite is found where it is copied") {
  constexpr std::size_t kBad = 2 * kRows + 5;  // row of the model
  const RowFolder folder;
  std::string made = folder.made();
  const std::string rows = rows_of(made);
  const std::size_t at = made.size() - rows.size() + kBad * (4 + kColumns);
  made.replace(at, 4, std::string("\x00\x00\x80\x7f", 4));  // infinity
  write_text(folder.file("bad.gguf"), made);
  const char* job = "version: 1\nsource: {gguf: bad.gguf}\noutputs: [{gguf: copy.gguf}]\n";
  write_text(folder.file("copy.yaml"), job);
  CHECK(folder.run({"run", "copy.yaml"}, 4)
            .find("tensor 'blk.2.ffn_down.weight', row 5, column 0: a scale that is not "
                  "finite") != std::string::npos);
  write_text(folder.file("zero.yaml"), std::string(job) + "nonfinite: zero\n");
  folder.run({"run", "zero.yaml"});
  std::string expected = rows;
  expected.replace(kBad * (4 + kColumns), 4 + kColumns, 4 + kColumns, '\0');
  CHECK((rows_of(read_text(folder.file("copy.gguf"))) == expected));
}

TEST_CASE("shards have whole rows") {
  const RowFolder folder;
  const std::string whole = rows_of(folder.made());
  folder.made("", fmt::format("{{path: shard.gguf, shard_size: {}}}", 2 * kTensorBytes));
  std::string joined;
  for (int i = 1; i <= 3; ++i) {
    const std::string shard = read_text(folder.file(fmt::format("shard-{:05}-of-00003.gguf", i)));
    joined += shard.substr(shard.size() - 2 * kTensorBytes);
  }
  CHECK((joined == whole));
}

TEST_CASE("a run that was killed is resumed") {
  const RowFolder folder;
  const std::string expected = folder.made();
  fs::remove(folder.file("out.gguf"));
  for (int i = 1; i <= 20; ++i)
    if (run_process(
            {"/usr/bin/timeout", "--foreground", "-s", "KILL", fmt::format("{:.3f}", 0.004 * i), GGUFMILL_PROGRAM,
             "run", "job.yaml", "--kernel-dir", GGUFMILL_TEST_MODULES "/row_header", "--overwrite"},
            folder.file(""))
            .exit_code != 137)
      break;
  CHECK((folder.made() == expected));
}

TEST_CASE("parts of a cluster job make the same file") {
  const RowFolder folder;
  const std::string expected = folder.made();
  fs::remove(folder.file("out.gguf"));
  folder.run({"submit", "job.yaml", "--engine", "none", "--parts", "3", "--folder", "job", "--overwrite"});
  for (const char* part : {"0", "1", "2"}) folder.run_alone({"part", "--plan", "job/plan.json", "--part", part});
  folder.run_alone({"seal", "--plan", "job/plan.json"});
  CHECK((read_text(folder.file("out.gguf")) == expected));
}

TEST_CASE("arrays have the values of rows with a header") {
  const RowFolder folder;
  folder.made();
  write_text(folder.file("arrays.yaml"), "version: 1\nsource: {gguf: out.gguf}\noutputs: [{npy: arrays}]\n");
  folder.run({"run", "arrays.yaml"});
  CHECK(fs::file_size(folder.file("arrays/blk.0.ffn_down.weight.npy")) > kRows * kColumns * sizeof(float));
}
