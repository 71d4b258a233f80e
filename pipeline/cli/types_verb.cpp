// `ggufmill types`: lists the tensor types and the operations supported for each.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>

#include "pipeline/cli/messages.h"
#include "pipeline/cli/planning.h"
#include "pipeline/cli/table.h"
#include "pipeline/cli/verb.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {
namespace {

CommandSpec types_command() {
  CommandSpec spec;
  spec.usage = "ggufmill types [options]";
  spec.description =
      "List the tensor types: bits per weight, block, whether they can be read (decoded) and written (encoded), and "
      "the type to which llama.cpp converts activations that it multiplies with them (`times`). Importance is `needed` "
      "if a type cannot be written without it, `needed by recipes` if only `type: NAME` can write the type without it, "
      "and otherwise `used` or `not used`.";
  spec.examples = "  ggufmill types";
  spec.options.add_options()("kernel-dir", boost::program_options::value<std::vector<std::string>>()->composing(),
                             "folder with kernel modules that add types");
  spec.options.add_options()("json",
                             "print a JSON array: [{name, id, bits_per_weight, block_elements, block_bytes, read, "
                             "write, importance, times}]");
  return spec;
}

using TypeList = std::vector<const TypeInfo*>;

std::string importance_word(const TypeInfo& type, const KernelChoice* encode, const TypeList& wanting) {
  if (!encode) return "";
  if (encode->kernel->flags & GGUFMILL_NEEDS_IMPORTANCE) return "needed";
  if (std::ranges::count(wanting, &type) != 0) return "needed by recipes";
  return encode->kernel->flags & GGUFMILL_ACCEPTS_IMPORTANCE ? "used" : "not used";
}

// Returns the type to which llama.cpp converts activations that are multiplied with rows of the given type (ggml-cpu,
// vec_dot_type); empty for types that it does not multiply with.
std::string_view partner_of(const TypeInfo& type) {
  if (type.type_class == TypeClass::kInteger || type.name == "F64" || type.name == "Q8_K") return "";
  if (!type.is_quantized()) return type.name;
  if (type.name == "Q4_1" || type.name == "Q5_1" || type.name == "Q8_1") return "Q8_1";
  return type.block_elements == 256 ? "Q8_K" : "Q8_0";
}

void print_text(const Kernels& kernels, const TypeList& wanting) {
  std::vector<Row> rows;
  for (const TypeInfo* type : kernels.types().all())
    rows.push_back({std::string(type->name), std::to_string(type->id), fmt::format("{:.4f}", type->bits_per_weight()),
                    std::to_string(type->block_elements), std::to_string(type->block_bytes),
                    kernels.decode(type->id) ? "yes" : "no", kernels.encode(type->id) ? "yes" : "no",
                    importance_word(*type, kernels.encode(type->id), wanting), std::string(partner_of(*type))});
  std::fputs(render_table({{"type"},
                           {"id", Align::kRight},
                           {"bits per weight", Align::kRight},
                           {"block", Align::kRight},
                           {"block bytes", Align::kRight},
                           {"read"},
                           {"write"},
                           {"importance"},
                           {"times"}},
                          rows)
                 .c_str(),
             stdout);
}

void print_json(const Kernels& kernels, const TypeList& wanting) {
  boost::json::array types;
  for (const TypeInfo* type : kernels.types().all())
    types.push_back({{"name", type->name},
                     {"id", type->id},
                     {"bits_per_weight", type->bits_per_weight()},
                     {"block_elements", type->block_elements},
                     {"block_bytes", type->block_bytes},
                     {"read", kernels.decode(type->id) != nullptr},
                     {"write", kernels.encode(type->id) != nullptr},
                     {"importance", importance_word(*type, kernels.encode(type->id), wanting)},
                     {"times", partner_of(*type)}});
  std::puts(to_json_text(types).c_str());
}

int types_verb(const Parsed& parsed) {
  const auto context = open_context(parsed.values);
  if (!context) return fail(context.error());
  const Kernels& kernels = context.value().kernels();
  const auto wanting = types_wanting_importance(context.value().recipes());
  if (!wanting) return fail(wanting.error());
  if (parsed.values.count("json"))
    print_json(kernels, wanting.value());
  else
    print_text(kernels, wanting.value());
  return 0;
}

}  // namespace

const Verb kTypesVerb{"types", VerbGroup::kReference, "List the tensor types and what each supports", types_command,
                      types_verb};

}  // namespace ggufmill
