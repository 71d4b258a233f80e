// `ggufmill verify`: reads a model from end to end.

#include <fmt/format.h>

#include <boost/json.hpp>
#include <cstdio>

#include "pipeline/api/ggufmill.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/planning.h"
#include "pipeline/cli/progress.h"
#include "pipeline/cli/signals.h"
#include "pipeline/cli/table.h"
#include "pipeline/cli/verb.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;
namespace json = boost::json;

CommandSpec command() {
  CommandSpec spec;
  spec.usage = "ggufmill verify FILE [options]";
  spec.description =
      "Reads a model from end to end: is its structure sound, is the padding zero, are all numbers and scales finite? "
      "FILE is a GGUF file, the first of its shards, a safetensors file or folder, or a manifest. Where there is a "
      "manifest (`manifest: true` in a pipeline file writes one), sizes and checksums are compared, too. Exit code 4: "
      "malformed, or not finite; 3: not what the manifest says.";
  spec.examples =
      "  ggufmill verify out/model-Q4_K_M.gguf\n"
      "  ggufmill verify out/model-Q4_K_M.gguf.manifest.json";
  spec.positional = "file";
  auto add = spec.options.add_options();
  add("manifest", po::value<std::string>(), "the manifest, where it is not FILE.manifest.json");
  add("threads", po::value<std::string>(), "as limits.threads: a number, or auto");
  add("json", "one JSON object on stdout");
  add("quiet,q", "no progress, and no word where all is well");
  add_kernel_options(spec.options);
  return spec;
}

int verify_verb(const Parsed& parsed) {
  const po::variables_map& values = parsed.values;
  VerifyOptions options;
  options.manifest = value_or<std::string>(values, "manifest", {});
  if (values.count("threads")) {
    const auto threads = parse_threads(values["threads"].as<std::string>());
    if (!threads) return fail(threads.error());
    options.threads = threads.value();
  }
  const auto context = open_context(values);
  if (!context) return fail(context.error());
  const std::string path = values["file"].as<std::string>();
  ProgressMeter meter(values.count("quiet") > 0);
  options.stop = catch_signals();
  options.progress = [&](std::uint64_t done, std::uint64_t total) { meter.show(path, done, total); };
  const auto verified = context.value().verify(path, options);
  meter.finish();
  if (!verified) {
    const int code = fail(verified.error());
    return signal_exit_code().value_or(code);
  }
  const Verification& result = verified.value();
  say_warnings(result.warnings);
  if (values.count("json"))
    std::puts(json_text(json::object{{"files", json::array(result.files.begin(), result.files.end())},
                                     {"tensors", result.tensors},
                                     {"bytes", result.bytes},
                                     {"manifest", result.manifest}})
                  .c_str());
  if (!values.count("quiet"))
    say_note(fmt::format(
        "{}: ok: {} tensors, {}{}", path, result.tensors, human_bytes(result.bytes),
        result.manifest.empty() ? "; no manifest to compare with" : "; all checksums are those of " + result.manifest));
  return 0;
}

}  // namespace

const Verb kVerifyVerb{"verify", "read a model from end to end: is it whole, sound, and as its manifest says?", command,
                       verify_verb};

}  // namespace ggufmill
