// Contexts of the C interface.
#include "pipeline/api/operations/context_options.h"
#include "pipeline/c_api/c_support.h"

namespace ggufmill::c {
namespace {

// The form in which errors name options.
enum class NameStyle { kJson, kPython };
constexpr std::string_view kNameStyles[] = {"json", "python"};  // NameStyle

struct CreateRequest : ContextRequest {
  NameStyle names = NameStyle::kJson;
};

}  // namespace
}  // namespace ggufmill::c

using namespace ggufmill;
using namespace ggufmill::c;

ggufmill_status ggufmill_context_create(const char* options, ggufmill_context** context, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"context", context}}));
    CreateRequest wanted;
    ContextRequest& of_context = wanted;
    const auto names =
        option("names", &CreateRequest::names, enumeration<NameStyle>(kNameStyles), "how errors name options");
    BOOST_OUTCOME_TRY(
        read_options(options, {{context_options(ContextUse::kCheckpoints), &of_context}, {{names}, &wanted}}));
    BOOST_OUTCOME_TRY(Context made, create_context(wanted));
    *context = new ggufmill_context{std::make_shared<const Context>(std::move(made)),
                                    wanted.names == NameStyle::kJson ? Caller::kProgram : Caller::kPython};
    return ok();
  });
}

void ggufmill_context_free(ggufmill_context* context) { delete context; }
