// Tests an encoder that a module adds to types of llama.cpp: `ik` of the module ik.

#include <fmt/format.h>

#include "pipeline/api/context.h"
#include "pipeline/manifest/manifest.h"
#include "pipeline/plan/written.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/importance_files.h"
#include "tests/support/sha256.h"
#include "tests/support/synth.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

// The first row of plugins/ik/tests/kernels_encoders.tsv for Q6_K.
constexpr std::uint64_t kRows = 4, kColumns = 1024, kSeed = 2024;
constexpr const char* kBytes = "681a461960bb8102";

const Context& with_module() {
  static const Context one = Context::create({{GGUFMILL_IK_MODULES}, ""}).value();
  return one;
}

const Context& without_module() {
  static const Context one = Context::create().value();
  return one;
}

class Folder {
 public:
  Folder() {
    GgufBuilder model;
    model.add_tensor("blk.0.ffn_down.weight", {kColumns, kRows});
    model.tensors.back().data = float_bytes(synth::values("normal", kSeed, 0, kRows * kColumns));
    model.write(folder_.file("in.gguf"));
  }
  std::string file(const std::string& name) const { return folder_.file(name); }
  Result<Job> job(const Context& context, const std::string& quantize) const {
    return context.parse_job(
        fmt::format("version: 1\nmanifest: true\nsource: {{gguf: {}}}\noutputs: [{{gguf: {}, quantize: {}}}]\n",
                    file("in.gguf"), file("out.gguf"), quantize),
        "job.yaml");
  }
  Plan plan(const Context& context, const std::string& quantize) const {
    auto plan = context.plan(job(context, quantize).value());
    if (!plan) FAIL(render(plan.error()));
    return std::move(plan).value();
  }

 private:
  TempDir folder_;
};

constexpr const char* kIk = "{type: Q6_K, encoder: ik}";

}  // namespace

TEST_CASE("the encoder of a module writes its bytes") {
  const Folder folder;
  const Plan plan = folder.plan(with_module(), kIk);
  REQUIRE(with_module().run(plan, {}));
  const std::string made = read_text(folder.file("out.gguf"));
  const std::size_t bytes = plan.outputs[0].tensors[0].bytes;
  const std::string encoded = made.substr(made.size() - bytes);
  CHECK(sha256_hex(std::as_bytes(std::span(encoded))).substr(0, 16) == kBytes);
  const Model model = with_module().inspect(folder.file("out.gguf")).value();
  const MetadataValue* encoder = model.metadata.find("ggufmill.encoder");
  REQUIRE(encoder != nullptr);
  CHECK(as_string(*encoder) == "ik");
}

TEST_CASE("plans and manifests name the module of an encoder") {
  const Folder folder;
  const Plan plan = folder.plan(with_module(), kIk);
  REQUIRE(plan.modules.size() == 1);
  CHECK(plan.modules[0].type == "Q6_K");
  CHECK(plan.modules[0].encoder == "ik");
  CHECK(plan.modules[0].name == "ik");
  CHECK(plan.modules[0].xxh3.size() == 32);
  CHECK(identity_of(plan) != identity_of(folder.plan(with_module(), "Q6_K")));
  CHECK(folder.plan(with_module(), "{type: Q6_K, encoder: search}").modules.empty());
  REQUIRE(with_module().run(plan, {}));
  const Manifest manifest = load_manifest(plan.manifest_path(0)).value();
  CHECK(manifest.modules == plan.modules);
  CHECK(manifest.files[0].tensors[0].encoder == "ik");
  CHECK(read_plan(write_plan(plan), "plan.json", with_module().kernels().types()).value().modules == plan.modules);
}

TEST_CASE("a type without the encoder keeps the default one, and the plan says so") {
  const Folder folder;
  const Plan plan = folder.plan(
      with_module(),
      "{recipe: Q6_K, encoder: ik, tensors: [{match: ffn_down, type: Q8_0}, {match: x, type: Q4_0, optional: true}]}");
  CHECK(plan.modules.empty());
  CHECK(plan.outputs[0].tensors[0].reason.find("reference: Q8_0 has no encoder 'ik'") != std::string::npos);
}

TEST_CASE("an encoder that is named for a type without it is refused") {
  const Folder folder;
  const auto job = folder.job(with_module(), "{type: Q8_0, encoder: ik}");
  REQUIRE_FALSE(job);
  CHECK(job.error().what == "there is no encoder 'ik' for Q8_0");
  CHECK(
      job.error().help ==
      "use `encoder: reference` for it; types with this encoder: Q4_0, Q4_1, Q5_0, Q5_1, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, "
      "IQ4_NL, IQ4_XS");
}

TEST_CASE("an encoder whose module is missing is refused, with the names of both and of the package") {
  const Folder folder;
  const auto job = folder.job(without_module(), kIk);
  REQUIRE_FALSE(job);
  CHECK(job.error().what == "unknown encoder 'ik'");
  CHECK(job.error().help.starts_with("the kernel module ik (package ggufmill-ik) adds this encoder"));
}

TEST_CASE("a written plan is refused without the module of its encoder, which is named") {
  const Folder folder;
  const std::string written = write_plan(folder.plan(with_module(), kIk));
  const auto plan = read_plan(written, "plan.json", without_module().kernels().types());
  REQUIRE_FALSE(plan);
  CHECK(plan.error().code == ExitCode::kKernel);
  CHECK(plan.error().what == "Q6_K has no encoder 'ik'");
  CHECK(plan.error().detail == "the plan was made with the kernel module 'ik " GGUFMILL_VERSION "'");
}

TEST_CASE("the modules of ik for all instruction sets describe their types alike") {
  CHECK(with_module().kernels().warnings().empty());
}
