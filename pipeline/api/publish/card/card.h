#pragma once
// Model cards: the README.md that describes the files of a finished job to those who download them.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/api/publish/card/base_card.h"
#include "pipeline/core/error.h"

namespace ggufmill {

// The loss of a file against the one that it is compared with. Divergences are Kullback-Leibler divergences of the
// distributions of the next token, in nats. Numbers that are not finite are not shown.
struct CardQuality {
  double divergence = 0;     // mean
  double divergence_99 = 0;  // 99th percentile
  double divergence_max = 0;
  double same_top = 0;  // share of the tokens for which both consider the same token the most likely, 0 to 1
  double perplexity = 0;
};

// A file of an output: the only one, or one of its shards.
struct CardShard {
  std::string name;    // relative to the card
  std::string sha256;  // in hexadecimal; empty: not shown
};

inline constexpr std::string_view kTextPart = "text";

// An output of the job: a row of the card's table.
struct CardFile {
  std::vector<CardShard> shards{};  // at least one, in order
  std::string recipe{};             // its name, or a type
  std::string part{kTextPart};      // "text", "projector" or "draft"
  std::uint64_t bytes = 0;          // of all shards
  double bits_per_weight = 0;       // 0: not shown
  bool importance = false;          // quantized with importance
  std::string encoder{};            // empty: the reference encoder
  std::optional<CardQuality> quality{};
  bool is_base = false;  // the one that the others are compared with
};

// Parameters of the quality measurement.
struct CardMeasurement {
  std::string text;  // name of the text file
  std::uint64_t chunks = 0, context = 0;
};

// Parameters of the importance computation.
struct CardImportance {
  std::string text;  // name of the text file
  std::uint64_t chunks = 0;
  std::string file;  // name of the importance file
};

// Memory that a context needs beside the weights: the cache of keys and values as F16, states, and computations.
struct CardContext {
  std::uint64_t tokens = 0, bytes = 0;
};

// The use of the model, which decides the commands of the card.
enum class CardUse { kText, kEmbedding, kAdapter };

struct Card {
  std::string name{};          // of the model: "Llama-3-8B-Instruct"
  std::string base_model{};    // its name on the Hugging Face Hub, "ORG/NAME"; may be empty
  std::string repository{};    // the name of the card's own repository there; may be empty
  std::string quantized_by{};  // may be empty
  BaseCard base{};             // from the card of the base model
  CardUse use = CardUse::kText;
  std::vector<CardFile> files{};
  std::vector<CardContext> contexts{};  // in increasing order; empty: not shown
  std::optional<CardMeasurement> measurement{};
  std::optional<CardImportance> importance{};
  std::string job{};      // text of the pipeline file
  std::string version{};  // of ggufmill
};

// A name that a template can contain.
struct CardPlaceholder {
  enum class Kind {
    kText,      // {{name}} is escaped for Markdown, {{{name}}} is one line of plain text, for code blocks and YAML
    kMarkdown,  // {{{name}}}: Markdown or YAML itself
    kFlag,      // {{#name}} only
    kList,      // {{#name}} only: once for each item
  };
  std::string section;  // of the list whose items have it: "files"; empty: known everywhere
  std::string name;
  Kind kind = Kind::kText;
  std::string doc;
};
std::vector<CardPlaceholder> card_placeholders();

// The templates of configs/cards, by name: "default".
struct BuiltInCard {
  std::string_view name, text;
};
std::span<const BuiltInCard> built_in_cards();

// Returns the names of the base models that the front matter of the card has: Card::base_model, or else those that the
// base model's own card has and that can be names on the hub, "ORG/NAME".
std::vector<std::string> base_models_of(const Card& card);

// Renders a Mustache template (https://mustache.github.io/mustache.5.html, without partials and other delimiters);
// `template_name` is its name in messages. A text that is empty and a list without items count as false in {{#name}}.
// Values are escaped, so that they cannot break the document's tables, code blocks or front matter. Errors have the
// code kUsage and name the line: a tag or section that is not closed, a name that does not exist there (with a list of
// those that do), or more than 1 MiB or 1000 sections, 16 of them within each other. A card of more than 1 MiB is an
// error, too.
Result<std::string> render_card(const Card& card, std::string_view template_text, const std::string& template_name);

}  // namespace ggufmill
