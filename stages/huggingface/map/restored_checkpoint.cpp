#include "stages/huggingface/map/restored_checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <map>
#include <set>
#include <unordered_map>

#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "stages/huggingface/checkpoint/json_values.h"
#include "stages/huggingface/checkpoint/named_tensor.h"
#include "stages/huggingface/map/added_maps.h"
#include "stages/huggingface/map/architecture.h"
#include "stages/huggingface/map/metadata_rules.h"
#include "stages/huggingface/map/model_type.h"
#include "stages/huggingface/map/restored_config.h"
#include "stages/huggingface/map/tensor_map.h"
#include "stages/huggingface/map/tensor_steps.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

// Returns the shapes that a checkpoint's tensor may have had, given the shapes `made` of the tensors made of it,
// likely ones first. The map specifies only how a shape changes, not the original shape, so each candidate is tried.
std::vector<Shape> possible_shapes(const std::vector<Shape>& made) {
  std::vector<Shape> shapes;
  if (made.size() == 1) shapes.push_back(made[0]);
  std::uint64_t elements = 0;
  std::set<std::uint64_t> dims{1};
  for (const Shape& shape : made) {
    if (__builtin_add_overflow(elements, shape.elements(), &elements)) return shapes;
    for (std::uint32_t d = 0; d < shape.rank; ++d)
      if (shape.dims[d] != 0) dims.insert(shape.dims[d]);
  }
  if (made[0].rank == 1) shapes.push_back({1, {elements, 1, 1, 1}});
  for (const std::uint64_t a : dims) {
    if (elements % a != 0) continue;
    shapes.push_back({2, {a, elements / a, 1, 1}});
    shapes.push_back({2, {elements / a, a, 1, 1}});
  }
  for (const std::uint64_t a : dims)
    for (const std::uint64_t b : dims) {
      if (elements % a != 0 || elements / a % b != 0) continue;
      const std::uint64_t c = elements / a / b;
      shapes.push_back({3, {a, c, b, 1}});
      shapes.push_back({3, {c, a, b, 1}});
      shapes.push_back({3, {a, b, c, 1}});
    }
  if (made[0].rank > 1) shapes.push_back({1, {elements, 1, 1, 1}});
  return shapes;
}

class Restorer {
 public:
  Restorer(Model model, CheckpointOrigin origin) : model_(std::move(model)), origin_(std::move(origin)) {}

  Result<Model> run() {
    BOOST_OUTCOME_TRY(read_map());
    BOOST_OUTCOME_TRY(choose_rules());
    for (const Tensor& tensor : model_.tensors) tensors_.emplace(tensor.name, &tensor);
    for (const Tensor& tensor : model_.tensors)
      if (!done_.contains(tensor.name) && !is_computed(tensor.name)) restore(tensor);
    if (!faults_.empty()) return together();
    if (Status status = restore_names(architecture_, *facts_, restored_); !status)
      return error_at(origin_.asked, status.error().what, status.error().help);
    model_.tensors = std::move(restored_);
    return std::move(model_);
  }

 private:
  struct ActiveOutput {
    const TensorOutput* output;
    NamePattern name;
    CountByLayer count;  // number of stacked tensors
  };
  struct ActiveRule {
    const CheckpointRule* rule;
    std::vector<ActiveOutput> outputs;
  };

  // Uses config.json with the class defaults; if that fails, uses it unchanged, for a model that was converted
  // without them.
  Status read_map() {
    if (origin_.config.empty()) return make_config();
    BOOST_OUTCOME_TRY(const json::value config, read_checkpoint_json(origin_.config));
    if (!config.is_object()) return input_error(origin_.config, "is not a JSON object");
    const fs::path path = origin_.config;
    if (path.filename() != "config.json") return use(config.get_object(), path.parent_path());
    BOOST_OUTCOME_TRY(const CompletedConfig full, with_class_defaults(path.parent_path(), config.get_object()));
    const Status used = use(full.config, path.parent_path());
    if (used || use(config.get_object(), path.parent_path())) return ok();
    return used;
  }

  // Makes config.json of a model that comes without one.
  Status make_config() {
    BOOST_OUTCOME_TRY(const AddedMaps added, AddedMaps::read(map_places(origin_.maps)));
    // A checkpoint without further files: nothing can be below a file.
    const fs::path folder = model_.files.empty() ? "" : model_.files.front()->path;
    auto made = restored_config(model_, folder, added);
    if (!made)
      return error_at(origin_.asked,
                      fmt::format("names: huggingface needs `config`: config.json cannot be made from the model's "
                                  "metadata: {}",
                                  made.error().what),
                      "give the checkpoint's config.json or its folder: config: models/Llama-3-8B");
    if (!origin_.architecture.empty() && origin_.architecture != made.value().map)
      return error_at(
          origin_.asked,
          fmt::format("architecture: {} needs `config`: without it, config.json is made by the map {} of the "
                      "model's metadata",
                      origin_.architecture, quoted_name(made.value().map)),
          "omit `architecture`, or give the checkpoint's config.json or its folder: config: "
          "models/Llama-3-8B");
    origin_.architecture = made.value().map;
    BOOST_OUTCOME_TRY(const CompletedConfig full, with_class_defaults(folder, made.value().config));
    BOOST_OUTCOME_TRY(use(full.config, folder));
    std::string lines;
    for (const auto& member : made.value().config)
      lines += fmt::format("{}  {}: {}", lines.empty() ? "" : ",\n", json::serialize(json::string(member.key())),
                           json::serialize(member.value()));
    model_.notes.set(notes::kRestoredConfig, "{\n" + lines + "\n}\n");
    return ok();
  }

  Status use(const json::object& config, const fs::path& folder) {
    BOOST_OUTCOME_TRY(const AddedMaps added, AddedMaps::read(map_places(origin_.maps)));
    BOOST_OUTCOME_TRY(std::string own_class, class_to_convert(config, added));
    const fs::path path = origin_.config;
    if (origin_.architecture.empty()) {
      BOOST_OUTCOME_TRY(auto marked, marked_folder(path.parent_path(), added, path.filename().string()));
      if (marked) own_class = std::move(marked->checkpoint_class);
    }
    const auto found = !origin_.architecture.empty() ? named_architecture(origin_.architecture, origin_.asked, added)
                       : !own_class.empty() ? find_architecture(own_class, origin_.config, ModelPart::kText, added)
                                            : find_architecture_without_class(path.parent_path(),
                                                                              path.filename().string(), config, added);
    if (!found) return found.error();
    architecture_ = found.value();
    facts_.emplace(folder, config, architecture_.values);
    facts_->set(
        "option",
        json::object{{"draft_head", true}, {"draft_head_only", false}, {"dense_modules", false}, {"class", own_class}});
    BOOST_OUTCOME_TRY(choose_name(architecture_, *facts_));
    const MetadataValue* name = model_.metadata.find("general.architecture");
    if (name && as_string(*name) != architecture_.name)
      return input_error(
          origin_.config,
          fmt::format("is for architecture '{}', but the model to write has {}", architecture_.name, describe(*name)),
          "use the config.json of the checkpoint that the model was converted from");
    if (const MetadataValue* tokens = model_.metadata.find("tokenizer.ggml.tokens"))
      if (const auto list = as_array(*tokens)) facts_->set("tokenizer_entries", list->count);
    // Values in config.json determine the order of the heads' rows, so they must agree with the model's metadata.
    if (const std::string wrong = contradiction(); !wrong.empty())
      return input_error(origin_.config, wrong,
                         "use the config.json of the checkpoint that the model was converted from");
    return ok();
  }

  // Returns an empty string if there is no contradiction.
  std::string contradiction() const {
    for (const std::string_view key : {"embedding_length", "attention.head_count", "attention.head_count_kv"}) {
      const MetadataValue* own = model_.metadata.find(fmt::format("{}.{}", architecture_.name, key));
      const auto number = own ? as_unsigned(*own) : std::nullopt;
      if (!number) continue;
      std::optional<json::value> said;  // from the last rule for the key; nullopt: cannot be determined
      for (const MetadataRule& rule : architecture_.metadata) {
        if (rule.key != key) continue;
        const auto holds = facts_->holds(rule.when);
        const auto value = facts_->evaluate(rule.value);
        if (!holds || !value) return "";
        if (holds.value()) said = value.value();
      }
      const auto said_number = said ? whole_number(*said) : std::nullopt;
      if (said && !(said_number && *said_number >= 0 && static_cast<std::uint64_t>(*said_number) == *number))
        return fmt::format("{} is {} in it, but {} in the model", key, said->is_null() ? "missing" : shown(*said),
                           *number);
    }
    return "";
  }

  Status choose_rules() {
    for (const CheckpointRule& rule : architecture_.tensors) {
      BOOST_OUTCOME_TRY(const bool holds, facts_->holds(rule.when));
      if (!holds) continue;
      ActiveRule active{&rule, {}};
      for (const TensorOutput& output : rule.outputs) {
        BOOST_OUTCOME_TRY(const bool wanted, facts_->holds(output.when));
        if (!wanted) continue;
        ActiveOutput& one = active.outputs.emplace_back();
        one.output = &output;
        BOOST_OUTCOME_TRY(one.name, NamePattern::parse(output.name.text()));
        if (output.count) {
          BOOST_OUTCOME_TRY(one.count, facts_->count_by_layer(*output.count, "the number of experts"));
        }
      }
      rules_.push_back(std::move(active));
    }
    return ok();
  }

  bool is_computed(const std::string& name) const {
    return std::ranges::count(architecture_.computed, name, &ComputedRule::name) > 0;
  }

  // Applies the first rule that makes the tensor and can be inverted.
  void restore(const Tensor& tensor) {
    std::optional<Error> fault;
    for (const ActiveRule& active : rules_)
      for (const ActiveOutput& output : active.outputs) {
        const auto match = output.name.match(tensor.name);
        if (!match) continue;
        Status status = undo(active, *match);
        if (status) return;
        if (!fault) {
          fault = std::move(status).error();
          if (fault->detail.empty()) fault->detail = fmt::format("see the rule at {}", active.rule->place);
        }
        break;
      }
    if (!fault) fault = usage_error(fmt::format("no rule in architecture '{}' creates it", architecture_.file));
    Fault& known = faults_[fault->what + fault->detail];
    if (known.tensors++ == 0) known.first = tensor.name, known.error = std::move(*fault);
  }

  Status undo(const ActiveRule& active, const NamePattern::Match& match) {
    std::vector<const Tensor*> made;
    for (const ActiveOutput& output : active.outputs) {
      std::string name = output.output->name.with(match.numbers).value_or(output.output->name.text());
      if (!name.ends_with(".weight") && !name.ends_with(".bias")) name += match.suffix;
      const auto found = tensors_.find(name);
      if (found == tensors_.end() || done_.contains(found->first))
        return usage_error(fmt::format("{}, which is made from the same tensor, is missing", quoted_name(name)));
      made.push_back(found->second);
    }
    std::vector<Tensor> restored;
    if (active.rule->from.empty()) {
      for (std::size_t i = 0; i < made.size(); ++i) {
        BOOST_OUTCOME_TRY(take_apart(active, active.outputs[i], *made[i], match, restored));
      }
    } else {
      BOOST_OUTCOME_TRY(put_together(active, made, match, restored));
    }
    for (const Tensor* tensor : made) done_.insert(tensor->name);
    std::ranges::move(restored, std::back_inserter(restored_));
    return ok();
  }

  // Returns true if the rule is the one that applies to a checkpoint tensor with this name.
  bool is_first(const ActiveRule& active, const std::string& name) const {
    for (const ActiveRule& other : rules_) {
      const auto fits = [&](const NamePattern& pattern) { return pattern.match(name).has_value(); };
      const bool takes = other.rule->from.empty()
                             ? std::ranges::any_of(other.outputs,
                                                   [&](const ActiveOutput& output) {
                                                     return std::ranges::any_of(output.output->parts, fits);
                                                   })
                             : std::ranges::any_of(other.rule->from, fits);
      if (takes) return &other == &active;
    }
    return false;
  }

  Result<Tensor> named(const ActiveRule& active, const NamePattern& pattern, const NameNumbers& numbers,
                       const std::string& suffix, ExpressionRef values, const Tensor& made) const {
    const auto name = pattern.name().with(numbers);
    if (!name)
      return usage_error(
          fmt::format("'{}' has a number that the tensor's name does not determine", pattern.name().text()));
    Tensor tensor = made;
    tensor.name = *name + suffix;
    tensor.expression = std::move(values);
    if (!is_first(active, tensor.name))
      return usage_error(fmt::format("another rule applies to {}", quoted_name(tensor.name)));
    return tensor;
  }

  // Appends the one tensor that the rule made these of.
  Status put_together(const ActiveRule& active, const std::vector<const Tensor*>& made, const NamePattern::Match& match,
                      std::vector<Tensor>& into) const {
    std::vector<const std::vector<TensorStep>*> steps;
    std::vector<const Tensor*> sources;
    for (std::size_t i = 0; i < made.size(); ++i) {
      const std::vector<TensorStep>& own = active.outputs[i].output->steps;
      if (!own.empty() && own[0].operation && own[0].operation->name == "fill") continue;  // made of numbers alone
      steps.push_back(&own);
      sources.push_back(made[i]);
    }
    if (sources.empty()) return usage_error("its values are not used");
    BOOST_OUTCOME_TRY(ExpressionRef values, values_before(steps, sources, match.numbers.layer));
    BOOST_OUTCOME_TRY(Tensor tensor, named(active, active.rule->from.front(), match.numbers, match.suffix,
                                           std::move(values), *sources[0]));
    for (const Tensor* other : sources)
      if (other->type != sources[0]->type) tensor.type = &type_named("F32");
    into.push_back(std::move(tensor));
    return ok();
  }

  // Appends the tensors that the output was stacked from.
  Status take_apart(const ActiveRule& active, const ActiveOutput& output, const Tensor& made,
                    const NamePattern::Match& match, std::vector<Tensor>& into) const {
    if (output.output->gather != Gather::kStack)
      return usage_error(output.output->gather == Gather::kRepack
                             ? "its blocks were packed differently in the checkpoint"
                             : "several tensors were joined, and the number of rows of each is not known");
    if (!output.output->part_steps.empty()) return usage_error("the tensors were changed before they were stacked");
    const std::uint64_t count = output.count.in(match.numbers.layer);
    BOOST_OUTCOME_TRY(ExpressionRef all, values_before({&output.output->steps}, {&made}, match.numbers.layer));
    Shape shape = all->shape;
    const std::uint32_t last = shape.rank - 1;
    if (count != 1 || shape.dims[last] == 1) {  // for a stack of one, a GGUF file may omit the dimension
      if (shape.rank < 2 || shape.dims[last] != count)
        return usage_error(fmt::format("{} is not a stack of {}", describe(shape), count));
      shape.dims[last] = 1;
      --shape.rank;
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      ExpressionRef one = all;
      if (all->shape.rank != shape.rank) {
        BOOST_OUTCOME_TRY(one, expressions::slice(std::move(one), last, i, 1));
        BOOST_OUTCOME_TRY(one, expressions::reshape(std::move(one), shape));
      }
      BOOST_OUTCOME_TRY(into.emplace_back(), named(active, output.output->parts.front(),
                                                   {match.numbers.layer, static_cast<std::uint32_t>(i)}, match.suffix,
                                                   std::move(one), made));
    }
    return ok();
  }

  // Returns the values before the steps were applied; each list of steps produced one tensor of `made`.
  Result<ExpressionRef> values_before(const std::vector<const std::vector<TensorStep>*>& steps,
                                      const std::vector<const Tensor*>& made,
                                      std::optional<std::uint32_t> layer) const {
    if (made.size() == 1 && steps[0]->empty()) return made[0]->expression;
    std::vector<ExpressionRef> values;
    std::vector<Shape> shapes;
    for (const Tensor* tensor : made) {
      values.push_back(tensor->expression);
      shapes.push_back(tensor->shape());
    }
    const bool alike = std::ranges::all_of(values, [&](const ExpressionRef& each) {
      return each->type == values[0]->type && !each->type->is_quantized();
    });
    if (!alike)
      for (ExpressionRef& each : values) {
        BOOST_OUTCOME_TRY(each, to_type(std::move(each), "F32"));
      }
    std::optional<Error> fault;
    for (const Shape& shape : possible_shapes(shapes)) {
      Result<ExpressionRef> found = values_of_shape(shape, steps, values, layer);
      if (found) return found;
      if (!fault) fault = std::move(found).error();
    }
    return *fault;
  }

  Result<ExpressionRef> values_of_shape(const Shape& shape, const std::vector<const std::vector<TensorStep>*>& steps,
                                        const std::vector<ExpressionRef>& values,
                                        std::optional<std::uint32_t> layer) const {
    BOOST_OUTCOME_TRY(const ExpressionRef unknown, unknown_tensor(shape));
    std::vector<KnownValues> known;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      BOOST_OUTCOME_TRY(ExpressionRef made, apply_steps(*steps[i], unknown, *facts_, layer));
      if (without_trailing_ones(made->shape) != without_trailing_ones(values[i]->shape))
        return usage_error(fmt::format("cannot determine what the map turned into {}: parts may have been dropped",
                                       describe(values[i]->shape)));
      known.push_back({std::move(made), values[i]});
    }
    return find_values(unknown, known);
  }

  Error together() const {
    Diagnostics errors;
    for (const auto& [key, fault] : faults_) {
      Error error = error_at(
          origin_.asked,
          fmt::format("tensor {}{} cannot be restored: {}", quoted_name(fault.first),
                      fault.tensors == 1 ? "" : fmt::format(" (and {} more)", fault.tensors - 1), fault.error.what),
          "use `names: gguf` to write the tensors as they are");
      error.detail += (error.detail.empty() ? "" : "\n") + fault.error.detail;
      errors.add(std::move(error));
    }
    return errors.together();
  }

  struct Fault {
    std::string first;
    std::size_t tensors = 0;
    Error error;
  };

  Model model_;
  CheckpointOrigin origin_;
  Architecture architecture_;
  std::optional<Facts> facts_;
  std::vector<ActiveRule> rules_;
  std::unordered_map<std::string_view, const Tensor*> tensors_;
  std::set<std::string_view> done_;
  std::vector<Tensor> restored_;
  std::map<std::string, Fault> faults_;  // by message
};

}  // namespace

Result<Model> restore_checkpoint(Model model, const CheckpointOrigin& origin) {
  return Restorer(std::move(model), origin).run();
}

}  // namespace ggufmill::huggingface
