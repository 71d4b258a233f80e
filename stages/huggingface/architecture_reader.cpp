// Converts a map file that has passed the lint to an Architecture.

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/text.h"
#include "stages/huggingface/architecture.h"

namespace ggufmill::huggingface {
namespace {

// Reads one file into an architecture that already contains the maps it extends.
class Reader {
 public:
  Reader(const ConfigNode& root, Architecture& into) : root_(root), into_(into) {}

  Status read() {
    BOOST_OUTCOME_TRY(read_plain());
    BOOST_OUTCOME_TRY(read_values());
    BOOST_OUTCOME_TRY(read_metadata("metadata_of_tensors", into_.metadata_of_tensors));
    std::vector<MetadataRule> first;
    BOOST_OUTCOME_TRY(read_metadata("metadata_first", first));
    into_.metadata.insert(into_.metadata.begin(), first.begin(), first.end());
    BOOST_OUTCOME_TRY(read_metadata("metadata", into_.metadata));
    BOOST_OUTCOME_TRY(read_metadata("metadata_before_tokenizer", into_.metadata_before_tokenizer));
    BOOST_OUTCOME_TRY(read_metadata("metadata_after_tokenizer", into_.metadata_after_tokenizer));
    BOOST_OUTCOME_TRY(std::vector<NameRule> names, read_names("names"));
    into_.names.insert(into_.names.begin(), names.begin(), names.end());
    BOOST_OUTCOME_TRY(names, read_names("names_back"));  // inverse rules go in reverse order
    into_.names_back.insert(into_.names_back.end(), names.begin(), names.end());
    BOOST_OUTCOME_TRY(read_tensors());
    BOOST_OUTCOME_TRY(read_computed());
    BOOST_OUTCOME_TRY(read_types());
    if (const ConfigNode* node = root_.find("tokenizer")) return read_tokenizer_rules(*node);
    return ok();
  }

 private:
  Status read_plain() {
    if (const ConfigNode* node = root_.find("name")) into_.name = node->scalar;
    into_.other_names.clear();
    if (const ConfigNode* node = root_.find("other_names"))
      for (const ConfigNode& item : node->items) {
        OtherName& other = into_.other_names.emplace_back();
        other.name = item.find("name")->scalar;
        BOOST_OUTCOME_TRY(other.when, read_value_rule(*item.find("when")));
      }
    if (const ConfigNode* node = root_.find("description")) into_.description = node->scalar;
    read_texts("serves", into_.serves);
    read_texts("serves_whole", into_.serves_whole);
    into_.serves_when.reset();
    BOOST_OUTCOME_TRY(read_rule(root_, "serves_when", into_.serves_when));
    if (const ConfigNode* node = root_.find("config")) into_.config = node->scalar;
    if (const ConfigNode* node = root_.find("weights")) into_.weights = node->scalar;
    into_.partial = false;
    if (const ConfigNode* node = root_.find("partial")) {
      BOOST_OUTCOME_TRY(into_.partial, to_bool(*node));
    }
    if (const ConfigNode* node = root_.find("draft_head")) {
      BOOST_OUTCOME_TRY(into_.draft_head, to_bool(*node));
    }
    if (const ConfigNode* node = root_.find("further_weights"))
      for (const ConfigNode& item : node->items) into_.further_weights.push_back(item.scalar);
    if (const ConfigNode* node = root_.find("refuses"))
      for (const ConfigNode& item : node->items) {
        Refusal& refusal = into_.refuses.emplace_back();
        BOOST_OUTCOME_TRY(refusal.when, read_value_rule(*item.find("when")));
        refusal.what = item.find("what")->scalar;
        if (const ConfigNode* help = item.find("help")) refusal.help = help->scalar;
      }
    BOOST_OUTCOME_TRY(read_flag(root_, "fused_experts", into_.fused_experts));
    if (const ConfigNode* node = root_.find("layers")) {
      BOOST_OUTCOME_TRY(into_.layers, read_value_rule(*node));
    }
    return ok();
  }

  void read_texts(std::string_view name, std::vector<std::string>& into) const {
    into.clear();
    if (const ConfigNode* node = root_.find(name))
      for (const ConfigNode& item : node->items) into.push_back(item.scalar);
  }

  Status read_values() {
    if (const ConfigNode* node = root_.find("values"))
      for (const ConfigNode::Entry& entry : node->entries) {
        BOOST_OUTCOME_TRY(into_.values[entry.key], read_value_rule(entry.value));
      }
    return ok();
  }

  static Status read_flag(const ConfigNode& node, std::string_view name, bool& into) {
    if (const ConfigNode* value = node.find(name)) {
      BOOST_OUTCOME_TRY(into, to_bool(*value));
    }
    return ok();
  }

  static Status read_rule(const ConfigNode& node, std::string_view name, std::optional<ValueRule>& into) {
    if (const ConfigNode* value = node.find(name)) {
      BOOST_OUTCOME_TRY(into, read_value_rule(*value));
    }
    return ok();
  }

  Status read_metadata(std::string_view name, std::vector<MetadataRule>& into) {
    const ConfigNode* list = root_.find(name);
    if (!list) return ok();
    for (const ConfigNode& node : list->items) {
      MetadataRule rule;
      rule.key = node.find("key")->scalar;
      if (const ConfigNode* type = node.find("type")) rule.type = *metadata_type_named(type->scalar);
      BOOST_OUTCOME_TRY(rule.value, read_value_rule(*node.find("value")));
      BOOST_OUTCOME_TRY(read_flag(node, "optional", rule.optional));
      BOOST_OUTCOME_TRY(read_rule(node, "when", rule.when));
      into.push_back(std::move(rule));
    }
    return ok();
  }

  Result<std::vector<NameRule>> read_names(std::string_view name) const {
    const ConfigNode* list = root_.find(name);
    std::vector<NameRule> own;
    if (!list) return own;
    for (const ConfigNode& node : list->items) {
      NameRule rule;
      const ConfigNode *match = node.find("match"), *drop = node.find("drop"), *with = node.find("with");
      if ((match != nullptr) == (drop != nullptr) || (match != nullptr) != (with != nullptr))
        return error_at(node, "expected `match` and `with`, or `drop`");
      BOOST_OUTCOME_TRY(rule.match, to_pattern(match ? *match : *drop));
      if (with) rule.with = with->scalar;
      rule.below = !with && node.find("before_layer");
      rule.minus = with && node.find("minus");
      BOOST_OUTCOME_TRY(read_rule(node,
                                  with         ? (rule.minus ? "minus" : "plus")
                                  : rule.below ? "before_layer"
                                               : "from_layer",
                                  rule.number));
      BOOST_OUTCOME_TRY(read_rule(node, "when", rule.when));
      own.push_back(std::move(rule));
    }
    return own;
  }

  template <class Function>
  static Result<const Function*> function_at(const ConfigNode& node, const std::string& name,
                                             std::span<const Function> known) {
    const auto found = std::ranges::find(known, name, &Function::name);
    if (found != known.end()) return &*found;
    std::vector<std::string> words;
    for (const Function& each : known) words.emplace_back(each.name);
    const std::string meant = did_you_mean(name, words);
    return error_at(
        node, fmt::format("unknown operation '{}'", name),
        meant.empty() ? "`ggufmill architectures --functions` lists them" : fmt::format("did you mean '{}'?", meant));
  }

  // Reads a list of arguments, or a single argument without a list. If the function takes exactly one argument, a list
  // of several items is that argument.
  static Result<std::vector<ValueRule>> read_arguments(const ConfigNode& node, std::string_view name, std::size_t least,
                                                       std::size_t most) {
    std::vector<ValueRule> arguments;
    if (node.is_list() && most == 1 && node.items.size() > 1) {
      BOOST_OUTCOME_TRY(arguments.emplace_back(), read_list(node));
    } else if (node.is_list()) {
      for (const ConfigNode& item : node.items) {
        BOOST_OUTCOME_TRY(arguments.emplace_back(), item.is_list() ? read_list(item) : read_value_rule(item));
      }
    } else {
      BOOST_OUTCOME_TRY(arguments.emplace_back(), read_value_rule(node));
    }
    if (arguments.size() < least || arguments.size() > most)
      return error_at(node, fmt::format("{} takes {} arguments, not {}", name,
                                        least == most ? std::to_string(least) : fmt::format("{} to {}", least, most),
                                        arguments.size()));
    return arguments;
  }

  // Reads [a, b] as one argument: a list of two values.
  static Result<ValueRule> read_list(const ConfigNode& node) {
    ValueRule rule;
    rule.kind = ValueRule::Kind::kCall;
    rule.function = &*std::ranges::find(value_functions(), "list", &ValueFunction::name);
    rule.place = origin_of(node).where;
    for (const ConfigNode& item : node.items) {
      BOOST_OUTCOME_TRY(rule.arguments.emplace_back(), read_value_rule(item));
    }
    return rule;
  }

  static Status read_steps(const ConfigNode& node, std::vector<TensorStep>& into) {
    const ConfigNode* list = node.find("do");
    return list ? read_step_list(*list, into) : Status(ok());
  }

  static Status read_step_list(const ConfigNode& list, std::vector<TensorStep>& into) {
    for (const ConfigNode& item : list.items) {
      TensorStep step;
      step.place = origin_of(item).where;
      if (const ConfigNode* parts = item.is_map() ? item.find("join") : nullptr) {
        for (const ConfigNode& part : parts->items) {
          if (!part.is_list())
            return error_at(part, "expected a list of operations", "for example [{slice: [1, 0, 64]}]");
          BOOST_OUTCOME_TRY(read_step_list(part, step.join.emplace_back()));
        }
        if (step.join.size() < 2) return error_at(item, "`join` takes at least two lists of operations");
        into.push_back(std::move(step));
        continue;
      }
      if (item.is_map() ? item.entries.size() != 1 : !item.is_scalar())
        return error_at(item, "expected an operation, or one with its arguments", "for example {slice: [1, 0, 128]}");
      const std::string& name = item.is_map() ? item.entries[0].key : item.scalar;
      BOOST_OUTCOME_TRY(step.operation, function_at(item, name, tensor_operations()));
      if (item.is_map()) {
        BOOST_OUTCOME_TRY(step.arguments,
                          read_arguments(item.entries[0].value, name, step.operation->least, step.operation->most));
      } else if (step.operation->least > 0) {
        return error_at(item, fmt::format("{} needs arguments", name));
      }
      into.push_back(std::move(step));
    }
    return ok();
  }

  template <class Name>
  static Result<Name> read_name(const ConfigNode& node) {
    auto name = Name::parse(node.scalar);
    if (!name) return error_at(node, name.error().what, name.error().help);
    return std::move(name).value();
  }

  static Status read_name_list(const ConfigNode& node, std::vector<NamePattern>& into) {
    if (node.is_scalar()) {
      BOOST_OUTCOME_TRY(into.emplace_back(), read_name<NamePattern>(node));
    }
    for (const ConfigNode& item : node.items) {
      BOOST_OUTCOME_TRY(into.emplace_back(), read_name<NamePattern>(item));
    }
    return ok();
  }

  static Result<TensorOutput> read_output(const ConfigNode& node) {
    TensorOutput output;
    BOOST_OUTCOME_TRY(output.name, read_name<NameTemplate>(*node.find("to")));
    BOOST_OUTCOME_TRY(read_steps(node, output.steps));
    BOOST_OUTCOME_TRY(read_rule(node, "when", output.when));
    return output;
  }

  static Result<TensorOutput> read_gathered(const ConfigNode& node) {
    BOOST_OUTCOME_TRY(TensorOutput output, read_output(node));
    const ConfigNode *stack = node.find("stack"), *concat = node.find("concat"), *repack = node.find("repack");
    if ((stack != nullptr) + (concat != nullptr) + (repack != nullptr) != 1)
      return error_at(node, "expected one of `stack`, `concat`, and `repack`");
    if (stack) {
      output.gather = Gather::kStack;
      BOOST_OUTCOME_TRY(read_name_list(*stack, output.parts));
      BOOST_OUTCOME_TRY(read_rule(node, "count", output.count));
      if (!output.count || output.parts.empty() || !output.parts[0].name().has_expert())
        return error_at(node, "`stack` needs `count`, and {expert} in its name");
    } else if (concat) {
      output.gather = Gather::kConcat;
      BOOST_OUTCOME_TRY(read_name_list(*concat, output.parts));
      if (output.parts.empty()) return error_at(*concat, "`concat` must name at least one tensor");
    } else {
      output.gather = Gather::kRepack;
      const ConfigNode* of = node.find("of");
      output.repack = find_repack_function(repack->scalar);
      if (!output.repack) return error_at(*repack, fmt::format("unknown repacking '{}'", repack->scalar));
      if (!of || of->items.size() != 2) return error_at(node, "`of` must name the two tensors to repack");
      BOOST_OUTCOME_TRY(read_name_list(*of, output.parts));
    }
    return output;
  }

  static Result<TensorRule> read_tensor(const ConfigNode& node) {
    TensorRule rule;
    rule.place = origin_of(node).where;
    const ConfigNode *from = node.find("from"), *to = node.find("to"), *outputs = node.find("outputs"),
                     *together = node.find("together");
    bool drop = false;
    BOOST_OUTCOME_TRY(read_flag(node, "drop", drop));
    BOOST_OUTCOME_TRY(read_flag(node, "zero", rule.zero));
    if (rule.zero && !drop) return error_at(node, "`zero` requires `drop: true`");
    BOOST_OUTCOME_TRY(read_flag(node, "early", rule.early));
    BOOST_OUTCOME_TRY(read_flag(node, "required", rule.required));
    BOOST_OUTCOME_TRY(read_rule(node, "when", rule.when));
    if ((from != nullptr) == (together != nullptr) ||
        (from && (to != nullptr) + (outputs != nullptr) + static_cast<int>(drop) != 1))
      return error_at(node, "expected `from` with one of `to`, `outputs`, and `drop`, or `together`");
    if (from) {
      BOOST_OUTCOME_TRY(read_name_list(*from, rule.from));
      if (rule.from.empty()) return error_at(*from, "`from` must name at least one tensor");
    }
    if (together && rule.required)
      return error_at(node,
                      "`required` is only for rules with `from`; missing parts are always an error if others exist");
    if (to) {
      BOOST_OUTCOME_TRY(rule.outputs.emplace_back(), read_output(node));
      rule.outputs[0].when.reset();  // `when` applies to the whole rule
    }
    if (outputs)
      for (const ConfigNode& item : outputs->items) {
        BOOST_OUTCOME_TRY(rule.outputs.emplace_back(), read_output(item));
      }
    if (together)
      for (const ConfigNode& item : together->items) {
        BOOST_OUTCOME_TRY(rule.outputs.emplace_back(), read_gathered(item));
      }
    return rule;
  }

  Status read_tensors() {
    const ConfigNode* list = root_.find("tensors");
    if (!list) return ok();
    std::vector<TensorRule> own;
    for (const ConfigNode& node : list->items) {
      BOOST_OUTCOME_TRY(own.emplace_back(), read_tensor(node));
    }
    into_.tensors.insert(into_.tensors.begin(), own.begin(), own.end());
    return ok();
  }

  Status read_computed() {
    const ConfigNode* list = root_.find("computed");
    if (!list) return ok();
    into_.computed.clear();
    for (const ConfigNode& node : list->items) {
      ComputedRule rule;
      rule.name = node.find("to")->scalar;
      rule.place = origin_of(node).where;
      const ConfigNode& function = *node.find("function");
      BOOST_OUTCOME_TRY(rule.function, function_at(function, function.scalar, tensor_functions()));
      BOOST_OUTCOME_TRY(rule.arguments,
                        read_arguments(*node.find("of"), function.scalar, rule.function->least, rule.function->most));
      BOOST_OUTCOME_TRY(read_rule(node, "when", rule.when));
      into_.computed.push_back(std::move(rule));
    }
    return ok();
  }

  Status read_types() {
    const ConfigNode* list = root_.find("types");
    if (!list) return ok();
    std::vector<TypeRule> own;
    for (const ConfigNode& node : list->items) {
      TypeRule rule;
      BOOST_OUTCOME_TRY(rule.match, to_pattern(*node.find("match")));
      if (const std::string& type = node.find("type")->scalar; type != "asked") rule.type = &type_named(type);
      BOOST_OUTCOME_TRY(read_rule(node, "from_layer", rule.from_layer));
      BOOST_OUTCOME_TRY(read_flag(node, "only_ternary", rule.only_ternary));
      own.push_back(std::move(rule));
    }
    into_.types.insert(into_.types.begin(), own.begin(), own.end());
    return ok();
  }

  static Status read_tokens(const ConfigNode* list, std::vector<SpecialTokenData>& into) {
    if (!list) return ok();
    for (const ConfigNode& node : list->items) {
      SpecialTokenData token;
      token.rule.role = node.find("role")->scalar;
      if (const ConfigNode* text = node.find("text")) token.rule.text = text->scalar;
      if (const ConfigNode* id = node.find("id")) {
        BOOST_OUTCOME_TRY(const std::int64_t number, to_integer(*id));
        if (number < 0 || number > INT32_MAX) return error_at(*id, fmt::format("{} is not a token id", number));
        token.rule.id = static_cast<std::uint32_t>(number);
      }
      bool optional = false;
      BOOST_OUTCOME_TRY(read_flag(node, "replaces", token.rule.replaces));
      BOOST_OUTCOME_TRY(read_flag(node, "optional", optional));
      token.rule.must_exist = !optional;
      BOOST_OUTCOME_TRY(read_rule(node, "when", token.when));
      into.push_back(std::move(token));
    }
    return ok();
  }

  Status read_tokenizer_rules(const ConfigNode& node) {
    TokenizerRules rules;
    if (const ConfigNode* readers = node.find("readers"))
      for (const ConfigNode& item : readers->items) {
        TokenizerRules::Reader reader;
        reader.choice.reader = *tokenizer_reader_named(item.find("reader")->scalar);
        if (const ConfigNode* name = item.find("class")) reader.choice.tokenizer_class = name->scalar;
        if (const ConfigNode* prefix = item.find("add_space_prefix")) {
          BOOST_OUTCOME_TRY(reader.choice.add_space_prefix, to_bool(*prefix));
        }
        if (const ConfigNode* model = item.find("model")) reader.choice.model = model->scalar;
        BOOST_OUTCOME_TRY(read_flag(item, "scores", reader.choice.scores));
        BOOST_OUTCOME_TRY(read_flag(item, "own_format", reader.choice.own_format));
        BOOST_OUTCOME_TRY(read_rule(item, "when", reader.when));
        rules.readers.push_back(std::move(reader));
      }
    BOOST_OUTCOME_TRY(read_rule(node, "vocabulary_size", rules.vocabulary_size));
    BOOST_OUTCOME_TRY(read_rule(node, "token_types", rules.token_types));
    if (const ConfigNode* pre = node.find("pre")) rules.pre = pre->scalar;
    BOOST_OUTCOME_TRY(read_rule(node, "space_prefix_of_config", rules.space_prefix_of_config));
    if (const ConfigNode* texts = node.find("user_tokens"))
      for (const ConfigNode& text : texts->items) rules.user_tokens.push_back(text.scalar);
    if (const ConfigNode* texts = node.find("control_tokens"))
      for (const ConfigNode& text : texts->items) rules.control_tokens.push_back(text.scalar);
    BOOST_OUTCOME_TRY(read_tokens(node.find("special_tokens"), rules.special_tokens));
    if (const ConfigNode* text = node.find("chat_template")) rules.chat_template = text->scalar;
    if (const ConfigNode* roles = node.find("second_roles"))
      for (const ConfigNode& role : roles->items) rules.second_roles.push_back(role.scalar);
    BOOST_OUTCOME_TRY(read_tokens(node.find("second_tokens"), rules.second_tokens));
    BOOST_OUTCOME_TRY(read_rule(node, "second_when", rules.second_when));
    into_.tokenizer = std::move(rules);
    return ok();
  }

  const ConfigNode& root_;
  Architecture& into_;
};

}  // namespace

Status read_into(const ConfigNode& root, Architecture& into) { return Reader(root, into).read(); }

}  // namespace ggufmill::huggingface
