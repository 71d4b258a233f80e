// The field table for an architecture's map.

#include "stages/huggingface/architecture.h"

namespace ggufmill::huggingface {
FieldSpec list_of(std::string name, FieldSpec item, std::string doc) {
  FieldSpec field{std::move(name), FieldKind::kList, std::move(doc)};
  field.item = {std::move(item)};
  return field;
}

namespace {

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
FieldSpec when_field() { return value_field("when", "Condition that must be true."); }
FieldSpec text(std::string name, std::string doc) { return {std::move(name), FieldKind::kString, std::move(doc)}; }
FieldSpec flag(std::string name, std::string doc) { return {std::move(name), FieldKind::kBool, std::move(doc)}; }

FieldSpec metadata_field(std::string name, std::string doc) {
  FieldSpec type{"type", FieldKind::kEnum, "Type of the value; for lists, of their elements."};
  type.choices = {"uint32", "int32", "uint64", "float32", "bool", "string"};
  type.default_text = "uint32";
  return list_of(std::move(name),
                 map_of({required(text("key",
                                       "Key; complete for `general.`, `tokenizer.`, `xielu.`, and `diffusion.` keys, "
                                       "otherwise without the architecture's prefix.")),
                         std::move(type), required(value_field("value", "Value.")),
                         flag("optional", "Allow it to be missing."), when_field()},
                        "Metadata entry."),
                 std::move(doc));
}

FieldSpec names_field(std::string name, std::string doc) {
  return list_of(
      std::move(name),
      map_of({{"match", FieldKind::kRegex, "Regular expression for names."},
              text("with", "Replacement for the match; $1 is its first group."),
              {"drop", FieldKind::kRegex, "Drop tensors whose names match."},
              value_field("plus", "Add this to the number in the first group; {layer} in `with` is the sum."),
              value_field("minus",
                          "Subtract this from that number; only names with a number at least this large are changed."),
              value_field("from_layer", "Change only names whose number in the first group is at least this."),
              value_field("before_layer", "Change only names whose number in the first group is less than this."),
              when_field()},
             "Name change."),
      std::move(doc));
}

FieldSpec steps_field() {
  return list_of("do", {"", FieldKind::kAny, "Operation, or {operation: arguments}."},
                 "Operations on the tensor, in order.");
}

FieldSpec tensor_fields() {
  const FieldSpec name = text("", "Name, may contain {layer} and {expert}.");
  FieldSpec from{"from", FieldKind::kOneOf, "Name in the checkpoint, or several; '.weight' or '.bias' may follow."};
  from.alternatives = {name, list_of("", name, "Any of these.")};
  FieldSpec output = map_of({required(text("to", "Name in the GGUF.")), steps_field(), when_field()}, "Output.");
  FieldSpec part = output;
  part.fields.push_back(text("stack", "Name with {expert}: stack the tensors of all experts in order."));
  part.fields.push_back(value_field("count", "Number of tensors to stack."));
  part.fields.push_back(list_of("concat", name, "Tensors to join along their last dimension."));
  part.fields.push_back(text("repack", "Name of a repacking of the two tensors in `of`."));
  part.fields.push_back(list_of("of", name, "Tensors to repack."));
  return list_of(
      "tensors",
      map_of({std::move(from), text("to", "Name in the GGUF."), steps_field(),
              list_of("outputs", std::move(output), "Several tensors made from one."),
              list_of("together", std::move(part), "Tensors made from several, written together."),
              flag("drop", "Drop the tensor."), flag("zero", "With `drop`: report a value that is not 0 as an error."),
              flag("early", "Write it before all others."),
              flag("required", "Report an error if the checkpoint does not have it."), when_field()},
             "Rule."),
      "Rules for tensors; the first match applies.");
}

FieldSpec tokens_field(std::string name) {
  FieldSpec id{"id", FieldKind::kInteger, "Fixed id."};
  return list_of(std::move(name),
                 map_of({required(text("role", "bos, eos, eot, ...")), text("text", "Text of an added token."),
                         std::move(id), flag("replaces", "Replace the token set in the files."),
                         flag("optional", "Allow the token to be missing."), when_field()},
                        "Special token."),
                 "Special tokens set by the architecture.");
}

FieldSpec tokenizer_field() {
  FieldSpec reader{"reader", FieldKind::kEnum, "How to read the files."};
  for (int i = 0; i <= static_cast<int>(TokenizerReader::kNone); ++i)
    reader.choices.emplace_back(tokenizer_reader_name(static_cast<TokenizerReader>(i)));
  FieldSpec readers =
      list_of("readers",
              map_of({required(std::move(reader)), text("class", "Only if tokenizer_config.json names this class."),
                      flag("add_space_prefix", "Written last if this reader was used."),
                      flag("scores", "Write the scores of tokens; true by default."),
                      flag("own_format",
                           "For `tekken`: use it even with a tokenizer.json, and prefer the folder's "
                           "chat_template.jinja to llama.cpp's templates."),
                      text("model", "For byte-fallback-bpe: tokenizer.ggml.model; also writes merges, and no pre."),
                      when_field()},
                     "Reader."),
              "Readers to try; the first whose files exist is used.");
  FieldSpec field{"tokenizer", FieldKind::kMap, "How to read the tokenizer."};
  field.fields = {
      std::move(readers),
      value_field("vocabulary_size", "Pad the tokens to this number."),
      value_field("token_types", "Number of token types."),
      text("pre", "Pre-tokenizer; if omitted, identified by its check text."),
      value_field("space_prefix_of_config", "Prefer add_prefix_space of tokenizer_config.json."),
      list_of("user_tokens", text("", "String."), "Tokens to mark as user-defined, overriding the files."),
      list_of("control_tokens", text("", "String."), "Tokens to mark as control tokens, overriding the files."),
      tokens_field("special_tokens"),
      list_of("second_roles", text("", "Role."), "Roles of special tokens to write a second time."),
      text("chat_template", "Template if the files have none: the text, or the name of one that llama.cpp knows."),
      tokens_field("second_tokens"),
      value_field("second_when", "Condition for writing them.")};
  return field;
}

}  // namespace

FieldSpec architecture_fields() {
  FieldSpec values{"values", FieldKind::kDictionary,
                   "Named values; they override those of the same name in config.json."};
  values.item = {value_field("", "A value.")};
  FieldSpec type{"type", FieldKind::kEnum, "Type of the tensor; asked: the requested type."};
  type.choices = {"F32", "F16", "BF16", "Q8_0", "asked"};
  FieldSpec extends{"extends", FieldKind::kOneOf,
                    "Other files by name or path; entries here come first, metadata after theirs."};
  extends.alternatives = {text("", "File."), list_of("", text("", "File."), "Files, in order.")};
  FieldSpec fields{"architecture", FieldKind::kMap, "How to convert checkpoints of an architecture."};
  fields.fields = {
      text("name", "general.architecture."),
      list_of("other_names",
              map_of({required(text("name", "general.architecture.")),
                      required(value_field("when", "Condition that must be true."))},
                     "Name."),
              "Names to use instead of `name` for checkpoints of the same class; the first match applies."),
      text("description", "One-line description of the models."),
      std::move(extends),
      flag("partial", "Can only be extended."),
      flag("draft_head", "Let the source's option `draft_head` omit its layers that predict further tokens."),
      flag(
          "fused_experts",
          "Whether llama.cpp supports the fused gate and up experts that the source's `fuse_gate_up_experts` creates."),
      list_of("serves", text("", "Class."), "Values of `architectures` in config.json that it serves."),
      list_of("serves_whole", text("", "Class."),
              "Those of `serves` that apply even if config.json names another class for the text model."),
      text("config", "File that describes the model, if not config.json."),
      value_field("serves_when", "For a file without `architectures`: condition for the models that it serves."),
      text("weights", "Weights file, without .safetensors; if omitted, all in the folder."),
      list_of(
          "further_weights", text("", "Path in the folder: 1_Dense/model.safetensors."),
          "Further weights files, if the folder has them; the name of a tensor in 1_Dense is 1_Dense/linear.weight."),
      list_of("refuses",
              map_of({required(value_field("when", "Condition for these checkpoints.")),
                      required(text("what", "What the checkpoint is.")), text("help", "What to do instead.")},
                     "Kind of checkpoint."),
              "Checkpoints of a served class that cannot be converted."),
      std::move(values),
      value_field("layers", "Number of layers."),
      metadata_field("metadata_of_tensors", "Metadata right after general.architecture."),
      metadata_field("metadata_first", "Metadata of the architecture, written before that of the files it extends."),
      metadata_field("metadata", "Metadata of the architecture, in order."),
      metadata_field("metadata_before_tokenizer", "Metadata before the tokenizer's."),
      metadata_field("metadata_after_tokenizer", "Metadata after the tokenizer's."),
      names_field("names", "Changes to the checkpoint's names, in order, before anything else."),
      names_field("names_back", "Name changes for writing a checkpoint, in order; they undo those of `names`."),
      tensor_fields(),
      list_of("computed",
              map_of({required(text("to", "Name of the tensor.")), required(text("function", "Name of a function.")),
                      required({"of", FieldKind::kList, "Arguments of the function."}), when_field()},
                     "Tensor."),
              "Computed tensors; they come first."),
      list_of("types",
              map_of({required({"match", FieldKind::kRegex, "Regular expression for GGUF names."}),
                      required(std::move(type)), flag("only_ternary", "Only if TQ1_0 or TQ2_0 is requested."),
                      value_field("from_layer", "Only in layers from this one on.")},
                     "Rule."),
              "Types of tensors that override the requested type; the first match applies."),
      tokenizer_field()};
  for (FieldSpec& field : fields.fields)
    if (field.name == "computed")
      for (FieldSpec& inner : field.item[0].fields)
        if (inner.name == "of") inner.item = {value_field("", "Argument.")};
  return fields;
}

}  // namespace ggufmill::huggingface
