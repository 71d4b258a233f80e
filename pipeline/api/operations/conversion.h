#pragma once
// Code that `convert` and `convert_lora` share.

#include <string>
#include <vector>

#include "pipeline/api/operations/run_pipeline.h"
#include "pipeline/llama_cpp/convert_options.h"

namespace ggufmill {

// The options of both besides those of ConversionOutput: a base of their requests.
struct ConversionRequest : RunRequest {
  bool verbose = false;
  // Options of llama.cpp's programs that have no effect here.
  bool no_lazy = false;
  std::string defaults{};
};

std::vector<Option<ConversionOutput>> conversion_output_options();
std::vector<Option<ConversionRequest>> conversion_options();

// Prints a note that an option has no effect, if it is given.
void note_idle(bool is_given, const char* name, const char* why, const Call& call);
// Does the same for the options of ConversionRequest.
void note_idle_options(const ConversionRequest& request, const Call& call);

// Runs the pipeline file of a conversion, or returns the error of its options.
Result<Answer<PipelineRun>> run_conversion(const Context& context, const ConversionRequest& request,
                                           const Result<std::string>& pipeline, const Call& call);

}  // namespace ggufmill
