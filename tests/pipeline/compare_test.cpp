// Compares files: the results must equal those in the report of a run, for every memory budget and number of threads.

#include <fmt/format.h>

#include <map>

#include "pipeline/api/context.h"
#include "pipeline/core/text.h"
#include "stages/gguf/gguf.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/importance_files.h"
#include "tests/support/safetensors_builder.h"
#include "tests/support/synth.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

// Adds F32 weights that differ from tensor to tensor.
void add_weights(GgufBuilder& file, const std::string& name, const std::vector<std::uint64_t>& dims) {
  file.add_tensor(name, dims);
  std::vector<float> values(file.tensors.back().data.size() / sizeof(float));
  synth::fill(synth::Distribution::kNormal, file.tensors.size(), 0, values);
  file.tensors.back().data = float_bytes(values);
}

GgufBuilder model() {
  GgufBuilder file;
  add_weights(file, "token_embd.weight", {256, 40});
  add_weights(file, "blk.0.ffn_down.weight", {512, 33});
  add_weights(file, "blk.0.ffn_up_exps.weight", {256, 7, 3});
  add_weights(file, "blk.0.attn_norm.weight", {256});
  file.add_tensor("blk.0.ids", {5}, "I32");
  file.add_tensor("none", {256, 0});
  return file;
}

void write_importance(const std::string& path) {
  GgufBuilder file = gguf_importance();
  std::vector<float> sums(512);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<float>(i % 50) + 1;
  add_entry(file, "blk.0.ffn_down.weight", sums, {1});
  sums.resize(256 * 3, 2);
  add_entry(file, "blk.0.ffn_up_exps.weight", sums, {1, 2, 3});
  file.write(path);
}

const Context& context() {
  static const Context one = Context::create().value();
  return one;
}

Report compared(const std::string& a, const std::string& b, const ComparisonOptions& options = {}) {
  auto comparison = context().compare(a, b, options);
  if (!comparison) FAIL(render(comparison.error()));
  return std::move(comparison).value().report;
}

// Runs a job from `in` to `out` with importance; returns its report.
Report run(const TempDir& folder) {
  const std::string text = fmt::format(
      "version: 1\nsource: {{gguf: {0}/in.gguf}}\nstages: [{{importance: {{file: {0}/imatrix.gguf}}}}]\n"
      "outputs: [{{gguf: {0}/out.gguf, quantize: Q4_K}}]\nreport: {{error: true}}\n",
      folder.path().string());
  const auto plan = context().plan(context().parse_job(text, "job.yaml").value());
  if (!plan) FAIL(render(plan.error()));
  const auto done = context().run(plan.value(), {});
  if (!done) FAIL(render(done.error()));
  return context().report_of(plan.value(), done.value());
}

// Returns all bits of the sums of each tensor, by name.
std::map<std::string, std::string> sums_of(const Report& report) {
  std::map<std::string, std::string> texts;
  for (const ReportTensor& tensor : report.outputs[0].tensors)
    texts[tensor.name] =
        fmt::format("{} {} {:a} {:a} {:a} {:a} {:a} {:a} {:a}", static_cast<int>(tensor.state), tensor.sums.count,
                    tensor.sums.difference, tensor.sums.reference, tensor.sums.value, tensor.sums.product,
                    tensor.sums.weighted_difference, tensor.sums.weighted_reference, tensor.sums.largest);
  return texts;
}

}  // namespace

TEST_CASE("a comparison of source and output gives the figures of the run's report") {
  const TempDir folder;
  model().write(folder.file("in.gguf"));
  write_importance(folder.file("imatrix.gguf"));
  const Report described = run(folder);
  const Report report =
      compared(folder.file("in.gguf"), folder.file("out.gguf"), {.importance = folder.file("imatrix.gguf")});
  CHECK(report.outputs[0].unmatched.empty());
  CHECK(sums_of(report) == sums_of(described));
  CHECK(statistics_of(total_of(report.outputs[0])).weighted == statistics_of(total_of(described.outputs[0])).weighted);
  CHECK(statistics_of(total_of(described.outputs[0])).weighted > 0);
}

TEST_CASE("neither memory nor threads change the figures") {
  const TempDir folder;
  model().write(folder.file("in.gguf"));
  write_importance(folder.file("imatrix.gguf"));
  run(folder);
  const auto with = [&](const char* memory, unsigned threads) {
    return compared(
        folder.file("in.gguf"), folder.file("out.gguf"),
        {.importance = folder.file("imatrix.gguf"), .memory = parse_bytes(memory).value(), .threads = threads});
  };
  const Report one = with("512MiB", 1);
  const char* memory = GENERATE("70KiB", "150KiB", "1MiB");
  const unsigned threads = GENERATE(1u, 2u, 7u);
  const Report other = with(memory, threads);
  CHECK(sums_of(other) == sums_of(one));
  CHECK(other.run.peak_memory <= parse_bytes(memory).value());
}

TEST_CASE("a comparison reports its progress, and at the end that everything is read") {
  const TempDir folder;
  model().write(folder.file("a.gguf"));
  std::uint64_t all = 0, last = 0;
  const Model a = read_gguf(folder.file("a.gguf")).value();
  for (const Tensor& tensor : a.tensors) all += tensor.source_bytes();
  ComparisonOptions options;
  options.progress = [&](std::uint64_t done, std::uint64_t total) {
    CHECK(done >= last);
    CHECK(total == 2 * all);
    last = done;
  };
  compared(folder.file("a.gguf"), folder.file("a.gguf"), options);
  CHECK(last == 2 * all);
}

TEST_CASE("a model is equal to itself, in either byte order and whatever its types") {
  const TempDir folder;
  GgufBuilder file = model();
  file.add_tensor("q", {256, 3}, "Q6_K");
  file.write(folder.file("a.gguf"));
  file.big_endian = true;
  file.write(folder.file("b.gguf"));
  const Report report = compared(folder.file("a.gguf"), folder.file("b.gguf"));
  CHECK(report.outputs[0].tensors.size() == 7);
  for (const ReportTensor& tensor : report.outputs[0].tensors) CHECK(tensor.state == ErrorState::kExact);
  CHECK(total_of(report.outputs[0]).count == 0);
}

TEST_CASE("what is not in both, or of another shape, is named") {
  const TempDir folder;
  GgufBuilder a, b;
  a.add_tensor("gone", {32}).add_tensor("shape", {32, 2});
  b.add_tensor("shape", {2, 32}).add_tensor("new", {32});
  a.write(folder.file("a.gguf"));
  b.write(folder.file("b.gguf"));
  const Report report = compared(folder.file("a.gguf"), folder.file("b.gguf"));
  std::vector<std::string> words;
  for (const UnmatchedTensor& tensor : report.outputs[0].unmatched) words.push_back(tensor.name + ": " + tensor.what);
  CHECK(words == std::vector<std::string>{"gone: only in A", "shape: its shape is 32 x 2 in A and 2 x 32 in B",
                                          "new: only in B"});
  CHECK(report.outputs[0].tensors.empty());
}

TEST_CASE("a budget that no row fits into is refused") {
  const TempDir folder;
  model().write(folder.file("in.gguf"));
  const auto report = context().compare(folder.file("in.gguf"), folder.file("in.gguf"), {.memory = 4 << 10});
  REQUIRE_FALSE(report);
  CHECK(report.error().code == ExitCode::kUsage);
}

namespace {

// A diffusion model, which is recognized by the name of one of its tensors, and another model in the same file.
void write_diffusion_model(const std::string& path) {
  const std::string values = float_bytes(std::vector<float>(64 * 64, 0.5f));
  write_text(path,
             safetensors_bytes({{"model.diffusion_model.double_blocks.0.img_attn.proj.weight", "F32", {64, 64}, values},
                                {"vae.weight", "F32", {64, 64}, values}}));
}

std::vector<std::string> names_in(const Report& report) {
  std::vector<std::string> names;
  for (const ReportOutput& output : report.outputs)
    for (const ReportTensor& tensor : output.tensors) names.push_back(tensor.name);
  return names;
}

}  // namespace

TEST_CASE("the file of a diffusion model is inspected as it is stored") {
  const TempDir folder;
  write_diffusion_model(folder.file("a.safetensors"));
  const Model stored = context().inspect(folder.file("a.safetensors")).value();
  REQUIRE(stored.tensors.size() == 2);
  CHECK(stored.tensors[1].name == "vae.weight");
}

TEST_CASE("the file of a diffusion model is converted to be compared with a GGUF, but not with its like") {
  const TempDir folder;
  write_diffusion_model(folder.file("a.safetensors"));
  GgufBuilder file;
  file.add_tensor("double_blocks.0.img_attn.proj.weight", {64, 64}).write(folder.file("b.gguf"));
  CHECK(names_in(compared(folder.file("a.safetensors"), folder.file("b.gguf"))) ==
        std::vector<std::string>{"double_blocks.0.img_attn.proj.weight"});
  CHECK(names_in(compared(folder.file("a.safetensors"), folder.file("a.safetensors"))).size() == 2);
}
