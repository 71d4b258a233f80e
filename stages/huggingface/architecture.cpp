#include "stages/huggingface/architecture.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "pipeline/config/yaml_reader.h"
#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"

namespace ggufmill::huggingface {
namespace {

constexpr std::uint64_t kMostBytes = 1 << 20;
constexpr std::size_t kLongestChain = 16;  // of files that extend one another

FieldSpec list_of(std::string name, FieldSpec item, std::string doc) {
  FieldSpec field{std::move(name), FieldKind::kList, std::move(doc)};
  field.item = {std::move(item)};
  return field;
}

FieldSpec map_of(std::vector<FieldSpec> fields, std::string doc) {
  FieldSpec map{"", FieldKind::kMap, std::move(doc)};
  map.fields = std::move(fields);
  return map;
}

FieldSpec required(FieldSpec field) {
  field.required = true;
  return field;
}

FieldSpec value_field(std::string name, std::string doc) { return {std::move(name), FieldKind::kAny, std::move(doc)}; }
FieldSpec when_field() { return value_field("when", "A value that must be true."); }
FieldSpec text(std::string name, std::string doc) { return {std::move(name), FieldKind::kString, std::move(doc)}; }
FieldSpec flag(std::string name, std::string doc) { return {std::move(name), FieldKind::kBool, std::move(doc)}; }

FieldSpec metadata_field(std::string name, std::string doc) {
  FieldSpec type{"type", FieldKind::kEnum, "The type of the value; lists have that of their elements."};
  type.choices = {"uint32", "int32", "uint64", "float32", "bool", "string"};
  type.default_text = "uint32";
  return list_of(std::move(name),
                 map_of({required(text("key",
                                       "The key; `general.` and `tokenizer.` keys whole, others without the "
                                       "architecture's name before them.")),
                         std::move(type), required(value_field("value", "The value.")),
                         flag("optional", "Whether it may be missing."), when_field()},
                        "An entry."),
                 std::move(doc));
}

FieldSpec steps_field() {
  return list_of("do", {"", FieldKind::kAny, "An operation, or {operation: arguments}."},
                 "What is done to it, in order.");
}

FieldSpec tensor_fields() {
  const FieldSpec name = text("", "A name, with {layer} and {expert}.");
  FieldSpec from{"from", FieldKind::kOneOf, "The checkpoint's name, or several; '.weight' and '.bias' may follow."};
  from.alternatives = {name, list_of("", name, "Any of these.")};
  FieldSpec output = map_of({required(text("to", "The name in GGUF.")), steps_field(), when_field()}, "An output.");
  FieldSpec part = output;
  part.fields.push_back(text("stack", "A name with {expert}: as many tensors, one after the other."));
  part.fields.push_back(value_field("count", "How many are stacked."));
  part.fields.push_back(list_of("concat", name, "Tensors that become one along their last dimension."));
  part.fields.push_back(text("repack", "The name of a repacking of the two tensors of `of`."));
  part.fields.push_back(list_of("of", name, "What is repacked."));
  return list_of("tensors",
                 map_of({std::move(from), text("to", "The name in GGUF."), steps_field(),
                         list_of("outputs", std::move(output), "Several tensors made of the one."),
                         list_of("together", std::move(part), "Tensors made of several, written together."),
                         flag("drop", "Whether the tensor is left out."),
                         flag("zero", "With `drop`: whether a value in it that is not 0 is an error."),
                         flag("early", "Whether it comes before all others."),
                         flag("required", "Whether a checkpoint without it is wrong."), when_field()},
                        "A rule."),
                 "What becomes of the tensors: the first rule that fits.");
}

FieldSpec tokens_field(std::string name) {
  FieldSpec id{"id", FieldKind::kInteger, "A fixed id."};
  return list_of(std::move(name),
                 map_of({required(text("role", "bos, eos, eot, ...")), text("text", "The text of an added token."),
                         std::move(id), flag("replaces", "Also where the files name another one."),
                         flag("optional", "No such token is no error."), when_field()},
                        "A special token."),
                 "Special tokens that the architecture sets.");
}

FieldSpec tokenizer_field() {
  FieldSpec reader{"reader", FieldKind::kEnum, "How the files are read."};
  for (int i = 0; i <= static_cast<int>(TokenizerReader::kNone); ++i)
    reader.choices.emplace_back(tokenizer_reader_name(static_cast<TokenizerReader>(i)));
  FieldSpec readers =
      list_of("readers",
              map_of({required(std::move(reader)), text("class", "Only where tokenizer_config.json names it."),
                      flag("add_space_prefix", "Written last where this one read."), when_field()},
                     "A way to read them."),
              "The first whose files are there reads.");
  FieldSpec field{"tokenizer", FieldKind::kMap, "How the tokenizer is read."};
  field.fields = {std::move(readers),
                  value_field("vocabulary_size", "Tokens are filled up to it."),
                  value_field("token_types", "How many types of tokens there are."),
                  text("pre", "The pre-tokenizer; without it, found by its check text."),
                  flag("space_prefix_of_config", "Whether add_prefix_space of tokenizer_config.json comes first."),
                  tokens_field("special_tokens"),
                  list_of("second_roles", text("", "A role."), "Roles of special tokens that are written once more."),
                  tokens_field("second_tokens"),
                  value_field("second_when", "Whether they are.")};
  return field;
}

// Reads one file into an architecture that holds what it extends.
class Reader {
 public:
  Reader(const ConfigNode& root, Architecture& into) : root_(root), into_(into) {}

  Status read() {
    BOOST_OUTCOME_TRY(read_plain());
    BOOST_OUTCOME_TRY(read_values());
    BOOST_OUTCOME_TRY(read_metadata("metadata_of_tensors", into_.metadata_of_tensors));
    BOOST_OUTCOME_TRY(read_metadata("metadata", into_.metadata));
    BOOST_OUTCOME_TRY(read_metadata("metadata_before_tokenizer", into_.metadata_before_tokenizer));
    BOOST_OUTCOME_TRY(read_metadata("metadata_after_tokenizer", into_.metadata_after_tokenizer));
    BOOST_OUTCOME_TRY(read_names());
    BOOST_OUTCOME_TRY(read_tensors());
    BOOST_OUTCOME_TRY(read_computed());
    BOOST_OUTCOME_TRY(read_types());
    if (const ConfigNode* node = root_.find("tokenizer")) return read_tokenizer_rules(*node);
    return ok();
  }

 private:
  Status read_plain() {
    if (const ConfigNode* node = root_.find("name")) into_.name = node->scalar;
    if (const ConfigNode* node = root_.find("description")) into_.description = node->scalar;
    into_.serves.clear();
    if (const ConfigNode* node = root_.find("serves"))
      for (const ConfigNode& item : node->items) into_.serves.push_back(item.scalar);
    into_.partial = false;
    if (const ConfigNode* node = root_.find("partial")) {
      BOOST_OUTCOME_TRY(into_.partial, to_bool(*node));
    }
    if (const ConfigNode* node = root_.find("layers")) {
      BOOST_OUTCOME_TRY(into_.layers, read_value_rule(*node));
    }
    return ok();
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

  Status read_names() {
    const ConfigNode* list = root_.find("names");
    if (!list) return ok();
    std::vector<NameRule> own;
    for (const ConfigNode& node : list->items) {
      NameRule rule;
      const ConfigNode *match = node.find("match"), *drop = node.find("drop"), *with = node.find("with");
      if ((match != nullptr) == (drop != nullptr) || (match != nullptr) != (with != nullptr))
        return error_at(node, "expected `match` and `with`, or `drop`");
      BOOST_OUTCOME_TRY(rule.match, to_pattern(match ? *match : *drop));
      if (with) rule.with = with->scalar;
      rule.below = !with && node.find("before_layer");
      BOOST_OUTCOME_TRY(read_rule(node, with ? "plus" : rule.below ? "before_layer" : "from_layer", rule.number));
      BOOST_OUTCOME_TRY(read_rule(node, "when", rule.when));
      own.push_back(std::move(rule));
    }
    into_.names.insert(into_.names.begin(), own.begin(), own.end());
    return ok();
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

  // A list of arguments, or one that is no list; where there can be but one, a list is that one.
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

  // [a, b] as an argument is a list of two values.
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
        if (step.join.size() < 2) return error_at(item, "`join` takes two lists of operations or more");
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
      return error_at(node, "expected one of `stack`, `concat` and `repack`");
    if (stack) {
      output.gather = Gather::kStack;
      BOOST_OUTCOME_TRY(read_name_list(*stack, output.parts));
      BOOST_OUTCOME_TRY(read_rule(node, "count", output.count));
      if (!output.count || output.parts.empty() || !output.parts[0].name().has_expert())
        return error_at(node, "a stack needs `count`, and {expert} in its name");
    } else if (concat) {
      output.gather = Gather::kConcat;
      BOOST_OUTCOME_TRY(read_name_list(*concat, output.parts));
      if (output.parts.empty()) return error_at(*concat, "`concat` names one tensor or more");
    } else {
      output.gather = Gather::kRepack;
      const ConfigNode* of = node.find("of");
      output.repack = find_repack_function(repack->scalar);
      if (!output.repack) return error_at(*repack, fmt::format("unknown repacking '{}'", repack->scalar));
      if (!of || of->items.size() != 2) return error_at(node, "`of` names the two tensors that are repacked");
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
    if (rule.zero && !drop) return error_at(node, "`zero` is for tensors that are left out: `drop: true`");
    BOOST_OUTCOME_TRY(read_flag(node, "early", rule.early));
    BOOST_OUTCOME_TRY(read_flag(node, "required", rule.required));
    BOOST_OUTCOME_TRY(read_rule(node, "when", rule.when));
    if ((from != nullptr) == (together != nullptr) ||
        (from && (to != nullptr) + (outputs != nullptr) + static_cast<int>(drop) != 1))
      return error_at(node, "expected `from` with one of `to`, `outputs` and `drop`, or `together`");
    if (from) {
      BOOST_OUTCOME_TRY(read_name_list(*from, rule.from));
      if (rule.from.empty()) return error_at(*from, "`from` names one tensor or more");
    }
    if (together && rule.required)
      return error_at(node,
                      "`required` is for rules with `from`; parts that are missing beside others are an error anyway");
    if (to) {
      BOOST_OUTCOME_TRY(rule.outputs.emplace_back(), read_output(node));
      rule.outputs[0].when.reset();  // it is the rule's
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
      rule.type = &type_named(node.find("type")->scalar);
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
        if (number < 0 || number > INT32_MAX) return error_at(*id, fmt::format("{} is no id of a token", number));
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
        BOOST_OUTCOME_TRY(read_rule(item, "when", reader.when));
        rules.readers.push_back(std::move(reader));
      }
    BOOST_OUTCOME_TRY(read_rule(node, "vocabulary_size", rules.vocabulary_size));
    BOOST_OUTCOME_TRY(read_rule(node, "token_types", rules.token_types));
    if (const ConfigNode* pre = node.find("pre")) rules.pre = pre->scalar;
    BOOST_OUTCOME_TRY(read_flag(node, "space_prefix_of_config", rules.space_prefix_of_config));
    BOOST_OUTCOME_TRY(read_tokens(node.find("special_tokens"), rules.special_tokens));
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

bool looks_like_path(const std::string& name) { return name.find('/') != std::string::npos || name.ends_with(".yaml"); }

// What a file extends by a path is looked for beside it.
std::string beside(const std::string& file, const std::string& name) {
  if (!looks_like_path(file) || !looks_like_path(name)) return name;
  return (std::filesystem::path(file).parent_path() / name).lexically_normal().string();
}

struct ArchitectureText {
  std::string name;  // for messages: the file's
  std::string text;
};

Result<ArchitectureText> text_of(const std::string& name, const Origin& asked) {
  std::vector<std::string> names;
  for (const BuiltInArchitecture& each : built_in_architectures()) {
    if (each.name == name) return ArchitectureText{std::string(each.name) + ".yaml", std::string(each.text)};
    names.emplace_back(each.name);
  }
  if (looks_like_path(name)) {
    BOOST_OUTCOME_TRY(std::string text, read_text_file(name, kMostBytes));
    return ArchitectureText{name, std::move(text)};
  }
  const std::string meant = did_you_mean(name, names);
  return error_at(asked, fmt::format("unknown architecture '{}'", name),
                  meant.empty() ? "`ggufmill architectures` lists them; a file is given by its path: ./mine.yaml"
                                : fmt::format("did you mean '{}'? `ggufmill architectures` lists them", meant));
}

// `chain`: what is being read, each extended by the one before; `done`: what was read, which counts once.
Status read(const std::string& name, const Origin& asked, std::vector<std::string>& chain, std::set<std::string>& done,
            Architecture& into) {
  BOOST_OUTCOME_TRY(const ArchitectureText text, text_of(name, asked));
  if (std::ranges::find(chain, text.name) != chain.end())
    return error_at(asked, fmt::format("architecture '{}' extends itself through '{}'", text.name, chain.back()));
  if (chain.size() == kLongestChain)
    return error_at(asked, fmt::format("'{}' extends others over more than {} steps", chain.front(), kLongestChain));
  if (!done.insert(text.name).second) return ok();
  chain.push_back(text.name);

  Diagnostics errors;
  const auto document = read_document(text.text, text.name, errors);
  if (document) lint(document->root, architecture_fields(), errors);
  if (!errors.empty()) return errors.together();
  const ConfigNode& root = document->root;
  if (const ConfigNode* parents = root.find("extends")) {
    if (parents->is_scalar()) {
      BOOST_OUTCOME_TRY(read(beside(name, parents->scalar), origin_of(*parents), chain, done, into));
    }
    for (const ConfigNode& parent : parents->items) {
      BOOST_OUTCOME_TRY(read(beside(name, parent.scalar), origin_of(parent), chain, done, into));
    }
  }
  into.file = looks_like_path(name) ? name : std::filesystem::path(text.name).stem().string();
  if (looks_like_path(name)) into.files.push_back(name);
  BOOST_OUTCOME_TRY(Reader(root, into).read());
  chain.pop_back();
  return ok();
}

}  // namespace

FieldSpec architecture_fields() {
  FieldSpec values{"values", FieldKind::kDictionary, "Named values; they come before config.json's of that name."};
  values.item = {value_field("", "A value.")};
  FieldSpec type{"type", FieldKind::kEnum, "The type such a tensor gets."};
  type.choices = {"F32", "F16", "BF16", "Q8_0"};
  FieldSpec extends{"extends", FieldKind::kOneOf,
                    "Other files by name or path; what stands here comes first, metadata after theirs."};
  extends.alternatives = {text("", "A file."), list_of("", text("", "A file."), "Files, in order.")};
  FieldSpec fields{"architecture", FieldKind::kMap, "What a checkpoint of an architecture becomes."};
  fields.fields = {
      text("name", "general.architecture."),
      text("description", "Which models these are, in a line."),
      std::move(extends),
      flag("partial", "Whether it is there for others to extend."),
      list_of("serves", text("", "A class."), "The `architectures` of config.json that it is for."),
      std::move(values),
      value_field("layers", "How many layers there are."),
      metadata_field("metadata_of_tensors", "Metadata right after general.architecture."),
      metadata_field("metadata", "Metadata of the architecture, in order."),
      metadata_field("metadata_before_tokenizer", "Metadata before the tokenizer's."),
      metadata_field("metadata_after_tokenizer", "Metadata after the tokenizer's."),
      list_of("names",
              map_of({{"match", FieldKind::kRegex, "A regular expression over the checkpoint's names."},
                      text("with", "What takes the place of the match; $1 is its first group."),
                      {"drop", FieldKind::kRegex, "Tensors whose names fit are left out."},
                      value_field("plus", "Added to the number in the first group; {layer} in `with` is the sum."),
                      value_field("from_layer", "Only those whose number in the first group is at least this."),
                      value_field("before_layer", "Only those whose number in the first group is less."),
                      when_field()},
                     "A change of names."),
              "Changes of the checkpoint's names, in order, before anything else."),
      tensor_fields(),
      list_of("computed",
              map_of({required(text("to", "Its name.")), required(text("function", "The name of a function.")),
                      required({"of", FieldKind::kList, "Its arguments."}), when_field()},
                     "A tensor."),
              "Tensors that are computed; they come first."),
      list_of("types",
              map_of({required({"match", FieldKind::kRegex, "A regular expression over GGUF names."}),
                      required(std::move(type)), flag("only_ternary", "Only where TQ1_0 or TQ2_0 is asked for.")},
                     "A rule."),
              "Types that tensors have whatever is asked for: the first rule that fits."),
      tokenizer_field()};
  for (FieldSpec& field : fields.fields)
    if (field.name == "computed")
      for (FieldSpec& inner : field.item[0].fields)
        if (inner.name == "of") inner.item = {value_field("", "An argument.")};
  return fields;
}

Result<Architecture> read_architecture(const std::string& name_or_path, const Origin& asked) {
  std::vector<std::string> chain;
  std::set<std::string> done;
  Architecture architecture;
  BOOST_OUTCOME_TRY(read(name_or_path, asked, chain, done, architecture));
  if (architecture.partial) return architecture;
  const char* missing =
      architecture.name.empty()                                                                          ? "name"
      : architecture.layers.kind == ValueRule::Kind::kConstant && architecture.layers.constant.is_null() ? "layers"
                                                                                                         : nullptr;
  if (missing)
    return Error{ExitCode::kUsage, name_or_path, fmt::format("the map does not say `{}`", missing), "",
                 "say it, or extend a map that does: `extends: [decoder, text]`"};
  return architecture;
}

Result<Architecture> find_architecture(const std::string& checkpoint_class, const std::string& where) {
  std::vector<std::string> classes;
  for (const BuiltInArchitecture& each : built_in_architectures()) {
    // Most files do not have the word in them and need not be read.
    if (each.text.find(checkpoint_class) == std::string_view::npos) continue;
    BOOST_OUTCOME_TRY(Architecture architecture, read_architecture(std::string(each.name)));
    if (std::ranges::count(architecture.serves, checkpoint_class) > 0) return architecture;
  }
  for (const BuiltInArchitecture& each : built_in_architectures()) {
    BOOST_OUTCOME_TRY(const Architecture architecture, read_architecture(std::string(each.name)));
    classes.insert(classes.end(), architecture.serves.begin(), architecture.serves.end());
  }
  const std::string meant = did_you_mean(checkpoint_class, classes);
  Error error = input_error(where, fmt::format("no architecture is known for '{}'", checkpoint_class));
  error.detail = fmt::format("`ggufmill architectures` lists the classes that are known{}",
                             meant.empty() ? "" : fmt::format("; the nearest is '{}'", meant));
  error.help =
      "`ggufmill architectures show llama > mine.yaml` prints one to start from; `architecture: ./mine.yaml` in the "
      "source uses it";
  return error;
}

}  // namespace ggufmill::huggingface
