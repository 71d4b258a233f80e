// The fields of conditions: their table, and from linted nodes to a Condition.

#include <fmt/format.h>

#include "stages/quantize/condition.h"

namespace ggufmill {
namespace {

constexpr std::pair<std::string_view, Span> kSpans[] = {
    {"first_sixteenth", Span::kFirstSixteenth},
    {"first_eighth", Span::kFirstEighth},
    {"inner", Span::kInner},
    {"spread", Span::kSpread},
};

FieldSpec words_field(std::string name, FieldSpec word, std::string doc) {
  FieldSpec list{"", FieldKind::kList, "Any of these."};
  list.item = {word};
  FieldSpec field{std::move(name), FieldKind::kOneOf, std::move(doc)};
  field.alternatives = {std::move(word), std::move(list)};
  return field;
}

FieldSpec name_field() { return {"", FieldKind::kString, "A name."}; }

FieldSpec span_field(std::string name, std::string doc) {
  FieldSpec field{std::move(name), FieldKind::kEnum, std::move(doc)};
  for (const auto& [word, span] : kSpans) field.choices.emplace_back(word);
  return field;
}

// The scalar itself, or the scalars of the list.
std::vector<std::string> words_of(const ConfigNode* node) {
  std::vector<std::string> words;
  if (!node) return words;
  if (node->is_scalar()) words.push_back(node->scalar);
  for (const ConfigNode& item : node->items) words.push_back(item.scalar);
  return words;
}

Status read_number(const ConfigNode& value, std::string_view name, std::optional<std::uint64_t>& into) {
  const ConfigNode* node = value.find(name);
  if (!node) return ok();
  BOOST_OUTCOME_TRY(const std::int64_t number, to_integer(*node));
  into = static_cast<std::uint64_t>(number);
  return ok();
}

Status read_flag(const ConfigNode& value, std::string_view name, std::optional<bool>& into) {
  const ConfigNode* node = value.find(name);
  if (!node) return ok();
  BOOST_OUTCOME_TRY(into, to_bool(*node));
  return ok();
}

std::optional<Span> read_span(const ConfigNode* node) {
  if (node)
    for (const auto& [word, span] : kSpans)
      if (node->scalar == word) return span;
  return {};
}

Status read_numbers(const ConfigNode& value, Condition& c) {
  BOOST_OUTCOME_TRY(read_number(value, "experts", c.experts));
  BOOST_OUTCOME_TRY(read_number(value, "experts_at_least", c.experts_at_least));
  BOOST_OUTCOME_TRY(read_number(value, "head_groups_at_least", c.head_groups_at_least));
  BOOST_OUTCOME_TRY(read_number(value, "layers", c.layers));
  BOOST_OUTCOME_TRY(read_number(value, "matrices_at_least", c.matrices_at_least));
  BOOST_OUTCOME_TRY(read_number(value, "rank_below", c.rank_below));
  BOOST_OUTCOME_TRY(read_number(value, "order_below", c.order_below));
  return ok();
}

Status read_flags(const ConfigNode& value, Condition& c) {
  BOOST_OUTCOME_TRY(read_flag(value, "importance", c.importance));
  BOOST_OUTCOME_TRY(read_flag(value, "grouped_heads", c.grouped_heads));
  BOOST_OUTCOME_TRY(read_flag(value, "divisible", c.divisible));
  return ok();
}

std::vector<FieldSpec> tensor_fields() {
  FieldSpec class_word{"", FieldKind::kEnum, "A class of tensors."};
  class_word.choices = class_names();
  const FieldSpec type_word{"", FieldKind::kTypeName, "A tensor type."};
  return {{"match", FieldKind::kRegex, "The name has a part that matches (Perl syntax)."},
          words_field("class", class_word, "The tensor's class."),
          words_field("from", type_word, "The type decided so far."),
          span_field("order", "Its place among the tensors of its kind, in the order they are decided."),
          {"order_below", FieldKind::kInteger, "Its place among its kind, counted from 0, is less."},
          span_field("depth", "Its place among the layers."),
          {"divisible", FieldKind::kBool, "Whether rows are whole blocks of the type decided so far."},
          {"rank_below", FieldKind::kInteger, "It has fewer dimensions, those of 1 at the end not counted."},
          {"matrices_at_least", FieldKind::kInteger, "Its third dimension is at least this: one matrix an expert."}};
}

}  // namespace

std::vector<FieldSpec> model_condition_fields() {
  return {words_field("arch", name_field(), "The model's general.architecture is one of these."),
          words_field("not_arch", name_field(), "The model's general.architecture is none of these."),
          {"experts", FieldKind::kInteger, "The model has exactly this many experts."},
          {"experts_at_least", FieldKind::kInteger, "The model has at least this many experts."},
          {"head_groups_at_least", FieldKind::kInteger, "Attention heads that share a key-value head, at least."},
          {"grouped_heads", FieldKind::kBool, "Whether there are fewer key-value heads than heads."},
          {"layers", FieldKind::kInteger, "The model has exactly this many layers."},
          {"importance", FieldKind::kBool, "Whether an importance matrix is given."}};
}

std::vector<FieldSpec> condition_fields() {
  std::vector<FieldSpec> fields = tensor_fields();
  fields.push_back(words_field("model", name_field(), "The model is in one of these groups (`models`)."));
  for (FieldSpec& field : model_condition_fields()) fields.push_back(std::move(field));
  return fields;
}

Result<Condition> read_condition(const ConfigNode& value, const Types& types) {
  Condition c;
  if (const ConfigNode* match = value.find("match")) {
    BOOST_OUTCOME_TRY(c.match, Pattern::compile(match->scalar));
  }
  for (const std::string& word : words_of(value.find("class"))) c.classes.push_back(*class_named(word));
  for (const std::string& word : words_of(value.find("from"))) c.from.push_back(types.find(word));
  c.architectures = words_of(value.find("arch"));
  c.other_architectures = words_of(value.find("not_arch"));
  c.models = words_of(value.find("model"));
  c.order = read_span(value.find("order"));
  c.depth = read_span(value.find("depth"));
  BOOST_OUTCOME_TRY(read_numbers(value, c));
  BOOST_OUTCOME_TRY(read_flags(value, c));
  return c;
}

}  // namespace ggufmill
