// The fields of an architecture's map.

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/core/text.h"
#include "stages/huggingface/map/architecture.h"

namespace ggufmill::huggingface {
namespace {

Form<std::vector<std::string>> texts(std::string doc) { return list_of(text().doc(std::move(doc))); }

// ---- metadata and names ----

Form<std::vector<MetadataRule>> metadata_form() {
  using Rule = MetadataRule;
  std::vector<std::pair<std::string, MetadataType>> types;
  for (const char* name : {"uint32", "int32", "uint64", "float32", "bool", "string"})
    types.emplace_back(name, *metadata_type_named(name));
  return list_of(
      map_of<Rule>(
          {
              field("key", &Rule::key,
                    "Key; complete for `general.`, `tokenizer.`, `xielu.`, and `diffusion.` keys, and after a leading "
                    "dot, otherwise without the architecture's prefix.")
                  .required(),
              field("type", &Rule::type, word<MetadataType>(std::move(types)),
                    "Type of the value; for lists, of their elements."),
              field("value", &Rule::value, value_form(), "Value.").required(),
              field("optional", &Rule::optional, "Allow it to be missing."),
              field("by_member", &Rule::by_member,
                    "The value is an object: write an entry for each member, with its name after the key and a dot."),
              field("infinite", &Rule::infinite, "Numbers may be infinite."),
              when_field(&Rule::when),
          })
          .doc("Metadata entry."));
}

// A change of names as written.
struct NameSettings {
  std::optional<Pattern> match{}, drop{};
  std::optional<std::string> with{};
  std::optional<ValueRule> plus{}, minus{}, element_of{}, from_layer{}, before_layer{}, when{};
};

Result<NameRule> name_rule(NameSettings given, const ConfigNode& node) {
  if (given.match.has_value() == given.drop.has_value() || given.match.has_value() != given.with.has_value())
    return error_at(node, "expected `match` and `with`, or `drop`");
  NameRule rule;
  rule.match = given.match ? *given.match : *given.drop;
  rule.with = given.with;
  rule.below = !given.with && given.before_layer;
  rule.minus = given.with && given.minus;
  rule.number = rule.minus ? given.minus : given.with ? given.plus : rule.below ? given.before_layer : given.from_layer;
  rule.list = std::move(given.element_of);
  if (rule.list && (!rule.with || rule.number))
    return error_at(node, "`element_of` requires `match` and `with`, and excludes `plus` and `minus`");
  rule.when = std::move(given.when);
  return rule;
}

Form<std::vector<NameRule>> names_form() {
  using Name = NameSettings;
  const auto name =
      map_of<Name>(
          {
              field("match", &Name::match, "Regular expression for names."),
              field("with", &Name::with, "Replacement for the match; $1 is its first group."),
              field("drop", &Name::drop, "Drop tensors whose names match."),
              field("plus", &Name::plus, value_form(),
                    "Add this to the number in the first group; {layer} in `with` is the sum."),
              field("minus", &Name::minus, value_form(),
                    "Subtract this from that number; only names with a number at least this large are changed."),
              field("element_of", &Name::element_of, value_form(),
                    "A list of layers: {layer} in `with` is its element at the number in the first group."),
              field("from_layer", &Name::from_layer, value_form(),
                    "Change only names whose number in the first group is at least this."),
              field("before_layer", &Name::before_layer, value_form(),
                    "Change only names whose number in the first group is less than this."),
              when_field(&Name::when),
          })
          .doc("Name change.");
  return list_of(converted<NameRule>(name, name_rule));
}

Form<std::vector<TypeRule>> types_form() {
  std::vector<std::pair<std::string, const TypeInfo*>> types;
  for (const char* name : {"F32", "F16", "BF16", "Q8_0", "I32"}) types.emplace_back(name, &type_named(name));
  types.emplace_back("asked", nullptr);
  return list_of(
      map_of<TypeRule>({
                           field("match", &TypeRule::match, "Regular expression for GGUF names.").required(),
                           field("type", &TypeRule::type, word<const TypeInfo*>(std::move(types)),
                                 "Type of the tensor; asked: the requested type.")
                               .required(),
                           field("only_ternary", &TypeRule::only_ternary, "Only if TQ1_0 or TQ2_0 is requested."),
                           field("only_f16", &TypeRule::only_f16, "Only if F16 is requested."),
                           field("from_layer", &TypeRule::from_layer, value_form(), "Only in layers from this one on."),
                           field("stored", &TypeRule::stored,
                                 word<std::string>({{"F32", "F32"}, {"F16", "F16"}, {"BF16", "BF16"}, {"FP8", "FP8"}}),
                                 "Only tensors of this type in the checkpoint; FP8: decoded from 8-bit floats."),
                           when_field(&TypeRule::when),
                       })
          .doc("Rule."));
}

// ---- tokenizer ----

Form<std::vector<SpecialTokenData>> tokens_form() {
  using Rule = SpecialTokenRule;
  const Form<bool> not_required = converted<bool>(boolean(), [](bool optional) { return !optional; });
  const Fields<Rule> rule{
      field("role", &Rule::role, "bos, eos, eot, ...").required(),
      field("text", &Rule::text, "Text of an added token."),
      field("id", &Rule::id, "Fixed id.").at_most(INT32_MAX),
      field("replaces", &Rule::replaces, "Replace the token set in the files."),
      field("optional", &Rule::must_exist, not_required, "Allow the token to be missing."),
  };
  return list_of(map_of<SpecialTokenData>(fields_within(&SpecialTokenData::rule, rule) +
                                          Fields<SpecialTokenData>{when_field(&SpecialTokenData::when)})
                     .doc("Special token."));
}

Form<std::vector<TokenizerRules::Reader>> readers_form() {
  using Choice = TokenizerChoice;
  using Reader = TokenizerRules::Reader;
  std::vector<std::string_view> names;
  for (int i = 0; i <= static_cast<int>(TokenizerReader::kNone); ++i)
    names.push_back(tokenizer_reader_name(static_cast<TokenizerReader>(i)));
  const Fields<Choice> choice{
      field("reader", &Choice::reader, enumeration<TokenizerReader>(names), "How to read the files.").required(),
      field("class", &Choice::tokenizer_class, "Only if tokenizer_config.json names this class."),
      field("add_space_prefix", &Choice::add_space_prefix, "Written last if this reader was used."),
      field("scores", &Choice::scores, "Write the scores of tokens."),
      field("own_format", &Choice::own_format,
            "For `tekken`: use it even with a tokenizer.json, and prefer the folder's chat_template.jinja to "
            "llama.cpp's templates."),
      field("model", &Choice::model, "For byte-fallback-bpe: tokenizer.ggml.model; also writes merges, and no pre."),
      field("file", &Choice::file, "For `tiktoken`: name of the file of ranks."),
      field("special", &Choice::special, texts("String."), "For `tiktoken`: special tokens that follow the ranks."),
      field("extra_tokens", &Choice::extra_tokens,
            "For `tiktoken`: number of tokens <|extra_0|>, ... that follow them.")
          .at_most(65536),
      field("reserved_tokens", &Choice::reserved_tokens,
            "For `tiktoken`: number of special tokens that follow them, with the names in tokenizer_config.json, or "
            "<|reserved_token_ID|>.")
          .at_most(65536),
      field("pre", &Choice::pre, "For `tiktoken`: tokenizer.ggml.pre."),
      field("extra", &Choice::extra,
            list_of(map_of<FixedToken>({field("id", &FixedToken::id, "Id of the token.").required(),
                                        field("text", &FixedToken::text, "Text of the token.").required()})
                        .doc("Token.")),
            "For `unigram-fairseq`: control tokens that replace those of the model file; not with a tokenizer.json "
            "alone."),
  };
  return list_of(map_of<Reader>(fields_within(&Reader::choice, choice) + Fields<Reader>{when_field(&Reader::when)})
                     .doc("Reader."));
}

Form<TokenizerRules> tokenizer_form() {
  using Rules = TokenizerRules;
  const std::string special = "Special tokens set by the architecture.";
  return map_of<Rules>({
      field("folder", &Rules::folder,
            "Folder of its files below the checkpoint's, if they are not beside config.json."),
      field("readers", &Rules::readers, readers_form(), "Readers to try; the first whose files exist is used."),
      field("vocabulary_size", &Rules::vocabulary_size, value_form(), "Pad the tokens to this number."),
      field("token_types", &Rules::token_types, value_form(), "Number of token types."),
      field("space_prefix_of_config", &Rules::space_prefix_of_config, value_form(),
            "Prefer add_prefix_space of tokenizer_config.json."),
      field("omitted_roles", &Rules::omitted_roles, texts("Role."),
            "Roles of special tokens that are not written if config.json has a negative id for them."),
      field("user_tokens", &Rules::user_tokens, texts("String."),
            "Tokens to mark as user-defined, overriding the files."),
      field("control_tokens", &Rules::control_tokens, texts("String."),
            "Tokens to mark as control tokens, overriding the files."),
      field(
          "space_marks", &Rules::space_marks, texts("Pre-tokenizer."),
          "Pre-tokenizers for which user-defined tokens of spaces alone become normal tokens, of as many marks of the "
          "beginning of a word."),
      field("special_tokens", &Rules::special_tokens, tokens_form(), special),
      field("second_roles", &Rules::second_roles, texts("Role."), "Roles of special tokens to write a second time."),
      field("chat_template", &Rules::chat_template,
            "Template if the files have none: the text, or the name of one that llama.cpp knows."),
      field("second_tokens", &Rules::second_tokens, tokens_form(), special),
      field("second_when", &Rules::second_when, value_form(), "Condition for writing them."),
  });
}

// ---- the map ----

Form<std::vector<OtherName>> other_names_form() {
  return list_of(
      map_of<OtherName>({
                            field("name", &OtherName::name, "general.architecture.").required(),
                            field("when", &OtherName::when, value_form(), "Condition that must be true.").required(),
                        })
          .doc("Name."));
}

Form<std::vector<OtherMap>> other_maps_form() {
  return list_of(
      map_of<OtherMap>({
                           field("map", &OtherMap::map, "Name of a map.").required(),
                           field("when", &OtherMap::when, value_form(), "Condition that must be true.").required(),
                       })
          .doc("Map."));
}

Form<std::vector<Refusal>> refusals_form() {
  return list_of(
      map_of<Refusal>({
                          field("when", &Refusal::when, value_form(), "Condition for these checkpoints.").required(),
                          field("what", &Refusal::what, "What the checkpoint is.").required(),
                          field("help", &Refusal::help, "What to do instead."),
                      })
          .doc("Kind of checkpoint."));
}

Form<TargetWeights> target_weights_form() {
  return map_of<TargetWeights>(
             {
                 field("names", &TargetWeights::names, texts("Name in the target's checkpoint."), "The tensors.")
                     .required(),
                 when_field(&TargetWeights::when),
             })
      .doc("Tensors, and the condition under which they are read.");
}

Form<std::vector<MapParent>> parents_form() {
  const auto parent = shorthand(&MapParent::name, text().doc("File.")).at(&MapParent::origin);
  return one_or_more(parent, "Files, in order.");
}

Form<NamedValues<std::string>> pre_tokenizers_form() {
  using Names = NamedValues<std::string>;
  return converted<Names>(
      dictionary_of(text().doc("tokenizer.ggml.pre.")), [](Names names, const ConfigNode& node) -> Result<Names> {
        for (const ConfigNode::Entry& entry : node.entries)
          if (!is_pre_tokenizer_hash(entry.key))
            return error_at(node.text, entry.position,
                            fmt::format("'{}' is not a SHA-256 in 64 lowercase hexadecimal digits", entry.key),
                            "converting the checkpoint without this entry prints its hash");
        return names;
      });
}

Form<std::vector<CheckpointClass>> checkpoint_form() {
  using Class = CheckpointClass;
  return list_of(map_of<Class>({
                                   field("class", &Class::name, "Value of `architectures`.").required(),
                                   field("type", &Class::type, "Value of `model_type`.").required(),
                                   field("config", &Class::config, dictionary_of(value_form().doc("A value.")),
                                         "Keys that no metadata rule reads, over the metadata of the GGUF file."),
                                   field("when", &Class::when, value_form(),
                                         "Condition over the metadata of the GGUF file that must be true."),
                               })
                     .doc("Class."));
}

Fields<MapFile> map_fields() {
  using Map = MapFile;
  return {
      field("name", &Map::name, "general.architecture."),
      field("other_names", &Map::other_names, other_names_form(),
            "Names to use instead of `name` for checkpoints of the same class; the first match applies."),
      field("other_maps", &Map::other_maps, other_maps_form(),
            "Maps to use instead of this one for checkpoints of the same class; the first match applies."),
      field("target_tokenizer", &Map::target_tokenizer,
            word<TargetTokenizer>({{"files", TargetTokenizer::kFiles}, {"model", TargetTokenizer::kModel}}),
            "The model is a draft for another one, whose folder the source's option `target` names; its config.json is "
            "`target`. The tokenizer is read from that folder: by the rules of this map (files), or by those of the "
            "target's own (model)."),
      field("description", &Map::description, "One-line description of the models."),
      field("extends", &Map::extends, parents_form(),
            "Other files by name or path; entries here come first, metadata after theirs."),
      field("part", &Map::part, word<ModelPart>({{"text", ModelPart::kText}, {"projector", ModelPart::kProjector}}),
            "Part of the checkpoint that it describes: the text model, or the projector with its encoders."),
      field("partial", &Map::partial, "Can only be extended."),
      field("draft_head", &Map::draft_head,
            "It has layers that predict further tokens: the source's option `draft_head` can omit them, and the "
            "part `draft` consists of them."),
      field("dspark", &Map::dspark,
            "It describes DSpark drafts in the checkpoints of their targets, for the source's option of this name."),
      field(
          "dense_modules", &Map::dense_modules,
          "llama.cpp supports one or two Dense modules of sentence-transformers: the source's option `dense_modules`, "
          "whose value is `option.dense_modules`, includes their weights as `dense_2/linear.weight` and "
          "`dense_3/linear.weight`; `dense_2.in_features` and `dense_2.out_features` are the sizes of the first."),
      field("adapters", &Map::adapters, value_form(),
            "It describes one of the LoRA adapters that are stored in a checkpoint, for the source's option `adapter`: "
            "the list of their names. `option.adapter` is the name of the one, `option.adapter_index` its index, and "
            "`option.adapters` the number of all."),
      field("adapter_names", &Map::adapter_names, value_form(),
            "The list of names of LoRA adapters that are stored in the checkpoint of the model, which are not part of "
            "it; a warning lists them."),
      field("fused_experts", &Map::fused_experts,
            "Whether llama.cpp supports the fused gate and up experts that the source's `fuse_gate_up_experts` "
            "creates."),
      field("fused_qkv", &Map::fused_qkv,
            "Whether llama.cpp supports the fused queries, keys, and values that the source's `fuse_qkv` creates. The "
            "value `fusable_layers`, if there is one, is the number of layers, from the first, to which it applies."),
      field("serves", &Map::serves, texts("Class."), "Values of `architectures` in config.json that it serves."),
      field("serves_whole", &Map::serves_whole, texts("Class."),
            "Those of `serves` that apply even if config.json names another class for the text model."),
      field("config", &Map::config, "File that describes the model, if not config.json."),
      field("serves_when", &Map::serves_when, value_form(),
            "For a file without `architectures`: condition for the models that it serves."),
      field("serves_folder_when", &Map::serves_folder_when, value_form(),
            "Condition on the files in the folder alone, with `has_file`, for checkpoints that config.json does not "
            "tell apart: if it is true, they have the first class in `serves`."),
      field("weights", &Map::weights, "Weights file, without .safetensors; if omitted, all in the folder."),
      field("further_weights", &Map::further_weights, texts("Path in the folder: 1_Dense/model.safetensors."),
            "Further weights files, if the folder has them; the name of a tensor in 1_Dense is 1_Dense/linear.weight, "
            "and in head.safetensors head/linear.weight."),
      field("target_weights", &Map::target_weights, target_weights_form(),
            "For a draft of another model: tensors of that model, which the rules see as target/NAME."),
      field("refuses", &Map::refuses, refusals_form(), "Checkpoints of a served class that cannot be converted."),
      field("shards", &Map::shards, shard_rules_form(),
            "Weights of 8-bit floats whose rows were distributed over ranks; the first match applies."),
      field("values", &Map::values, dictionary_of(value_form().doc("A value.")),
            "Named values; they override those of the same name in config.json."),
      field("layers", &Map::layers, value_form(), "Number of layers."),
      field("metadata_early", &Map::metadata_early, metadata_form(), "Metadata right after general.architecture."),
      field("metadata_of_tensors", &Map::metadata_of_tensors, metadata_form(),
            "Metadata that follows, unless only the vocabulary is written."),
      field("metadata_first", &Map::metadata_first, metadata_form(),
            "Metadata of the architecture, written before that of the files it extends."),
      field("metadata", &Map::metadata, metadata_form(), "Metadata of the architecture, in order."),
      field("metadata_before_tokenizer", &Map::metadata_before_tokenizer, metadata_form(),
            "Metadata before the tokenizer's."),
      field("metadata_after_tokenizer", &Map::metadata_after_tokenizer, metadata_form(),
            "Metadata after the tokenizer's."),
      field("names", &Map::names, names_form(), "Changes to the checkpoint's names, in order, before anything else."),
      field("names_back", &Map::names_back, names_form(),
            "Name changes for writing a checkpoint, in order; they undo those of `names`."),
      field("tensors", &Map::tensors, tensor_rules_form(), "Rules for tensors; the first match applies."),
      field("computed", &Map::computed, computed_rules_form(), "Computed tensors; they come first."),
      field("types", &Map::types, types_form(),
            "Types of tensors that override the requested type; the first match applies."),
      field("tokenizer", &Map::tokenizer, tokenizer_form(), "How to read the tokenizer."),
      field("pre_tokenizers", &Map::pre_tokenizers, pre_tokenizers_form(),
            "Values of tokenizer.ggml.pre, by the hash of what the tokenizer makes of the check text, in addition to "
            "the built-in ones."),
      field("checkpoint", &Map::checkpoint, checkpoint_form(),
            "Classes of the checkpoints that are written for GGUF files of this architecture (`names: huggingface` "
            "without `config`); the first match applies. The inverse of the metadata rules makes config.json. Not "
            "inherited."),
      field("defaults", &Map::defaults, dictionary_of(value_form().doc("A value.")),
            "What llama.cpp uses for metadata entries that a GGUF file lacks: by key, without the architecture, over "
            "the file's other metadata. For `checkpoint`."),
      field("memory", &Map::memory, dictionary_of(value_form().doc("A formula.")),
            "Formulas, over the metadata of the GGUF file, for what a model needs in memory beside its weights: for "
            "`ggufmill fit`. They override those of the files it extends; the map `memory` has those of all models."),
  };
}

}  // namespace

Form<ValueRule> value_form() {
  Form<ValueRule> form;
  form.spec.kind = FieldKind::kAny;
  form.read_with(read_value_rule);
  return form;
}

const Form<MapFile>& map_form() {
  static const Form<MapFile> form = map_of<MapFile>(map_fields());
  return form;
}

FieldSpec architecture_fields() {
  FieldSpec spec = map_form().spec;
  spec.name = "architecture";
  spec.doc = "How to convert checkpoints of an architecture.";
  return spec;
}

}  // namespace ggufmill::huggingface
