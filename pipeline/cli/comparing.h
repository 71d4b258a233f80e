#pragma once
// Two models, matched by name and compared.

#include <boost/program_options.hpp>
#include <string>

#include "pipeline/report/report.h"

namespace ggufmill {

// A report whose one output is the model of `path_b`. `values`: those of --imatrix, --memory, --threads, --isa and
// --kernel-dir. Says warnings of the files.
Result<Report> compare_models(const std::string& path_a, const std::string& path_b,
                              const boost::program_options::variables_map& values);

}  // namespace ggufmill
