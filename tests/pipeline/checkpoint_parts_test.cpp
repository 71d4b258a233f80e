// The parts of one checkpoint as outputs of one job, and the jobs that ask for parts that a source does not have.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <map>

#include "pipeline/api/context.h"
#include "tests/support/catch.h"
#include "tests/support/checkpoint_maker.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/shared_data.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

const Context& context() {
  static const Context made = Context::create().value();
  return made;
}

Result<Plan> planned(const std::string& source, const std::string& outputs) {
  BOOST_OUTCOME_TRY(
      const Job job,
      context().parse_job(fmt::format("version: 1\nsource: {}\noutputs: [{}]\n", source, outputs), "j.yaml"));
  return context().plan(job);
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Plan written(const std::string& source, const std::string& outputs) {
  const auto plan = planned(source, outputs);
  if (!plan) FAIL(render(plan.error()));
  const auto report = context().run(plan.value(), {});
  if (!report) FAIL(render(report.error()));
  return plan.value();
}

std::string fault(const std::string& source, const std::string& outputs) {
  const auto plan = planned(source, outputs);
  return plan ? "" : render(plan.error());
}

// A checkpoint with a text model, encoders of images, and a layer that predicts further tokens: the text model of one
// case in ../shared/hf-more with the encoders of another.
json::value spec_with_all_parts(const fs::path& specs) {
  json::value spec = json::parse(read_text(specs / "draft-qwen3.5-mtp.json"));
  const json::value other = json::parse(read_text(specs / "mm-qwen3.5.json"));
  const auto is_of_encoder = [](const json::value& tensor) {
    return tensor.at(0).as_string().find(".visual.") != json::string::npos;
  };
  spec.at("config").as_object()["vision_config"] = other.at("config").at("vision_config");
  spec.as_object()["files"] = other.at("files");
  json::array tensors;
  for (const json::value& tensor : spec.at("tensors").as_array())
    if (!is_of_encoder(tensor)) tensors.push_back(tensor);
  for (const json::value& tensor : other.at("tensors").as_array())
    if (is_of_encoder(tensor)) tensors.push_back(tensor);
  spec.as_object()["tensors"] = std::move(tensors);
  return spec;
}

// Creates the checkpoint in `parent`; empty if the shared data is missing.
std::string checkpoint_with_all_parts(const TempDir& parent) {
  const auto shared = shared_data();
  if (!shared || !fs::exists(*shared / "hf-more")) return {};
  return make_checkpoint(*shared / "hf", spec_with_all_parts(*shared / "hf-more" / "specs"), parent.path());
}

std::string tiny_gguf(const TempDir& folder) {
  const std::string path = folder.file("tiny.gguf");
  GgufBuilder().add_tensor("a.weight", {32}).write(path);
  return path;
}

}  // namespace

TEST_CASE("parts from one read equal those of separate runs") {
  const TempDir folder;
  const std::string checkpoint = checkpoint_with_all_parts(folder);
  if (checkpoint.empty()) GGUFMILL_SKIP("no ../shared/hf-more");
  const std::string source = fmt::format("{{huggingface: {{path: {}, outtype: bf16, defaults: none}}}}", checkpoint);
  const auto output = [&](const std::string& name, const std::string& more) {
    return fmt::format("{{gguf: {}{}}}", folder.file(name), more);
  };
  const std::pair<std::string, std::string> kOutputs[] = {{"text", ""},
                                                          {"projector", ", part: projector"},
                                                          {"half-projector", ", part: projector, outtype: f16"},
                                                          {"draft", ", part: draft"},
                                                          {"quantized", ", quantize: Q4_K_M"}};
  std::string together;
  for (const auto& [name, more] : kOutputs) together += output(name + ".gguf", more) + ", ";
  const Plan plan = written(source, together);
  CHECK(plan.source.parts == std::vector{ModelPart::kText, ModelPart::kProjector, ModelPart::kDraft});

  std::map<std::string, std::uint64_t> read;
  for (const auto& [name, more] : kOutputs) {
    CAPTURE(name);
    read[name] = written(source, output(name + "-alone.gguf", more)).bytes_read();
    CHECK(read_text(folder.file(name + ".gguf")) == read_text(folder.file(name + "-alone.gguf")));
  }
  // The draft is part of the text model, and some tensors of both projectors have the same type.
  CHECK(plan.bytes_read() < read["text"] + read["projector"] + read["half-projector"]);
  const auto without_half = planned(source, output("text.gguf", "") + ", " + output("p.gguf", ", part: projector") +
                                                ", " + output("draft.gguf", ", part: draft"));
  REQUIRE(without_half);
  CHECK(without_half.value().bytes_read() == read["text"] + read["projector"]);
  std::vector<std::string> paths = plan.input_paths();
  std::ranges::sort(paths);
  CHECK(std::ranges::adjacent_find(paths) == paths.end());
}

TEST_CASE("a part that the checkpoint does not have") {
  const TempDir folder;
  std::string checkpoint = checkpoint_with_all_parts(folder);
  if (checkpoint.empty()) GGUFMILL_SKIP("no ../shared/hf-more");
  json::value config = json::parse(read_text(fs::path(checkpoint) / "config.json"));
  config.as_object()["architectures"] = json::array{"LlamaForCausalLM"};
  write_text(fs::path(checkpoint) / "config.json", json::serialize(config));
  CHECK(has(fault(fmt::format("{{huggingface: {}}}", checkpoint),
                  fmt::format("{{gguf: {}, part: projector}}", folder.file("out.gguf"))),
            "no map describes the projector of 'LlamaForCausalLM'"));
}

TEST_CASE("parts of a source that is not a checkpoint") {
  const TempDir folder;
  const std::string option = GENERATE("part: projector", "outtype: f16");
  const std::string error = fault(fmt::format("{{gguf: {}}}", tiny_gguf(folder)),
                                  fmt::format("{{gguf: {}, {}}}", folder.file("out.gguf"), option));
  CHECK(has(error, "j.yaml:3:"));
  CHECK(has(error, "`part` and `outtype` are options of outputs whose source is a checkpoint folder"));
}
