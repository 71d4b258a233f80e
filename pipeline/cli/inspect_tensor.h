#pragma once
// The values of one tensor, for people or as JSON.

#include <boost/program_options.hpp>

#include "pipeline/api/ggufmill.h"
#include "pipeline/cli/messages.h"

namespace ggufmill {

// Shows the tensor that --tensor names: numbers and a histogram, or with --values the values of --rows. `list`: where
// JSON goes; null: text is wanted. Returns the exit code.
int show_tensor(const Context& context, const Model& model, JsonList* list,
                const boost::program_options::variables_map& values);

}  // namespace ggufmill
