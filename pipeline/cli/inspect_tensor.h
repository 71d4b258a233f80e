#pragma once
// Shows the values of one tensor, as text or as JSON.

#include <boost/program_options.hpp>

#include "pipeline/api/context.h"
#include "pipeline/cli/messages.h"

namespace ggufmill {

// Shows the tensor that --tensor names: statistics and a histogram, or with --values the values of --rows. `list`
// receives the JSON; null: text output. Returns the exit code.
int show_tensor(const Context& context, const Model& model, JsonList* list,
                const boost::program_options::variables_map& values);

}  // namespace ggufmill
