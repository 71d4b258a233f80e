// The parts of one checkpoint as outputs of one job, and the jobs that ask for parts that a source does not have.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <functional>
#include <map>

#include "pipeline/api/context.h"
#include "pipeline/io/platform/filesystem.h"
#include "tests/support/catch.h"
#include "tests/support/checkpoint_maker.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/safetensors_builder.h"
#include "tests/support/shared_data.h"
#include "tests/support/temp_dir.h"
#include "tests/support/torch_builder.h"

using namespace ggufmill;

namespace {

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

bool has_specs() { return shared_data() && fs::exists(*shared_data() / "hf-more"); }

// Returns the error for a draft whose config.json or that of its target has another value; empty if there is none.
std::string draft_fault(const std::string& name,
                        const std::function<void(json::value& draft, json::value& target)>& change) {
  const TempDir folder;
  const fs::path shared = shared_data().value();
  json::value spec = json::parse(read_text(shared / "hf-more" / "specs" / (name + ".json")));
  json::value& target = spec.at("beside").at(0);
  change(spec.at("config"), target.at("config"));
  const std::string checkpoint = make_checkpoint(shared / "hf", spec, folder.path());
  return fault(fmt::format("{{huggingface: {{path: {}, target: {}}}}}", checkpoint,
                           folder.file(std::string(target.at("folder").as_string()))),
               fmt::format("{{gguf: {}}}", folder.file("out.gguf")));
}

// Returns the error for a projector whose preprocessor_config.json has another value.
std::string preprocessor_fault(std::string_view key, const json::value& value) {
  const TempDir folder;
  const fs::path shared = shared_data().value();
  json::value spec = json::parse(read_text(shared / "hf-more" / "specs" / "mm-qwen2.5-vl.json"));
  spec.at("files").at("preprocessor_config.json").as_object()[key] = value;
  const std::string checkpoint = make_checkpoint(shared / "hf", spec, folder.path());
  const std::string error = fault(fmt::format("{{huggingface: {}}}", checkpoint),
                                  fmt::format("{{gguf: {}, part: projector}}", folder.file("out.gguf")));
  CHECK(has(error, "preprocessor_config.json: error: "));
  return error;
}

std::string tiny_gguf(const TempDir& folder) {
  const std::string path = folder.file("tiny.gguf");
  GgufBuilder().add_tensor("a.weight", {32}).write(path);
  return path;
}

}  // namespace

TEST_CASE("parts from one read equal those of separate runs") {
  const TempDir folder;
  const std::string checkpoint = checkpoint_with_all_parts(folder.path());
  if (checkpoint.empty()) GGUFMILL_SKIP("no ../shared/hf-more");
  const std::string source = fmt::format("{{huggingface: {{path: {}, outtype: bf16}}}}", checkpoint);
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

TEST_CASE("the parts of a checkpoint are listed whichever of them is asked for") {
  const TempDir folder;
  const std::string checkpoint = checkpoint_with_all_parts(folder.path());
  if (checkpoint.empty()) GGUFMILL_SKIP("no ../shared/hf-more");
  const auto parts = [&](const std::string& options, const std::string& part) {
    const auto plan = planned(fmt::format("{{huggingface: {{path: {}{}}}}}", checkpoint, options),
                              fmt::format("{{gguf: {}{}}}", folder.file("out.gguf"), part));
    if (!plan) FAIL(render(plan.error()));
    return plan.value().source.parts;
  };
  const std::vector kAll{ModelPart::kText, ModelPart::kProjector, ModelPart::kDraft};
  CHECK(parts("", "") == kAll);
  CHECK(parts("", ", part: projector") == kAll);
  CHECK(parts("", ", part: draft") == kAll);
  CHECK(parts(", draft_head: leave_out", "") == kAll);
  // The draft is recognised by its tensors alone.
  json::value config = json::parse(read_text(fs::path(checkpoint) / "config.json"));
  config.at("text_config").as_object().erase("mtp_num_hidden_layers");
  write_text(fs::path(checkpoint) / "config.json", json::serialize(config));
  CHECK(parts("", ", part: projector") == kAll);
}

TEST_CASE("an error of a shared stage names the part") {
  const TempDir folder;
  const std::string checkpoint = checkpoint_with_all_parts(folder.path());
  if (checkpoint.empty()) GGUFMILL_SKIP("no ../shared/hf-more");
  const std::string error =
      fault(fmt::format("{{huggingface: {}}}\nstages: [{{prune: {{layers: [3]}}}}]", checkpoint),
            fmt::format("{{gguf: {0}}}, {{gguf: {0}p, part: projector}}", folder.file("out.gguf")));
  INFO(error);
  CHECK(has(error, "part 'projector': "));
}

TEST_CASE("a part whose weights were removed from the checkpoint") {
  const TempDir folder;
  if (!has_specs()) GGUFMILL_SKIP("no ../shared/hf-more");
  const fs::path shared = shared_data().value();
  const auto [part, prefix] = GENERATE(std::pair("projector", "model.visual."), std::pair("draft", "mtp."));
  json::value spec = spec_with_all_parts(shared / "hf-more" / "specs");
  json::array tensors;
  for (const json::value& tensor : spec.at("tensors").as_array())
    if (!tensor.at(0).as_string().starts_with(prefix)) tensors.push_back(tensor);
  spec.as_object()["tensors"] = std::move(tensors);
  const std::string checkpoint = make_checkpoint(shared / "hf", spec, folder.path());
  CHECK(has(fault(fmt::format("{{huggingface: {}}}", checkpoint),
                  fmt::format("{{gguf: {}, part: {}}}", folder.file("out.gguf"), part)),
            fmt::format("contains no weights of the {}", part)));
}

TEST_CASE("Dense modules that were asked for must be in the checkpoint") {
  const TempDir folder;
  if (!has_specs()) GGUFMILL_SKIP("no ../shared/hf-more");
  const fs::path shared = shared_data().value();
  json::value spec = json::parse(read_text(shared / "hf-more" / "specs" / "dense-embeddinggemma.json"));
  spec.at("more_weights").as_object().erase("3_Dense/model.safetensors");
  const std::string checkpoint = make_checkpoint(shared / "hf", spec, folder.path());
  const std::string output = fmt::format("{{gguf: {}}}", folder.file("out.gguf"));
  CHECK(has(fault(fmt::format("{{huggingface: {{path: {}, dense_modules: true}}}}", checkpoint), output),
            "3_Dense: error: the Dense module has no model.safetensors"));
  CHECK(planned(fmt::format("{{huggingface: {}}}", checkpoint), output));
}

TEST_CASE("the layers that an EAGLE-3 draft reads are those of its target") {
  if (!has_specs()) GGUFMILL_SKIP("no ../shared/hf-more");
  const auto with = [](const json::value& layers) {
    return draft_fault("draft-eagle3-aux", [&](json::value& draft, json::value&) {
      draft.as_object()["eagle_aux_hidden_state_layer_ids"] = layers;
    });
  };
  CHECK(with({1, 3, 8}).empty());  // of 8 layers: the state after the last
  CHECK(has(with({1, 3, 9}), "uses a layer that the target does not have"));
  CHECK(has(with({-1, 3, 4}), "uses a layer that the target does not have"));
  CHECK(has(with({1, 3}), "'[1,3]' has 2 elements, expected 3"));
  CHECK(has(with(3), "'3' is not a list"));
}

TEST_CASE("an EAGLE-3 draft for a target of another size") {
  if (!has_specs()) GGUFMILL_SKIP("no ../shared/hf-more");
  CHECK(has(
      draft_fault("draft-eagle3", [](json::value&, json::value& target) { target.as_object()["hidden_size"] = 256; }),
      "tensor 'fc.weight': it has rows of 384 values, expected 768"));
}

TEST_CASE("the layers and the size of a DFlash draft are those of its target") {
  if (!has_specs()) GGUFMILL_SKIP("no ../shared/hf-more");
  CHECK(has(draft_fault("draft-dflash",
                        [](json::value& draft, json::value&) {
                          draft.at("dflash_config").as_object()["target_layer_ids"] = {0, 1, 4};
                        }),
            "uses a layer that the target does not have"));
  CHECK(has(
      draft_fault("draft-dflash", [](json::value&, json::value& target) { target.as_object()["hidden_size"] = 128; }),
      "has another hidden_size than the target"));
}

TEST_CASE("the embedding of a mask token in a file of its own is a row of the draft's embeddings") {
  if (!has_specs()) GGUFMILL_SKIP("no ../shared/hf-more");
  const TempDir folder;
  const fs::path shared = shared_data().value();
  json::value spec = json::parse(read_text(shared / "hf-more" / "specs" / "draft-dflash.json"));
  const std::string target = folder.file(std::string(spec.at("beside").at(0).at("folder").as_string())),
                    out = folder.file("out.gguf"), draft = make_checkpoint(shared / "hf", spec, folder.path());
  constexpr std::size_t kRows = 151936, kColumns = 64, kMask = 151669;
  std::vector<float> embeddings(kRows * kColumns, 0.5f), mask(kColumns, 2.0f);
  const auto bytes = [](const std::vector<float>& values) {
    return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  };
  write_text(fs::path(target) / "model.safetensors",
             safetensors_bytes({{"model.embed_tokens.weight", "F32", {kRows, kColumns}, bytes(embeddings)},
                                {"model.norm.weight", "F32", {kColumns}, bytes(mask)}}));
  const fs::path file = fs::path(draft) / "mask_embedding.pt";
  const auto with = [&](std::int64_t id, std::uint64_t length) {
    write_text(
        file, torch_file({{"embedding", "FloatStorage", {length}, bytes(mask)}}, {.numbers = {{"mask_token_id", id}}}));
    return fmt::format("{{huggingface: {{path: {}, target: {}, outtype: f32}}}}", draft, target);
  };
  const std::string output = fmt::format("{{gguf: {}}}", out);
  CHECK(has(fault(with(5, kColumns), output), "has a mask_token_id in dflash_config that is not the one in "));
  CHECK(has(fault(with(kMask, 63), output), "hidden_size that is not the length of the embedding"));
  const Plan plan = written(with(kMask, kColumns), output);
  const auto& tensors = plan.outputs[0].tensors;
  REQUIRE(tensors.size() > 2);
  CHECK(tensors[0].name == "output.weight");  // the target's head is tied
  CHECK(tensors[1].name == "token_embd.weight");
  const auto model = read_gguf(out);
  REQUIRE(model);
  const auto values = [&](std::size_t tensor) {
    const Extent& extent = *model.value().tensors[tensor].expression->as_extent();
    return read_text(out).substr(extent.offset, extent.bytes);
  };
  CHECK(values(0) == bytes(embeddings));
  std::ranges::fill_n(embeddings.begin() + kMask * kColumns, kColumns, 2.0f);
  CHECK(values(1) == bytes(embeddings));
}

TEST_CASE("values of a preprocessor that do not fit its encoder") {
  if (!has_specs()) GGUFMILL_SKIP("no ../shared/hf-more");
  CHECK(has(preprocessor_fault("image_mean", 0.5), "'0.5' is not a list"));
  CHECK(has(preprocessor_fault("image_mean", {0.5}), "'[0.5]' has 1 elements, expected 3"));
  CHECK(has(preprocessor_fault("image_std", {0.5, 0.5, 0}), "has an image_std of 0"));
  CHECK(has(preprocessor_fault("patch_size", 16), "has another patch_size than vision_config in config.json"));
}

TEST_CASE("a part that the checkpoint does not have") {
  const TempDir folder;
  std::string checkpoint = checkpoint_with_all_parts(folder.path());
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

TEST_CASE("a missing source is reported before problems of its outputs") {
  const TempDir folder;
  const std::string error = fault(fmt::format("{{gguf: {}}}", folder.file("none")),
                                  fmt::format("{{gguf: {}, outtype: bf16}}", folder.file("out.gguf")));
  CHECK(has(error, folder.file("none") + ": error: cannot open the file"));
}
