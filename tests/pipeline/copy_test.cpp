// Complete runs over inputs of every version and byte order: unchanged data is copied, and everything else is converted
// from the same values.

#include <fmt/format.h>

#include "pipeline/api/registry.h"
#include "pipeline/config/job.h"
#include "pipeline/graph/engine.h"
#include "pipeline/io/platform/filesystem.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/shared_data.h"
#include "tests/support/synth_model.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

// Runs a pipeline from `in` to `out`; `more` is added to the output's mapping.
void run_pipeline(const std::string& in, const std::string& out, EngineKind engine, const std::string& more = "") {
  Diagnostics errors;
  const std::string text = fmt::format("version: 1\nsource: {{gguf: {}}}\noutputs: [{{gguf: {}{}}}]\n", in, out, more);
  const auto job = parse_job(text, "copy.yaml", make_registry(), {}, errors);
  const auto plan = job ? make_plan(*job, errors) : std::nullopt;
  for (const Error& error : errors.errors()) UNSCOPED_INFO(render(error));
  REQUIRE(plan);
  const auto kernels = Kernels::load({});
  REQUIRE(kernels);
  EngineOptions options;
  options.engine = engine;
  options.overwrite = true;
  options.slab_bytes = plan->least_memory;
  const auto report = run_plan(*plan, *kernels.value(), options);
  if (!report) UNSCOPED_INFO(render(report.error()));
  REQUIRE(report);
}

// Returns tensors of every type, with data that is byte-swapped in several slabs whose ends are not round numbers.
GgufBuilder every_type() {
  GgufBuilder builder;
  builder.metadata = every_metadata_type();
  for (const TypeInfo& type : built_in_types())
    if (type.type_class != TypeClass::kForeign)
      builder.add_tensor(fmt::format("t.{}", type.name), {3 * type.block_elements, 5, 3}, std::string(type.name),
                         static_cast<unsigned char>(type.id));
  for (auto& tensor : builder.tensors)
    for (char& byte : tensor.data) byte = static_cast<char>(byte & 0x3f);  // no infinities
  return builder.add_tensor("none", {0, 7});
}

}  // namespace

TEST_CASE("inputs of every version and byte order are copied to the same file") {
  const TempDir folder;
  const std::string in = folder.file("in.gguf"), out = folder.file("out.gguf");
  GgufBuilder builder = every_type();
  builder.set_alignment(GENERATE(32u, 256u));
  const std::string expected = builder.build();
  builder.version = GENERATE(1u, 2u, 3u);
  builder.big_endian = GENERATE(false, true);
  const EngineKind engine = GENERATE(EngineKind::kSimple, EngineKind::kGraph);
  CAPTURE(builder.version, builder.big_endian, engine == EngineKind::kSimple);
  builder.write(in);
  run_pipeline(in, out, engine);
  const bool same = read_text(out) == expected;
  CHECK(same);
}

TEST_CASE("an output of either byte order is what a machine of that order would write") {
  const TempDir folder;
  const std::string in = folder.file("in.gguf"), out = folder.file("out.gguf");
  GgufBuilder builder = every_type();
  builder.set_alignment(64);
  builder.big_endian = true;
  const std::string expected = builder.build();
  builder.big_endian = GENERATE(false, true);
  const EngineKind engine = GENERATE(EngineKind::kSimple, EngineKind::kGraph);
  CAPTURE(builder.big_endian, engine == EngineKind::kSimple);
  builder.write(in);
  run_pipeline(in, fmt::format("{{path: {}, byte_order: big}}", out), engine);
  const bool same = read_text(out) == expected;
  CHECK(same);
}

TEST_CASE("outputs of both byte orders have the same values, whatever is converted") {
  const TempDir folder;
  GgufBuilder builder;
  for (const char* type : {"F32", "F16", "BF16", "Q8_0", "Q4_K"})
    builder.add_tensor(std::string("blk.0.ffn_down.") + type, {256, 9}, type);
  builder.add_tensor("blk.0.long.weight", {1 << 17, 2}, "F16");  // rows longer than the scratch memory of a worker
  for (auto& tensor : builder.tensors)
    for (char& byte : tensor.data) byte = static_cast<char>(byte & 0x3f);  // no infinities
  const std::string in = folder.file("in.gguf"), big = folder.file("big.gguf"), little = folder.file("little.gguf");
  builder.write(in);
  const EngineKind engine = GENERATE(EngineKind::kSimple, EngineKind::kGraph);
  const std::string type = GENERATE("F32", "F16", "Q8_0", "Q4_K");
  CAPTURE(type, engine == EngineKind::kSimple);
  const std::string more = fmt::format(", quantize: {{type: {}, requantize: true}}", type);
  // Writes both in one run, so that they share the decoded data; then converts the second back to the usual byte order.
  run_pipeline(in, little, engine, fmt::format("{0}}}, {{gguf: {{path: {1}, byte_order: big}}{0}", more, big));
  run_pipeline(big, folder.file("again.gguf"), engine);
  const bool same = read_text(folder.file("again.gguf")) == read_text(little);
  CHECK(same);
  run_pipeline(in, folder.file("alone.gguf"), engine, more);
  const bool alone = read_text(folder.file("alone.gguf")) == read_text(little);
  CHECK(alone);
  run_pipeline(in, fmt::format("{{path: {}, byte_order: big}}", folder.file("big_alone.gguf")), engine, more);
  const bool big_alone = read_text(folder.file("big_alone.gguf")) == read_text(big);
  CHECK(big_alone);
}

TEST_CASE("the byte order of the input makes no difference to what is converted") {
  const TempDir folder;
  GgufBuilder builder;
  for (const char* type : {"F32", "F16", "BF16", "Q8_0", "Q4_K"}) {
    builder.add_tensor(std::string("blk.0.ffn_down.") + type, {256, 9}, type);
    for (char& byte : builder.tensors.back().data) byte = static_cast<char>(byte & 0x3f);  // no infinities
  }
  const std::string little = folder.file("little.gguf"), big = folder.file("big.gguf");
  builder.write(little);
  builder.big_endian = true;
  builder.write(big);
  const char* more = ", quantize: {type: Q8_0, requantize: true}";
  run_pipeline(little, folder.file("a.gguf"), EngineKind::kGraph, more);
  run_pipeline(big, folder.file("b.gguf"), EngineKind::kGraph, more);
  const bool same = read_text(folder.file("a.gguf")) == read_text(folder.file("b.gguf"));
  CHECK(same);
}

TEST_CASE("a model is cut into shards, and they become one again") {
  const TempDir folder;
  const GgufBuilder builder = every_type();
  const std::string in = folder.file("in.gguf"), out = folder.file("out.gguf");
  builder.write(in);
  run_pipeline(in, fmt::format("{{path: {}, shard_tensors: 7}}", out), EngineKind::kGraph);
  run_pipeline(folder.file("out-00001-of-00006.gguf"), out, EngineKind::kGraph);
  const bool same = read_text(out) == builder.build();
  CHECK(same);
}

TEST_CASE("models and real files are copied byte for byte") {
  const auto shared = shared_data(), unversioned = unversioned_data();
  if (!shared || !unversioned) GGUFMILL_SKIP("no shared data");
  const TempDir folder;
  const std::string in = folder.file("in.gguf"), out = folder.file("out.gguf");
  std::size_t same = 0, all = 0;
  const auto copy = [&](const std::string& name, std::string expected) {
    expected.resize((expected.size() + 31) / 32 * 32);  // real files may omit the zeros at the end
    run_pipeline(name, out, EngineKind::kGraph);
    ++all;
    const bool equal = read_text(out) == expected;
    CHECK(equal);
    same += equal;
  };
  for (const auto& entry : fs::directory_iterator(*shared / "golden/models")) {
    synth::write_model(synth::load_spec(entry.path()), in);
    copy(in, read_text(in));
  }
  for (const auto& entry : fs::directory_iterator(*unversioned / "real"))
    if (entry.path().extension() == ".gguf") copy(entry.path(), read_text(entry.path()));
  WARN("copied files identical: " << same << " of " << all);
}
