// `types`: lists the tensor types and what each supports.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "pipeline/api/operations/operations.h"

namespace ggufmill {
namespace {

struct TypesRequest {};

struct ListedType {
  const TypeInfo* type;
  bool is_read = false, is_written = false;
  std::vector<std::string_view> encoders{};
  std::string_view importance{};
};

struct ListedTypes {
  std::vector<ListedType> types;
  std::vector<std::string_view> interleaved;  // the names of those with interleaved rows
};

std::string_view importance_text(const TypeInfo& type, const KernelChoice* encode,
                                 const std::vector<const TypeInfo*>& wanting) {
  if (!encode) return "";
  if (encode->kernel->flags & GGUFMILL_NEEDS_IMPORTANCE) return "needed";
  if (std::ranges::count(wanting, &type) != 0) return "needed by recipes";
  return encode->kernel->flags & GGUFMILL_ACCEPTS_IMPORTANCE ? "used" : "not used";
}

Result<Answer<ListedTypes>> run_types(const Context& context, const TypesRequest&, const Call&) {
  const Kernels& kernels = context.kernels();
  BOOST_OUTCOME_TRY(const std::vector<const TypeInfo*> wanting, types_wanting_importance(context.recipes()));
  Answer<ListedTypes> answer{};
  for (const TypeInfo* type : kernels.types().all()) {
    const KernelChoice* const encode = kernels.encode(type->id);
    ListedType& listed = answer.value.types.emplace_back(
        ListedType{type, kernels.decode(type->id) != nullptr, encode != nullptr, {}, {}});
    for (const EncoderMethod* method : kernels.types().encoders())
      if (kernels.encode(type->id, *method)) listed.encoders.push_back(method->name);
    listed.importance = importance_text(*type, encode, wanting);
  }
  for (const TypeInfo* type : kernels.types().interleaved()) answer.value.interleaved.push_back(type->name);
  return answer;
}

void print_types(const ListedTypes& types, TextOutput& to) {
  to.table = Table{{{"type"},
                    {"id", Align::kRight},
                    {"bits per weight", Align::kRight},
                    {"block", Align::kRight},
                    {"block bytes", Align::kRight},
                    {"read"},
                    {"write"},
                    {"importance"},
                    {"times"}},
                   {}};
  for (const ListedType& it : types.types)
    to.table->rows.push_back(
        {std::string(it.type->name), std::to_string(it.type->id), fmt::format("{:.4f}", it.type->bits_per_weight()),
         std::to_string(it.type->block_elements), std::to_string(it.type->block_bytes), it.is_read ? "yes" : "no",
         it.is_written ? "yes" : "no", std::string(it.importance), std::string(it.type->facts.partner)});
  if (!types.interleaved.empty())
    to.out = fmt::format("The same with interleaved rows, for ik_llama.cpp: {}\n", fmt::join(types.interleaved, ", "));
}

ResultForm<ListedTypes> types_result() {
  using Type = ListedType;
  using Value = std::optional<boost::json::value>;
  const auto of_type = [](std::string_view name, auto fact, std::string_view doc) {
    return result<Type>(
        name, [fact](const Type& it) -> Value { return boost::json::value_from(fact(*it.type)); }, doc);
  };
  const auto encoders = [](const Type& it) -> Value {
    boost::json::array names;
    for (const std::string_view name : it.encoders) names.emplace_back(name);
    return names;
  };
  const ResultForm<Type> form{
      {of_type(
           "name", [](const TypeInfo& type) { return type.name; }, "its name"),
       of_type(
           "id", [](const TypeInfo& type) { return type.id; }, "its number in GGUF files"),
       of_type(
           "bits_per_weight", [](const TypeInfo& type) { return type.bits_per_weight(); }, "size of a weight"),
       of_type(
           "block_elements", [](const TypeInfo& type) { return type.block_elements; }, "weights in a block"),
       of_type(
           "block_bytes", [](const TypeInfo& type) { return type.block_bytes; }, "bytes of a block"),
       of_type(
           "row_header_bytes", [](const TypeInfo& type) { return type.row_header_bytes; }, "bytes before a row"),
       result("read", &Type::is_read, "whether it can be read"),
       result("write", &Type::is_written, "whether it can be written"),
       result<Type>("encoders", encoders, "names of its encoders"),
       result<Type>(
           "importance", [](const Type& it) -> Value { return boost::json::value(it.importance); },
           "needed, needed by recipes, used, or not used"),
       of_type(
           "times", [](const TypeInfo& type) { return type.facts.partner; }, "type of the activations")}};
  return {.members = {result("types", &ListedTypes::types, form, "the types")}, .is_alone = true};
}

}  // namespace

OperationSpec types_operation() {
  return operation(OperationOf<TypesRequest, ListedTypes>{
      .name = "types",
      .group = OperationGroup::kReference,
      .summary = "List the tensor types and what each supports",
      .description =
          "List the tensor types: bits per weight, block, whether they can be read (decoded) and written (encoded), "
          "and the type to which llama.cpp converts activations that it multiplies with them (`times`). Importance is "
          "`needed` if a type cannot be written without it, `needed by recipes` if only `type: NAME` can write the "
          "type without it, and otherwise `used` or `not used`.",
      .examples = "  ggufmill types",
      .result = types_result(),
      .context = ContextUse::kTypes,
      .run = run_types,
      .print = print_types});
}

}  // namespace ggufmill
