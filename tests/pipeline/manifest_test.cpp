// Tests manifests of outputs, and verification with them.

#include <fmt/format.h>
#include <xxhash.h>

#include <boost/json.hpp>
#include <chrono>
#include <utility>

#include "pipeline/api/context.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/temporary_file.h"
#include "pipeline/manifest/manifest.h"
#include "pipeline/plan/written.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/importance_files.h"
#include "tests/support/sha256.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
namespace {

const Context& context() {
  static const Context one = Context::create({{}, "reference"}).value();
  return one;
}

// A model of six tensors; outputs a.gguf in two shards and b.gguf, with manifests.
class JobFolder {
 public:
  JobFolder() { write_model(1); }
  void write_model(float first) {
    GgufBuilder model;
    for (int i = 0; i < 6; ++i) model.add_tensor(fmt::format("blk.{}.ffn_down.weight", i), {256, 3});
    for (std::size_t t = 0; t < model.tensors.size(); ++t) {
      std::vector<float> values(model.tensors[t].data.size() / 4);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(t + i % 7) * 0.01f;
      model.tensors[t].data = float_bytes(values);
    }
    model.write(path("model.gguf"));
  }
  std::string path(const std::string& name) const { return folder_.file(name); }
  std::string shard(int number) const { return path(fmt::format("a-0000{}-of-00002.gguf", number)); }

  Plan plan(const std::string& type = "Q4_0") const {
    const auto job =
        context().parse_job(fmt::format("version: 1\nmanifest: true\nsource: {{gguf: {}}}\noutputs:\n"
                                        "  - {{gguf: {{path: {}, shard_tensors: 4}}, quantize: {{type: Q8_0}}}}\n"
                                        "  - {{gguf: {}, quantize: {{type: {}}}}}\n",
                                        path("model.gguf"), path("a.gguf"), path("b.gguf"), type),
                            "job.yaml");
    if (!job) FAIL(render(job.error()));
    return context().plan(job.value()).value();
  }
  Plan run() const {
    Plan plan = this->plan();
    RunOptions options;
    options.overwrite = true;
    if (const auto report = context().run(plan, options); !report) FAIL(render(report.error()));
    return plan;
  }
  void flip(const std::string& name, std::uint64_t offset) const {
    std::string text = read_text(name);
    text.at(offset) ^= 1;
    write_text(name, text);
  }

 private:
  TempDir folder_;
};

Error refusal(const std::string& path) {
  const auto verified = context().verify(path);
  if (verified) FAIL("it is verified");
  return verified.error();
}

}  // namespace

TEST_CASE("a manifest says what the files hold, as sha256sum and XXH3 do") {
  const JobFolder folder;
  const Plan plan = folder.run();
  const Manifest manifest = load_manifest(plan.manifest_path(0)).value();
  CHECK(manifest.identity == identity_of(plan, 0));
  CHECK(manifest.sources.size() == 1);
  REQUIRE(manifest.files.size() == 2);
  std::string sums;
  for (int i = 0; i < 2; ++i) {
    const ManifestFile& file = manifest.files[static_cast<std::size_t>(i)];
    const std::string text = read_text(folder.shard(i + 1));
    CHECK(file.name == fs::path(folder.shard(i + 1)).filename());
    CHECK(file.bytes == text.size());
    CHECK(file.sha256 == sha256_hex(as_bytes(text)));
    for (const ManifestTensor& tensor : file.tensors)
      CHECK(tensor.xxh3 == XXH3_64bits(text.data() + tensor.offset, tensor.bytes));
    sums += file.sha256 + "  " + file.name + "\n";
  }
  CHECK(manifest.files[0].tensors.size() == 4);
  CHECK(read_text(plan.sums_path(0)) == sums);
  CHECK(read_text(plan.manifest_path(0)) == write_manifest(manifest));
}

TEST_CASE("a manifest names the tensors that were measured to be quantized without any error") {
  const TempDir folder;
  GgufBuilder model;
  for (const char* name : {"blk.0.ffn_down.weight", "blk.0.ffn_up.weight"}) model.add_tensor(name, {256, 2});
  std::vector<float> values(2 * 256);
  model.tensors[0].data = float_bytes(values);  // zeros, which Q8_0 can represent
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 97) * 0.013f;
  model.tensors[1].data = float_bytes(values);
  model.write(folder.file("model.gguf"));
  const bool is_measured = GENERATE(true, false);
  const Job job = context()
                      .parse_job(fmt::format("version: 1\nmanifest: true\n{}source: {{gguf: {}}}\n"
                                             "outputs: [{{gguf: {}, quantize: {{type: Q8_0}}}}]\n",
                                             is_measured ? "report: {error: true}\n" : "", folder.file("model.gguf"),
                                             folder.file("a.gguf")),
                                 "job.yaml")
                      .value();
  const Plan plan = context().plan(job).value();
  REQUIRE(context().run(plan, {}));
  std::vector<std::string> exact;
  const Manifest manifest = load_manifest(plan.manifest_path(0)).value();
  for (const ManifestTensor& tensor : manifest.files[0].tensors)
    if (tensor.exact) exact.push_back(tensor.name);
  CHECK(exact == (is_measured ? std::vector<std::string>{"blk.0.ffn_down.weight"} : std::vector<std::string>()));
  CHECK(read_text(plan.manifest_path(0)) == write_manifest(manifest));
}

TEST_CASE("what was written is verified, by the model or by the manifest") {
  const JobFolder folder;
  const Plan plan = folder.run();
  for (const std::string& path : {folder.shard(1), plan.manifest_path(0)}) {
    const auto verified = context().verify(path);
    if (!verified) FAIL(render(verified.error()));
    CHECK(verified.value().manifest == plan.manifest_path(0));
    CHECK(verified.value().tensors == 6);
    CHECK(verified.value().files.size() == 2);
  }
  CHECK(context().verify(folder.path("model.gguf")).value().manifest.empty());
}

TEST_CASE("a byte that has changed is found, and the tensor that it is in") {
  const JobFolder folder;
  const Plan plan = folder.run();
  const auto& placed = plan.outputs[0].files[1].tensors[1];
  folder.flip(folder.shard(2), placed.offset + 9);
  const Error error = refusal(folder.shard(1));
  CHECK(error.code == ExitCode::kVerification);
  CHECK(error.where == folder.shard(2));
  CHECK(error.what == "its SHA-256 does not match the manifest");
  CHECK(error.detail == "tensor 'blk.5.ffn_down.weight' has changed");
}

TEST_CASE("a header that has changed is found") {
  const JobFolder folder;
  const Plan plan = folder.run();
  std::string text = read_text(folder.path("b.gguf"));
  const std::size_t name = text.find("blk.3");
  text[name + 4] = '9';
  write_text(folder.path("b.gguf"), text);
  CHECK(refusal(folder.path("b.gguf")).detail == "no tensor has changed, but the header or the padding has");
}

TEST_CASE("padding that is not zero is found, without a manifest too") {
  const JobFolder folder;
  const Plan plan = folder.run();
  const auto& placed = plan.outputs[0].files[0].tensors[0];
  REQUIRE(placed.bytes % 32 != 0);
  fs::remove(plan.manifest_path(0));
  folder.flip(folder.shard(1), placed.offset + placed.bytes);
  CHECK(refusal(folder.shard(1)).what ==
        fmt::format("byte {:#x}, after tensor 'blk.0.ffn_down.weight', is padding but not zero",
                    placed.offset + placed.bytes));
}

TEST_CASE("bytes far behind the last tensor are looked at, too") {
  const JobFolder folder;
  const std::string path = folder.path("model.gguf");
  write_text(path, read_text(path) + std::string((1 << 20) + 100, '\0') + "x");
  CHECK(refusal(path).what.ends_with("after tensor 'blk.5.ffn_down.weight', is padding but not zero"));
}

TEST_CASE("a source older than 1970 is read back") {
  const JobFolder folder;
  const Plan plan = folder.run();
  Manifest manifest = load_manifest(plan.manifest_path(0)).value();
  manifest.sources[0].modified = -5;
  const auto read = read_manifest(write_manifest(manifest), "manifest");
  REQUIRE(read);
  CHECK(read.value().sources[0].modified == -5);
}

TEST_CASE("a scale that is not finite is found, without a manifest too") {
  const JobFolder folder;
  const Plan plan = folder.run();
  fs::remove(plan.manifest_path(1));
  std::string text = read_text(folder.path("b.gguf"));
  const auto& placed = plan.outputs[1].files[0].tensors[2];
  text[placed.offset + 18] = '\x00';
  text[placed.offset + 19] = '\x7c';
  write_text(folder.path("b.gguf"), text);
  const Error error = refusal(folder.path("b.gguf"));
  CHECK(error.code == ExitCode::kBadInput);
  CHECK(error.what == "tensor 'blk.2.ffn_down.weight', row 0, column 32: a scale that is not finite");
}

TEST_CASE("outputs are unchanged until their source, their recipe or they change") {
  JobFolder folder;
  CHECK(context().unchanged(folder.plan()) == std::vector<bool>{false, false});
  folder.run();
  CHECK(context().unchanged(folder.plan()) == std::vector<bool>{true, true});
  CHECK(context().unchanged(folder.plan("Q5_0")) == std::vector<bool>{true, false});
  const std::string before = read_text(folder.path("b.gguf"));
  write_text(folder.path("b.gguf"), before.substr(0, before.size() - 1));
  CHECK(context().unchanged(folder.plan()) == std::vector<bool>{true, false});
  folder.write_model(2);
  CHECK(context().unchanged(folder.plan()) == std::vector<bool>{false, false});
}

TEST_CASE("nothing in a manifest is believed") {
  const JobFolder folder;
  const Plan plan = folder.run();
  const std::string path = plan.manifest_path(1), text = read_text(path);
  const auto fault = [&](const std::string& what, const std::string& by) {
    std::string wrong = text;
    wrong.replace(wrong.find(what), what.size(), by);
    const auto read = read_manifest(wrong, path);
    return read ? std::string() : read.error().what;
  };
  CHECK(fault("\"b.gguf\"", "\"../b.gguf\"") ==
        "is not a valid manifest: the file '../b.gguf' is not next to the manifest");
  CHECK(fault("\"version\":1", "\"version\":7") == "is a manifest of version 7; only version 1 is supported");
  CHECK(fault("ggufmill manifest", "another") == "is not a ggufmill manifest");
  CHECK(fault("\"bytes\":", "\"bytes\":-") == "is not a valid manifest: 'bytes' is not a non-negative integer");
  CHECK(fault("\"xxh3\":\"", "\"xxh3\":\"x") ==
        "is not a valid manifest: 'xxh3' is not a hash of 16 hexadecimal digits");
  CHECK(fault("\"offset\":", "\"offset\":99999999") ==
        "is not a valid manifest: tensor 'blk.0.ffn_down.weight' is not within its file or overlaps the one before it");
  CHECK(fault("\"files\":", "\"no\":") == "is not a valid manifest: 'files' is not a list");
  CHECK_FALSE(read_manifest("{", path));
}

TEST_CASE("what something else changes during a run with a manifest is never published") {
  const JobFolder folder;
  const Plan plan = folder.plan();
  const std::string temporary = temporary_path(plan.outputs[1].files[0].path, identity_of(plan));
  const bool cuts = GENERATE(true, false);
  bool is_done = false;
  RunOptions options;
  options.engine = EngineKind::kSimple;
  options.progress = [&](const Progress& now) {
    if (now.bytes_written == 0 || std::exchange(is_done, true)) return;
    if (cuts) return fs::resize_file(temporary, 0);
    const std::string text = read_text(temporary);
    write_text(temporary, std::string(text.size(), 'x'));
  };
  EngineOptions engine = engine_options(options);
  engine.slab_bytes = 4096;
  const auto report = run_resumably(plan, context().kernels(), options, engine);
  REQUIRE(is_done);
  REQUIRE_FALSE(report);
  CHECK(report.error().code == ExitCode::kIo);
  CHECK_FALSE(fs::exists(folder.path("b.gguf")));
  CHECK_FALSE(fs::exists(plan.manifest_path(1)));
}

TEST_CASE("an output that was rewritten in place is not unchanged, whatever its time says") {
  const JobFolder folder;
  folder.run();
  const std::string path = folder.path("b.gguf");
  const auto time = fs::last_write_time(path);
  folder.flip(path, fs::file_size(path) - 1);
  fs::last_write_time(path, time);
  CHECK(context().unchanged(folder.plan()) == std::vector<bool>{true, false});
  folder.flip(path, fs::file_size(path) - 1);  // newer, but with the same bytes
  CHECK(context().unchanged(folder.plan()) == std::vector<bool>{true, true});
}

TEST_CASE("an output that was rewritten at the time of its manifest is not unchanged") {
  const JobFolder folder;
  const Plan plan = folder.run();
  const std::string path = folder.path("b.gguf");
  folder.flip(path, fs::file_size(path) - 1);
  const auto time = fs::last_write_time(path) + std::chrono::hours(1);
  fs::last_write_time(path, time);
  fs::last_write_time(plan.manifest_path(1), time);
  CHECK(context().unchanged(plan) == std::vector<bool>{true, false});
}

TEST_CASE("with `verify` the bytes decide") {
  const JobFolder folder;
  Plan plan = folder.run();
  folder.flip(folder.path("b.gguf"), fs::file_size(folder.path("b.gguf")) - 1);
  const std::string manifest = plan.manifest_path(1);
  fs::last_write_time(manifest, fs::last_write_time(manifest) + std::chrono::hours(1));  // newer than the output
  CHECK(context().unchanged(plan) == std::vector<bool>{true, true});
  plan.verify = true;
  CHECK(context().unchanged(plan) == std::vector<bool>{true, false});
}

TEST_CASE("a manifest that is about another file is not taken") {
  const JobFolder folder;
  const Plan plan = folder.run();
  std::string text = read_text(plan.manifest_path(1));
  text.replace(text.find("\"b.gguf\""), 8, "\"c.gguf\"");
  write_text(plan.manifest_path(1), text);
  CHECK(context().unchanged(plan) == std::vector<bool>{true, false});
  CHECK(refusal(folder.path("b.gguf")).what == "describes 'c.gguf', not 'b.gguf'");
}

TEST_CASE("outputs of a source that was rewritten in place, with its old time, are not unchanged") {
  const JobFolder folder;
  folder.run();
  const std::string source = folder.path("model.gguf");
  const auto time = fs::last_write_time(source);
  folder.flip(source, fs::file_size(source) - 1);
  fs::last_write_time(source, time);
  CHECK(context().unchanged(folder.plan()) == std::vector<bool>{false, false});
}
