#include <fmt/format.h>

#include <array>
#include <cstring>

#include "pipeline/api/context.h"
#include "pipeline/io/platform/filesystem.h"
#include "stages/gguf/gguf.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/temp_dir.h"

namespace ggufmill {
namespace {

std::string check_places(const Model& model) {
  for (const Tensor& tensor : model.tensors) {
    const Extent& data = *tensor.expression->as_extent();
    if (data.offset > data.source->bytes || data.bytes > data.source->bytes - data.offset)
      return "tensor outside the file";
    if (bytes_of(*tensor.type, tensor.shape()).value() != tensor.source_bytes()) return "tensor of a wrong size";
  }
  return "";
}

std::string check_same(const Model& before, const Model& after) {
  std::vector<const MetadataEntry*> entries;
  for (const MetadataEntry& entry : before.metadata.entries())
    if (!entry.key.starts_with("split.") || after.metadata.find(entry.key)) entries.push_back(&entry);
  if (entries.size() != after.metadata.entries().size()) return "metadata lost";
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const MetadataEntry& entry = after.metadata.entries()[i];
    if (entry.key != entries[i]->key || !(entry.value == entries[i]->value)) return "metadata changed";
    if (describe(entry.value).empty()) return "metadata without words";
  }
  if (before.tensors.size() != after.tensors.size()) return "tensors lost";
  for (std::size_t i = 0; i < before.tensors.size(); ++i) {
    const Tensor &a = before.tensors[i], &b = after.tensors[i];
    if (a.name != b.name || a.type != b.type || a.shape().dims != b.shape().dims) return "tensor changed";
  }
  return "";
}

std::string check_written(const Model& model) {
  const auto files = make_gguf_sink({.path = "out.gguf"}).value()->layout(model);
  if (!files) return "cannot be written: " + render(files.error());
  const OutputFile& out = files.value()[0];
  const MemoryFile file(out.header, out.bytes);
  if (!file.good()) return "";  // too large for memory files
  const auto again = read_gguf(file.path());
  if (!again) return "cannot be read back: " + render(again.error());
  return check_same(model, again.value());
}

GgufBuilder good_file(std::uint32_t version, bool big_endian) {
  GgufBuilder builder;
  builder.version = version;
  builder.big_endian = big_endian;
  builder.metadata = every_metadata_type();
  builder.add_tensor("token_embd.weight", {256, 2}, "Q4_K").add_tensor("blk.0.attn_norm.weight", {8});
  return builder.add_tensor("empty", {0, 4}).add_tensor("blk.0.ffn_down.weight", {32, 2, 2, 1}, "Q8_0");
}

// The folder for the outputs of conversions; it is cleared between them.
struct Scratch {
  Context context = Context::create().value();
  TempDir folder{fs::is_directory("/dev/shm") ? "/dev/shm" : fs::temp_directory_path()};

  std::string file(const std::string& name) const { return folder.file(name); }
  void clear() const {
    for (const std::string& name : names_in(folder.path())) fs::remove_all(folder.path() / name);
  }
};

std::string problem_of(const Error& error) {
  if (error.code != ExitCode::kBadInput && error.code != ExitCode::kUsage)
    return "the code of an error is neither that of bad input nor of usage: " + render(error);
  if (error.what.empty() || error.what.find('\n') != std::string::npos) return "not a clear error: " + render(error);
  return {};
}

// Checks that the bytes of each tensor are unchanged. Tensors of big-endian sources are skipped, because their copies
// have the other byte order.
std::string check_same_bytes(const Model& before, const std::string& source, const Model& after,
                             const std::string& copy) {
  for (std::size_t i = 0; i < before.tensors.size(); ++i) {
    const Extent &a = *before.tensors[i].expression->as_extent(), &b = *after.tensors[i].expression->as_extent();
    if (!a.big_endian && std::memcmp(&source[a.offset], &copy[b.offset], a.bytes) != 0)
      return "the bytes of a tensor changed: " + before.tensors[i].name;
  }
  return {};
}

// Describes the defect after a run of `plan` with the outputs `names`; empty if there is none.
std::string check_run(const Scratch& scratch, const Plan& plan, EngineKind engine,
                      const std::vector<std::string>& names) {
  RunOptions options;
  options.engine = engine;
  options.resume = false;
  if (const auto run = scratch.context.run(plan, options); !run) {
    const std::vector<std::string> left = names_in(scratch.folder.path());
    return left.empty() ? problem_of(run.error()) : "left behind after an error: " + left.front();
  }
  if (names_in(scratch.folder.path()) != names) return "not the files that were asked for";
  VerifyOptions one_thread;
  one_thread.threads = 1;
  for (const std::string& name : names) {
    const auto verified = scratch.context.verify(scratch.file(name), one_thread);
    // Values that are kept unchanged may include NaN.
    if (!verified && plan.nonfinite != Nonfinite::kKeep) return name + " is broken: " + render(verified.error());
  }
  return {};
}

}  // namespace

std::string fuzz_convert(std::string_view bytes) {
  static const Scratch scratch;
  const MemoryFile file(bytes, bytes.size());
  if (!file.good()) return "no memory file";
  const auto model = read_gguf(file.path());
  if (!model) return {};  // covered by fuzz_gguf
  const char* nonfinite = std::array{"error", "zero", "keep"}[bytes.size() % 3];
  const auto run = [&](const std::string& outputs, const std::vector<std::string>& names) -> std::string {
    const auto job = scratch.context.parse_job(
        fmt::format("version: 1\nnonfinite: {}\nsource: {{gguf: {}}}\nlimits: {{threads: 2}}\noutputs: [{}]\n",
                    nonfinite, file.path(), outputs),
        "job.yaml");
    if (!job) return "no job: " + render(job.error());
    const auto plan = scratch.context.plan(job.value());
    if (!plan) return problem_of(plan.error());
    const EngineKind engine = bytes.size() % 2 == 0 ? EngineKind::kSimple : EngineKind::kGraph;
    return check_run(scratch, plan.value(), engine, names);
  };
  const auto output = [&](const char* name, const char* more) {
    return fmt::format("{{gguf: {}{}}}", scratch.file(name), more);
  };
  scratch.clear();
  if (std::string problem = run(output("copy.gguf", ""), {"copy.gguf"}); !problem.empty()) return problem;
  if (fs::exists(scratch.file("copy.gguf"))) {
    const auto copy = read_gguf(scratch.file("copy.gguf"));
    if (!copy) return "the copy cannot be read: " + render(copy.error());
    if (std::string problem = check_same(model.value(), copy.value()); !problem.empty()) return problem;
    const std::string source(bytes), copied = read_text(scratch.file("copy.gguf"));
    if (std::string problem = check_same_bytes(model.value(), source, copy.value(), copied);
        !problem.empty() && std::strcmp(nonfinite, "zero") != 0)
      return problem;
  }
  scratch.clear();
  return run(output("f32.gguf", ", quantize: F32") + ", " + output("mix.gguf", ", quantize: Q4_K_M") + ", " +
                 output("small.gguf", ", quantize: IQ4_NL"),
             {"f32.gguf", "mix.gguf", "small.gguf"});
}

std::vector<std::string> convert_seeds() {
  std::vector<std::string> seeds;
  for (const bool big_endian : {false, true}) {
    GgufBuilder model;
    model.big_endian = big_endian;
    model.metadata = {{"general.architecture", metadata_string("llama")},
                      {"llama.block_count", metadata_unsigned(MetadataType::kUint32, 2)}};
    model.add_tensor("token_embd.weight", {256, 2}, "F16").add_tensor("blk.0.attn_norm.weight", {8});
    model.add_tensor("blk.0.attn_v.weight", {32, 2, 2, 1}, "BF16")
        .add_tensor("blk.1.ffn_down.weight", {256, 1}, "Q6_K");
    seeds.push_back(model.add_tensor("empty", {0, 4}).add_tensor("ids", {5}, "I32").build());
  }
  for (const char* type : {"Q4_0", "Q8_0", "MXFP4", "Q2_K", "IQ2_XXS", "IQ4_XS", "TQ1_0"})
    seeds.push_back(GgufBuilder().add_tensor("blk.0.ffn_up.weight", {256, 2}, type, 17).build());
  seeds.push_back(good_file(3, false).build());
  return seeds;
}

std::string fuzz_gguf(std::string_view bytes) {
  const MemoryFile file(bytes, bytes.size());
  if (!file.good()) return "no memory file";
  const auto model = read_gguf(file.path());
  if (!model) return file.problem_of(model.error());
  if (std::string problem = check_places(model.value()); !problem.empty()) return problem;
  return check_written(model.value());
}

std::vector<std::string> gguf_seeds() {
  std::vector<std::string> seeds;
  for (const std::uint32_t version : {1u, 2u, 3u})
    for (const bool big_endian : {false, true}) seeds.push_back(good_file(version, big_endian).build());
  seeds.push_back(good_file(3, false).set_alignment(64).build());
  for (HostileFile& file : hostile_files())
    if (file.bytes.size() < 4096) seeds.push_back(std::move(file.bytes));
  return seeds;
}

}  // namespace ggufmill
