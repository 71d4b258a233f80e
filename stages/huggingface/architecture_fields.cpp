// The field table for an architecture's map.

#include "stages/huggingface/architecture.h"

namespace ggufmill::huggingface {
namespace {

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
  return list_of(
      std::move(name),
      map_of({required(text("key",
                            "The key; `general.`, `tokenizer.`, `xielu.` and `diffusion.` keys whole, others without "
                            "the architecture's name before them.")),
              std::move(type), required(value_field("value", "The value.")),
              flag("optional", "Whether it may be missing."), when_field()},
             "An entry."),
      std::move(doc));
}

FieldSpec names_field(std::string name, std::string doc) {
  return list_of(
      std::move(name),
      map_of({{"match", FieldKind::kRegex, "A regular expression over names."},
              text("with", "What takes the place of the match; $1 is its first group."),
              {"drop", FieldKind::kRegex, "Tensors whose names fit are left out."},
              value_field("plus", "Added to the number in the first group; {layer} in `with` is the sum."),
              value_field("minus", "Taken from that number, and only names where it is as large are changed."),
              value_field("from_layer", "Only those whose number in the first group is at least this."),
              value_field("before_layer", "Only those whose number in the first group is less."),
              when_field()},
             "A change of names."),
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
                      flag("add_space_prefix", "Written last where this one read."),
                      flag("scores", "Whether the scores of tokens are written; true without it."),
                      flag("own_format",
                           "Of `tekken`: beside a tokenizer.json, too, and with the folder's "
                           "chat_template.jinja before the templates that llama.cpp has."),
                      text("model", "Of byte-fallback-bpe: tokenizer.ggml.model; merges are written then, and no pre."),
                      when_field()},
                     "A way to read them."),
              "The first whose files are there reads.");
  FieldSpec field{"tokenizer", FieldKind::kMap, "How the tokenizer is read."};
  field.fields = {
      std::move(readers),
      value_field("vocabulary_size", "Tokens are filled up to it."),
      value_field("token_types", "How many types of tokens there are."),
      text("pre", "The pre-tokenizer; without it, found by its check text."),
      value_field("space_prefix_of_config", "Whether add_prefix_space of tokenizer_config.json comes first."),
      list_of("user_tokens", text("", "A text."), "Tokens that are the user's, whatever the files say."),
      list_of("control_tokens", text("", "A text."), "Control tokens, whatever the files say."),
      tokens_field("special_tokens"),
      list_of("second_roles", text("", "A role."), "Roles of special tokens that are written once more."),
      text("chat_template", "The template where the files have none: a text, or the name of one that llama.cpp knows."),
      tokens_field("second_tokens"),
      value_field("second_when", "Whether they are.")};
  return field;
}

}  // namespace

FieldSpec architecture_fields() {
  FieldSpec values{"values", FieldKind::kDictionary, "Named values; they come before config.json's of that name."};
  values.item = {value_field("", "A value.")};
  FieldSpec type{"type", FieldKind::kEnum, "The type such a tensor gets; asked: the one that is asked for."};
  type.choices = {"F32", "F16", "BF16", "Q8_0", "asked"};
  FieldSpec extends{"extends", FieldKind::kOneOf,
                    "Other files by name or path; what stands here comes first, metadata after theirs."};
  extends.alternatives = {text("", "A file."), list_of("", text("", "A file."), "Files, in order.")};
  FieldSpec fields{"architecture", FieldKind::kMap, "What a checkpoint of an architecture becomes."};
  fields.fields = {
      text("name", "general.architecture."),
      list_of("other_names",
              map_of({required(text("name", "general.architecture.")),
                      required(value_field("when", "A value that must be true."))},
                     "A name."),
              "Names that take the place of `name`, for checkpoints of the same class: the first that holds."),
      text("description", "Which models these are, in a line."),
      std::move(extends),
      flag("partial", "Whether it is there for others to extend."),
      flag("draft_head", "Whether the source's option `draft_head` leaves out its layers that predict further tokens."),
      flag("fused_experts",
           "Whether llama.cpp has a tensor for gates and ups of experts together, as `fuse_gate_up_experts` of the "
           "source makes it."),
      list_of("serves", text("", "A class."), "The `architectures` of config.json that it is for."),
      list_of(
          "serves_whole", text("", "A class."),
          "Of these, the classes of whole models that count although config.json names another for the text model."),
      text("config", "The file that says what a model is, where that is not config.json."),
      value_field("serves_when", "For a file without `architectures`: what holds for the models that it is for."),
      text("weights", "The weights' file, without .safetensors; without it, all of the folder."),
      list_of("further_weights", text("", "A path below the folder: 1_Dense/model.safetensors."),
              "Further files with weights, where the folder has them; the name of a tensor in 1_Dense is "
              "1_Dense/linear.weight."),
      list_of("refuses",
              map_of({required(value_field("when", "A value that is true for them.")),
                      required(text("what", "What such a checkpoint is.")), text("help", "What to do instead.")},
                     "A kind of checkpoint."),
              "Checkpoints of a class that is served which cannot be converted."),
      std::move(values),
      value_field("layers", "How many layers there are."),
      metadata_field("metadata_of_tensors", "Metadata right after general.architecture."),
      metadata_field("metadata_first", "Metadata of the architecture before that of the files it extends."),
      metadata_field("metadata", "Metadata of the architecture, in order."),
      metadata_field("metadata_before_tokenizer", "Metadata before the tokenizer's."),
      metadata_field("metadata_after_tokenizer", "Metadata after the tokenizer's."),
      names_field("names", "Changes of the checkpoint's names, in order, before anything else."),
      names_field("names_back",
                  "Changes of names where a checkpoint is written, in order: they undo those of `names`."),
      tensor_fields(),
      list_of("computed",
              map_of({required(text("to", "Its name.")), required(text("function", "The name of a function.")),
                      required({"of", FieldKind::kList, "Its arguments."}), when_field()},
                     "A tensor."),
              "Tensors that are computed; they come first."),
      list_of("types",
              map_of({required({"match", FieldKind::kRegex, "A regular expression over GGUF names."}),
                      required(std::move(type)), flag("only_ternary", "Only where TQ1_0 or TQ2_0 is asked for."),
                      value_field("from_layer", "Only in layers from this one on.")},
                     "A rule."),
              "Types that tensors have whatever is asked for: the first rule that fits."),
      tokenizer_field()};
  for (FieldSpec& field : fields.fields)
    if (field.name == "computed")
      for (FieldSpec& inner : field.item[0].fields)
        if (inner.name == "of") inner.item = {value_field("", "An argument.")};
  return fields;
}

}  // namespace ggufmill::huggingface
