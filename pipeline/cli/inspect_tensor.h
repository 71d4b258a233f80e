#pragma once
// The values of one tensor, for people or as JSON.

#include <boost/program_options.hpp>

#include "pipeline/api/ggufmill.h"

namespace ggufmill {

// The tensor that --tensor names: figures and a histogram, or with --values the values of --rows. Returns the exit
// code.
int show_tensor(const Context& context, const Model& model, const boost::program_options::variables_map& values);

}  // namespace ggufmill
