#include "stages/huggingface/map/tensor_map.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <unordered_set>

#include "pipeline/core/text.h"
#include "stages/huggingface/map/active_rules.h"
#include "stages/huggingface/map/check_names.h"
#include "stages/huggingface/map/tensor_operations.h"
#include "stages/huggingface/map/tensor_steps.h"

namespace ggufmill::huggingface {
namespace {

constexpr std::size_t kMaxFaults = 20;
constexpr std::uint64_t kMaxMissingLayers = 1024;

class TensorMapper {
 public:
  TensorMapper(const Architecture& architecture, const Facts& facts, std::string where,
               std::vector<MissingPart>* missing)
      : architecture_(architecture), facts_(facts), where_(std::move(where)), missing_(missing) {}

  Result<std::vector<MappedTensor>> map(const std::vector<NamedTensor>& tensors) {
    all_ = &tensors;
    tensors_ = tensors.size();
    BOOST_OUTCOME_TRY(rules_, ActiveRules::choose(architecture_, facts_));
    seen_.resize(rules_.all().size());
    BOOST_OUTCOME_TRY(check_no_codes(
        tensors, [&](const std::string& name) { return rules_.has_rule_for(name); },
        [&](const std::string& name) { return rules_.makes_weight_of(name); }, where_));
    BOOST_OUTCOME_TRY(check_names(architecture_, facts_, rules_, tensors, where_));
    BOOST_OUTCOME_TRY(compute());
    for (const NamedTensor& tensor : tensors) {
      if (first_of_repeated_.size() == kMaxFaults) break;
      if (Status status = take(tensor); !status) add_fault_once(std::move(status).error(), tensor.name);
    }
    report_repeated();
    report_missing();
    if (!faults_.empty()) return faults_.together();
    std::vector<MappedTensor> all = std::move(first_);
    std::ranges::move(computed_, std::back_inserter(all));
    for (auto& [place, tensors_of_layer] : by_layer_) std::ranges::move(tensors_of_layer, std::back_inserter(all));
    for (auto* part : {&early_, &late_, &last_}) std::ranges::move(*part, std::back_inserter(all));
    return all;
  }

 private:
  // Tensors of one rule and one layer that are written together, and the parts seen so far.
  struct Group {
    std::map<std::string, const NamedTensor*> parts;  // by the checkpoint's name
    std::vector<std::string> needed;                  // sorted
  };
  // The tensors of a rule seen so far.
  struct Seen {
    std::set<std::uint32_t> layers;  // of a required rule
    bool met = false;
    std::set<std::optional<std::uint32_t>> taken;  // layers of which a rule for the first tensor only has one
    std::map<std::pair<std::uint32_t, std::string>, Group> groups;  // by layer and ending
  };

  std::ptrdiff_t index_of(const ActiveRule& active) const { return &active - rules_.all().data(); }
  Seen& seen_of(const ActiveRule& active) { return seen_[static_cast<std::size_t>(index_of(active))]; }

  // `tensor`: as the map's rules see it; empty if the error is not about one.
  void add_fault(Error error, const std::string& tensor) {
    if (error.where.empty()) error.where = where_;
    if (!tensor.empty()) error.what = fmt::format("tensor {}: {}", quoted_name(in_file(tensor)), error.what);
    error.code = ExitCode::kBadInput;
    faults_.add(std::move(error));
  }

  const std::string& in_file(const std::string& tensor) const {
    const auto found = std::ranges::find(*all_, tensor, &NamedTensor::name);
    return found == all_->end() ? tensor : found->name_in_file();
  }

  // Adds an error of a tensor unless another tensor has the same: a wrong number in config.json concerns all layers.
  void add_fault_once(Error error, const std::string& tensor) {
    if (++repeats_[error.what + error.detail] == 1) first_of_repeated_.emplace_back(std::move(error), tensor);
  }

  void report_repeated() {
    for (auto& [error, tensor] : first_of_repeated_) {
      if (!error.where.empty() && error.where != where_) {  // config.json, which is wrong for all tensors
        add_fault(std::move(error), "");
        continue;
      }
      const std::size_t others = repeats_[error.what + error.detail] - 1;
      if (others != 0)
        error.detail +=
            fmt::format("{}so it is for {}", error.detail.empty() ? "" : "\n", counted(others, "other tensor"));
      if (error.help.empty())
        error.help = fmt::format("check that {} and the weights are of the same model", architecture_.config);
      add_fault(std::move(error), tensor);
    }
  }

  Status compute() {
    for (const ComputedRule& rule : architecture_.computed) {
      BOOST_OUTCOME_TRY(const bool holds, facts_.holds(rule.when));
      if (!holds) continue;
      BOOST_OUTCOME_TRY(const auto arguments, evaluate_arguments(rule.arguments, rule.place, facts_, {}));
      auto values = rule.function->make(arguments);
      if (!values) {
        Error error = std::move(values).error();
        error.where = (facts_.folder() / "config.json").string();
        error.what = fmt::format("tensor '{}': {}", rule.name, error.what);
        error.detail = fmt::format("{} at {}", rule.function->name, rule.place);
        return error;
      }
      computed_.push_back({rule.name, std::move(values).value(), false, true});
    }
    return ok();
  }

  // A requirement is satisfied even if an earlier rule takes the tensor.
  void mark_required(const NamedTensor& tensor) {
    for (const ActiveRule& active : rules_.all()) {
      if (!active.rule->required && active.required_in.empty()) continue;
      for (const NamePattern& from : active.rule->from)
        if (const auto match = from.match(tensor.name)) {
          seen_of(active).met = true;
          if (match->numbers.layer) seen_of(active).layers.insert(*match->numbers.layer);
        }
    }
  }

  Status take(const NamedTensor& tensor) {
    mark_required(tensor);
    for (const ActiveRule& active : rules_.all()) {
      if (active.rule->from.empty()) {
        for (std::size_t i = 0; i < active.outputs.size(); ++i)
          for (const NamePattern& part : active.outputs[i]->parts)
            if (const auto match = part.match(tensor.name); match && rules_.has_layer_of(*match))
              return gather(active, *match, tensor);
        continue;
      }
      for (const NamePattern& from : active.rule->from)
        if (const auto match = from.match(tensor.name); match && rules_.has_layer_of(*match)) {
          if (active.rule->only_first && !seen_of(active).taken.insert(match->numbers.layer).second) return ok();
          return convert(active, *match, tensor);
        }
    }
    return no_rule(tensor);
  }

  Error no_rule(const NamedTensor& tensor) const {
    Error error{ExitCode::kBadInput, where_,
                fmt::format("no rule in architecture '{}' matches it ({} of {})", architecture_.file,
                            tensor.values->type->name, describe(tensor.values->shape)),
                "", help_for_unknown(architecture_, where_)};
    for (const ActiveRule& active : rules_.all())
      for (const NamePattern& from : active.rule->from)
        if (from.match(tensor.name))
          error.detail =
              fmt::format("'{}' would match, but the number of layers is {}", from.name().text(), rules_.layers());
    return error;
  }

  Status convert(const ActiveRule& active, const NamePattern::Match& match, const NamedTensor& tensor) {
    if (active.rule->zero) {
      BOOST_OUTCOME_TRY(check_zero(*active.rule, tensor));
    }
    for (const TensorOutput* output : active.outputs) {
      BOOST_OUTCOME_TRY(ExpressionRef values, apply_steps(output->steps, tensor.values, facts_, match.numbers.layer));
      add(active, *output, match, std::move(values), tensor);
    }
    return ok();
  }

  // llama.cpp does not support this tensor, which does not matter if all its values are 0. Reads the tensor.
  Status check_zero(const CheckpointRule& rule, const NamedTensor& tensor) const {
    BOOST_OUTCOME_TRY(const auto bytes, read_small_tensor(*tensor.values));
    const std::size_t width = tensor.values->type->block_bytes;
    const bool has_sign = tensor.values->type->type_class == TypeClass::kFloat;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const auto sign =
          std::byte{has_sign && i % width + 1 == width ? std::uint8_t{0x80} : std::uint8_t{0}};  // -0 is 0
      if ((bytes[i] & ~sign) == std::byte{0}) continue;
      Error error = input_error(where_,
                                fmt::format("value {} is not 0, and llama.cpp does not support this tensor in '{}'",
                                            i / width, architecture_.name),
                                "the model cannot be converted: without this tensor it would give different results");
      error.detail = fmt::format("it could be dropped if all values were 0, see {}", rule.place);
      return error;
    }
    return ok();
  }

  void add(const ActiveRule& active, const TensorOutput& output, const NamePattern::Match& match, ExpressionRef values,
           const NamedTensor& tensor) {
    const auto name = output.name.with(match.numbers);
    if (!name) {
      add_fault(
          usage_error(fmt::format("'{}' has a number that '{}' does not determine", output.name.text(), tensor.name)),
          "");
      return;
    }
    const bool has_ending = name->ends_with(".weight") || name->ends_with(".bias");
    const std::string whole = has_ending ? *name : *name + match.suffix;
    if (!names_.insert(whole).second) {
      add_fault(input_error(where_, fmt::format("two tensors become {}", quoted_name(whole))), tensor.name);
      return;
    }
    auto& into = list_for(active, match, tensor);
    const bool is_whole = active.outputs.size() == 1 && !active.rule->from.empty();
    into.push_back(
        {whole, std::move(values), tensor.was_fp8, false, tensor.stored, tensor.weights_only, is_whole, tensor.name});
    for (const auto& [ending, numbers] : tensor.beside) {
      const auto is_one = [](float value) { return std::abs(value - 1.0f) <= 1.1e-5f; };
      if (numbers->values.size() == 1 ? std::abs(numbers->values[0] - 1.0f) < 1e-6f
                                      : std::ranges::all_of(numbers->values, is_one))
        continue;
      into.push_back({whole.substr(0, whole.rfind(".weight")) + ending, numbers, false, false});
    }
  }

  std::vector<MappedTensor>& list_for(const ActiveRule& active, const NamePattern::Match& match,
                                      const NamedTensor& tensor) {
    if (tensor.first) return first_;
    if (active.rule->by_layer) return by_layer_[{index_of(active), match.numbers.layer.value_or(0)}];
    return active.rule->early ? early_ : active.rule->last ? last_ : late_;
  }

  Status gather(const ActiveRule& active, const NamePattern::Match& match, const NamedTensor& tensor) {
    const std::uint32_t layer = match.numbers.layer.value_or(0);
    const std::pair key(layer, match.suffix);
    auto& groups = seen_of(active).groups;
    Group& group = groups[key];
    if (group.needed.empty()) {
      BOOST_OUTCOME_TRY(name_parts(active, match.numbers.layer, match.suffix, group));
    }
    if (!std::ranges::binary_search(group.needed, tensor.name)) {
      if (group.parts.empty()) groups.erase(key);
      return beyond_count(active, match, tensor);
    }
    group.parts[tensor.name] = &tensor;
    if (group.parts.size() < group.needed.size()) return ok();
    for (std::size_t i = 0; i < active.outputs.size(); ++i) {
      const TensorOutput& output = *active.outputs[i];
      std::vector<ExpressionRef> parts;
      std::vector<std::string> names;
      NamedTensor whole{tensor.name, nullptr, tensor.was_fp8, tensor.first, tensor.stored, {}, tensor.weights_only};
      for (const std::string& name :
           names_of(output, active.counts[i].in(match.numbers.layer), match.numbers.layer, match.suffix)) {
        const auto found = group.parts.find(name);
        if (found == group.parts.end())
          return input_error(where_,
                             fmt::format("'{}', which '{}' is made from, is missing", name, output.name.text()));
        names.push_back(name);
        BOOST_OUTCOME_TRY(parts.emplace_back(),
                          apply_steps(output.part_steps, found->second->values, facts_, match.numbers.layer));
        BOOST_OUTCOME_TRY(add_beside(whole, *found->second));
      }
      if (output.gather == Gather::kStack) {
        if (const auto odd = odd_shape(parts)) {
          const Shape& others = parts[*odd == 0 ? 1 : 0]->shape;
          add_fault_once(input_error(where_, fmt::format("its shape is {}, but the others of its stack have {}",
                                                         describe(parts[*odd]->shape), describe(others))),
                         names[*odd]);
          continue;
        }
      }
      BOOST_OUTCOME_TRY(ExpressionRef values, together(output, std::move(parts)));
      BOOST_OUTCOME_TRY(values, apply_steps(output.steps, std::move(values), facts_, match.numbers.layer));
      add(active, output, match, std::move(values), whole);
    }
    groups.erase(key);
    return ok();
  }

  // Returns the error for a part of an expert beyond the last.
  Error beyond_count(const ActiveRule& active, const NamePattern::Match& match, const NamedTensor& tensor) const {
    Error error = no_rule(tensor);
    for (std::size_t i = 0; i < active.outputs.size(); ++i)
      if (match.numbers.expert && active.outputs[i]->parts[0].match(tensor.name))
        error.detail = fmt::format("'{}' would match, but a layer has {}", active.outputs[i]->parts[0].name().text(),
                                   counted(active.counts[i].in(match.numbers.layer), "expert"));
    return error;
  }

  // Concatenates the extra numbers (`beside`) of the parts of a stack.
  static Status add_beside(NamedTensor& whole, const NamedTensor& part) {
    for (std::size_t i = 0; i < part.beside.size(); ++i) {
      const auto& [ending, numbers] = part.beside[i];
      if (i == whole.beside.size()) {
        whole.beside.emplace_back(ending, numbers);
        continue;
      }
      std::vector<float> all = whole.beside[i].second->values;
      all.insert(all.end(), numbers->values.begin(), numbers->values.end());
      const Shape shape{1, {all.size(), 1, 1, 1}};
      BOOST_OUTCOME_TRY(whole.beside[i].second, expressions::constant(shape, std::move(all)));
    }
    return ok();
  }

  static std::vector<std::string> names_of(const TensorOutput& output, std::uint64_t count,
                                           std::optional<std::uint32_t> layer, const std::string& suffix) {
    std::vector<std::string> names;
    for (const NamePattern& part : output.parts)
      for (std::uint64_t i = 0; i < (part.name().has_expert() ? count : 1); ++i)
        if (auto name = part.name().with({layer, static_cast<std::uint32_t>(i)})) names.push_back(*name + suffix);
    return names;
  }

  Status name_parts(const ActiveRule& active, std::optional<std::uint32_t> layer, const std::string& suffix,
                    Group& group) const {
    std::set<std::string> all;
    for (std::size_t i = 0; i < active.outputs.size(); ++i) {
      const std::uint64_t count = active.counts[i].in(layer);
      if (count > tensors_)
        return input_error((facts_.folder() / "config.json").string(),
                           fmt::format("the number of experts is {}, but the checkpoint has only {}", count,
                                       counted(tensors_, "tensor")),
                           fmt::format("the map reads the number of experts at {}", active.outputs[i]->count->place));
      for (std::string& name : names_of(*active.outputs[i], count, layer, suffix)) all.insert(std::move(name));
    }
    group.needed.assign(all.begin(), all.end());
    return ok();
  }

  // Returns the index of the first whose shape is not that of most.
  static std::optional<std::size_t> odd_shape(const std::vector<ExpressionRef>& parts) {
    const auto is_first = [&](const ExpressionRef& part) { return part->shape == parts[0]->shape; };
    const auto like_first = std::ranges::count_if(parts, is_first);
    if (like_first == std::ssize(parts)) return {};
    if (2 * like_first < std::ssize(parts)) return 0;
    return static_cast<std::size_t>(std::ranges::find_if_not(parts, is_first) - parts.begin());
  }

  static Result<ExpressionRef> together(const TensorOutput& output, std::vector<ExpressionRef> parts) {
    if (output.gather == Gather::kRepack) {
      // Both as rows of bytes, with whole blocks.
      for (std::size_t i = 0; i < 2; ++i) {
        BOOST_OUTCOME_TRY(parts[i], as_bytes(parts[i], i == 0));
      }
      return expressions::repack(*output.repack, std::move(parts[0]), std::move(parts[1]));
    }
    const bool alike =
        std::ranges::all_of(parts, [&](const ExpressionRef& each) { return each->type == parts[0]->type; });
    if (!alike)
      for (ExpressionRef& each : parts) {
        BOOST_OUTCOME_TRY(each, to_type(std::move(each), "F32"));
      }
    if (output.gather == Gather::kStack) return expressions::stack(std::move(parts));
    const std::uint32_t last = parts[0]->shape.rank - 1;
    return expressions::concat(std::move(parts), last);
  }

  // Reinterprets a tensor of bytes as I8. If `blocks_apart` is set, blocks that have their own dimension ({16, blocks,
  // ...}) are merged into the rows.
  static Result<ExpressionRef> as_bytes(const ExpressionRef& input, bool blocks_apart) {
    const Extent* extent = input->as_extent();
    if (!extent || input->type->block_bytes != 1)
      return input_error(
          "", fmt::format("{} of {} is not a tensor of packed bytes", describe(input->shape), input->type->name));
    Shape shape = input->shape;
    if (blocks_apart && shape.rank > 2) {
      shape.dims[0] *= shape.dims[1];
      for (std::uint32_t d = 1; d + 1 < shape.rank; ++d) shape.dims[d] = shape.dims[d + 1];
      shape.dims[--shape.rank] = 1;
    }
    return expressions::extent(type_named("I8"), shape, *extent);
  }

  void report_missing() {
    for (const ActiveRule& active : rules_.all()) {
      for (const auto& [key, group] : seen_of(active).groups) report_group(active, key.first, key.second, group);
      if (active.rule->required && !active.rule->from.empty()) report_required(active);
      if (!active.required_in.empty()) report_required_in(active);
    }
  }

  // Reports the missing parts of tensors that are written together. As an error, only the first.
  void report_group(const ActiveRule& active, std::uint32_t layer, const std::string& suffix, const Group& group) {
    const auto part_of = [&](const std::string& name) -> std::optional<NamePattern::Match> {
      for (const TensorOutput* output : active.outputs)
        for (const NamePattern& part : output->parts)
          if (auto match = part.match(name)) return match;
      return {};
    };
    std::vector<std::string> makes;
    for (const TensorOutput* output : active.outputs)
      if (const auto name = output->name.with({layer, 0})) makes.push_back(*name + suffix);
    for (const std::string& name : group.needed) {
      if (group.parts.contains(name)) continue;
      if (missing_) {
        const auto match = part_of(name);
        missing_->push_back({name, match ? match->numbers.layer : std::optional<std::uint32_t>(layer), makes});
        continue;
      }
      if (faults_.errors().size() == kMaxFaults) return;
      add_fault(input_error(where_, fmt::format("'{}' is missing", name),
                            fmt::format("only {} of the {} tensors written together in layer {} exist",
                                        group.parts.size(), group.needed.size(), layer)),
                "");
      return;
    }
  }

  void add_missing(const ActiveRule& active, const std::string& name, std::optional<std::uint32_t> layer) {
    MissingPart part{name, layer, {}};
    for (const TensorOutput* output : active.outputs)
      if (auto made = output->name.with({layer, {}}))
        for (const std::string_view ending : {"", ".weight"}) part.makes.push_back(*made + std::string(ending));
    missing_->push_back(std::move(part));
  }

  // Reports an error, only for the first layer.
  void report_required(const ActiveRule& active) {
    const NamePattern& from = active.rule->from.front();
    const auto fault = [&](const std::string& name) {
      if (faults_.errors().size() < kMaxFaults)
        add_fault(
            input_error(
                where_, fmt::format("tensor '{}' is missing", name),
                fmt::format("architecture '{}' requires it, see {}; check whether a file of the weights is missing",
                            architecture_.file, active.rule->place)),
            "");
    };
    if (!from.name().has_layer()) {
      if (seen_of(active).met) return;
      if (!missing_) return fault(from.name().text());
      return add_missing(active, from.name().text(), {});
    }
    const std::uint64_t last =
        std::min(rules_.layers(), tensors_ + kMaxMissingLayers);  // enough to say that most are missing
    for (std::uint32_t layer = 0; layer < last; ++layer) {
      if (seen_of(active).layers.contains(layer)) continue;
      const std::string name = from.name().with({layer, {}}).value_or(from.name().text());
      if (!missing_) return fault(name);
      add_missing(active, name, layer);
    }
  }

  // Reports the first layer that does not have the tensor but must, or has it but must not.
  void report_required_in(const ActiveRule& active) {
    const NameTemplate& from = active.rule->from.front().name();
    for (std::uint32_t layer = 0; layer < rules_.layers(); ++layer) {
      const bool is_there = seen_of(active).layers.contains(layer);
      if (is_there == (layer < active.required_in.size() && active.required_in[layer])) continue;
      if (missing_ && !is_there)
        add_missing(active, from.with({layer, {}}).value_or(from.text()), layer);
      else if (faults_.errors().size() < kMaxFaults)
        add_fault(
            input_error(where_,
                        fmt::format("tensor '{}' {}", from.with({layer, {}}).value_or(from.text()),
                                    is_there ? "exists, but config.json says that its layer has none" : "is missing"),
                        fmt::format("config.json says which layers have it, see {}", active.rule->place)),
            "");
      return;
    }
  }

  const Architecture& architecture_;
  const Facts& facts_;
  std::string where_;
  std::vector<MissingPart>* missing_;  // null: missing tensors are errors
  const std::vector<NamedTensor>* all_ = nullptr;
  std::uint64_t tensors_ = 0;
  ActiveRules rules_;
  std::vector<Seen> seen_;  // by rule
  std::unordered_set<std::string> names_;
  std::vector<MappedTensor> first_, computed_, early_, late_, last_;
  std::map<std::pair<std::ptrdiff_t, std::uint32_t>, std::vector<MappedTensor>> by_layer_;  // by rule and layer
  Diagnostics faults_;
  std::map<std::string, std::size_t> repeats_;                    // tensors by their error
  std::vector<std::pair<Error, std::string>> first_of_repeated_;  // an error, and the first tensor that has it
};

}  // namespace

Result<std::vector<MappedTensor>> map_tensors(const Architecture& architecture, const Facts& facts,
                                              const std::vector<NamedTensor>& tensors, const std::string& where,
                                              std::vector<MissingPart>* missing) {
  return TensorMapper(architecture, facts, where, missing).map(tensors);
}

Result<std::vector<MissingPart>> parts_of(const Architecture& architecture, const Facts& facts,
                                          const std::vector<std::string>& present,
                                          const std::vector<std::string>& gguf_names) {
  struct Source {
    const NameTemplate* made;
    std::vector<const NamePattern*> from;
  };
  std::vector<Source> sources;
  for (const CheckpointRule& rule : architecture.tensors) {
    BOOST_OUTCOME_TRY(const bool holds, facts.holds(rule.when));
    if (!holds) continue;
    for (const TensorOutput& output : rule.outputs) {
      BOOST_OUTCOME_TRY(const bool wanted, facts.holds(output.when));
      if (!wanted) continue;
      Source& source = sources.emplace_back(Source{&output.name, {}});
      for (const auto* patterns : {&rule.from, &output.parts})
        for (const NamePattern& pattern : *patterns) source.from.push_back(&pattern);
    }
  }
  // Names of the same module share a prefix, without numbers.
  const auto shared = [](std::string_view a, std::string_view b) {
    const auto place = std::ranges::mismatch(a, b).in1;
    return static_cast<std::size_t>(place - a.begin());
  };
  std::vector<MissingPart> parts;
  for (const std::string& name : gguf_names) {
    MissingPart best{name, {}, {name}};
    bool is_known = false;
    std::size_t most = 0;
    for (const Source& source : sources) {
      std::string ending;
      auto numbers = source.made->match(name);
      for (const std::string_view each : {".weight", ".bias"})
        if (!numbers && name.ends_with(each)) {
          ending = each;
          numbers = source.made->match(name.substr(0, name.size() - each.size()));
        }
      if (!numbers) continue;
      for (const NamePattern* pattern : source.from) {
        const auto from = pattern->name().with({numbers->layer, 0});
        if (!from) continue;
        const std::string whole = *from + ending;
        if (!pattern->match(whole)) continue;
        std::size_t like = 0;
        bool matches = false;
        for (const std::string& other : present) {
          like = std::max(like, shared(whole, other));
          matches = matches || pattern->match(other).has_value();
        }
        if (best.name != name && (is_known > matches || (is_known == matches && most >= like))) continue;
        best = {whole, numbers->layer, {name}};
        is_known = matches;
        most = like;
      }
    }
    parts.push_back(std::move(best));
  }
  return parts;
}

}  // namespace ggufmill::huggingface
