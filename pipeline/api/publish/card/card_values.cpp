#include "pipeline/api/publish/card/card_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "pipeline/api/publish/card/markdown.h"
#include "pipeline/api/publish/card/recommendation.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

namespace mustache = kainjow::mustache;
using Kind = CardPlaceholder::Kind;

// Parts of a model in the order of the table, and what readers have to know about them.
struct Part {
  std::string_view name, note;
};
constexpr Part kParts[] = {
    {kTextPart, ""},
    {"projector", "for images or sound: load it with `--mmproj`"},
    {"draft", "for speculative decoding: load it with `--model-draft`"},
};

const Part* part_of(const CardFile& file) {
  return std::ranges::find(kParts, std::string_view(file.part), &Part::name);
}

// "about 1.4 GiB for 8192 tokens, 4.2 GiB for 32768".
std::string context_memory(const std::vector<CardContext>& contexts) {
  std::string text;
  for (const CardContext& each : contexts)
    text += fmt::format("{}{} for {}{}", text.empty() ? "about " : ", ", human_bytes(each.bytes), each.tokens,
                        text.empty() ? " tokens" : "");
  return text;
}

// A file with what depends on the others.
struct FileView {
  const CardFile* file;
  const Recommendation* recommendation;
  bool names_importance;  // some of the files were quantized with importance, others without
};

// The card and everything derived from it that placeholders show. Files are in the order of the table: by part and
// size.
struct CardView {
  const Card* card;
  std::vector<FileView> files;
  const CardFile* example;  // the file of the commands; null if there is no text file
};

CardView view_of(const Card& card) {
  CardView view{&card, {}, nullptr};
  const std::vector<const Recommendation*> recommendations = recommended(card.files);
  const auto without = [](const CardFile& file) { return !file.is_base && file.part == kTextPart && !file.importance; };
  const bool some_without = std::ranges::any_of(card.files, without);
  for (std::size_t i = 0; i < card.files.size(); ++i)
    view.files.push_back({&card.files[i], recommendations[i], some_without && card.files[i].importance});
  std::ranges::stable_sort(view.files, {}, [](const FileView& item) {
    return std::tuple(std::distance(std::begin(kParts), part_of(*item.file)), item.file->bytes);
  });
  // The smallest recommended file, else the smallest.
  for (const bool is_recommended : {true, false})
    for (const FileView& item : view.files)
      if (view.example == nullptr && item.file->part == kTextPart && (item.recommendation || !is_recommended))
        view.example = item.file;
  return view;
}

// ---- values: a text that is empty is false, so that sections can ask for it ----

std::string plain(std::string_view text) { return printable(text); }
mustache::data text_value(const std::string& text) {
  return text.empty() ? mustache::data(false) : mustache::data(text);
}
mustache::data plain_value(std::string_view text) { return text_value(plain(text)); }

std::string joined(const std::vector<std::string>& texts) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : ", ") + text;
  return out;
}

// Three significant digits.
std::string number_text(double number) {
  if (!std::isfinite(number)) return {};
  if (number == 0) return "0";
  const int exponent = static_cast<int>(std::floor(std::log10(std::abs(number))));
  return exponent < -4 ? fmt::format("{:.2e}", number) : fmt::format("{:.{}f}", number, std::max(0, 2 - exponent));
}

std::string decimal_text(double number, std::string_view unit = {}) {
  return std::isfinite(number) ? fmt::format("{:.2f}{}", number, unit) : std::string();
}

std::string name_of(const CardFile& file) { return file.shards.empty() ? std::string() : file.shards.front().name; }

// ---- parts of the table ----

std::string note_of(const FileView& item) {
  const CardFile& file = *item.file;
  std::vector<std::string> notes;
  if (item.recommendation) notes.push_back(fmt::format("**{}**", item.recommendation->note));
  if (file.is_base) notes.emplace_back("the others are compared with it");
  const Part* part = part_of(file);
  if (part != std::end(kParts) && !part->note.empty()) notes.emplace_back(part->note);
  if (!file.encoder.empty()) notes.push_back("encoder: " + markdown_text(plain(file.encoder)));
  if (item.names_importance) notes.emplace_back("with importance");
  if (file.shards.size() > 1) notes.push_back(fmt::format("{} files", file.shards.size()));
  return joined(notes);
}

// Ollama finds a file of the Hub by the type in its name or by the name, but not one of several shards.
std::string ollama_tag(const CardFile* file) {
  if (file == nullptr || file->shards.size() != 1) return {};
  const bool is_named =
      !file->recipe.empty() && lower_case(name_of(*file)).find(lower_case(file->recipe)) != std::string::npos;
  return shell_word(plain(is_named ? file->recipe : name_of(*file)));
}

const CardFile* first_where(const CardView& view, bool (*wanted)(const CardFile&)) {
  const auto found = std::ranges::find_if(view.files, [&](const FileView& item) { return wanted(*item.file); });
  return found == view.files.end() ? nullptr : found->file;
}

std::string first_name(const CardView& view, bool (*wanted)(const CardFile&)) {
  const CardFile* file = first_where(view, wanted);
  return file == nullptr ? std::string() : plain(name_of(*file));
}

// ---- the tables of placeholders ----

template <class T>
struct Row {
  std::string_view name;
  Kind kind;
  std::string_view doc;
  mustache::data (*value)(const T&);
};

template <class T, std::size_t kRows>
mustache::data values_of(const Row<T> (&rows)[kRows], const T& from) {
  mustache::data values;
  for (const Row<T>& row : rows) values.set(std::string(row.name), row.value(from));
  return values;
}

constexpr Row<CardShard> kShardRows[] = {
    {"file", Kind::kText, "name of the file", [](const CardShard& shard) { return plain_value(shard.name); }},
    {"link", Kind::kMarkdown, "link to the file",
     [](const CardShard& shard) { return text_value(markdown_link(plain(shard.name), shard.name)); }},
    {"sha256", Kind::kText, "its SHA-256", [](const CardShard& shard) { return plain_value(shard.sha256); }},
};

mustache::data shards_value(const FileView& item) {
  mustache::data shards{mustache::data::type::list};
  for (const CardShard& shard : item.file->shards) shards.push_back(values_of(kShardRows, shard));
  return shards;
}

// The value of a measurement; the file that the others are compared with has no loss.
mustache::data loss_value(const FileView& item, std::string (*text)(const CardQuality&)) {
  if (!item.file->quality || item.file->is_base) return false;
  return text_value(text(*item.file->quality));
}

constexpr Row<FileView> kFileRows[] = {
    {"file", Kind::kText, "name of the file, or of its first shard",
     [](const FileView& item) { return plain_value(name_of(*item.file)); }},
    {"link", Kind::kMarkdown, "link to it",
     [](const FileView& item) { return text_value(markdown_link(plain(name_of(*item.file)), name_of(*item.file))); }},
    {"recipe", Kind::kText, "recipe or type", [](const FileView& item) { return plain_value(item.file->recipe); }},
    {"part", Kind::kText, "part of the model: text, projector or draft",
     [](const FileView& item) { return plain_value(item.file->part); }},
    {"size", Kind::kText, "size of all shards",
     [](const FileView& item) { return text_value(human_bytes(item.file->bytes)); }},
    {"bits_per_weight", Kind::kText, "bits per weight",
     [](const FileView& item) {
       return item.file->bits_per_weight > 0 ? text_value(decimal_text(item.file->bits_per_weight)) : false;
     }},
    {"divergence", Kind::kText, "mean KL divergence in nats",
     [](const FileView& item) {
       return loss_value(item, [](const CardQuality& quality) { return number_text(quality.divergence); });
     }},
    {"divergence_99", Kind::kText, "99th percentile of the KL divergence",
     [](const FileView& item) {
       return loss_value(item, [](const CardQuality& quality) { return number_text(quality.divergence_99); });
     }},
    {"divergence_max", Kind::kText, "greatest KL divergence",
     [](const FileView& item) {
       return loss_value(item, [](const CardQuality& quality) { return number_text(quality.divergence_max); });
     }},
    {"same_top", Kind::kText, "how often the most likely token is the same, in percent",
     [](const FileView& item) {
       return loss_value(item, [](const CardQuality& quality) { return decimal_text(quality.same_top * 100, " %"); });
     }},
    {"perplexity", Kind::kText, "perplexity",
     [](const FileView& item) {
       return item.file->quality ? text_value(number_text(item.file->quality->perplexity)) : false;
     }},
    {"encoder", Kind::kText, "encoder, unless it is the reference encoder",
     [](const FileView& item) { return plain_value(item.file->encoder); }},
    {"importance", Kind::kFlag, "whether it was quantized with importance",
     [](const FileView& item) { return mustache::data(item.file->importance); }},
    {"is_base", Kind::kFlag, "whether the others are compared with it",
     [](const FileView& item) { return mustache::data(item.file->is_base); }},
    {"recommended", Kind::kText, "why it is recommended",
     [](const FileView& item) {
       return item.recommendation ? text_value(std::string(item.recommendation->note)) : false;
     }},
    {"note", Kind::kMarkdown, "all that there is to say about it",
     [](const FileView& item) { return text_value(note_of(item)); }},
    {"shards", Kind::kList, "its files, one or more", shards_value},
};

mustache::data files_value(const CardView& view) {
  mustache::data files{mustache::data::type::list};
  for (const FileView& item : view.files) files.push_back(values_of(kFileRows, item));
  return files;
}

bool has_sha256(const CardFile& file) {
  return std::ranges::any_of(file.shards, [](const CardShard& shard) { return !shard.sha256.empty(); });
}

bool has_quality(const CardFile& file) { return file.quality.has_value(); }

constexpr Row<CardView> kCardRows[] = {
    {"name", Kind::kText, "name of the model", [](const CardView& view) { return plain_value(view.card->name); }},
    {"base_model", Kind::kText, "name of the base model on the Hugging Face Hub, ORG/NAME",
     [](const CardView& view) { return plain_value(view.card->base_model); }},
    {"base_model_link", Kind::kMarkdown, "link to it",
     [](const CardView& view) {
       const std::string& base = view.card->base_model;
       return base.empty() ? false : text_value(markdown_link(plain(base), std::string(kHub) + base));
     }},
    {"is_adapter", Kind::kFlag, "whether it is a LoRA adapter",
     [](const CardView& view) { return mustache::data(view.card->use == CardUse::kAdapter); }},
    {"is_embedding", Kind::kFlag, "whether it is an embedding model",
     [](const CardView& view) { return mustache::data(view.card->use == CardUse::kEmbedding); }},
    {"is_text", Kind::kFlag, "whether it writes text: neither an adapter nor an embedding model",
     [](const CardView& view) { return mustache::data(view.card->use == CardUse::kText); }},
    {"repository", Kind::kText, "name of the card's repository there",
     [](const CardView& view) { return plain_value(view.card->repository); }},
    {"quantized_by", Kind::kText, "who made the files",
     [](const CardView& view) { return plain_value(view.card->quantized_by); }},
    {"front_matter", Kind::kMarkdown, "the YAML of the card, without the --- lines",
     [](const CardView& view) { return text_value(front_matter_of(*view.card)); }},
    {"license", Kind::kText, "license of the base model",
     [](const CardView& view) { return plain_value(joined(view.card->base.license)); }},
    {"license_name", Kind::kText, "name of the license, if it is not one that the Hub knows",
     [](const CardView& view) { return plain_value(view.card->base.license_name); }},
    {"license_link", Kind::kText, "where its text is",
     [](const CardView& view) { return plain_value(license_url(*view.card)); }},
    {"language", Kind::kText, "languages of the model",
     [](const CardView& view) { return plain_value(joined(view.card->base.language)); }},
    {"pipeline_tag", Kind::kText, "task of the model",
     [](const CardView& view) { return plain_value(view.card->base.pipeline_tag); }},
    {"library_name", Kind::kText, "library of the base model",
     [](const CardView& view) { return plain_value(view.card->base.library_name); }},
    {"files", Kind::kList, "the outputs, in the order of part and size", files_value},
    {"has_sha256", Kind::kFlag, "whether any file has a SHA-256",
     [](const CardView& view) { return mustache::data(first_where(view, has_sha256) != nullptr); }},
    {"quality", Kind::kFlag, "whether the quality of any file was measured",
     [](const CardView& view) { return mustache::data(first_where(view, has_quality) != nullptr); }},
    {"quality_text", Kind::kText, "name of the text with which it was measured",
     [](const CardView& view) { return view.card->measurement ? plain_value(view.card->measurement->text) : false; }},
    {"quality_chunks", Kind::kText, "number of its chunks",
     [](const CardView& view) {
       return view.card->measurement ? text_value(std::to_string(view.card->measurement->chunks)) : false;
     }},
    {"quality_context", Kind::kText, "number of tokens in a chunk",
     [](const CardView& view) {
       return view.card->measurement ? text_value(std::to_string(view.card->measurement->context)) : false;
     }},
    {"base_file", Kind::kText, "name of the file that the others are compared with",
     [](const CardView& view) {
       return text_value(first_name(view, [](const CardFile& file) { return file.is_base; }));
     }},
    {"context_memory", Kind::kText, "memory that contexts need beside the weights, if it is known",
     [](const CardView& view) { return text_value(context_memory(view.card->contexts)); }},
    {"recommendation_rule", Kind::kText, "how the files were chosen that the notes recommend",
     [](const CardView& view) { return text_value(recommendation_rule(view.card->files)); }},
    {"has_importance", Kind::kFlag, "whether importance was used",
     [](const CardView& view) { return mustache::data(view.card->importance.has_value()); }},
    {"importance_text", Kind::kText, "name of the text with which it was computed",
     [](const CardView& view) { return view.card->importance ? plain_value(view.card->importance->text) : false; }},
    {"importance_chunks", Kind::kText, "number of its chunks",
     [](const CardView& view) {
       return view.card->importance && view.card->importance->chunks != 0
                  ? text_value(std::to_string(view.card->importance->chunks))
                  : false;
     }},
    {"importance_file", Kind::kText, "name of the importance file",
     [](const CardView& view) { return view.card->importance ? plain_value(view.card->importance->file) : false; }},
    {"example_file", Kind::kText, "the smallest recommended file, quoted for a shell",
     [](const CardView& view) {
       return view.example == nullptr ? false : text_value(shell_word(plain(name_of(*view.example))));
     }},
    {"example_tag", Kind::kText, "how Ollama finds it in the repository; empty if it has several shards",
     [](const CardView& view) { return text_value(ollama_tag(view.example)); }},
    {"projector_file", Kind::kText, "the smallest projector, quoted for a shell",
     [](const CardView& view) {
       const std::string name = first_name(view, [](const CardFile& file) { return file.part == "projector"; });
       return name.empty() ? false : text_value(shell_word(name));
     }},
    {"job", Kind::kMarkdown, "the pipeline file as a code block",
     [](const CardView& view) {
       return view.card->job.empty() ? false : text_value(markdown_code(view.card->job, "yaml"));
     }},
    {"version", Kind::kText, "version of ggufmill",
     [](const CardView& view) { return plain_value(view.card->version); }},
};

template <class T, std::size_t kRows>
void add_rows(std::vector<CardPlaceholder>& out, const std::string& section, const Row<T> (&rows)[kRows]) {
  for (const Row<T>& row : rows) out.push_back({section, std::string(row.name), row.kind, std::string(row.doc)});
}

}  // namespace

mustache::data card_values(const Card& card) { return values_of(kCardRows, view_of(card)); }

std::vector<CardPlaceholder> card_placeholders() {
  std::vector<CardPlaceholder> all;
  add_rows(all, "", kCardRows);
  add_rows(all, "files", kFileRows);
  add_rows(all, "shards", kShardRows);
  return all;
}

}  // namespace ggufmill
