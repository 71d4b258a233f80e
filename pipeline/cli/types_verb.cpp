// `ggufmill types`: lists the tensor types and the operations supported for each.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/json.hpp>
#include <cstdio>

#include "pipeline/api/describe.h"
#include "pipeline/api/table.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/planning.h"
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
  add_type_modules_option(spec.options);
  spec.options.add_options()(
      "json",
      "print a JSON array: [{name, id, bits_per_weight, block_elements, block_bytes, row_header_bytes, read, "
      "write, encoders, importance, times}]");
  return spec;
}

void print_text(const boost::json::array& types, const std::vector<const TypeInfo*>& interleaved) {
  std::vector<Row> rows;
  for (const boost::json::value& type : types) {
    const auto text = [&](const char* key) { return std::string(type.at(key).as_string()); };
    const auto number = [&](const char* key) { return std::to_string(type.at(key).to_number<std::uint64_t>()); };
    const auto flag = [&](const char* key) { return type.at(key).as_bool() ? "yes" : "no"; };
    rows.push_back({text("name"), number("id"), fmt::format("{:.4f}", type.at("bits_per_weight").as_double()),
                    number("block_elements"), number("block_bytes"), flag("read"), flag("write"), text("importance"),
                    text("times")});
  }
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
  std::vector<std::string_view> names;
  for (const TypeInfo* type : interleaved) names.push_back(type->name);
  fmt::print("The same with interleaved rows, for ik_llama.cpp: {}\n", fmt::join(names, ", "));
}

int types_verb(const Parsed& parsed) {
  const auto context = open_context(parsed.values);
  if (!context) return fail(context.error());
  const auto types = describe_types(context.value());
  if (!types) return fail(types.error());
  if (parsed.values.count("json"))
    std::puts(to_json_text(types.value()).c_str());
  else
    print_text(types.value(), context.value().kernels().types().interleaved());
  return 0;
}

}  // namespace

const Verb kTypesVerb{"types", OperationGroup::kReference, "List the tensor types and what each supports",
                      types_command, types_verb};

}  // namespace ggufmill
