// `ggufmill edit`: changes the metadata of a GGUF file, in place if possible.

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "pipeline/api/edit.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/planning.h"
#include "pipeline/cli/signals.h"
#include "pipeline/cli/verb.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

CommandSpec edit_command() {
  CommandSpec spec;
  spec.usage = "ggufmill edit FILE [KEY VALUE] [options]";
  spec.description =
      "Change the metadata of a GGUF file: set, remove, and rename keys. If the header has room for the change, only "
      "the header is written, regardless of the size of the file. Otherwise, a new file replaces the old one once it "
      "is complete; the operating system copies the weights, or shares them if the file system supports that. An "
      "interrupted "
      "edit in place is undone by the next edit.\n\nA value keeps the type of its key. A new key that llama.cpp or the "
      "GGUF specification knows has its known type; the type of another is derived from the value: true, 7, 0.5, a "
      "JSON "
      "list, or a string. KEY:TYPE names another type: u32, f32, str, bool, ..., [str] for a list, [[u32]] for a list "
      "of lists. --dry-run prints old values, new values, and types. KEY VALUE, --remove-metadata, "
      "--general-name, --general-description, --chat-template, and --chat-template-file are those of "
      "gguf_set_metadata.py and gguf_new_metadata.py.";
  spec.examples =
      "  ggufmill edit model.gguf --set general.license=mit --remove general.url\n"
      "  ggufmill edit model.gguf --set llama.context_length=8192 --dry-run\n"
      "  ggufmill edit model.gguf --set 'general.tags=[chat, code]' --set my.sizes:[u64]=[1,2]\n"
      "  ggufmill edit model.gguf --chat-template-file template.jinja --output model-new.gguf\n"
      "  ggufmill edit model.gguf tokenizer.ggml.eos_token_id 128009";
  spec.positional = "words";
  spec.many = true;
  spec.numbers = true;
  auto add = spec.options.add_options();
  add("set", po::value<Strings>()->composing(), "set a key: KEY=VALUE or KEY:TYPE=VALUE");
  add("set-file", po::value<Strings>()->composing(), "set a key to the value in a file: KEY=FILE or KEY:TYPE=FILE");
  add("remove", po::value<Strings>()->composing(), "remove a key: KEY");
  add("rename", po::value<Strings>()->composing(), "rename a key, keeping its position and value: KEY=NEW");
  add("general-name", po::value<std::string>(), "set general.name");
  add("general-description", po::value<std::string>(), "set general.description");
  add("chat-template", po::value<std::string>(), "set tokenizer.chat_template");
  add("chat-template-file", po::value<std::string>(), "set tokenizer.chat_template to the text of a file");
  add("remove-metadata", po::value<Strings>()->composing(), "same as --remove");
  add("output,o", po::value<std::string>(), "write to this file and leave the input unchanged");
  add("overwrite", "replace an existing output file");
  add("dry-run", "print what would change, and how, without writing anything");
  add_type_modules_option(spec.options);
  return spec;
}

Status read_keys(const po::variables_map& values, MetadataOptions& changes) {
  for (const char* option : {"remove", "remove-metadata"})
    for (const std::string& key : value_or<Strings>(values, option, {})) changes.remove.push_back(key);
  for (const std::string& word : value_or<Strings>(values, "rename", {})) {
    BOOST_OUTCOME_TRY(auto sides, split_assignment(word, "--rename"));
    changes.rename.push_back(std::move(sides));
  }
  for (const std::string& word : value_or<Strings>(values, "set", {})) {
    BOOST_OUTCOME_TRY(const auto sides, split_assignment(word, "--set"));
    BOOST_OUTCOME_TRY(MetadataSetting setting, parse_setting(sides.first, sides.second));
    changes.set.push_back(std::move(setting));
  }
  for (const std::string& word : value_or<Strings>(values, "set-file", {})) {
    BOOST_OUTCOME_TRY(const auto sides, split_assignment(word, "--set-file"));
    BOOST_OUTCOME_TRY(MetadataSetting setting, file_setting(sides.first, sides.second));
    changes.set.push_back(std::move(setting));
  }
  constexpr std::pair<const char*, const char*> kTexts[] = {{"general-name", "general.name"},
                                                            {"general-description", "general.description"},
                                                            {"chat-template", "tokenizer.chat_template"}};
  for (const auto& [option, key] : kTexts)
    if (const auto text = text_of(values, option)) changes.set.push_back({key, metadata_string(*text)});
  if (const auto file = text_of(values, "chat-template-file"))
    changes.set.push_back({"tokenizer.chat_template", ValueFile{*file}});
  return ok();
}

int edit_verb(const Parsed& parsed) {
  const po::variables_map& values = parsed.values;
  auto words = values["words"].as<Strings>();
  EditOptions options;
  if (words.size() != 1 && words.size() != 3)
    return fail(usage_error("expected FILE or FILE KEY VALUE", "usage: " + edit_command().usage));
  if (words.size() == 3) {
    words[2].erase(0, words[2].find_first_not_of(' '));
    auto setting = parse_setting(words[1], words[2]);
    if (!setting) return fail(setting.error());
    options.changes.set.push_back(std::move(setting).value());
  }
  if (const Status read = read_keys(values, options.changes); !read) return fail(read.error());
  if (options.changes.set.empty() && options.changes.remove.empty() && options.changes.rename.empty())
    return fail(usage_error("no changes given", "give --set KEY=VALUE, --remove KEY, or --rename KEY=NEW"));
  options.output = text_of(values, "output").value_or("");
  options.overwrite = values.count("overwrite") > 0;
  options.dry_run = values.count("dry-run") > 0;
  const auto context = open_context(values);
  if (!context) return fail(context.error());
  options.types = context.value().recipes().types();
  options.stop = catch_signals();
  const auto edited = edit_metadata(words[0], options);
  if (!edited) {
    const int code = fail(edited.error());
    return signal_exit_code().value_or(code);
  }
  if (edited.value().restored)
    print_warning(words[0] + ": an earlier edit was interrupted; its header was restored first");
  for (const std::string& warning : edited.value().warnings) print_warning(warning);
  for (const MetadataChange& change : edited.value().changes) print_note(describe(change));
  if (edited.value().changes.empty()) {
    print_note(words[0] + ": no changes");
    if (options.output.empty()) return 0;
  }
  const std::string& written = options.output.empty() ? words[0] : options.output;
  print_note(fmt::format("{} {}  {}", options.dry_run ? "would write" : "wrote", written,
                         edited.value().in_place ? "header only" : human_bytes(edited.value().bytes)));
  return 0;
}

}  // namespace

const Verb kEditVerb{"edit", OperationGroup::kEdit, "Change the metadata of a GGUF file in place", edit_command,
                     edit_verb};

}  // namespace ggufmill
