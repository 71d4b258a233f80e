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
         unset_or(c.layers, model.layers) && at_least(c.embedding_at_least, model.embedding) &&
         at_least(c.vocabulary_at_least, model.vocabulary) && unset_or(c.importance, model.importance) &&
         unset_or(c.grouped_heads, model.heads != model.kv_heads);
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
         (!c.multiple_of || shape.columns() % *c.multiple_of == 0) &&
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

Form<Span> span() {
  std::vector<std::pair<std::string, Span>> words;
  for (const auto& [name, value] : kSpans) words.emplace_back(name, value);
  return word<Span>(std::move(words));
}

template <class Value>
Form<std::vector<Value>> any_of(Form<Value> item) {
  return one_or_more(std::move(item), "Any of these.");
}

Form<std::string> name_form() { return text().doc("A name."); }

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

bool in_any(const std::vector<std::string>& names, const ModelGroups& groups, const ModelFacts& model) {
  return std::ranges::any_of(names, [&](const std::string& name) {
    const auto group = groups.find(name);
    return group != groups.end() &&
           std::ranges::any_of(group->second, [&](const Condition& member) { return model_holds(member, model); });
  });
}

Result<bool> holds(const Condition& c, const TensorFacts& tensor, const ConditionContext& context) {
  const bool plain = class_holds(c, tensor, context.model) && model_holds(c, context.model) &&
                     (c.models.empty() || in_any(c.models, context.groups, context.model)) &&
                     shape_holds(c, tensor.tensor->shape(), context.type) && place_holds(c, tensor, context.model) &&
                     (c.from.empty() || among(c.from, context.type));
  if (!plain || !c.match) return plain;
  return c.match->matches(tensor.tensor->name);
}

Form<ClassSet> class_form() {
  Form<ClassSet> form =
      converted<ClassSet>(text(), [](const std::string& name) -> Result<ClassSet> { return *class_named(name); });
  form.spec = {.kind = FieldKind::kEnum, .doc = "A tensor class.", .choices = class_names()};
  return form;
}

Fields<Condition> model_condition_fields() {
  return {
      field("arch", &Condition::architectures, any_of(name_form()),
            "The model's general.architecture is one of these."),
      field("not_arch", &Condition::other_architectures, any_of(name_form()),
            "The model's general.architecture is none of these."),
      field("experts", &Condition::experts, "The model has exactly this many experts."),
      field("experts_at_least", &Condition::experts_at_least, "The model has at least this many experts."),
      field("head_groups_at_least", &Condition::head_groups_at_least,
            "At least this many attention heads share a key-value head."),
      field("grouped_heads", &Condition::grouped_heads,
            "Whether there are fewer key-value heads than attention heads."),
      field("layers", &Condition::layers, "The model has exactly this many layers."),
      field("embedding_at_least", &Condition::embedding_at_least, "The model's embeddings have at least this length."),
      field("vocabulary_at_least", &Condition::vocabulary_at_least, "The model has at least this many tokens."),
      field("importance", &Condition::importance, "Whether an importance matrix is given."),
  };
}

Fields<Condition> condition_fields(const Types& types) {
  return Fields<Condition>{
             field("match", &Condition::match, "The tensor name contains a match of this pattern (Perl syntax)."),
             field("class", &Condition::classes, any_of(class_form()), "The tensor class."),
             field("from", &Condition::from, any_of(tensor_type(types).doc("A tensor type.")),
                   "The type chosen so far."),
             field("order", &Condition::order, span(),
                   "Position of the tensor among those of its kind, in processing order."),
             field("order_below", &Condition::order_below,
                   "Its position among its kind, counted from 0, is less than this."),
             field("depth", &Condition::depth, span(), "Position of its layer among the layers."),
             field("divisible", &Condition::divisible,
                   "Whether the row length is a multiple of the block size of the type chosen so far."),
             field("multiple_of", &Condition::multiple_of, "The row length is a multiple of this.").at_least(1),
             field("rank_below", &Condition::rank_below,
                   "The tensor has fewer dimensions than this, not counting trailing dimensions of 1."),
             field("matrices_at_least", &Condition::matrices_at_least,
                   "Its third dimension (one matrix per expert) is at least this."),
             field("model", &Condition::models, any_of(name_form()), "The model is in one of these groups (`models`)."),
         } +
         model_condition_fields();
}

}  // namespace ggufmill
