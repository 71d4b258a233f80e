#include "stages/quantize/exclusion.h"

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/config/bound_fields.h"
#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"

namespace ggufmill {
namespace {

constexpr std::uint64_t kMaxExclusionBytes = 1 << 20;

Form<Exclusion> exclusion_form(const Types& types) {
  return map_of<Exclusion>(
             {
                 field("description", &Exclusion::description, "What the types have in common."),
                 field("source", &Exclusion::source, "The source of this information."),
                 field("types", &Exclusion::types,
                       list_of(tensor_type(types).doc("A type.").example("TQ1_0")).at_least(1), "The excluded types."),
                 field("modules", &Exclusion::modules, list_of(text().doc("A module.").example("mine")).at_least(1),
                       "Kernel modules all of whose types are excluded."),
             })
      .doc("Types excluded from a choice.");
}

Result<Exclusion> parse_exclusion(std::string_view text, const std::string& name, const Types& types) {
  BOOST_OUTCOME_TRY(Exclusion exclusion, parse_document(text, name, exclusion_form(types), types));
  exclusion.name = name;
  if (exclusion.types.empty() && exclusion.modules.empty())
    return Error{ExitCode::kUsage, name, "excludes nothing", "", "list `types` or `modules`"};
  for (const TypeInfo* type : types.all())
    if (const std::string module = types.module_of(*type); std::ranges::count(exclusion.modules, module) != 0)
      exclusion.types.push_back(type);
  return exclusion;
}

}  // namespace

FieldSpec exclusion_fields() { return exclusion_form({}).spec; }

Result<Exclusion> find_exclusion(const std::string& name_or_path, const Origin& asked, const Types& types) {
  std::vector<std::string> names;
  for (const BuiltInExclusion& built_in : built_in_exclusions()) {
    if (built_in.name == name_or_path) return parse_exclusion(built_in.text, name_or_path, types);
    names.emplace_back(built_in.name);
  }
  if (!names_file(name_or_path)) {
    const std::string meant = did_you_mean(name_or_path, names);
    return error_at(asked, fmt::format("unknown exclusion list {}", quoted_name(name_or_path)),
                    meant.empty() ? "`ggufmill recipe exclusions` lists them; a file name ends in .yaml"
                                  : fmt::format("did you mean '{}'?", meant));
  }
  const auto text = read_text_file(name_or_path, kMaxExclusionBytes);
  if (!text)
    return named_at(asked, text.error(), "check the path; `ggufmill recipe exclusions` lists the built-in lists");
  BOOST_OUTCOME_TRY(Exclusion exclusion, parse_exclusion(text.value(), name_or_path, types));
  exclusion.file = name_or_path;
  return exclusion;
}

}  // namespace ggufmill
