// Built-in files, schemas and names, for the C interface.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "pipeline/api/catalog.h"
#include "pipeline/api/describe.h"
#include "pipeline/c_api/c_support.h"
#include "pipeline/core/text.h"
#include "pipeline/report/json_text.h"

namespace ggufmill::c {
namespace {

Result<CatalogKind> find_kind(const std::string& name) {
  const auto found = std::ranges::find(kCatalogNames, name);
  if (found != std::end(kCatalogNames)) return static_cast<CatalogKind>(found - std::begin(kCatalogNames));
  return usage_error(fmt::format("unknown kind {}", quoted_name(name)),
                     "the kinds are recipes, objectives, exclusions, architectures and functions");
}

}  // namespace
}  // namespace ggufmill::c

using namespace ggufmill;
using namespace ggufmill::c;

ggufmill_status ggufmill_catalog(const char* kind, char** json, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"kind", kind}, {"json", json}}));
    BOOST_OUTCOME_TRY(const CatalogKind found, find_kind(kind));
    BOOST_OUTCOME_TRY(const boost::json::array list, describe_catalog(found));
    *json = copy_of(to_json_text(list));
    return ok();
  });
}

ggufmill_status ggufmill_catalog_text(const char* kind, const char* name, char** yaml, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"kind", kind}, {"name", name}, {"yaml", yaml}}));
    BOOST_OUTCOME_TRY(const CatalogKind found, find_kind(kind));
    BOOST_OUTCOME_TRY(const std::string text, catalog_text(found, name));
    *yaml = copy_of(text);
    return ok();
  });
}

ggufmill_status ggufmill_schema(const char* kind, char** json, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"kind", kind}, {"json", json}}));
    BOOST_OUTCOME_TRY(const std::string schema, schema_of(kind));
    *json = copy_of(schema);
    return ok();
  });
}
