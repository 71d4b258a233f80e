// Interleaved rows, made by the program from floats and from files, and back.

#include <fmt/format.h>

#include "pipeline/io/platform/filesystem.h"
#include "pipeline/kernels/kernels.h"
#include "stages/gguf/gguf.h"
#include "tests/golden/workplace.h"
#include "tests/support/importance_files.h"
#include "tests/support/sha256.h"
#include "tests/support/synth.h"
#include "tests/support/synth_model.h"
#include "tests/support/tsv.h"

using namespace ggufmill;
using namespace ggufmill::golden;

namespace {

const char* const kName = "blk.0.ffn_down.weight";

// Returns the bytes of a tensor of a file, or of the first of several shards, that has types of the module.
std::string tensor_bytes(const std::string& path, const std::string& name, std::string_view type) {
  static const auto kernels = Kernels::load({.directories = {GGUFMILL_IK_MODULES}, .isa = {}}).value();
  const auto model = read_gguf(path, kernels->types());
  if (!model) FAIL(render(model.error()));
  for (const Tensor& tensor : model.value().tensors)
    if (tensor.name == name) {
      CHECK(tensor.type->name == type);
      const Extent& extent = *tensor.expression->as_extent();
      return read_text(extent.source->path).substr(extent.offset, extent.bytes);
    }
  FAIL("no tensor " << name);
  return {};
}

void run(const Workplace& place, const std::string& job, const std::string& modules = GGUFMILL_IK_MODULES) {
  write_text(place.file("job.yaml"), "version: 1\n" + job);
  place.must({"run", "job.yaml", "-q", "--overwrite", "--kernel-dir", modules});
}

std::string digest(const std::string& bytes) { return sha256_hex(std::as_bytes(std::span(bytes))); }

void write_rows(const std::string& path, const std::vector<float>& values, std::uint64_t columns) {
  GgufBuilder builder;
  builder.tensors.push_back({kName, {columns, values.size() / columns}, "F32", float_bytes(values)});
  builder.write(path);
}

// A model of llama.cpp's types with 8 layers.
void quantize_tiny_llama(const Workplace& place, const std::string& type) {
  synth::write_model(synth::load_spec("tests/golden/models/tiny-llama.json"), place.file("model.gguf"));
  place.quantize({"model.gguf", "plain.gguf", type});
}

constexpr std::uint64_t kTensors = 6;

std::string name_of(std::uint64_t tensor) { return fmt::format("blk.{}.ffn_down.weight", tensor); }

// Makes in.gguf, a model of F32, and plain.gguf, whose rows have headers.
void write_rows_with_headers(const Workplace& place) {
  constexpr std::uint64_t kColumns = 512, kRows = 96;
  GgufBuilder model;
  for (std::uint64_t t = 0; t < kTensors; ++t) {
    const std::vector<float> values = synth::values("normal", 7 + t, 0, kRows * kColumns);
    model.tensors.push_back({name_of(t), {kColumns, kRows}, "F32", float_bytes(values)});
  }
  model.write(place.file("in.gguf"));
  run(place, "source: {gguf: in.gguf}\noutputs: [{gguf: plain.gguf, quantize: {type: IQ4_KS}}]\n");
}

// Jobs that encode into interleaved rows, or rearrange those of a file.
constexpr const char* kJobs[] = {
    "source: {gguf: in.gguf}\noutputs: [{gguf: {path: out.gguf}, quantize: {type: IQ4_KS_R4}}]\n",
    "source: {gguf: plain.gguf}\noutputs: [{gguf: {path: out.gguf}, quantize: {repack: interleaved}}]\n"};

// Runs a job, and returns the file it makes.
std::string made(const Workplace& place, const std::string& job) {
  run(place, job);
  return read_text(place.file("out.gguf"));
}

}  // namespace

TEST_CASE("floats become the interleaved rows of ik_llama.cpp") {
  for (const std::vector<std::string>& row : read_tsv("plugins/ik/tests/kernels_r4.tsv").rows) {
    CAPTURE(row);
    const Workplace place;
    const std::uint64_t rows = std::stoull(row[3]), columns = std::stoull(row[4]), seed = std::stoull(row[5]);
    write_rows(place.file("in.gguf"), synth::values(row[1], seed, 0, rows * columns), columns);
    std::string job = "source: {gguf: in.gguf}\n";
    if (row[2] == "yes") {
      const std::vector<float> weights = synth::importance(seed + 1, columns);
      write_text(place.file("imatrix.dat"), legacy_importance({legacy_entry(kName, 0, weights)}));
      job += "stages: [{importance: {file: imatrix.dat}}]\n";
    }
    job += "outputs: [{gguf: out.gguf, quantize: {type: " + row[0] + "}}]\n";
    run(place, job);
    CHECK(digest(tensor_bytes(place.file("out.gguf"), kName, row[0])) == row[7]);
    run(place, "source: {gguf: out.gguf}\noutputs: [{gguf: back.gguf, quantize: {type: F32, requantize: true}}]\n");
    CHECK(digest(tensor_bytes(place.file("back.gguf"), kName, "F32")) == row[8]);
  }
}

TEST_CASE("rows that cannot be interleaved get another type, also where files have them only interleaved") {
  const Workplace place;
  write_rows(place.file("in.gguf"), synth::values("normal", 7, 0, 6 * 256), 256);
  write_text(place.file("imatrix.dat"), legacy_importance({legacy_entry(kName, 0, synth::importance(8, 256))}));
  for (const auto& [type, plain] : {std::pair("IQ1_S_R4", "IQ1_S"), {"IQ1_M_R4", "IQ1_M"}, {"IQ4_KS_R4", "IQ4_KS"}}) {
    run(place, fmt::format("source: {{gguf: in.gguf}}\nstages: [{{importance: {{file: imatrix.dat}}}}]\n"
                           "outputs: [{{gguf: out.gguf, quantize: {{type: {}}}}}]\n",
                           type));
    tensor_bytes(place.file("out.gguf"), kName, plain);
  }
}

TEST_CASE("rows that files have only interleaved stay so") {
  const Workplace place;
  write_rows(place.file("in.gguf"), synth::values("normal", 7, 0, 8 * 256), 256);
  run(place, "source: {gguf: in.gguf}\noutputs: [{gguf: r4.gguf, quantize: {type: IQ1_M_R4}}]\n");
  run(place, "source: {gguf: r4.gguf}\noutputs: [{gguf: plain.gguf, quantize: {repack: plain}}]\n");
  CHECK((tensor_bytes(place.file("plain.gguf"), kName, "IQ1_M_R4") ==
         tensor_bytes(place.file("r4.gguf"), kName, "IQ1_M_R4")));
  place.must({"verify", "r4.gguf", "--kernel-dir", GGUFMILL_IK_MODULES});
}

TEST_CASE("the rows of a type whose module describes no scales and words are interleaved when they are encoded") {
  const std::string modules = GGUFMILL_TEST_MODULES "/undescribed_type";
  const Workplace place;
  write_rows(place.file("in.gguf"), synth::values("normal", 7, 0, 8 * 64), 64);
  run(place, "source: {gguf: in.gguf}\noutputs: [{gguf: plain.gguf, quantize: {type: Q6_0}}]\n", modules);
  run(place, "source: {gguf: plain.gguf}\noutputs: [{gguf: packed.gguf, quantize: {repack: interleaved}}]\n", modules);
  run(place, "source: {gguf: in.gguf}\noutputs: [{gguf: made.gguf, quantize: {type: Q6_0_R4}}]\n", modules);
  const std::string packed = tensor_bytes(place.file("packed.gguf"), kName, "Q6_0_R4");
  CHECK((packed != tensor_bytes(place.file("plain.gguf"), kName, "Q6_0")));
  CHECK((tensor_bytes(place.file("made.gguf"), kName, "Q6_0_R4") == packed));
}

TEST_CASE("a file is repacked and back without changing a value, as a stream, in any number of threads") {
  const Workplace place;
  quantize_tiny_llama(place, "Q4_K_M");
  for (const char* limits : {"{threads: 1}", "{threads: 4, memory: 2MiB}"}) {
    CAPTURE(limits);
    run(place, std::string("source: {gguf: plain.gguf}\noutputs: [{gguf: r4.gguf, quantize: {repack: interleaved}}]\n"
                           "limits: ") +
                   limits + "\n");
    const ModelFile packed = place.read("r4.gguf");
    CHECK(packed.tensors.at("token_embd.weight").type == "Q4_K");
    CHECK(packed.tensors.at("output.weight").type == "Q6_K_R4");
    CHECK(packed.tensors.at("blk.3.attn_q.weight").type == "Q4_K_R4");
    CHECK(packed.tensors.at("blk.3.attn_norm.weight").type == "F32");
    run(place, std::string("source: {gguf: r4.gguf}\noutputs: [{gguf: back.gguf, quantize: {repack: plain}}]\n"
                           "limits: ") +
                   limits + "\n");
    CHECK(place.read("back.gguf").tensors == place.read("plain.gguf").tensors);
    const ProcessResult compared = place.run({"compare", "plain.gguf", "r4.gguf"});
    CHECK(compared.exit_code == 0);
  }
}

TEST_CASE("interleaved rows are decoded like plain ones") {
  const Workplace place;
  quantize_tiny_llama(place, "Q8_0");
  run(place, "source: {gguf: plain.gguf}\noutputs: [{gguf: r8.gguf, quantize: {repack: interleaved}}]\n");
  place.quantize({"--allow-requantize", "plain.gguf", "a.gguf", "Q4_0"});
  place.quantize({"--allow-requantize", "r8.gguf", "b.gguf", "Q4_0"});
  CHECK(place.read("a.gguf").tensors == place.read("b.gguf").tensors);
  place.must({"verify", "r8.gguf"});
}

TEST_CASE("what is encoded into interleaved rows is the same as what is encoded and repacked, in any slabs") {
  const Workplace place;
  synth::write_model(synth::load_spec("tests/golden/models/tiny-llama.json"), place.file("model.gguf"));
  run(place, "source: {gguf: model.gguf}\noutputs: [{gguf: plain.gguf, quantize: {type: Q4_K}}]\n");
  run(place, "source: {gguf: plain.gguf}\noutputs: [{gguf: a.gguf, quantize: {repack: interleaved}}]\n");
  for (const char* limits : {"{threads: 1}", "{threads: 4, memory: 2MiB}"}) {
    run(place, std::string("source: {gguf: model.gguf}\noutputs: [{gguf: b.gguf, quantize: {type: Q4_K_R4}}]\n"
                           "report: {error: true}\nlimits: ") +
                   limits + "\n");
    CHECK(place.read("a.gguf").tensors == place.read("b.gguf").tensors);
  }
}

TEST_CASE("interleaved rows with headers do not depend on memory, threads, or I/O") {
  const Workplace place;
  write_rows_with_headers(place);
  const std::string expected = made(place, kJobs[0]);
  for (const std::string job : kJobs)
    for (const char* limits : {"limits: {memory: 1MiB, threads: 1}\n", "limits: {threads: 4, io: direct}\n"}) {
      CAPTURE(job, limits);
      CHECK((made(place, job + limits) == expected));
    }
  run(place, "source: {gguf: out.gguf}\noutputs: [{gguf: back.gguf, quantize: {repack: plain}}]\n");
  CHECK((read_text(place.file("back.gguf")) == read_text(place.file("plain.gguf"))));
  place.must({"compare", "plain.gguf", "out.gguf", "--kernel-dir", GGUFMILL_IK_MODULES});
  place.must({"verify", "out.gguf", "--kernel-dir", GGUFMILL_IK_MODULES});
}

TEST_CASE("shards have whole groups of rows") {
  const Workplace place;
  write_rows_with_headers(place);
  made(place, kJobs[1]);
  run(place,
      "source: {gguf: plain.gguf}\n"
      "outputs: [{gguf: {path: s.gguf, shard_tensors: 2}, quantize: {repack: interleaved}}]\n");
  const std::string shards = place.file("s-00001-of-00003.gguf"), whole = place.file("out.gguf");
  for (std::uint64_t t = 0; t < kTensors; ++t)
    CHECK((tensor_bytes(shards, name_of(t), "IQ4_KS_R4") == tensor_bytes(whole, name_of(t), "IQ4_KS_R4")));
}

TEST_CASE("a run that interleaves rows and was killed is resumed") {
  const Workplace place;
  write_rows_with_headers(place);
  for (const std::string job : kJobs) {
    CAPTURE(job);
    const std::string expected = made(place, job);
    fs::remove(place.file("out.gguf"));
    for (int i = 1; i <= 20; ++i)
      if (run_process({"/usr/bin/timeout", "--foreground", "-s", "KILL", fmt::format("{:.3f}", 0.01 * i),
                       GGUFMILL_PROGRAM, "run", "job.yaml", "-q", "--kernel-dir", GGUFMILL_IK_MODULES},
                      place.folder.path())
              .exit_code != 137)
        break;
    CHECK((made(place, job) == expected));
  }
}

TEST_CASE("parts of a cluster job interleave rows as one run does") {
  const Workplace place;
  write_rows_with_headers(place);
  for (const std::string job : kJobs) {
    CAPTURE(job);
    const std::string expected = made(place, job);
    fs::remove(place.file("out.gguf"));
    fs::remove_all(place.file("job"));
    place.must({"submit", "job.yaml", "--engine", "none", "--parts", "3", "--folder", "job", "--kernel-dir",
                GGUFMILL_IK_MODULES});
    for (const char* part : {"0", "1", "2"}) place.must({"part", "--plan", "job/plan.json", "--part", part});
    place.must({"seal", "--plan", "job/plan.json"});
    CHECK((read_text(place.file("out.gguf")) == expected));
  }
}
