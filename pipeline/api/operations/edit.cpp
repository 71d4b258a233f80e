// `edit`: changes the metadata and the list of tensors of a GGUF file, in place if possible.

#include "pipeline/api/edit.h"

#include <fmt/format.h>

#include "pipeline/api/operations/operations.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

using Settings = std::vector<MetadataSetting>;
using Renames = std::vector<std::pair<std::string, std::string>>;

struct EditRequest {
  std::string path{}, key{}, value{};
  Settings set{}, set_file{};
  std::vector<std::string> remove{}, remove_metadata{}, drop{};
  Renames rename{};
  std::vector<TakenTensor> take{};
  std::string like{};
  bool like_tokenizer = false;
  std::optional<std::string> general_name{}, general_description{}, chat_template{};
  std::string chat_template_file{};
  std::string output{};
  bool overwrite = false, dry_run = false;
};

// Values by key, or texts of the shape `shape`, which is KEY=VALUE with another word for the value. `of_value` converts
// the value of a key, which is of `form`, and `of_text` the two sides of a text.
template <class Item, class Value, class OfValue, class OfText>
Form<std::vector<Item>> assignments(const char* option, AssignmentShape shape, Form<Value> form, OfValue of_value,
                                    OfText of_text) {
  using Items = std::vector<Item>;
  auto by_key =
      converted<Items>(dictionary_of(std::move(form)), [of_value](NamedValues<Value> values) -> Result<Items> {
        Items items;
        for (auto& [key, value] : values) {
          BOOST_OUTCOME_TRY(Item item, of_value(key, std::move(value)));
          items.push_back(std::move(item));
        }
        return items;
      });
  auto as_texts =
      converted<Items>(list_of(text()), [of_text, option, shape](std::vector<std::string> texts) -> Result<Items> {
        Items items;
        for (const std::string& each : texts) {
          BOOST_OUTCOME_TRY(const auto sides, split_assignment(each, option_reference(option), shape));
          BOOST_OUTCOME_TRY(Item item, of_text(sides.first, sides.second));
          items.push_back(std::move(item));
        }
        return items;
      });
  return either<Items>(std::move(by_key), std::move(as_texts));
}

// Returns the first number in a JSON value that is not finite.
const ConfigNode* not_finite(const ConfigNode& value) {
  for (const ConfigNode& item : value.items)
    if (const ConfigNode* const found = not_finite(item)) return found;
  const bool is_such =
      value.is_scalar() && !value.quoted && (value.scalar == "NaN" || value.scalar.ends_with("Infinity"));
  return is_such ? &value : nullptr;
}

Result<MetadataSetting> setting_of_node(const std::string& key, const ConfigNode& value) {
  if (const ConfigNode* const number = not_finite(value))
    return usage_error(fmt::format("{}: {} is not a finite number", key, number->scalar == "NaN" ? "nan" : "infinity"));
  WrittenValue written = written_value(value);
  written.origin = {};  // the value has no place in a file
  return setting_of(key, std::move(written));
}

Form<Settings> settings_form() {
  return assignments<MetadataSetting>(
      "set", {"KEY=VALUE", "general.license=mit"}, any_value(), setting_of_node,
      [](const std::string& key, const std::string& value) { return parse_setting(key, value); });
}

Form<Settings> files_form() {
  const auto of_file = [](const std::string& key, const std::string& path) { return file_setting(key, path); };
  return assignments<MetadataSetting>("set_file", {"KEY=FILE", "tokenizer.chat_template=template.jinja"}, path(),
                                      of_file, of_file);
}

Form<Renames> renames_form() {
  const auto pair = [](const std::string& key, const std::string& name) -> Result<Renames::value_type> {
    return Renames::value_type(key, name);
  };
  return assignments<Renames::value_type>("rename", {"OLD=NEW", "general.url=general.source.url"}, text(), pair, pair);
}

Form<std::vector<TakenTensor>> take_form() {
  const auto taken = [](const std::string& name, const std::string& from) {
    return parse_taken(name, from, option_reference("take"));
  };
  return assignments<TakenTensor>("take", {"NAME=OTHER.gguf:NAME", "output.weight=other.gguf:output.weight"}, text(),
                                  taken, taken);
}

Status check_edit(const EditRequest& request) {
  if (!request.like_tokenizer || !request.like.empty()) return ok();
  return usage_error(fmt::format("{} requires {}", option_reference("like_tokenizer"), option_reference("like")));
}

Result<MetadataOptions> changes_of(const EditRequest& request) {
  MetadataOptions changes;
  changes.remove = request.remove;
  changes.remove.insert(changes.remove.end(), request.remove_metadata.begin(), request.remove_metadata.end());
  changes.rename = request.rename;
  if (!request.key.empty()) {
    BOOST_OUTCOME_TRY(MetadataSetting setting, parse_setting(request.key, request.value));
    changes.set.push_back(std::move(setting));
  }
  for (const Settings* const settings : {&request.set, &request.set_file})
    changes.set.insert(changes.set.end(), settings->begin(), settings->end());
  const std::pair<const char*, const std::optional<std::string>*> texts[] = {
      {"general.name", &request.general_name},
      {"general.description", &request.general_description},
      {"tokenizer.chat_template", &request.chat_template}};
  for (const auto& [key, text] : texts)
    if (*text) changes.set.push_back({key, metadata_string(**text)});
  if (!request.chat_template_file.empty())
    changes.set.push_back({"tokenizer.chat_template", ValueFile{request.chat_template_file}});
  if (changes.set.empty() && changes.remove.empty() && changes.rename.empty() && request.like.empty() &&
      request.drop.empty() && request.take.empty())
    return usage_error(
        "no changes given",
        fmt::format("give {}, {}, {}, {}, {}, or {}", option_reference("set", "KEY=VALUE"),
                    option_reference("remove", "KEY"), option_reference("rename", "OLD=NEW"),
                    option_reference("drop", "PATTERN"), option_reference("take", "NAME=OTHER.gguf:NAME"),
                    option_reference("like", "OTHER.gguf")));
  return changes;
}

struct EditedFile : Edited {
  std::string path{}, output{};
  bool is_dry = false;
};

Result<Answer<EditedFile>> run_edit(const Context& context, const EditRequest& request, const Call& call) {
  EditOptions options;
  BOOST_OUTCOME_TRY(options.changes, changes_of(request));
  if (!request.like.empty()) options.like = LikeOptions{request.like, request.like_tokenizer};
  options.drop = request.drop;
  options.take = request.take;
  options.output = request.output;
  options.overwrite = request.overwrite;
  options.dry_run = request.dry_run;
  options.types = context.recipes().types();
  options.stop = call.stop();
  BOOST_OUTCOME_TRY(Edited edited, edit_metadata(request.path, options));
  if (edited.restored) call.warn(request.path + ": an earlier edit was interrupted; its header was restored first");
  call.warn_all(edited.warnings);
  return Answer<EditedFile>{{std::move(edited), request.path, request.output, request.dry_run}};
}

void print_edited(const EditedFile& edited, TextOutput& to) {
  for (const MetadataChange& change : edited.changes) to.notes.push_back({describe(change)});
  for (const TensorChange& change : edited.tensors) to.notes.push_back({describe(change)});
  if (!edited.is_changed()) {
    to.notes.push_back({edited.path + ": no changes"});
    if (edited.output.empty()) return;
  }
  to.notes.push_back({fmt::format("{} {}  {}", edited.is_dry ? "would write" : "wrote",
                                  edited.output.empty() ? edited.path : edited.output,
                                  edited.in_place ? "header only" : human_bytes(edited.bytes))});
}

ResultForm<EditedFile> edit_result() {
  namespace json = boost::json;
  const auto keys = [](const EditedFile& edited) -> std::optional<json::value> {
    json::array list;
    for (const MetadataChange& change : edited.changes) {
      list.emplace_back(change.key);
      if (!change.new_key.empty()) list.emplace_back(change.new_key);
    }
    return list;
  };
  const auto lines = [](const EditedFile& edited) -> std::optional<json::value> {
    json::array list;
    for (const MetadataChange& change : edited.changes) list.emplace_back(describe(change));
    for (const TensorChange& change : edited.tensors) list.emplace_back(describe(change));
    return list;
  };
  const auto tensors = [](const EditedFile& edited) -> std::optional<json::value> {
    json::array list;
    for (const TensorChange& change : edited.tensors) {
      list.emplace_back(change.name);
      if (change.change == "renames") list.emplace_back(change.from);
    }
    return list;
  };
  const auto flag = [](bool Edited::*member) {
    return [member](const EditedFile& edited) -> std::optional<json::value> { return edited.*member; };
  };
  return {{result<EditedFile>("keys", keys, "the changed keys"),
           result<EditedFile>("tensors", tensors, "names of the changed tensors"),
           result<EditedFile>("changes", lines, "a line for each change, with values and types"),
           result<EditedFile>("in_place", flag(&Edited::in_place), "true if only the header is written"),
           result<EditedFile>("restored", flag(&Edited::restored), "true if an interrupted edit was undone first"),
           result<EditedFile>(
               "bytes", [](const EditedFile& edited) { return std::optional(json::value(edited.bytes)); },
               "size of the file")}};
}

}  // namespace

OperationSpec edit_operation() {
  using Edit = EditRequest;
  return operation(OperationOf<EditRequest, EditedFile>{
      .name = "edit",
      .group = OperationGroup::kEdit,
      .summary = "Change metadata and tensors of a GGUF file, in place where possible",
      .description =
          "Change a GGUF file: set, remove, and rename keys, and drop, rename, and take tensors. If the header has "
          "room "
          "for the change and no weight moves, only the header is written, regardless of the size of the file. "
          "Otherwise, a new file replaces the old one "
          "once it is complete; the operating system copies the weights, or shares them if the file system supports "
          "that. An interrupted edit in place is undone by the next edit.\n\nA value keeps the type of its key. A new "
          "key that llama.cpp or the GGUF specification knows has its known type; the type of another is derived from "
          "the value: true, 7, 0.5, a JSON list, or a string. KEY:TYPE names another type: u32, f32, str, bool, ..., "
          "[str] for a list, [[u32]] for a list of lists. @dry_run shows old values, new values, "
          "and types.\n\nTensors are dropped first, then renamed, then taken from other GGUF files, with their "
          "types, as they are. A taken tensor replaces the one of that name, whose shape it must have, or is added as "
          "the "
          "last. A warning is printed if llama.cpp would not load the result. Tensors of sharded models cannot be "
          "changed.\n\n@like copies what describes the model, before the other changes: general.*, except "
          "general.architecture, type, alignment, file_type, quantization_version, quantized_by and tensor_extra.*; "
          "the "
          "keys of the architecture on which no name or shape of a tensor depends, so not block_count, "
          "embedding_length, and the like; and the tokenizer with its chat templates, if both files have the same "
          "tokens, or this one has none. The other file must have the same architecture. Its header can also be read "
          "from an address.",
      .for_command_line = "KEY VALUE, --remove-metadata, --general-name, --general-description, --chat-template, and "
                          "--chat-template-file are those of gguf_set_metadata.py and gguf_new_metadata.py.",
      .for_programs = "@set, @set_file, @rename and @take may also be maps with the keys.",
      .examples = "  ggufmill edit model.gguf --set general.license=mit --remove general.url\n"
                  "  ggufmill edit model.gguf --set llama.context_length=8192 --dry-run\n"
                  "  ggufmill edit model.gguf --set 'general.tags=[chat, code]' --set my.sizes:[u64]=[1,2]\n"
                  "  ggufmill edit model.gguf --chat-template-file template.jinja --output model-new.gguf\n"
                  "  ggufmill edit model.gguf tokenizer.ggml.eos_token_id 128009\n"
                  "  ggufmill edit model.gguf --drop '\\.nextn\\.' --rename blk.0.a.weight=blk.0.b.weight\n"
                  "  ggufmill edit model.gguf --take output.weight=model-Q8_0.gguf:output.weight -o model-new.gguf\n"
                  "  ggufmill edit model.gguf --like original.gguf --dry-run",
      .expected_words = "FILE or FILE KEY VALUE",
      .usage_words = "FILE [KEY VALUE]",
      .words_are_numbers = true,
      .options =
          {option("path", &Edit::path, path(), "the GGUF file").word("FILE"),
           option("key", &Edit::key, text(), "key to set").optional_word("KEY").only_on_command_line(),
           option("value", &Edit::value, text(), "value of the key").optional_word("VALUE").only_on_command_line(),
           option("set", &Edit::set, settings_form(), "set a key: KEY=VALUE or KEY:TYPE=VALUE"),
           option("set_file", &Edit::set_file, files_form(),
                  "set a key to the value in a file: KEY=FILE or KEY:TYPE=FILE"),
           option("remove", &Edit::remove, list_of(text()), "remove a key: KEY"),
           option("rename", &Edit::rename, renames_form(),
                  "rename a key or a tensor, keeping its position and value: OLD=NEW"),
           option("drop", &Edit::drop, list_of(text()),
                  "drop the tensors in whose names a regular expression is found: PATTERN"),
           option(
               "take", &Edit::take, take_form(),
               "take a tensor from another file: NAME=OTHER.gguf:NAME; without the second name, the one of that name"),
           option("like", &Edit::like, path(), "copy the metadata that describes the model from this GGUF file"),
           option("like_tokenizer", &Edit::like_tokenizer,
                  "with @like: copy the tokenizer and its chat templates even if its tokens are others"),
           option("general_name", &Edit::general_name, text(), "set general.name").only_on_command_line(),
           option("general_description", &Edit::general_description, text(), "set general.description")
               .only_on_command_line(),
           option("chat_template", &Edit::chat_template, text(), "set tokenizer.chat_template"),
           option("chat_template_file", &Edit::chat_template_file, path(),
                  "set tokenizer.chat_template to the text of a file"),
           option("remove_metadata", &Edit::remove_metadata, list_of(text()), "same as @remove").only_on_command_line(),
           option("output", &Edit::output, path(), "write to this file and leave the input unchanged").short_flag('o'),
           option("overwrite", &Edit::overwrite, "replace an existing output file"),
           option("dry_run", &Edit::dry_run, "show what would change, and how, without writing anything")},
      .result = edit_result(),
      .context = ContextUse::kTypes,
      .check = check_edit,
      .run = run_edit,
      .print = print_edited});
}

}  // namespace ggufmill
