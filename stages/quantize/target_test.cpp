#include "stages/quantize/candidates.h"

#include <fmt/format.h>

#include <cmath>
#include <random>
#include <regex>
#include <set>

#include "pipeline/config/yaml_reader.h"
#include "pipeline/core/importance.h"
#include "stages/quantize/exclusion.h"
#include "stages/quantize/quantize_stage.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/needs.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;

namespace {

Tensor tensor(const std::string& name, std::uint64_t columns, std::uint64_t rows) {
  static const auto source = std::make_shared<const SourceFile>(SourceFile{"model.gguf", 1u << 30, 0, 0});
  Tensor made;
  made.name = name;
  const TypeInfo& type = type_named("BF16");
  const Shape shape{2, {columns, rows, 1, 1}};
  made.expression = expressions::extent(type, shape, {source, 0, columns * rows * 2}).value();
  made.type = made.expression->type;
  return made;
}

// A llama of two layers. The error of a type decreases fourfold with each bit and is the same share of every tensor's
// energy.
struct Sample {
  Model model;
  Measurement measurement;

  explicit Sample(bool weighted = true) {
    model.metadata.set_at_end("general.architecture", metadata_string("llama"));
    for (const char* name : {"token_embd.weight", "output.weight"}) model.tensors.push_back(tensor(name, 256, 64));
    for (int layer = 0; layer < 2; ++layer)
      for (const char* part : {"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"})
        model.tensors.push_back(tensor(fmt::format("blk.{}.{}.weight", layer, part), 256, 32));
    for (Tensor& each : model.tensors) {
      if (weighted) each.importance = importance();
      const auto weights = static_cast<double>(each.shape().elements());
      MeasuredTensor measured{each.name, measured_identity(each), each.shape(), weights, weights / 2, weighted, {}};
      for (const char* name : {"Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K", "Q8_0"}) {
        const TypeInfo& type = type_named(name);
        const double share = std::exp2(-2 * type.bits_per_weight());
        measured.types.push_back(
            {name, bytes_of(type, each.shape().elements()).value(), weights * share, weights / 2 * share});
      }
      measurement.tensors.push_back(std::move(measured));
    }
  }

  static std::shared_ptr<const Importance> importance() {
    Importance made;
    made.matrices = 1;
    return std::make_shared<const Importance>(std::move(made));
  }
};

std::unique_ptr<Stage> stage(const std::string& text, const Sample& sample) {
  Diagnostics errors;
  const auto document = read_document(text, "job.yaml", errors);
  const StageSpec spec = quantize_stage();
  if (document) lint(document->root, spec.field, errors);
  for (const Error& error : errors.errors()) FAIL(render(error));
  auto made = spec.make(document->root);
  if (!made) FAIL(render(made.error()));
  if (!target_of(*made.value())) return std::move(made).value();
  return made.value()->as_target()->with_measurement(std::make_shared<const Measurement>(sample.measurement));
}

Model chosen(const std::string& text, const Sample& sample) {
  auto model = stage(text, sample)->apply(sample.model);
  if (!model) FAIL(render(model.error()));
  return std::move(model).value();
}

std::string refusal(const std::string& text, const Sample& sample) {
  const auto model = stage(text, sample)->apply(sample.model);
  REQUIRE_FALSE(model);
  return model.error().what;
}

const Tensor& named(const Model& model, const std::string& name) {
  const auto found = std::ranges::find(model.tensors, name, &Tensor::name);
  REQUIRE(found != model.tensors.end());
  return *found;
}

std::string type_of(const Model& model, const std::string& name) { return std::string(named(model, name).type->name); }

double bits_of(const Model& model) {
  std::uint64_t weights = 0;
  for (const Tensor& each : model.tensors) weights += each.shape().elements();
  return 8.0 * static_cast<double>(tensor_bytes(model)) / static_cast<double>(weights);
}

constexpr const char* kTypes = "candidates: [Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, Q8_0]";

}  // namespace

TEST_CASE("a target is filled and not exceeded") {
  const Sample sample;
  for (const double bits : {3.0, 4.0, 4.5, 5.0, 6.0}) {
    const Model model = chosen(fmt::format("{{target: {{bits: {}}}, {}}}", bits, kTypes), sample);
    CHECK(bits_of(model) <= bits);
    CHECK(bits_of(model) > bits - 0.2);
  }
}

TEST_CASE("general.file_type is guessed from the types that are chosen") {
  constexpr std::uint64_t kGuessed = 1024, kBf16 = 32, kQ4KM = 15;
  Sample sample;
  sample.model.metadata.add("general.file_type", metadata_unsigned(MetadataType::kUint32, kBf16));
  const Model model = chosen("{target: {bits: 4.5}, candidates: [Q4_K]}", sample);
  CHECK(as_unsigned(*model.metadata.find("general.file_type")) == kGuessed + kQ4KM);
}

TEST_CASE("a size that the largest choice does not reach is refused") {
  const Sample sample;
  const auto text = [](const std::string& target) { return fmt::format("{{target: {}, {}}}", target, kTypes); };
  CHECK(refusal(text("{bits: 20}"), sample).starts_with("the largest choice takes "));
  CHECK(refusal(text("[{tensors: ffn, bits: 20}, {bits: 20}]"), sample).starts_with("the largest choice takes "));
  CHECK_NOTHROW(chosen(text("[{tensors: ffn, bits: 20}, {bits: 5}]"), sample));  // one of several memories has room
  CHECK_NOTHROW(chosen(text("[{tensors: ffn, bits: 20}, {divergence: 1000000}]"), sample));
}

TEST_CASE("the files' other contents are subtracted from the target") {
  Sample sample;
  sample.model.notes.set(notes::kOtherBytes, 20'000);
  const Model model = chosen(fmt::format("{{target: {{size: 100000}}, {}}}", kTypes), sample);
  CHECK(tensor_bytes(model) <= 80'000);
  CHECK(tensor_bytes(model) > 78'000);
}

TEST_CASE("a size like a recipe's is at most the size of the recipe") {
  const Sample sample;
  const Model model = chosen(fmt::format("{{target: {{like: Q4_K_M}}, {}}}", kTypes), sample);
  CHECK(tensor_bytes(model) <= tensor_bytes(chosen("Q4_K_M", sample)));
}

TEST_CASE("tensors that matter more get more") {
  const Sample sample;
  const Model model = chosen(fmt::format("{{target: {{bits: 4.5}}, {}}}", kTypes), sample);
  CHECK(named(model, "output.weight").type->bits_per_weight() >
        named(model, "blk.1.ffn_up.weight").type->bits_per_weight());
}

TEST_CASE("rules set types, groups share a type, and bounds limit it") {
  const Sample sample;
  const Model model = chosen(
      fmt::format("{{target: {{bits: 4}}, {}, tensors: [{{match: '^output', type: Q3_K}}], groups: ['attn_(q|k|v)'], "
                  "bounds: [{{match: blk.0.ffn_down, at_least: Q8_0}}, {{match: blk.1, at_most: Q3_K}}]}}",
                  kTypes),
      sample);
  CHECK(type_of(model, "output.weight") == "Q3_K");
  CHECK(type_of(model, "blk.0.attn_q.weight") == type_of(model, "blk.0.attn_v.weight"));
  CHECK(type_of(model, "blk.0.ffn_down.weight") == "Q8_0");
  CHECK(named(model, "blk.1.ffn_up.weight").type->bits_per_weight() < 3.5);
}

namespace {

std::string with_rules(const std::string& rules) {
  return fmt::format("{{target: {{bits: 4.5}}, {}{}}}", kTypes, rules);
}

constexpr const char* kThreeRules =
    ", tensors: [{match: blk.0.ffn_down, type: Q6_K}, {match: '^token_embd', type: Q8_0, encoder: "
    "{search: {effort: 3}}}, {match: '^output', type: Q8_0}]";

// A sample that is measured for kThreeRules: of decided tensors, only the energy, and nothing of the head.
Sample sample_of_three_rules() {
  Sample sample;
  for (MeasuredTensor& each : sample.measurement.tensors)
    if (each.name == "blk.0.ffn_down.weight" || each.name == "token_embd.weight")
      each.types.erase(each.types.begin() + 1, each.types.end());
  std::erase_if(sample.measurement.tensors, [](const MeasuredTensor& each) { return each.name == "output.weight"; });
  return sample;
}

std::string counts_of(const Model& model, const std::string& name) {
  const std::string& reason = named(model, name).reason;
  return reason.substr(0, reason.find(';'));
}

}  // namespace

TEST_CASE("a tensor with a type of its own still supplies its energy to the objective") {
  const Model model = chosen(with_rules(kThreeRules), sample_of_three_rules());
  CHECK(model.warnings.empty());
  for (const char* name : {"blk.0.attn_q.weight", "blk.0.ffn_up.weight", "blk.1.ffn_down.weight"})
    CHECK(counts_of(model, name) == counts_of(chosen(with_rules(""), Sample()), name));
}

TEST_CASE("tensors with a type are measured like open ones if the objective uses their energy") {
  const Sample sample = sample_of_three_rules();
  const Undecided made = stage(with_rules(kThreeRules), sample)->as_target()->undecided(sample.model).value();
  REQUIRE(made.energies.size() == 2);
  CHECK(made.model.tensors[made.energies[0]].name == "token_embd.weight");
  CHECK(made.model.tensors[made.energies[0]].encoder.is_reference());
  CHECK(made.model.tensors[made.energies[1]].name == "blk.0.ffn_down.weight");
}

TEST_CASE("an embedding that is not the head counts alone, even if the head was not measured") {
  Sample sample;
  std::erase_if(sample.measurement.tensors, [](const MeasuredTensor& each) { return each.name == "output.weight"; });
  const Model model = chosen(with_rules(", tensors: [{match: '^output', type: Q8_0}]"), sample);
  CHECK(counts_of(model, "token_embd.weight") == "stream: counts 1");
}

TEST_CASE("an energy that was not measured is an error") {
  Sample sample = sample_of_three_rules();
  std::erase_if(sample.measurement.tensors,
                [](const MeasuredTensor& each) { return each.name == "token_embd.weight"; });
  CHECK(refusal(with_rules(kThreeRules), sample) == "tensor 'token_embd.weight' was not measured");
}

namespace {

// A sample in which one tensor has no importance.
Sample without_importance_of(const std::string& name) {
  Sample sample;
  for (std::size_t i = 0; i < sample.model.tensors.size(); ++i) {
    if (sample.model.tensors[i].name != name) continue;
    sample.model.tensors[i].importance.reset();
    sample.measurement.tensors[i].made_of = measured_identity(sample.model.tensors[i]);
    sample.measurement.tensors[i].weighted = false;
  }
  return sample;
}

}  // namespace

TEST_CASE("a tensor without importance gets no type below the least, with a warning") {
  const Sample sample = without_importance_of("blk.1.ffn_up.weight");
  const std::string text = fmt::format("{{target: {{bits: 3}}, {}}}", kTypes);
  const Model model = chosen(text, sample);
  CHECK(type_of(model, "blk.0.ffn_up.weight") == "Q2_K");
  CHECK(named(model, "blk.1.ffn_up.weight").type->bits_per_weight() >= type_named("Q3_K").bits_per_weight());
  CHECK(named(model, "blk.1.ffn_up.weight").reason.ends_with("; importance is little known, so at least Q3_K"));
  CHECK(model.warnings ==
        std::vector<std::string>{"no type below Q3_K for tensors whose importance is missing or rests "
                                 "on few tokens (1 in total): 'blk.1.ffn_up.weight'"});
}

TEST_CASE("a layer whose writing matrix has no importance counts like others, with a warning") {
  const Sample sample = without_importance_of("blk.1.ffn_down.weight");
  const Model model = chosen(fmt::format("{{target: {{bits: 4.5}}, {}}}", kTypes), sample);
  for (const char* part : {"ffn_up", "ffn_gate", "ffn_down"})
    CHECK(named(model, fmt::format("blk.1.{}.weight", part)).reason.starts_with("stream: counts 0.246"));
  CHECK(model.warnings.back() ==
        "the sensitivity of layers is estimated from other layers, because tensors that write to the residual stream "
        "have no importance (1 in total): 'blk.1.ffn_down.weight'");
  Sample none = sample;
  for (std::size_t i = 0; i < none.model.tensors.size(); ++i) {
    const std::string& name = none.model.tensors[i].name;
    if (name.find("ffn_down") == std::string::npos && name.find("attn_output") == std::string::npos) continue;
    none.model.tensors[i].importance.reset();
    none.measurement.tensors[i].made_of = measured_identity(none.model.tensors[i]);
    none.measurement.tensors[i].weighted = false;
  }
  CHECK(refusal(fmt::format("{{target: {{bits: 4.5}}, objective: stream, {}}}", kTypes), none) ==
        "objective 'stream' needs the importance of tensors that write to the residual stream, but "
        "'blk.0.attn_output.weight' has none, and no other does");
}

TEST_CASE("little known importance does not make a target fail") {
  const Sample sample = without_importance_of("blk.1.ffn_up.weight");
  for (const char* limits : {"bits: 2.625}", "bits: 5}, bounds: [{match: blk.1.ffn_up, at_most: Q2_K}]"}) {
    const Model model = chosen(fmt::format("{{target: {{{}, {}}}", limits, kTypes), sample);
    CHECK(type_of(model, "blk.1.ffn_up.weight") == "Q2_K");
    CHECK(model.warnings ==
          std::vector<std::string>{"types below Q3_K for tensors whose importance is missing or rests "
                                   "on few tokens, because larger ones do not fit or are not "
                                   "candidates (1 in total): 'blk.1.ffn_up.weight'"});
  }
}

TEST_CASE("a choice says what it gains over a recipe of its size") {
  const Sample sample;
  const auto choice_of = [&](const std::string& target) {
    return chosen(fmt::format("{{target: {}, objective: relative, {}}}", target, kTypes), sample)
        .notes.get(notes::kChoice);
  };
  std::smatch parts;
  const std::string all = choice_of("{like: Q4_K_M}");
  INFO(all);
  REQUIRE(std::regex_match(all, parts, std::regex("loss (.*) by 'relative'; (.*) of Q4_K_M's (.*) at its size")));
  CHECK(std::stod(parts[2]) < 1);
  CHECK(std::abs(std::stod(parts[1]) / std::stod(parts[3]) - std::stod(parts[2])) < 1e-3);
  CHECK(choice_of("{bits: 4}").find(';') == std::string::npos);
  CHECK(choice_of("[{tensors: ffn, like: Q3_K_M}, {bits: 5}]").ends_with(" at its size for 'ffn'"));
  CHECK(choice_of("{like: Q4_0}").find(';') == std::string::npos);  // its types were not measured
}

TEST_CASE("a divergence is reached with the fewest bytes") {
  const Sample sample;
  const Model coarse = chosen(fmt::format("{{target: {{divergence: 0.1}}, {}}}", kTypes), sample);
  const Model fine = chosen(fmt::format("{{target: {{divergence: 0.001}}, {}}}", kTypes), sample);
  CHECK(tensor_bytes(coarse) < tensor_bytes(fine));
  CHECK(refusal(fmt::format("{{target: {{divergence: 0.0000001}}, {}}}", kTypes), sample).find("is requested") !=
        std::string::npos);
}

TEST_CASE("without importance or roles, the objective is `relative`, with a warning") {
  const Sample unweighted(false);
  const Model model = chosen(fmt::format("{{target: {{bits: 4.5}}, {}}}", kTypes), unweighted);
  CHECK(model.warnings ==
        std::vector<std::string>{"types are chosen with objective 'relative': objective 'stream' needs "
                                 "an importance matrix"});
  CHECK(refusal(fmt::format("{{target: {{bits: 4.5}}, objective: stream, {}}}", kTypes), unweighted) ==
        "objective 'stream' needs an importance matrix");
  Sample strange;
  strange.model.tensors[6].name = strange.measurement.tensors[6].name = "blk.0.mixer.weight";
  CHECK(
      chosen(fmt::format("{{target: {{bits: 4.5}}, {}}}", kTypes), strange).warnings ==
      std::vector<std::string>{"types are chosen with objective 'relative': tensor 'blk.0.mixer.weight' has no role in "
                               "objective 'stream'"});
}

TEST_CASE("a measurement of other data is refused") {
  Sample sample;
  const std::string text = fmt::format("{{target: {{bits: 4.5}}, {}}}", kTypes);
  sample.measurement.tensors[3].made_of = "another";
  CHECK(
      refusal(text, sample) ==
      "tensor 'blk.0.attn_k.weight', its importance data, its encoder or the sample has changed since it was measured");
  sample.measurement.tensors.erase(sample.measurement.tensors.begin() + 3);
  CHECK(refusal(text, sample) == "tensor 'blk.0.attn_k.weight' was not measured");
}

TEST_CASE("several budgets are all kept, and the choices within them are optimal") {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> factor(0.2, 5);
  const char* names[] = {"Q2_K", "Q4_K", "Q6_K"};
  const std::string candidates = "candidates: [Q2_K, Q4_K, Q6_K]";
  for (int round = 0; round < 30; ++round) {
    Sample sample;
    // Six tensors are open; the others have fixed types.
    const std::string fixed = "tensors: [{match: 'blk.1|attn_(k|v)', type: Q3_K}, {match: embd, type: Q5_K}]";
    for (MeasuredTensor& measured : sample.measurement.tensors)
      for (MeasuredType& type : measured.types) type.error *= factor(random);
    const double experts = 3 + factor(random) / 2, rest = 5 + factor(random) / 3;
    const std::string text = fmt::format(
        "{{target: [{{tensors: ffn, bits: {}}}, {{tensors: attn_q, like: Q4_K_M}}, {{bits: {}}}], objective: relative, "
        "{}, {}}}",
        experts, rest, candidates, fixed);
    for (MeasuredTensor& measured : sample.measurement.tensors) measured.weighted = false;
    const auto made = stage(text, sample);
    const Undecided open = made->as_target()->undecided(sample.model).value();
    REQUIRE(open.open.size() == 6);
    const std::uint64_t other_bytes = 700;
    const Choice choice = choose_types(*target_of(*made), open.model, open.open, other_bytes).value();
    CHECK(choice.is_proven);

    // Tries all choices: bytes of the tensors that match "ffn", of "attn_q", and of all others.
    const auto part_of = [](const std::string& name) {
      return name.find("ffn") != std::string::npos ? 0 : name.find("attn_q") != std::string::npos ? 1 : 2;
    };
    double weights[3] = {0, 0, 0};
    std::uint64_t bytes_fixed[3] = {0, 0, other_bytes};
    for (std::size_t i = 0; i < open.model.tensors.size(); ++i) {
      const Tensor& each = open.model.tensors[i];
      weights[part_of(each.name)] += static_cast<double>(each.shape().elements());
      if (std::ranges::count(open.open, i) == 0)
        bytes_fixed[part_of(each.name)] += bytes_of(*each.type, each.shape().elements()).value();
    }
    const Model stock = chosen("Q4_K_M", sample);
    const std::uint64_t most[3] = {static_cast<std::uint64_t>(experts * weights[0] / 8),
                                   bytes_of(*named(stock, "blk.0.attn_q.weight").type, 256 * 32).value() +
                                       bytes_of(*named(stock, "blk.1.attn_q.weight").type, 256 * 32).value(),
                                   static_cast<std::uint64_t>(rest * weights[2] / 8)};
    double best = INFINITY;
    for (int all = 0; all < 729; ++all) {
      std::uint64_t bytes[3] = {bytes_fixed[0], bytes_fixed[1], bytes_fixed[2]};
      double loss = 0;
      int digits = all;
      for (const std::size_t i : open.open) {
        const MeasuredTensor& measured = *sample.measurement.find(open.model.tensors[i].name);
        const MeasuredType& type = *measured.find(names[digits % 3]);
        digits /= 3;
        bytes[part_of(measured.name)] += type.bytes;
        loss += static_cast<double>(measured.shape.elements()) * measured.relative_square(type);
      }
      if (bytes[0] <= most[0] && bytes[1] <= most[1] && bytes[2] <= most[2]) best = std::min(best, loss);
    }
    CHECK(std::abs(choice.loss - best) <= 1e-9 * best);
  }
}

TEST_CASE("budgets that miss tensors, match none, or split a group are refused") {
  const Sample sample;
  const auto refused = [&](const std::string& target) {
    return refusal(fmt::format("{{target: {}, {}}}", target, kTypes), sample);
  };
  CHECK(refused("[{tensors: ffn_exps, bits: 4}, {bits: 4}]") == "no tensor matches 'ffn_exps'");
  CHECK(refused("[{tensors: ffn, bits: 4}, {bits: 4}], groups: ['attn_output|ffn_gate']") ==
        "tensors 'blk.0.attn_output.weight' and 'blk.0.ffn_gate.weight' must have the same type, but belong to two "
        "budgets");
  CHECK(refused("[{tensors: ffn, bits: 1}, {bits: 4}]").find("for the tensors that match 'ffn', but") !=
        std::string::npos);
  CHECK(refused("[{tensors: ffn, bits: 4}, {bits: 1}]").find("for the tensors that match no budget, but") !=
        std::string::npos);
  const Model model =
      chosen(fmt::format("{{target: [{{tensors: ffn, bits: 4}}, {{divergence: 0.01}}], {}}}", kTypes), sample);
  CHECK(named(model, "blk.0.ffn_up.weight").reason.find("stream, of 'ffn': counts") == 0);
}

TEST_CASE("groups that share a tensor are joined") {
  const Sample sample;
  const Model model = chosen(
      fmt::format("{{target: {{bits: 4}}, {}, groups: ['ffn_(gate|up)', 'attn_v', 'ffn_up|attn_v']}}", kTypes), sample);
  for (const char* part : {"ffn_gate", "ffn_up"})
    for (int layer = 0; layer < 2; ++layer)
      CHECK(type_of(model, fmt::format("blk.{}.{}.weight", layer, part)) ==
            type_of(model, fmt::format("blk.{}.attn_v.weight", layer)));
}

TEST_CASE("groups and bounds that match nothing are errors at their patterns") {
  const Sample sample;
  const auto error_of = [&](const std::string& more, bool is_measured = true) {
    auto made = stage(fmt::format("{{target: {{bits: 4}}, {}, {}}}", kTypes, more), sample);
    if (!is_measured) made = made->as_target()->with_measurement(nullptr);
    const auto model = made->apply(sample.model);
    REQUIRE_FALSE(model);
    return model.error();
  };
  for (const bool is_measured : {true, false}) {
    const Error group = error_of("groups: ['attn_(q|k)', nothing, nowhere]", is_measured);
    CHECK(group.what == "no tensor matches 'nothing'");
    CHECK(group.where == "job.yaml:1:94");
    REQUIRE(group.also.size() == 1);
    CHECK(group.also[0].what == "no tensor matches 'nowhere'");
    CHECK(error_of("bounds: [{match: attn_zzz, at_least: Q6_K}]", is_measured).what == "no tensor matches 'attn_zzz'");
  }
  // The type of the only tensor that matches is decided by a rule.
  CHECK(error_of("tensors: [{match: ^output, type: Q6_K}], bounds: [{match: ^output, at_least: Q4_K}]").what ==
        "no tensor matches '^output'");
}

TEST_CASE("bounds without types, and bounds that no type is within, are refused") {
  const Sample sample;
  const auto refused = [&](const std::string& bounds) {
    Diagnostics errors;
    const auto document =
        read_document(fmt::format("{{target: {{bits: 4}}, {}, bounds: [{}]}}", kTypes, bounds), "job.yaml", errors);
    const auto made = quantize_stage().make(document->root);
    REQUIRE_FALSE(made);
    CHECK(made.error().where.starts_with("job.yaml:1:"));
    return made.error().what;
  };
  CHECK(refused("{match: attn_v}") == "the bound on 'attn_v' has no type, so it limits nothing");
  CHECK(refused("{match: attn_v, at_least: Q6_K, at_most: Q4_K}") ==
        "no type is within the bound on 'attn_v': at_least Q6_K has 6.562 bits per weight, but at_most Q4_K only 4.5");
  const auto bounded = [&](const std::string& bounds) {
    return refusal(fmt::format("{{target: {{bits: 4}}, {}, {}}}", kTypes, bounds), sample);
  };
  CHECK(bounded("bounds: [{match: attn_v, at_least: Q6_K}, {match: blk.0, at_most: Q4_K}]") ==
        "no candidate for tensor 'blk.0.attn_v.weight' is within the bounds on it");
  CHECK(bounded("groups: ['attn_(q|k)'], bounds: [{match: attn_q, at_least: Q6_K}, {match: attn_k, at_most: Q4_K}]") ==
        "no candidate suits all 2 tensors that must have the type of 'blk.0.attn_k.weight', because of their rows or "
        "bounds");
}

TEST_CASE("types of excluded lists are never chosen") {
  const TempDir folder;
  const Sample sample;
  const auto types_in = [&](double bits, const std::string& exclude) {
    std::set<std::string_view> types;
    for (const Tensor& each :
         chosen(fmt::format("{{target: {{bits: {}}}, exclude: {}, {}}}", bits, exclude, kTypes), sample).tensors)
      types.insert(each.type->name);
    return types;
  };
  CHECK(types_in(4, "cuda").contains("Q3_K"));
  CHECK_FALSE(types_in(6, "opencl").contains("Q3_K"));  // nor Q2_K; see below
  write_text(folder.file("mine.yaml"), "types: [q4_k]");
  const auto left = types_in(7, fmt::format("[opencl, {}]", folder.file("mine.yaml")));
  CHECK_FALSE(left.contains("Q2_K"));
  CHECK_FALSE(left.contains("Q4_K"));
}

TEST_CASE("an exclusion list contains types and must leave some candidates") {
  const TempDir folder;
  for (const BuiltInExclusion& built_in : built_in_exclusions()) {
    const Exclusion exclusion = find_exclusion(std::string(built_in.name), {}, {}).value();
    INFO(built_in.name);
    CHECK(exclusion.types.empty() == !exclusion.modules.empty());  // no module is loaded
    CHECK(exclusion.description.starts_with("Types "));
    CHECK(exclusion.source.find("llama.cpp, ggml/") != std::string::npos);
  }
  CHECK(find_exclusion("cdua", {}, {}).error().what == "unknown exclusion list 'cdua'");
  for (const char* text : {"", "types: []", "types: [Q4_X]", "name: [Q4_K]", "modules: []", "description: a"}) {
    write_text(folder.file("bad.yaml"), text);
    CHECK_FALSE(find_exclusion(folder.file("bad.yaml"), {}, {}));
  }
}

namespace {

// Types with one of a module named "made", with the values of Q5_K, and its measurement.
struct WithModule {
  Types types;
  Sample sample;

  WithModule() {
    REQUIRE(types.add({0x10001, "MADE", TypeClass::kForeign, 256, 176, {}}, "made"));
    for (MeasuredTensor& each : sample.measurement.tensors) {
      const auto q5 = std::ranges::find(each.types, "Q5_K", &MeasuredType::type);
      REQUIRE(q5 != each.types.end());
      MeasuredType made = *q5;
      made.type = "MADE";
      made.error /= 100;
      made.weighted_error /= 100;
      each.types.push_back(made);
    }
  }
  Result<std::unique_ptr<Stage>> stage(const std::string& text) const {
    Diagnostics errors;
    const auto document = read_document(text, "job.yaml", errors);
    const StageSpec spec = quantize_stage(types);
    if (document) lint(document->root, spec.field, errors, types);
    if (!errors.errors().empty()) return errors.errors()[0];
    return spec.make(document->root);
  }
  // Returns the names of the candidates.
  std::vector<std::string_view> candidates(const std::string& options) const {
    const auto made = stage("{target: {bits: 6}" + options + "}");
    if (!made) FAIL(render(made.error()));
    std::vector<std::string_view> names;
    for (const TypeInfo* type : target_of(*made.value())->candidates) names.push_back(type->name);
    return names;
  }
};

using TypeNames = std::vector<std::string_view>;

}  // namespace

TEST_CASE("types of a kernel module are candidates only if they or it are named") {
  const WithModule with;
  const TypeNames usual = with.candidates("");
  CHECK(std::ranges::count(usual, "MADE") == 0);
  TypeNames all = usual;
  all.push_back("MADE");
  CHECK(with.candidates(", candidates: [made]") == all);
  CHECK(with.candidates(", candidates: [Q4_K, made, MADE]") == TypeNames{"Q4_K", "MADE"});
  CHECK(with.candidates(", candidates: [made, Q4_K]") == TypeNames{"MADE", "Q4_K"});
}

TEST_CASE("a type of a kernel module is chosen where it is better, unless its module is excluded") {
  const WithModule with;
  const TempDir folder;
  write_text(folder.file("mine.yaml"), "modules: [made]");
  for (const bool excluded : {false, true}) {
    auto made = with.stage("{target: {bits: 5.4}, candidates: [Q2_K, Q5_K, made]" +
                           (excluded ? ", exclude: " + folder.file("mine.yaml") : "") + "}");
    if (!made) FAIL(render(made.error()));
    const auto stage =
        made.value()->as_target()->with_measurement(std::make_shared<const Measurement>(with.sample.measurement));
    const auto model = stage->apply(with.sample.model);
    if (!model) FAIL(render(model.error()));
    const auto count = [&](std::string_view type) {
      return std::ranges::count_if(model.value().tensors, [&](const Tensor& each) { return each.type->name == type; });
    };
    CHECK((count("MADE") == 0) == excluded);
    CHECK((count("Q5_K") == 0) == !excluded);
  }
}

TEST_CASE("candidates are neither interleaved types nor unknown modules") {
  GGUFMILL_NEEDS("Q4_K_R4");
  const WithModule with;
  const auto error_of = [&](const char* candidate) {
    const auto made = with.stage(fmt::format("{{target: {{bits: 6}}, candidates: [{}]}}", candidate));
    REQUIRE_FALSE(made);
    return made.error();
  };
  CHECK(error_of("Q4_K_R4").what == "Q4_K_R4 has the values of Q4_K, with interleaved rows");
  CHECK(error_of("Q4_K_R4").help == "choose among plain types, Q4_K for example, and add `repack: interleaved`");
  CHECK(error_of("mode").help.starts_with("did you mean 'made'?"));
}

TEST_CASE("unusable numbers are an error, not a choice") {
  Sample sample;
  sample.measurement.tensors[4].weighted_energy = 1e-308;
  sample.measurement.tensors[4].types[0].weighted_error = 1e308;
  CHECK(refusal(fmt::format("{{target: {{bits: 4}}, {}}}", kTypes), sample) ==
        "the cost of Q2_K for tensor 'blk.0.attn_v.weight' is not a finite number");
}

TEST_CASE("default candidates follow the columns of a tensor, and of those that share its type") {
  Model model;
  for (const auto& [name, columns] :
       {std::pair{"blk.0.ffn_up.weight", 256}, {"blk.0.ffn_down.weight", 160}, {"blk.0.attn_q.weight", 512}})
    model.tensors.push_back(tensor(name, static_cast<std::uint64_t>(columns), 4));
  const auto names_of = [&](const std::string& options) {
    const auto made = stage("{target: {bits: 6}" + options + "}", Sample());
    const auto found = candidates_of(*target_of(*made), model, {0, 1, 2});
    if (!found) FAIL(render(found.error()));
    std::vector<std::string> names;
    for (const Candidates& candidates : found.value()) {
      std::string& of_tensor = names.emplace_back();
      for (const TypeInfo* type : candidates) of_tensor += std::string(type->name) + " ";
    }
    return names;
  };
  const std::string wide = "IQ2_S Q2_K IQ3_XXS IQ3_S Q3_K IQ4_XS Q4_K Q5_K Q6_K Q8_0 ";
  const std::string narrow = "IQ4_NL Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 ";
  CHECK(names_of("") == std::vector<std::string>{wide, narrow, wide});
  CHECK(names_of(", groups: [ffn]") == std::vector<std::string>{narrow, narrow, wide});
  CHECK(names_of(", candidates: [Q4_0, Q6_K]") == std::vector<std::string>(3, "Q4_0 Q6_K "));
}

TEST_CASE("a target without a candidate for some rows reports their length and the types that fit") {
  Model model;
  model.tensors.push_back(tensor("a", 96, 4));
  const auto error_of = [&](const std::string& options) {
    const auto made = stage("{target: {bits: 6}" + options + "}", Sample());
    const auto found = candidates_of(*target_of(*made), model, {0});
    REQUIRE_FALSE(found);
    return found.error();
  };
  const Error named = error_of(", candidates: [Q4_K, Q6_K]");
  CHECK(named.what == "no candidate fits the rows of 1 tensor: 'a' (96 values)");
  CHECK(named.help == "add types for rows of 96 values to `candidates`: IQ4_NL, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0");
  model.tensors[0] = tensor("a", 90, 4);
  CHECK(error_of("").help.find("tensors: [{match: 'a', type: F16}]") != std::string::npos);
}

TEST_CASE("a target that is too small, and candidates that do not fit, are errors") {
  const Sample sample;
  CHECK(refusal(fmt::format("{{target: {{bits: 1}}, {}}}", kTypes), sample).find("the smallest choice takes") == 0);
  CHECK(refusal("{target: {bits: 4}, candidates: [IQ4_XS]}", sample).find("was measured as none of the candidates") !=
        std::string::npos);
}

TEST_CASE("measured sensitivities decide with objective `probe`") {
  const TempDir folder;
  std::string tensors;
  const Sample sample;
  for (const Tensor& each : sample.model.tensors)
    tensors += fmt::format("{}\"{}\": {{\"type\": \"Q2_K\", \"divergence\": {}}}", tensors.empty() ? "" : ", ",
                           each.name, each.name == "blk.1.attn_k.weight" ? 1.0 : 0.0001);
  write_text(folder.file("s.json"),
             "{\"format\": \"ggufmill sensitivities\", \"version\": 1, \"tensors\": {" + tensors + "}}");
  const Model model = chosen(fmt::format("{{target: {{bits: 4}}, objective: {{name: probe, sensitivities: {}}}, {}}}",
                                         folder.file("s.json"), kTypes),
                             sample);
  CHECK(type_of(model, "blk.1.attn_k.weight") == "Q8_0");
}

TEST_CASE("in tables of sensitivities the coarsest type of each tensor counts") {
  const TempDir folder;
  const std::string path = folder.file("kld_results.csv");
  write_text(
      path,
      "QTYPE,a.weight,\"b.weight\",c.weight\niq2_k_r4,9,9,9\nq4_K,0.5%,+0.25%,404x\nQ2_K,2.5%,,\nq6_K,0.1,0.1,0.125\n");
  const auto file = read_probes(path);
  REQUIRE(file);
  const Probes& probes = file.value().probes;
  REQUIRE(probes.size() == 3);
  CHECK(probes.at("a.weight").type == "Q2_K");
  CHECK(probes.at("a.weight").divergence == 2.5);
  CHECK(probes.at("b.weight").type == "Q4_K");
  CHECK(probes.at("b.weight").divergence == 0.25);
  CHECK(probes.at("c.weight").type == "Q6_K");
  for (const char* text : {"", "a,b\n1,2\n", "QTYPE\nQ2_K\n", "QTYPE,a\nQ9_K,1\n"}) {
    write_text(path, text);
    const auto bad = read_probes(path);
    REQUIRE_FALSE(bad);
    CHECK(bad.error().code == ExitCode::kBadInput);
  }
}

TEST_CASE("mistakes in tables of sensitivities are errors with their line") {
  const TempDir folder;
  const std::string path = folder.file("s.csv");
  const auto error_of = [&](const std::string& text) {
    write_text(path, text);
    const auto file = read_probes(path);
    REQUIRE_FALSE(file);
    CHECK(file.error().code == ExitCode::kBadInput);
    return file.error();
  };
  const Error nan = error_of("QTYPE,a,b\r\nQ2_K,0.1,0.2\r\nQ4_K,0.1,nan\r\n");
  CHECK(nan.where == path + ":3");
  CHECK(nan.what == "the divergence of tensor 'b' as Q4_K is 'nan', which is not a finite number");
  CHECK(error_of("QTYPE,a\nQ2_K,-inf\n").where == path + ":2");
  const Error cut = error_of("QTYPE,a,b\nQ2_K,0.1\n");
  CHECK(cut.where == path + ":2");
  CHECK(cut.what == "the line of Q2_K has 2 cells, but the first line of the table 3");
  CHECK(error_of("QTYPE,a\nQ9_K,1\n").what == "the table has no divergence for a known type");
  const std::string json = folder.file("s.json");
  for (const char* tensor :
       {"{\"type\": \"Q2_K\", \"divergence\": \"nan\"}", "{\"divergence\": 1}", "{\"type\": \"Q2_K\"}"}) {
    write_text(json, fmt::format("{{\"format\": \"ggufmill sensitivities\", \"tensors\": {{\"a\": {}}}}}", tensor));
    REQUIRE_FALSE(read_probes(json));
  }
  CHECK(read_probes(json).error().what == "the divergence of tensor 'a' is missing");
}

TEST_CASE("tensors whose sensitivity is zero or less are reported") {
  const TempDir folder;
  const Sample sample;
  std::string names = "QTYPE", values = "Q2_K";
  for (const Tensor& each : sample.model.tensors) {
    names += "," + each.name;
    values += each.name == "blk.1.attn_k.weight" ? ",-0.5" : each.name == "output.weight" ? ",0" : ",1";
  }
  write_text(folder.file("s.csv"), names + "\n" + values + "\n");
  const Model model = chosen(fmt::format("{{target: {{bits: 4}}, objective: {{name: probe, sensitivities: {}}}, {}}}",
                                         folder.file("s.csv"), kTypes),
                             sample);
  CHECK(type_of(model, "blk.1.attn_k.weight") == "Q2_K");
  CHECK(model.warnings ==
        std::vector<std::string>{folder.file("s.csv") +
                                 ": tensors with a divergence of zero or less count nothing, so they get the smallest "
                                 "types (2 in total): 'output.weight' (0, line 2), 'blk.1.attn_k.weight' (-0.5, line "
                                 "2)"});
}

TEST_CASE("only objectives of measured sensitivities have a file of them") {
  Diagnostics errors;
  const auto document =
      read_document("{target: {bits: 4}, objective: {name: stream, sensitivities: s.csv}}", "job.yaml", errors);
  const auto made = quantize_stage().make(document->root);
  REQUIRE_FALSE(made);
  CHECK(made.error().where == "job.yaml:1:62");
  CHECK(made.error().what == "objective 'stream' determines sensitivities itself, so those of a file have no effect");
}

TEST_CASE("the curve falls with the size, and no recipe is below it") {
  const Sample sample;
  const auto made = stage(fmt::format("{{target: {{bits: 4}}, {}}}", kTypes), sample);
  const Undecided open = made->as_target()->undecided(sample.model).value();
  const auto curve = choice_curve(*target_of(*made), open.model, open.open, 9, RecipeCatalog()).value();
  REQUIRE(curve.size() > 9);
  for (std::size_t i = 1; i < 9; ++i) {
    CHECK(curve[i].bytes > curve[i - 1].bytes);
    CHECK(curve[i].loss < curve[i - 1].loss);
  }
  std::size_t compared = 0;
  for (std::size_t r = 9; r < curve.size(); ++r)
    for (std::size_t i = 0; i < 9; ++i)
      if (curve[r].bytes <= curve[i].bytes) CHECK((++compared, curve[r].loss >= curve[i].loss));
  CHECK(compared > 10);
}

TEST_CASE("the curve has only recipes that suit the model") {
  const Sample sample;  // without experts, so that MXFP4_MOE would be the same as Q8_0
  const auto made = stage(fmt::format("{{target: {{bits: 4}}, {}}}", kTypes), sample);
  const Undecided open = made->as_target()->undecided(sample.model).value();
  const auto curve = choice_curve(*target_of(*made), open.model, open.open, 9, RecipeCatalog()).value();
  CHECK(std::ranges::count(curve, "Q8_0", &CurvePoint::recipe) == 1);
  CHECK(std::ranges::count(curve, "MXFP4_MOE", &CurvePoint::recipe) == 0);
}

TEST_CASE("the curve marks the result of the target itself") {
  const Sample sample;
  const auto made = stage(fmt::format("{{target: {{bits: 4}}, {}}}", kTypes), sample);
  const Undecided open = made->as_target()->undecided(sample.model).value();
  const Model chosen = made->apply(sample.model).value();
  const auto curve = choice_curve(*target_of(*made), open.model, open.open, 9, RecipeCatalog(), &chosen).value();
  REQUIRE(std::ranges::count(curve, true, &CurvePoint::is_target) == 1);
  CHECK(curve.back().is_target);
  CHECK(curve.back().bytes == tensor_bytes(chosen));
  CHECK(curve.back().loss < curve.front().loss);
}

TEST_CASE("the matrices of a measurement are written and read back") {
  const TempDir folder;
  Measurement measurement;
  measurement.ggufmill = "0.1.0";
  measurement.tensors.push_back({"a",
                                 "01",
                                 {3, {256, 8, 2, 1}},
                                 3,
                                 6,
                                 true,
                                 {{"Q2_K", 1344, 0.5, 0.75, {{0.25, 0.25}, {0.5, 0.25}}}},
                                 {{1, 2}, {4, 2}}});
  const std::string text = write_measurement(measurement);
  CHECK(
      text.find(R"("matrices":[{"tensor":"a","energy":[1E0,2E0],"weighted_energy":[4E0,2E0],)"
                R"("types":[{"type":"Q2_K","bytes":672,"error":[2.5E-1,2.5E-1],"weighted_error":[5E-1,2.5E-1]}]}])") !=
      std::string::npos);
  CHECK(measurement.tensors[0].relative_square(measurement.tensors[0].types[0], 0) == 0.125);
  write_text(folder.file("m.json"), text);
  CHECK(write_measurement(read_measurement(folder.file("m.json")).value()) == text);
  for (const auto& [what, by] : {std::pair{R"([{"tensor":"a")", R"([{"tensor":"b")"}, std::pair{"[1E0,2E0]", "[1E0]"},
                                 std::pair{R"("bytes":672,"error":[2.5E-1,)", R"("bytes":672,"error":[)"},
                                 std::pair{R"([{"type":"Q2_K","bytes":672)", R"([{"type":"Q3_K","bytes":672)"}}) {
    std::string wrong = text;
    wrong.replace(wrong.find(what), std::string(what).size(), by);
    write_text(folder.file("wrong.json"), wrong);
    CHECK_FALSE(read_measurement(folder.file("wrong.json")));
  }
}

TEST_CASE("a measurement can be written and read back") {
  const TempDir folder;
  const Sample sample;
  write_text(folder.file("m.json"), write_measurement(sample.measurement));
  const Measurement read = read_measurement(folder.file("m.json")).value();
  CHECK(write_measurement(read) == write_measurement(sample.measurement));
  for (const auto& [what, by] : {std::pair{"\"energy\":", "\"energy\":-"}, std::pair{"\"types\":[", "\"no\":["},
                                 std::pair{"\"shape\":[", "\"shape\":[-1,"}, std::pair{"measurement\"", "x\""}}) {
    std::string wrong = write_measurement(sample.measurement);
    wrong.replace(wrong.find(what), std::string(what).size(), by);
    write_text(folder.file("wrong.json"), wrong);
    CHECK_FALSE(read_measurement(folder.file("wrong.json")));
  }
}

namespace {

Model unmeasured_model(const std::string& text, const Sample& sample) {
  auto model = stage(text, sample)->as_target()->with_measurement(nullptr)->apply(sample.model);
  if (!model) FAIL(render(model.error()));
  return std::move(model).value();
}

}  // namespace

TEST_CASE("without a measurement, types that fill the target are assumed, and the model has a problem") {
  const Sample sample;
  const Model model = unmeasured_model(fmt::format("{{target: {{bits: 4.5}}, {}}}", kTypes), sample);
  CHECK(bits_of(model) <= 4.5);
  CHECK(bits_of(model) > 4.3);
  REQUIRE(model.problems.size() == 1);
  CHECK(wants_measurement(model.problems[0]));
  CHECK(model.problems[0].what == "the target is not measured yet; the tensors can take 47.25 KiB to 153.00 KiB");
  CHECK(named(model, "output.weight").reason == "assumed: not yet measured");
}

TEST_CASE("a divergence without a measurement is planned with the largest types") {
  const Sample sample;
  const Model model = unmeasured_model(fmt::format("{{target: {{divergence: 0.1}}, {}}}", kTypes), sample);
  CHECK(type_of(model, "blk.0.attn_q.weight") == "Q8_0");
}

TEST_CASE("a target that no types fit is refused before measuring") {
  const Sample sample;
  const auto model = stage(fmt::format("{{target: {{bits: 2}}, {}}}", kTypes), sample)
                         ->as_target()
                         ->with_measurement(nullptr)
                         ->apply(sample.model);
  REQUIRE_FALSE(model);
  CHECK_FALSE(wants_measurement(model.error()));
  CHECK(model.error().what == "the smallest choice takes 47.25 KiB for the tensors, but there is room for 36.00 KiB");
}

TEST_CASE("the recipe of a target names its objective") {
  const Sample sample;
  CHECK(chosen(fmt::format("{{target: {{bits: 4.5}}, {}, objective: relative}}", kTypes), sample)
            .notes.get(notes::kRecipe) == "target-relative");
}

TEST_CASE("a measurement is used if it has the requested sample or all rows") {
  Sample sample;
  for (Tensor& each : sample.model.tensors) each = tensor(each.name, 256, 4096);
  const auto with = [&](const char* measured, const char* requested) {
    for (std::size_t i = 0; i < sample.model.tensors.size(); ++i) {
      const RowSample rows = parse_document(measured, "sample", sample_form()).value();
      sample.measurement.tensors[i].made_of = measured_identity(sampled(sample.model.tensors[i], rows).value());
    }
    return bool(stage(fmt::format("{{target: {{bits: 4.5}}, sample: {}, {}}}", requested, kTypes), sample)
                    ->apply(sample.model));
  };
  CHECK(with("1/16", "1/16"));
  CHECK(with("all", "1/16"));
  CHECK_FALSE(with("1/16", "all"));
  CHECK_FALSE(with("1/32", "1/16"));
}
