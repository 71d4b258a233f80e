// `ggufmill verify`: reads and checks an entire model.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "pipeline/api/describe.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/planning.h"
#include "pipeline/cli/progress.h"
#include "pipeline/cli/signals.h"
#include "pipeline/cli/table.h"
#include "pipeline/cli/verb.h"
#include "pipeline/core/text.h"
#include "pipeline/io/remote/address.h"
#include "pipeline/llama_cpp/arguments.h"
#include "pipeline/report/json_text.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

CommandSpec verify_command() {
  CommandSpec spec;
  spec.usage = "ggufmill verify FILE... [options]";
  spec.description =
      "Read models from end to end and check that their structure is valid, the padding is zero, and all numbers and "
      "scales are finite. FILE is a GGUF file, the first shard of a sharded model, a safetensors file, a checkpoint "
      "folder, which must be complete unless --allow-missing is given, or a manifest. If there is a manifest "
      "(`manifest: true` in a pipeline file writes one), sizes and checksums are "
      "compared as well. Exit code 4: malformed or not finite; 3: does not match the manifest. With several files, the "
      "exit code is the first that is not 0.\n\nWith --against, tensors are also compared with those of the same name "
      "in the model that FILE was made from: a kept tensor must have the same values, and an encoded one must be "
      "closer to the source than zeros would be. Tensors that stages renamed are skipped, and if layers were pruned, "
      "which renumbers the others, all tensors of layers. The exit code is 3 if a tensor differs.\n\nWith --spec, only "
      "the header is read and compared with the GGUF specification: keys that an architecture needs, types and ranges "
      "of values, and names and shapes of tensors. "
      "The exit code is 3 if a rule is broken; advice alone does not count.";
  spec.examples =
      "  ggufmill verify out/model-Q4_K_M.gguf\n"
      "  ggufmill verify out/model-Q4_K_M.gguf.manifest.json\n"
      "  ggufmill verify out/model-Q4_K_M.gguf --against model-BF16.gguf\n"
      "  ggufmill verify out/model-Q4_K_M.gguf --spec";
  spec.positional = "file";
  spec.many = true;
  auto add = spec.options.add_options();
  add("manifest", po::value<std::string>(), "manifest, if not FILE.manifest.json");
  add("against", po::value<std::string>(), "model that FILE was made from; its kept tensors must have the same values");
  add(kAllowMissing, kAllowMissingHelp);
  add("threads", po::value<std::string>(), "number of threads, or auto");
  add("spec", "compare the header with the GGUF specification without reading weights");
  add("json",
      "print one JSON object: {files, tensors, bytes, manifest, compared, skipped}; with --spec {file, findings: "
      "[{level, where, what, rule}]}; for several files, a list");
  add("quiet,q", "print no progress, and nothing if all files are valid");
  add_kernel_options(spec.options);
  return spec;
}

// Checks the header against the specification; returns exit code 3 if a rule is violated.
int check_spec(const Context& context, const std::string& path, JsonList* as_json) {
  const auto model = context.inspect(path);
  if (!model) return fail(model.error());
  const std::vector<gguf::Finding> findings = gguf::check_specification(path, model.value());
  std::vector<Row> rows;
  for (const gguf::Finding& finding : findings)
    rows.push_back({finding.is_required ? "error" : "advice", finding.where, finding.what, finding.rule});
  if (as_json)
    as_json->add(to_json_text(describe_findings(path, findings)));
  else if (!rows.empty())
    std::fputs(render_table({{"level"}, {"where"}, {"what"}, {"the specification requires"}}, rows).c_str(), stdout);
  const auto broken = std::ranges::count(findings, true, &gguf::Finding::is_required);
  if (broken != 0)
    return fail({ExitCode::kVerification, path,
                 fmt::format("breaks {} of the GGUF specification", counted(broken, "rule")), "",
                 "`ggufmill edit` sets and renames keys"});
  print_note(fmt::format("{}: follows the GGUF specification{}", path, findings.empty() ? "" : ", with advice"));
  return 0;
}

int verify_values(const Context& context, const std::string& path, VerifyOptions options, bool quiet,
                  JsonList* as_json) {
  ProgressMeter meter(quiet);
  options.progress = [&](std::uint64_t done, std::uint64_t total) { meter.show(path, done, total); };
  const auto verified = context.verify(path, options);
  meter.finish();
  if (!verified) {
    const int code = fail(verified.error());
    return signal_exit_code().value_or(code);
  }
  const Verification& result = verified.value();
  print_warnings(result.warnings);
  if (as_json) as_json->add(to_json_text(describe_verification(result)));
  if (!quiet)
    print_note(fmt::format(
        "{}: ok: {} tensors, {}{}{}", path, result.tensors, human_bytes(result.bytes),
        result.manifest.empty() ? "; no manifest to compare with" : "; all checksums match " + result.manifest,
        options.against.empty() ? ""
                                : fmt::format("; {} compared with {}, {} skipped", counted(result.compared, "tensor"),
                                              remote::without_secrets(options.against), result.skipped)));
  return 0;
}

int verify_verb(const Parsed& parsed) {
  name_options(false);
  const po::variables_map& values = parsed.values;
  const auto paths = values["file"].as<std::vector<std::string>>();
  VerifyOptions options;
  options.manifest = value_or<std::string>(values, "manifest", {});
  options.against = value_or<std::string>(values, "against", {});
  options.allow_missing = values.count(kAllowMissing) > 0;
  for (const char* const option : {"manifest", "against", "threads", kAllowMissing})
    if (values.count("spec") && values.count(option))
      return fail(usage_error(fmt::format("--{} and --spec cannot be used together", option),
                              "omit one of them: --spec reads only the header"));
  if (!options.manifest.empty() && paths.size() > 1)
    return fail(usage_error("--manifest is not supported with several files",
                            "verify one file at a time, or give the manifests as files"));
  if (values.count("threads")) {
    const auto threads = parse_option("--threads", threads_form(), values["threads"].as<std::string>());
    if (!threads) return fail(threads.error());
    options.threads = threads.value();
  }
  const auto context = open_context(values);
  if (!context) return fail(context.error());
  options.stop = catch_signals();
  std::optional<JsonList> list;
  if (values.count("json")) list.emplace(paths.size());
  int code = 0;
  for (const std::string& path : paths) {
    const int one = values.count("spec") ? check_spec(context.value(), path, list ? &*list : nullptr)
                                         : verify_values(context.value(), path, options, values.count("quiet") > 0,
                                                         list ? &*list : nullptr);
    if (code == 0) code = one;
    if (signal_exit_code()) break;
  }
  return code;
}

}  // namespace

const Verb kVerifyVerb{"verify", VerbGroup::kInspect,
                       "Check that models are complete, valid, and match their manifests", verify_command, verify_verb};

}  // namespace ggufmill
