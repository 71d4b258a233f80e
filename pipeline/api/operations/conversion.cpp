#include "pipeline/api/operations/conversion.h"
#include "pipeline/api/operations/context_options.h"

#include <fmt/format.h>

#include "pipeline/api/operations/option_names.h"
#include "pipeline/core/option_reference.h"

namespace ggufmill {
namespace {

constexpr const char *kLazy = "weights are never read into memory entirely",
                     *kDefaults = "keys missing in config.json always get the defaults of their class";

}  // namespace

std::vector<Option<ConversionOutput>> conversion_output_options() {
  using Output = ConversionOutput;
  return {option("outfile", &Output::outfile, path(),
                 "file to write, or a folder, a new one with / at its end; {ftype} in it is replaced by the type"),
          option("bigendian", &Output::bigendian, "write for big-endian machines"),
          option("architectures", &Output::architectures, list_of(path()), kArchitecturesHelp)};
}

std::vector<Option<ConversionRequest>> conversion_options() {
  using Request = ConversionRequest;
  return std::vector<Option<Request>>{
             option("verbose", &Request::verbose, "print what is done with each tensor").only_on_command_line(),
             option("no_lazy", &Request::no_lazy, fmt::format("no effect: {}", kLazy)).only_on_command_line(),
             option("defaults", &Request::defaults, text(), fmt::format("no effect: {}", kDefaults))
                 .only_on_command_line()} +
         run_options();
}

void note_idle(bool is_given, const char* name, const char* why, const Call& call) {
  if (is_given) call.note({fmt::format("{} has no effect: {}", option_reference(name), why)});
}

void note_idle_options(const ConversionRequest& request, const Call& call) {
  note_idle(request.no_lazy, "no_lazy", kLazy, call);
  note_idle(!request.defaults.empty(), "defaults", kDefaults, call);
}

Result<Answer<PipelineRun>> run_conversion(const Context& context, const ConversionRequest& request,
                                           const Result<std::string>& pipeline, const Call& call) {
  if (!pipeline) return with_help_for_options(pipeline.error());
  PipelineHooks hooks;
  if (request.verbose) hooks.planned = note_tensors(call);
  return run_pipeline(context, request, pipeline.value(), call, hooks);
}

}  // namespace ggufmill
