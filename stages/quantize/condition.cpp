#include "stages/quantize/condition.h"

#include <fmt/format.h>

#include <algorithm>

namespace ggufmill {
namespace {

template <class T>
bool among(const std::vector<T>& list, const T& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

template <class T>
bool unset_or(const std::optional<T>& wanted, const T& value) {
  return !wanted || *wanted == value;
}

bool at_least(const std::optional<std::uint64_t>& wanted, std::uint64_t value) { return !wanted || value >= *wanted; }

bool below(const std::optional<std::uint64_t>& limit, std::uint64_t value) { return !limit || value < *limit; }

bool model_holds(const Condition& c, const ModelFacts& model) {
  return (c.architectures.empty() || among(c.architectures, model.architecture)) &&
         !among(c.other_architectures, model.architecture) && unset_or(c.experts, model.experts) &&
         at_least(c.experts_at_least, model.experts) && at_least(c.head_groups_at_least, model.head_groups()) &&
         unset_or(c.layers, model.layers) && unset_or(c.importance, model.importance) &&
         unset_or(c.grouped_heads, model.heads != model.kv_heads);
}

bool in_group(const Condition& c, const ConditionContext& context) {
  if (c.models.empty()) return true;
  return std::any_of(c.models.begin(), c.models.end(), [&](const std::string& name) {
    const auto group = context.groups.find(name);
    return group != context.groups.end() &&
           std::any_of(group->second.begin(), group->second.end(),
                       [&](const Condition& member) { return model_holds(member, context.model); });
  });
}

bool class_holds(const Condition& c, const TensorFacts& tensor, const ModelFacts& model) {
  return c.classes.empty() || std::any_of(c.classes.begin(), c.classes.end(), [&](const ClassSet& set) {
           return set.contains(tensor.tensor_class, model.tied);
         });
}

bool shape_holds(const Condition& c, const Shape& shape, const TypeInfo* type) {
  // Trailing dimensions of 1 do not count, as in ggml.
  std::uint64_t rank = shape.rank;
  while (rank > 1 && shape.dims[rank - 1] == 1) --rank;
  return below(c.rank_below, rank) && at_least(c.matrices_at_least, shape.dims[2]) &&
         (!c.divisible || *c.divisible == (type && shape.columns() % type->block_elements == 0));
}

bool place_holds(const Condition& c, const TensorFacts& tensor, const ModelFacts& model) {
  return below(c.order_below, tensor.order) && (!c.order || within(*c.order, tensor.order, tensor.kind_count)) &&
         (!c.depth || within(*c.depth, tensor.depth, model.layers));
}

// ---- fields and their parsing ----

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

// Returns the scalar itself, or the scalars of the list; empty if `node` is null.
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
  FieldSpec class_word{"", FieldKind::kEnum, "A tensor class."};
  class_word.choices = class_names();
  const FieldSpec type_word{"", FieldKind::kTypeName, "A tensor type."};
  return {{"match", FieldKind::kRegex, "The tensor name contains a match of this pattern (Perl syntax)."},
          words_field("class", class_word, "The tensor class."),
          words_field("from", type_word, "The type chosen so far."),
          span_field("order", "Position of the tensor among those of its kind, in processing order."),
          {"order_below", FieldKind::kInteger, "Its position among its kind, counted from 0, is less than this."},
          span_field("depth", "Position of its layer among the layers."),
          {"divisible", FieldKind::kBool,
           "Whether the row length is a multiple of the block size of the type chosen so far."},
          {"rank_below", FieldKind::kInteger,
           "The tensor has fewer dimensions than this, not counting trailing dimensions of 1."},
          {"matrices_at_least", FieldKind::kInteger, "Its third dimension (one matrix per expert) is at least this."}};
}

}  // namespace

bool within(Span span, std::uint64_t place, std::uint64_t count) {
  const bool first = place < count / 8;
  const bool last = place >= 7 * count / 8;
  switch (span) {
    case Span::kFirstSixteenth:
      return place < count / 16;
    case Span::kFirstEighth:
      return first;
    case Span::kInner:
      return !first && !last;
    case Span::kSpread:
      return first || last || (place - count / 8) % 3 == 2;
  }
  return false;
}

Result<bool> holds(const Condition& c, const TensorFacts& tensor, const ConditionContext& context) {
  const bool plain = class_holds(c, tensor, context.model) && model_holds(c, context.model) && in_group(c, context) &&
                     shape_holds(c, tensor.tensor->shape(), context.type) && place_holds(c, tensor, context.model) &&
                     (c.from.empty() || among(c.from, context.type));
  if (!plain || !c.match) return plain;
  return c.match->matches(tensor.tensor->name);
}

std::vector<FieldSpec> model_condition_fields() {
  return {words_field("arch", name_field(), "The model's general.architecture is one of these."),
          words_field("not_arch", name_field(), "The model's general.architecture is none of these."),
          {"experts", FieldKind::kInteger, "The model has exactly this many experts."},
          {"experts_at_least", FieldKind::kInteger, "The model has at least this many experts."},
          {"head_groups_at_least", FieldKind::kInteger, "At least this many attention heads share a key-value head."},
          {"grouped_heads", FieldKind::kBool, "Whether there are fewer key-value heads than attention heads."},
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
