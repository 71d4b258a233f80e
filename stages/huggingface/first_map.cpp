#include "stages/huggingface/first_map.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "pipeline/config/yaml_reader.h"
#include "pipeline/config/yaml_words.h"
#include "pipeline/core/text.h"
#include "pipeline/core/written_json.h"
#include "pipeline/io/platform/filesystem.h"
#include "stages/huggingface/checkpoint/checkpoint_files.h"
#include "stages/huggingface/checkpoint/quantized_checkpoint.h"
#include "stages/huggingface/chosen_map.h"
#include "stages/huggingface/decode_options.h"
#include "stages/huggingface/general.h"
#include "stages/huggingface/map/metadata_rules.h"
#include "stages/huggingface/map/tensor_map.h"
#include "stages/huggingface/tokenizer/encoder.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

constexpr std::size_t kMaxLines = 200;  // of each list

// Returns a name with its numbers replaced: the first with {layer}, the second with {expert}, as rules have them.
std::string pattern_of(const std::string& name) {
  std::string pattern;
  int numbers = 0;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    const bool is_number = !part.empty() && part.find_first_not_of("0123456789") == part.npos;
    const int number = is_number ? numbers++ : 2;
    pattern += (begin == 0 ? "" : ".") + (number == 0 ? "{layer}" : number == 1 ? "{expert}" : part);
    begin = end + 1;
  }
  return pattern;
}

// Tensors whose names differ only in numbers.
struct Alike {
  std::size_t count = 0;
  std::set<std::string> forms;  // types and shapes

  void add(const NamedTensor& tensor) {
    ++count;
    if (forms.size() < 4)
      forms.insert(fmt::format("{} of {}", tensor.values->type->name, describe(tensor.values->shape)));
  }
  std::string text() const {
    const bool has_more = forms.size() == 4;
    return fmt::format("{}: {}{}", counted(count, "tensor"), fmt::join(forms, ", "), has_more ? ", ..." : "");
  }
};
using Patterns = std::map<std::string, Alike>;

std::string shortened(const std::string& text) {
  constexpr std::size_t kMax = 80;
  return text.size() <= kMax ? text : text.substr(0, kMax - 3) + "...";
}

std::string describe_error(const Error& error) {
  std::string text = error.what;
  if (!error.detail.empty() && error.detail.find('\n') == std::string::npos) text += fmt::format(" ({})", error.detail);
  return text;
}

// Counts that rank how well a map fits a checkpoint.
struct Fit {
  std::string map;
  std::size_t matched = 0;  // kinds of tensors that a rule matches
  std::size_t missing = 0;  // tensors and metadata that the map requires
  std::size_t unread = 0;   // keys of config.json that no rule reads

  bool is_better_than(const Fit& other) const {
    const std::size_t own = matched + other.missing, others = other.matched + missing;
    return own != others ? own > others : unread < other.unread;
  }
};

class FirstMap {
 public:
  FirstMap(SourceOptions options, const CheckpointOpener& open) : chosen_(std::move(options)), files_(open) {}

  // `why`: a comment about the choice of the map.
  Result<std::string> write(const std::string& why) {
    std::vector<std::string> warnings;
    BOOST_OUTCOME_TRY(chosen_.choose(warnings));
    head(why);
    if (chosen_.architecture.part == ModelPart::kText && !chosen_.architecture.adapters) read_vocabulary();
    BOOST_OUTCOME_TRY(read_tensors());
    list("Metadata that the map requires and that has no value; `values: {KEY: VALUE}` can give one:",
         missing_metadata());
    list("Keys of config.json that no rule reads. Those that change what the model computes need a rule:",
         unread_keys());
    return std::move(text_);
  }

  // Returns the map that serves the class in config.json; empty if there is none.
  std::string serving() {
    std::vector<std::string> warnings;
    return chosen_.choose(warnings) ? map().file : std::string();
  }

  // Returns one tensor of each kind, with the names that the checkpoint gives them. Chooses the map first.
  Result<std::vector<NamedTensor>> kinds() {
    std::vector<std::string> warnings;
    BOOST_OUTCOME_TRY(chosen_.choose(warnings));
    BOOST_OUTCOME_TRY(OpenedTensors opened, chosen_.open_tensors(files_));
    std::set<std::string> patterns;
    std::erase_if(opened.own, [&](const NamedTensor& each) { return !patterns.insert(pattern_of(each.name)).second; });
    return std::move(opened.own);
  }

  // Returns how well the map fits, without the rules for the tokenizer. `kinds`: one tensor of each kind.
  Result<Fit> fit(const std::vector<NamedTensor>& kinds) {
    std::vector<std::string> warnings;
    BOOST_OUTCOME_TRY(chosen_.choose(warnings));
    BOOST_OUTCOME_TRY(const std::vector<NamedTensor> renamed, rename_tensors(map(), *chosen_.facts, kinds));
    if (const auto layers = chosen_.facts->count(map().layers, "")) layers_ = layers.value();
    Fit fit{.map = chosen_.options.architecture};
    std::vector<NamedTensor> taken;
    for (bool beyond = false; const NamedTensor& tensor : renamed)
      if (!rule_for(tensor.name, beyond).empty()) taken.push_back(tensor);
    fit.matched = taken.size();
    fit.missing = faults(taken).size() + missing_metadata().size();
    fit.unread = unread_keys().size();
    return fit;
  }

 private:
  const Architecture& map() const { return chosen_.architecture; }

  void comment(std::string_view text) { text_ += text.empty() ? "#\n" : fmt::format("# {}\n", printable(text)); }

  // Writes a list of comments after a line that introduces it; nothing if it is empty.
  void list(std::string_view title, const std::vector<std::string>& lines) {
    if (lines.empty()) return;
    text_ += "\n";
    comment(title);
    for (std::size_t i = 0; i < std::min(lines.size(), kMaxLines); ++i) comment("  " + lines[i]);
    if (lines.size() > kMaxLines) comment(fmt::format("  ... and {} more", lines.size() - kMaxLines));
  }

  void head(const std::string& why) {
    const std::string& like = chosen_.options.architecture;
    const std::string name = folder_name(chosen_.options.folder);
    comment(fmt::format("A first map of {}, like the map {}, written by `ggufmill architectures new`.", name, like));
    if (!why.empty()) comment(why);
    comment("Check what the comments list. `--architectures FILE` adds this file to the built-in maps.");
    text_ += fmt::format("description: {}\n", yaml_quoted(name));
    const bool is_file = names_file(like);
    text_ += fmt::format("extends: {}\n", is_file ? yaml_quoted(fs::absolute(like).string()) : yaml_quoted(like));
    text_ += fmt::format("# name: {}   # general.architecture; inherited\n", printable(map().name));
    if (chosen_.class_name.empty()) {
      comment("config.json names no class: write a condition on its keys for the models that this map serves.");
      text_ += "# serves_when: KEY\n";
    } else {
      text_ += fmt::format("serves: [{}]\n", yaml_quoted(chosen_.class_name));
    }
  }

  void read_vocabulary() {
    const fs::path folder = chosen_.tokenizer_folder();
    PreTokenizers known = chosen_.pre_tokenizers();
    if (const auto hash = pre_tokenizer_hash_of(folder);
        hash && !hash.value().empty() && !known.contains(hash.value()) && !pre_tokenizer_named(hash.value())) {
      known[hash.value()] = "unknown";
      text_ += "\n";
      comment("The pre-tokenizer is not known. Put llama.cpp's name for it here, and remove the comment signs:");
      text_ += fmt::format("# pre_tokenizers:\n#   {}: llama-bpe\n", hash.value());
    }
    auto options = tokenizer_options(chosen_.tokenizer_map().tokenizer, chosen_.tokenizer_facts());
    if (!options) return list("The tokenizer cannot be read:", {describe_error(options.error())});
    options.value().pre_tokenizers = std::move(known);
    auto read = read_tokenizer(folder, options.value());
    if (!read) return list("The tokenizer cannot be read:", {describe_error(read.error())});
    tokenizer_ = std::move(read).value();
    chosen_.set_tokenizer(tokenizer_);
  }

  Result<std::vector<NamedTensor>> decode(const std::vector<NamedTensor>& tensors) const {
    BOOST_OUTCOME_TRY(const DecodeOptions options,
                      decode_options(map(), *chosen_.facts, tensors, Blocks::kKeep, OutType::kAuto));
    BOOST_OUTCOME_TRY(DecodedCheckpoint decoded,
                      decode_checkpoint(chosen_.facts->folder(), chosen_.facts->config(), tensors, options));
    return std::move(decoded.tensors);
  }

  Status read_tensors() {
    BOOST_OUTCOME_TRY(OpenedTensors opened, chosen_.open_tensors(files_));
    std::vector<NamedTensor> tensors = std::move(opened.own);
    std::ranges::move(opened.further, std::back_inserter(tensors));
    if (auto renamed = rename_tensors(map(), *chosen_.facts, tensors))
      tensors = std::move(renamed).value();
    else
      list("Tensors cannot be renamed by `names`:", {describe_error(renamed.error())});
    if (auto decoded = decode(tensors))
      tensors = std::move(decoded).value();
    else
      list("The quantized weights cannot be decoded:", {describe_error(decoded.error())});
    match(tensors);
    return ok();
  }

  // A rule whose condition is true, or cannot be evaluated.
  bool is_active(const std::optional<ValueRule>& when) const {
    const auto holds = chosen_.facts->holds(when);
    return !holds || holds.value();
  }

  // Returns the pattern of the first rule that matches, and what it makes; empty if there is none. `beyond`: set if a
  // rule would match in a model with more layers.
  std::string rule_for(const std::string& name, bool& beyond) const {
    const auto fits = [&](const NamePattern& pattern) {
      const auto match = pattern.match(name);
      if (!match) return false;
      const bool is_layer = !match->numbers.layer || *match->numbers.layer < layers_;
      beyond = beyond || !is_layer;
      return is_layer;
    };
    const auto made = [](const CheckpointRule& rule) {
      std::vector<std::string> names;
      for (const TensorOutput& output : rule.outputs) names.push_back(output.name.text());
      return names.empty() ? std::string("dropped") : fmt::format("{}", fmt::join(names, ", "));
    };
    for (const CheckpointRule& rule : map().tensors) {
      if (!is_active(rule.when)) continue;
      for (const NamePattern& from : rule.from)
        if (fits(from)) return fmt::format("{} -> {}", from.name().text(), made(rule));
      for (const TensorOutput& output : rule.outputs)
        for (const NamePattern& part : output.parts)
          if (rule.from.empty() && is_active(output.when) && fits(part))
            return fmt::format("{} -> {}", part.name().text(), output.name.text());
    }
    return {};
  }

  void match(const std::vector<NamedTensor>& tensors) {
    const auto layers = chosen_.facts->count(map().layers, "the number of layers");
    if (layers)
      layers_ = layers.value();
    else
      list("The number of layers, `layers`, has no value:", {describe_error(layers.error())});
    Patterns matched, unmatched, beyond;
    std::vector<NamedTensor> taken;
    for (const NamedTensor& tensor : tensors) {
      bool is_beyond = false;
      const std::string rule = rule_for(tensor.name, is_beyond);
      if (!rule.empty()) taken.push_back(tensor);
      (!rule.empty() ? matched
       : is_beyond   ? beyond
                     : unmatched)[rule.empty() ? pattern_of(tensor.name) : rule]
          .add(tensor);
    }
    list_unmatched(unmatched);
    list(fmt::format("Tensors that a rule matches, but in layers beyond the {} of the model:", layers_),
         lines_of(beyond));
    if (layers) list("Tensors that the map requires and that are missing, or that do not fit:", faults(taken));
    list(fmt::format("Tensors that a rule matches, {} of {}:", taken.size(), tensors.size()), lines_of(matched));
  }

  static std::vector<std::string> lines_of(const Patterns& patterns) {
    std::vector<std::string> lines;
    for (const auto& [pattern, alike] : patterns) lines.push_back(fmt::format("{}   # {}", pattern, alike.text()));
    return lines;
  }

  void list_unmatched(const Patterns& unmatched) {
    std::vector<std::string> lines;
    for (const auto& [pattern, alike] : unmatched)
      lines.push_back(fmt::format("- {{from: {}, to: NAME}}   # {}", yaml_quoted(pattern), alike.text()));
    if (lines.empty()) return;
    text_ += "\n";
    comment("Tensors that no rule matches. Complete these rules, with names that llama.cpp knows, and remove the");
    comment("comment signs; or drop tensors that are not needed: names: [{drop: REGEX}]");
    text_ += "# tensors:\n";
    for (std::size_t i = 0; i < std::min(lines.size(), kMaxLines); ++i) comment("  " + lines[i]);
    if (lines.size() > kMaxLines) comment(fmt::format("  ... and {} more", lines.size() - kMaxLines));
  }

  // Returns what is wrong with the tensors that rules match: those that are required and missing, and shapes.
  std::vector<std::string> faults(const std::vector<NamedTensor>& taken) const {
    const auto mapped = map_tensors(map(), *chosen_.facts, taken, chosen_.options.folder);
    if (mapped) return {};
    std::vector<std::string> lines{describe_error(mapped.error())};
    for (const Error& other : mapped.error().also) lines.push_back(describe_error(other));
    return lines;
  }

  // Evaluates the metadata; returns the keys without a value.
  std::vector<std::string> missing_metadata() {
    chosen_.facts->set("file_type", 1);
    if (layers_ != UINT64_MAX) chosen_.facts->set("layers", layers_);
    std::vector<std::string> missing;
    Metadata metadata;
    const auto try_all = [&](const std::vector<MetadataRule>& rules, const Facts& facts) {
      for (const MetadataRule& rule : rules)
        if (const Status set = set_metadata({rule}, map(), facts, metadata); !set)
          missing.push_back(fmt::format("{}: {}", whole_key(rule.key, map().name), describe_error(set.error())));
    };
    for (const auto* rules : {&map().metadata_early, &map().metadata_of_tensors, &map().metadata})
      try_all(*rules, *chosen_.facts);
    for (const auto* rules : {&map().metadata_before_tokenizer, &map().metadata_after_tokenizer})
      try_all(*rules, chosen_.tokenizer_facts());
    return missing;
  }

  // Returns the keys of config.json that no rule has read so far, with their values.
  std::vector<std::string> unread_keys() const {
    std::vector<std::string> lines;
    const auto add = [&](const std::string& prefix, const json::object& members) {
      for (const auto& member : members)
        if (const std::string key(member.key()); !chosen_.facts->was_read(key))
          lines.push_back(fmt::format("{}{}: {}", prefix, key, shortened(written_json(member.value()))));
    };
    json::object top = chosen_.stored_config;
    for (const std::string_view key : text_model_keys())
      if (const json::value* const nested = chosen_.stored_config.if_contains(key); nested && nested->is_object()) {
        add(std::string(key) + ".", nested->get_object());
        top.erase(key);
      }
    for (const std::string_view key : {"architectures", "model_type"}) top.erase(key);
    add("", top);
    return lines;
  }

  ChosenMap chosen_;
  CheckpointFiles files_;
  TokenizerMetadata tokenizer_;
  std::uint64_t layers_ = UINT64_MAX;
  std::string text_;
};

// Returns the maps of text models that stand for themselves, by name.
std::vector<std::string> text_maps(const AddedMaps& added) {
  std::set<std::string> names;
  for (const AddedMaps::Map& each : added.maps()) names.insert(each.name);
  for (const BuiltInArchitecture& each : built_in_architectures()) names.emplace(each.name);
  std::erase_if(names, [&](const std::string& name) {
    const auto map = named_architecture(name, {}, added);
    return !map || map.value().part != ModelPart::kText || map.value().adapters ||
           map.value().target_tokenizer != TargetTokenizer::kNone;
  });
  return {names.begin(), names.end()};
}

// Returns the maps that fit the checkpoint, the best one first.
Result<std::vector<Fit>> fits(const SourceOptions& source, const AddedMaps& added, const CheckpointOpener& open) {
  const auto with = [&](const std::string& map) {
    SourceOptions options = source;
    options.architecture = map;
    return options;
  };
  BOOST_OUTCOME_TRY(const std::vector<NamedTensor> kinds, FirstMap(with("llama"), open).kinds());
  std::vector<Fit> found;
  for (const std::string& name : text_maps(added))
    if (auto fit = FirstMap(with(name), open).fit(kinds)) found.push_back(std::move(fit).value());
  std::ranges::stable_sort(found, [](const Fit& a, const Fit& b) { return a.is_better_than(b); });
  return found;
}

// Returns the comment that reports why the first of the maps was chosen, and which ones come next.
std::string reason(const std::vector<Fit>& fits) {
  constexpr std::size_t kMax = 4;
  std::vector<std::string> texts;
  for (const Fit& fit : fits)
    if (texts.size() < kMax)
      texts.push_back(fmt::format("{} ({}, {}, {})", fit.map, fit.matched, fit.missing, fit.unread));
  return fmt::format(
      "The maps that fit best, with the numbers of kinds of tensors that match, of what they require and is missing, "
      "and of keys of config.json that they do not read: {}",
      fmt::join(texts, ", "));
}

}  // namespace
}  // namespace ggufmill::huggingface

namespace ggufmill {

Result<std::string> first_map(const FirstMapOptions& options, const CheckpointOpener& open) {
  huggingface::SourceOptions source;
  source.folder = options.folder;
  source.architecture = options.like;
  source.architectures = huggingface::map_places(options.architectures);
  BOOST_OUTCOME_TRY(const auto added, huggingface::AddedMaps::read(source.architectures));
  std::string why;
  if (options.like.empty()) source.architecture = huggingface::FirstMap(source, open).serving();
  if (!source.architecture.empty() && options.like.empty()) {
    why = fmt::format("The map {} serves this class: the checkpoint converts without a map of its own.",
                      source.architecture);
  } else if (options.like.empty()) {
    BOOST_OUTCOME_TRY(const auto fits, huggingface::fits(source, added, open));
    if (fits.empty() || fits.front().matched == 0)
      return input_error(options.folder, "no map of text models matches any of its tensors",
                         "name the map of similar models with --like NAME; `ggufmill architectures` lists the maps");
    source.architecture = fits.front().map;
    why = huggingface::reason(fits);
  }
  BOOST_OUTCOME_TRY(const auto like, huggingface::named_architecture(source.architecture, {}, added));
  source.part = like.part;
  return huggingface::FirstMap(std::move(source), open).write(why);
}

}  // namespace ggufmill
