#include "stages/huggingface/check_converted.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "pipeline/core/complete_model.h"
#include "pipeline/core/text.h"
#include "pipeline/io/checkpoint_files.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"
#include "stages/huggingface/checkpoint/adapter.h"
#include "stages/huggingface/checkpoint/json_values.h"
#include "stages/huggingface/map/metadata_rules.h"

namespace ggufmill::huggingface {
namespace {

namespace json = boost::json;

// Returns true if the vocabulary size is stated in config.json rather than a class default. Exit code 4 for values that
// do not fit the map's rule.
Result<bool> vocabulary_size_is_stated(const ChosenMap& chosen) {
  const auto& rule = chosen.architecture.tokenizer.vocabulary_size;
  if (!rule) return true;
  BOOST_OUTCOME_TRY(const json::value size,
                    Facts(chosen.options.folder, chosen.stored_config, chosen.architecture.values).evaluate(*rule));
  BOOST_OUTCOME_TRY(const json::value used, chosen.facts->evaluate(*rule));
  return size == used;
}

class Completeness {
 public:
  Completeness(const ConvertedModel& made, std::vector<std::string>& warnings)
      : chosen_(made.chosen),
        model_(made.model),
        tokens_(made.tokenizer.tokens),
        missing_(made.missing),
        present_(made.present),
        sources_(made.sources),
        warnings_(warnings) {}

  Status check() {
    const ModelHoles holes = find_holes(model_);
    Diagnostics faults;
    BOOST_OUTCOME_TRY(add_missing(holes, faults));
    BOOST_OUTCOME_TRY(add_wrong_shapes(holes, faults));
    if (!faults.empty() && !chosen_.options.allow_missing) return faults.together();
    for (const Error& each : faults.errors()) warn(each.what);
    if (!holes.unknown.empty())
      warn("llama.cpp does not load the model: " + describe_unknown(holes.unknown, model_.tensors.size()));
    return warn_of_head();
  }

 private:
  void warn(std::string warning) { warnings_.push_back(std::move(warning)); }

  Status add_missing(const ModelHoles& holes, Diagnostics& faults) {
    std::set<std::string> reported;
    for (const MissingPart& part : missing_) reported.insert(part.makes.begin(), part.makes.end());
    std::set<std::uint64_t> layers;
    for (const Tensor& tensor : model_.tensors)
      if (const auto layer = layer_of(tensor.name)) layers.insert(*layer);
    std::vector<std::string> further, doubtful;
    // A draft shares the tensors outside of its layers with the model that it is for.
    for (const std::string& name : holes.missing) {
      const auto layer = layer_of(name);
      const bool is_shared = chosen_.options.part == ModelPart::kDraft && (!layer || !layers.contains(*layer));
      if (!is_shared && reported.insert(name).second) further.push_back(name);
    }
    for (const std::string& name : holes.doubtful)
      if (reported.insert(name).second) doubtful.push_back(name);
    BOOST_OUTCOME_TRY(auto parts, parts_of(chosen_.architecture, *chosen_.facts, present_, further));
    parts.insert(parts.begin(), missing_.begin(), missing_.end());
    BOOST_OUTCOME_TRY(const auto uncertain, parts_of(chosen_.architecture, *chosen_.facts, present_, doubtful));
    const std::string says =
        holes.layers ? fmt::format("{} says {}", chosen_.architecture.config, counted(*holes.layers, "layer")) : "";
    const auto described = [&](const std::vector<MissingPart>& all) {
      std::vector<MissingTensor> missing;
      for (const MissingPart& part : all) {
        const auto layer = part.makes.empty() ? std::nullopt : layer_of(part.makes.front());
        missing.push_back({part.name, layer});
      }
      return describe_missing(missing, present_.size(), {layers.begin(), layers.end()}, says);
    };
    if (!uncertain.empty())
      warn(fmt::format("{}; the model is written without {}", described(uncertain),
                       uncertain.size() == 1 ? "it" : "them"));
    if (parts.empty()) return ok();
    const std::string what = described(parts), first = quoted_name(parts[0].name);
    Error error = input_error(chosen_.options.folder, what, "check whether a file of the weights is missing");
    if (what.find(first) == what.npos) error.detail = fmt::format("the first is {}", first);
    BOOST_OUTCOME_TRY(const std::vector<std::string> unread, unread_files());
    if (!unread.empty()) {
      const bool is_one = unread.size() == 1;
      const std::string index = index_name();
      error.detail += fmt::format("{}{} in the folder {} not read: {}", error.detail.empty() ? "" : "\n",
                                  list_some(unread), is_one ? "was" : "were",
                                  index.empty() ? "without an index, only model*.safetensors are"
                                                : fmt::format("{} does not list {}", index, is_one ? "it" : "them"));
      error.help = fmt::format("if the tensors are in {}, {}; otherwise {}", is_one ? "that file" : "those files",
                               !index.empty() ? fmt::format("remove {}", index)
                               : is_one       ? "rename it so that its name begins with 'model'"
                                              : "rename them so that their names begin with 'model'",
                               error.help);
    }
    faults.add(with_way(std::move(error), parts.size() == 1 ? "it" : "them", chosen_.options.missing_files()));
    return ok();
  }

  // Returns the name of the index that lists the files of the weights; empty if there is none.
  std::string index_name() const {
    for (const SourceRef& file : model_.files) {
      const std::string name = fs::path(file->path).filename().string();
      if (name.ends_with(".safetensors.index.json") && is_file(chosen_.file(name))) return name;
    }
    return {};
  }

  // Returns the names of the safetensors files in the folder that no tensor comes from, although they may belong to the
  // checkpoint. Those of other formats and of adapters have names of their own. There are none if the map names the
  // files of the weights, or if these are PyTorch files.
  Result<std::vector<std::string>> unread_files() const {
    constexpr std::string_view kSafetensors = ".safetensors";
    std::vector<std::string> names;
    const auto is_safetensors = [&](const SourceRef& file) { return file->path.ends_with(kSafetensors); };
    if (!chosen_.architecture.weights.empty() || std::ranges::none_of(model_.files, is_safetensors)) return names;
    BOOST_OUTCOME_TRY(const std::vector<std::string> paths, paths_in(chosen_.options.folder));
    for (const fs::path path : paths) {
      const std::string name = path.filename().string();
      const auto is_it = [&](const SourceRef& file) { return fs::path(file->path).filename() == name; };
      if (name.ends_with(kSafetensors) && !name.starts_with("consolidated") && !is_adapter_file(name) &&
          std::ranges::none_of(model_.files, is_it))
        names.push_back(name);
    }
    return names;
  }

  // config.json can state that the head is not the embedding although the weights have no head; llama.cpp uses the
  // embedding then.
  Status warn_of_head() {
    const std::string& name = chosen_.class_name;
    const bool generates =
        name.ends_with("ForCausalLM") || name.ends_with("ForConditionalGeneration") || name.ends_with("LMHeadModel");
    const json::value* const tied = chosen_.facts->config().if_contains("tie_word_embeddings");
    const auto has = [&](std::string_view tensor) {
      return std::ranges::any_of(model_.tensors, [&](const Tensor& each) { return each.name == tensor; });
    };
    if (chosen_.options.part != ModelPart::kText || !generates || !tied || !tied->is_bool() || tied->get_bool() ||
        has("output.weight") || !has("token_embd.weight"))
      return ok();
    BOOST_OUTCOME_TRY(const auto parts, parts_of(chosen_.architecture, *chosen_.facts, present_, {"output.weight"}));
    if (parts[0].name == "output.weight" ||
        std::ranges::any_of(missing_, [&](const MissingPart& each) { return each.name == parts[0].name; }))
      return ok();
    warn(
        fmt::format("tensor {} is missing, although {} does not tie the head to the embedding (tie_word_embeddings: "
                    "false); llama.cpp uses the embedding in its place",
                    quoted_name(parts[0].name), chosen_.architecture.config));
    return ok();
  }

  // Shapes that only the metadata contradicts are reported, but no errors, if config.json does not state the sizes: the
  // defaults of its class may not be those of the model.
  Status add_wrong_shapes(const ModelHoles& holes, Diagnostics& faults) {
    BOOST_OUTCOME_TRY(const bool vocabulary_is_stated, vocabulary_size_is_stated(chosen_));
    const bool sizes_are_stated = states_sizes();
    std::vector<const WrongShape*> wrong, doubtful;
    for (const WrongShape& each : holes.misshapen) {
      const bool of_vocabulary = each.numbers.ends_with(" x n_vocab");
      const bool is_stated = of_vocabulary ? vocabulary_is_stated && !is_configured(each) : sizes_are_stated;
      (each.is_certain || (is_stated && !each.is_odd) ? wrong : doubtful).push_back(&each);
    }
    const auto described = [&](const std::vector<const WrongShape*>& all) {
      const auto source = sources_.find(all[0]->name);
      const std::string name = source == sources_.end() || source->second.empty() ? all[0]->name : source->second;
      std::string what = fmt::format("tensor {} {}", quoted_name(name), describe(*all[0]));
      if (const std::size_t others = all.size() - 1)
        what += others == 1 ? "; 1 more shape is wrong" : fmt::format("; {} more shapes are wrong", others);
      return what;
    };
    if (!doubtful.empty()) warn(described(doubtful) + "; llama.cpp may not load the model");
    if (wrong.empty()) return ok();
    Error error = input_error(chosen_.options.folder, described(wrong),
                              fmt::format("check that {}, the tokenizer, and the weights are of the same model",
                                          chosen_.architecture.config));
    error.detail = fmt::format("llama.cpp loads {} as {}", wrong[0]->name, wrong[0]->numbers);
    faults.add(with_way(std::move(error), "right shapes", chosen_.options.missing_files()));
    return ok();
  }

  // Returns true if the tensor has as many rows as config.json states tokens, and the tokenizer has fewer.
  bool is_configured(const WrongShape& each) const {
    const auto& rule = chosen_.architecture.tokenizer.vocabulary_size;
    const auto size = rule ? chosen_.facts->evaluate(*rule) : Result<json::value>(json::value());
    const auto number = size ? whole_number(size.value()) : std::nullopt;
    return number && static_cast<std::uint64_t>(*number) == each.shape.rows() && tokens_ < each.shape.rows();
  }

  // Returns false if the file does not state a size for which the class has a default.
  bool states_sizes() const {
    const auto states = [](const json::object& config, std::string_view key) {
      if (config.if_contains(key)) return true;
      return std::ranges::any_of(config, [&](const auto& member) {
        return member.value().is_object() && member.value().get_object().contains(key);
      });
    };
    const json::object& used = chosen_.facts->config();
    const auto number = [&](std::string_view key) {
      const json::value* const value = used.if_contains(key);
      return value ? whole_number(*value) : std::nullopt;
    };
    const auto heads = number("num_attention_heads");
    for (const std::string_view key : {"hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads",
                                       "head_dim", "num_experts", "moe_intermediate_size"}) {
      const auto value = number(key);
      if (!value || states(chosen_.stored_config, key)) continue;
      const auto hidden = number("hidden_size");
      const bool is_computed = (key == "num_key_value_heads" && value == heads) ||
                               (key == "head_dim" && hidden && heads && *heads > 0 && *value == *hidden / *heads);
      if (!is_computed) return false;
    }
    return true;
  }

  const ChosenMap& chosen_;
  const Model& model_;
  const std::uint64_t tokens_;
  const std::vector<MissingPart>& missing_;
  const std::vector<std::string>& present_;
  const std::map<std::string, std::string>& sources_;
  std::vector<std::string>& warnings_;
};

// Returns the error for an embedding whose rows are not as long as the metadata has it. `columns`: their length.
Error wrong_width(const ConvertedModel& made, const MetadataValue& length, std::uint64_t columns) {
  const std::string what = fmt::format(
      "the hidden size is {}, but the embedding (token_embd.weight) has rows of {} values", describe(length), columns);
  for (const MetadataRule& rule : made.chosen.architecture.metadata)
    if (made.model.metadata.find(whole_key(rule.key, made.chosen.architecture.name)) == &length)
      if (const auto value = made.chosen.facts->evaluate(rule.value))
        return made.chosen.facts->wrong_value(
            rule.value, value.value(),
            fmt::format("{}, the length of the rows of the embedding (token_embd.weight)", columns),
            {made.chosen.config_file(), "", what});
  return input_error(
      made.chosen.config_file().string(), what,
      fmt::format("check that {} and the weights are of the same model", made.chosen.architecture.config));
}

}  // namespace

Status check_complete(const ConvertedModel& made, std::vector<std::string>& warnings) {
  return Completeness(made, warnings).check();
}

Status check_texts(const ConvertedModel& made) {
  for (const MetadataEntry& entry : made.model.metadata.entries()) {
    if (entry.key == "tokenizer.ggml.tokens" && made.tokenizer.reader == TokenizerReader::kRwkv) continue;
    if (!is_utf8(entry.value))
      return input_error(made.chosen.options.folder,
                         fmt::format("the value of {} is not UTF-8: it has an unpaired surrogate", entry.key),
                         "find the unpaired \\ud800 to \\udfff in the JSON files and remove it");
  }
  return ok();
}

Status check_embedding(const ConvertedModel& made, std::vector<std::string>& warnings) {
  const auto embedding = std::ranges::find(made.model.tensors, "token_embd.weight", &Tensor::name);
  if (embedding == made.model.tensors.end()) return ok();
  const std::uint64_t rows = embedding->shape().rows(), columns = embedding->shape().columns();
  const MetadataValue* length = made.model.metadata.find(made.chosen.architecture.name + ".features_length");
  if (!length) length = made.model.metadata.find(made.chosen.architecture.name + ".embedding_length");
  if (length && as_unsigned(*length).value_or(0) != columns) return wrong_width(made, *length, columns);
  if (made.tokenizer.reader == TokenizerReader::kNone || made.tokenizer.tokens <= rows) return ok();
  const std::string what =
      fmt::format("the tokenizer has {} tokens, but the embedding (token_embd.weight) has only {} rows",
                  made.tokenizer.tokens, rows);
  BOOST_OUTCOME_TRY(const bool is_stated, vocabulary_size_is_stated(made.chosen));
  if (is_stated)
    return input_error(made.chosen.options.folder, what,
                       "check that the tokenizer and the weights are of the same model; vocab_size in config.json is "
                       "the number of tokens");
  warnings.push_back(what + ": vocab_size is missing in config.json, and the larger default of its model type is used");
  return ok();
}

Status check_weights(const ChosenMap& chosen, const std::vector<MappedTensor>& tensors) {
  const ModelPart part = chosen.options.part;
  if (part == ModelPart::kText) return ok();
  const auto is_own = [&](const MappedTensor& tensor) {
    return !tensor.computed && (part != ModelPart::kDraft || tensor.name.starts_with("blk."));
  };
  if (std::ranges::any_of(tensors, is_own)) return ok();
  return input_error(chosen.options.folder, fmt::format("contains no weights of the {}", part_name(part)),
                     fmt::format("{} describes it, but its tensors are missing: take them from the original "
                                 "checkpoint, or convert the text model alone",
                                 chosen.architecture.config));
}

}  // namespace ggufmill::huggingface
