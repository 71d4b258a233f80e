// Contexts of the C interface.
#include "pipeline/api/operations/context_options.h"
#include "pipeline/c_api/c_options.h"
#include "pipeline/c_api/c_support.h"

using namespace ggufmill;
using namespace ggufmill::c;

ggufmill_status ggufmill_context_create(const char* options, ggufmill_context** context, ggufmill_error** error) {
  return guarded(error, [&]() -> Status {
    BOOST_OUTCOME_TRY(require({{"context", context}}));
    ContextRequest wanted;
    std::size_t names = 0;
    Options given(options);
    given.read("isa", wanted.isa);
    given.read("kernel_dirs", wanted.kernel_dirs);
    given.read("architectures", wanted.architectures);
    given.read("names", names, {"json", "python"});
    BOOST_OUTCOME_TRY(given.finish());
    BOOST_OUTCOME_TRY(Context made, create_context(wanted));
    *context = new ggufmill_context{std::make_shared<const Context>(std::move(made)),
                                    names == 0 ? Caller::kProgram : Caller::kPython};
    return ok();
  });
}

void ggufmill_context_free(ggufmill_context* context) { delete context; }
