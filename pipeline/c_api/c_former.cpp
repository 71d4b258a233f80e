// Functions of the C interface that ggufmill_call() replaces. Each calls its operation.
#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <span>

#include "pipeline/api/operations/context_options.h"
#include "pipeline/c_api/c_support.h"
#include "pipeline/call/json_call.h"
#include "pipeline/core/json.h"
#include "pipeline/core/text.h"
#include "pipeline/report/json_text.h"

namespace ggufmill::c {
namespace {

namespace json = boost::json;

// Stores the result of a former function; a failure stores nothing.
Status store(const Result<CalledOperation>& called, char** into) {
  BOOST_OUTCOME_TRY(require({{"json", into}}));
  if (!called) return called.error();
  if (called.value().failure) return *called.value().failure;
  *into = copy_of(called.value().json);
  return ok();
}

// Stores one member of it, a text or JSON, or without a name all members but the warnings, which a former function did
// not have.
Status store_part(Result<CalledOperation> called, const char* member, char** into) {
  if (called && !called.value().failure) {
    BOOST_OUTCOME_TRY(json::value result, parse_json("result", called.value().json));
    result.as_object().erase("warnings");
    const json::value& part = member ? result.at(member) : result;
    called.value().json = part.is_string() ? std::string(part.as_string()) : to_json_text(part);
  }
  return store(called, into);
}

// Calls an operation on a model that is open: it is opened once more.
Result<CalledOperation> call_for_model(const ggufmill_model& model, const char* operation, json::object parameters,
                                       const char* options = nullptr, ggufmill_control* control = nullptr) {
  parameters["outtype"] = out_type_name(model.out_type);
  return call_former({model.context, Caller::kProgram}, operation, std::move(parameters), options, {}, control);
}

// Calls an operation for a function without a context.
Result<CalledOperation> call_without_context(const char* operation, json::object parameters) {
  BOOST_OUTCOME_TRY(Context made, create_context({}));
  return call_former({std::make_shared<const Context>(std::move(made))}, operation, std::move(parameters));
}

// A kind of built-in files: the operation that lists them, whose result has the same name, and the one that prints one.
struct FileKind {
  std::string_view name;
  const char* list;
  const char* print;
};
constexpr FileKind kFileKinds[] = {{"recipes", "recipes", "recipe"},
                                   {"objectives", "objectives", "objectives"},
                                   {"exclusions", "exclusions", "exclusions"},
                                   {"architectures", "architectures", "architecture"},
                                   {"functions", "architecture_functions", nullptr}};

Result<FileKind> kind_of(const char* name) {
  const auto* const found = std::ranges::find(kFileKinds, name, &FileKind::name);
  if (found != std::end(kFileKinds)) return *found;
  return usage_error(fmt::format("unknown kind {}", quoted_name(name)),
                     "the kinds are recipes, objectives, exclusions, architectures and functions");
}

}  // namespace
}  // namespace ggufmill::c

using namespace ggufmill;
using namespace ggufmill::c;

ggufmill_status ggufmill_verify(const ggufmill_context* context, const char* path, const char* options,
                                ggufmill_control* control, char** json, ggufmill_error** error) {
  return guarded(control, error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"context", context}, {"path", path}}));
    return store(call_former(*context, "verify", {{"path", path}}, options, {}, control), json);
  });
}

ggufmill_status ggufmill_compare(const ggufmill_context* context, const char* a, const char* b, const char* options,
                                 ggufmill_control* control, char** json, ggufmill_error** error) {
  return guarded(control, error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"context", context}, {"a", a}, {"b", b}}));
    auto called = call_former(*context, "compare", {{"a", a}, {"b", b}}, options, {{"imatrix", "importance"}}, control);
    if (called) {  // the report was a member of its own
      BOOST_OUTCOME_TRY(boost::json::value report, parse_json("report", called.value().json));
      boost::json::value warnings = report.as_object()["warnings"];
      report.as_object().erase("warnings");
      called.value().json = to_json_text({{"report", std::move(report)}, {"warnings", std::move(warnings)}});
    }
    return store(called, json);
  });
}

ggufmill_status ggufmill_hash(const ggufmill_context* context, const char* path, const char* options,
                              ggufmill_control* control, char** json, ggufmill_error** error) {
  return guarded(control, error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"context", context}, {"path", path}}));
    return store(call_former(*context, "hash", {{"path", path}}, options, {}, control), json);
  });
}

// The member `values` has become `set`, which was a list of texts.
ggufmill_status ggufmill_edit(const ggufmill_context* context, const char* path, const char* options,
                              ggufmill_control* control, char** json, ggufmill_error** error) {
  return guarded(control, error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"context", context}, {"path", path}}));
    return store(call_former(*context, "edit", {{"path", path}}, options, {{"values", "set"}}, control), json);
  });
}

ggufmill_status ggufmill_model_describe(const ggufmill_model* model, char** json, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"model", model}}));
    return store(call_for_model(*model, "inspect", {{"path", model->path}}), json);
  });
}

ggufmill_status ggufmill_model_statistics(const ggufmill_model* model, const char* tensor, const char* options,
                                          ggufmill_control* control, char** json, ggufmill_error** error) {
  return guarded(control, error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"model", model}, {"tensor", tensor}}));
    return store_part(call_for_model(*model, "inspect", {{"path", model->path}, {"tensor", tensor}}, options, control),
                      nullptr, json);
  });
}

ggufmill_status ggufmill_models_page(const ggufmill_model* const* models, size_t count, const char* path,
                                     const char* options, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"models", models}, {"path", path}}));
    if (count == 0) return usage_error("no models given");
    boost::json::array paths;
    for (const ggufmill_model* model : std::span(models, count)) {
      BOOST_OUTCOME_TRY(require({{"models", model}}));
      paths.emplace_back(model->path);
    }
    const auto called = call_for_model(*models[0], "models_page", {{"models", paths}, {"html", path}}, options);
    return called ? ok() : Status(called.error());
  });
}

ggufmill_status ggufmill_types(const ggufmill_context* context, char** json, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"context", context}}));
    return store_part(call_former(*context, "types", {}), "types", json);
  });
}

ggufmill_status ggufmill_model_name(const ggufmill_model* model, const char* options, char** name,
                                    ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"model", model}}));
    return store_part(call_for_model(*model, "name_of", {{"path", model->path}}, options), "name", name);
  });
}

ggufmill_status ggufmill_parse_name(const char* name, char** json, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"name", name}}));
    return store_part(call_without_context("name", {{"name", name}}), nullptr, json);
  });
}

ggufmill_status ggufmill_importance_describe(const ggufmill_context* context, const char* path, char** json,
                                             ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"context", context}, {"path", path}}));
    return store_part(call_former(*context, "imatrix_show", {{"path", path}}), nullptr, json);
  });
}

ggufmill_status ggufmill_importance_merge(const ggufmill_context* context, const char* options, char** json,
                                          ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"context", context}}));
    return store(call_former(*context, "imatrix_merge", {}, options), json);
  });
}

ggufmill_status ggufmill_kernels(const ggufmill_context* context, char** json, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"context", context}}));
    return store(call_former(*context, "kernels", {}), json);
  });
}

ggufmill_status ggufmill_check_module(const ggufmill_context* context, const char* path, const char* options,
                                      ggufmill_control* control, char** json, ggufmill_error** error) {
  return guarded(control, error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"context", context}, {"path", path}}));
    return store_part(call_former(*context, "check_module", {{"path", path}}, options, {}, control), nullptr, json);
  });
}

ggufmill_status ggufmill_recipe_from(const ggufmill_model* model, char** yaml, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"model", model}}));
    return store_part(call_for_model(*model, "recipe_from", {{"model", model->path}}), "yaml", yaml);
  });
}

ggufmill_status ggufmill_recipe_check(const ggufmill_model* model, const char* recipe, char** json,
                                      ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"model", model}, {"recipe", recipe}}));
    return store_part(call_for_model(*model, "recipe_check", {{"model", model->path}, {"name", recipe}}), "rules",
                      json);
  });
}

ggufmill_status ggufmill_recipe_diff(const ggufmill_model* model, const char* a, const char* b, char** json,
                                     ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"model", model}, {"a", a}, {"b", b}}));
    return store_part(call_for_model(*model, "recipe_diff", {{"model", model->path}, {"a", a}, {"b", b}}), nullptr,
                      json);
  });
}

ggufmill_status ggufmill_catalog(const char* kind, char** json, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"kind", kind}}));
    BOOST_OUTCOME_TRY(const FileKind found, kind_of(kind));
    return store_part(call_without_context(found.list, {}), found.name.data(), json);
  });
}

ggufmill_status ggufmill_catalog_text(const char* kind, const char* name, char** yaml, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"kind", kind}, {"name", name}}));
    BOOST_OUTCOME_TRY(const FileKind found, kind_of(kind));
    if (!found.print) return usage_error("functions have no text", "`ggufmill architectures --functions` lists them");
    return store_part(call_without_context(found.print, {{"name", name}}), "yaml", yaml);
  });
}

ggufmill_status ggufmill_schema(const char* kind, char** json, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"kind", kind}}));
    return store_part(call_without_context("schema", {{"what", kind}}), "text", json);
  });
}
