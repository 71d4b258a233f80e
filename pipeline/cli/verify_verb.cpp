// `ggufmill verify`: reads and checks an entire model.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>

#include "pipeline/api/ggufmill.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/planning.h"
#include "pipeline/cli/progress.h"
#include "pipeline/cli/signals.h"
#include "pipeline/cli/table.h"
#include "pipeline/cli/verb.h"
#include "pipeline/core/text.h"
#include "pipeline/report/json_text.h"
#include "stages/gguf/specification.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;
namespace json = boost::json;

CommandSpec verify_command() {
  CommandSpec spec;
  spec.usage = "ggufmill verify FILE... [options]";
  spec.description =
      "Reads models from end to end: is the structure valid, is the padding zero, are all numbers and scales finite? "
      "FILE is a GGUF file, the first of its shards, a safetensors file or folder, or a manifest. Where there is a "
      "manifest (`manifest: true` in a pipeline file writes one), sizes and checksums are compared, too. Exit code 4: "
      "malformed, or not finite; 3: not what the manifest says; of several files that of the first that is not "
      "0.\n\nWith --spec the header alone is read, and "
      "compared with the GGUF specification: keys that an architecture needs, types and ranges of values, names and "
      "shapes of tensors. Exit code 3 where a rule is broken; advice alone is none.";
  spec.examples =
      "  ggufmill verify out/model-Q4_K_M.gguf\n"
      "  ggufmill verify out/model-Q4_K_M.gguf.manifest.json\n"
      "  ggufmill verify out/model-Q4_K_M.gguf --spec";
  spec.positional = "file";
  spec.many = true;
  auto add = spec.options.add_options();
  add("manifest", po::value<std::string>(), "the manifest, where it is not FILE.manifest.json");
  add("threads", po::value<std::string>(), "as limits.threads: a number, or auto");
  add("spec", "compare the header with the GGUF specification; read no weights");
  add("json",
      "one JSON object on stdout: {files, tensors, bytes, manifest}; of --spec {file, findings: [{level, where, what, "
      "rule}]}; of several files a list of them");
  add("quiet,q", "no progress, and no word where all is well");
  add_kernel_options(spec.options);
  return spec;
}

// Checks the header against the specification; returns exit code 3 if a rule is violated.
int check_spec(const Context& context, const std::string& path, JsonList* as_json) {
  const auto model = context.inspect(path);
  if (!model) return fail(model.error());
  const std::vector<gguf::Finding> findings = gguf::check_specification(path, model.value());
  std::vector<Row> rows;
  json::array list;
  for (const gguf::Finding& finding : findings) {
    const std::string level = finding.is_required ? "error" : "advice";
    if (as_json)
      list.push_back(
          json::object{{"level", level}, {"where", finding.where}, {"what", finding.what}, {"rule", finding.rule}});
    else
      rows.push_back({level, finding.where, finding.what, finding.rule});
  }
  if (as_json)
    as_json->add(to_json_text(json::object{{"file", path}, {"findings", std::move(list)}}));
  else if (!rows.empty())
    std::fputs(render_table({{"level"}, {"where"}, {"what"}, {"the specification wants"}}, rows).c_str(), stdout);
  const auto broken = std::ranges::count(findings, true, &gguf::Finding::is_required);
  if (broken != 0)
    return fail({ExitCode::kVerification, path,
                 fmt::format("breaks {} rule{} of the GGUF specification", broken, broken == 1 ? "" : "s"), "",
                 "`ggufmill edit` sets and renames keys"});
  say_note(fmt::format("{}: as the GGUF specification wants it{}", path, findings.empty() ? "" : ", but for advice"));
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
  say_warnings(result.warnings);
  if (as_json)
    as_json->add(to_json_text(json::object{{"files", json::array(result.files.begin(), result.files.end())},
                                           {"tensors", result.tensors},
                                           {"bytes", result.bytes},
                                           {"manifest", result.manifest}}));
  if (!quiet)
    say_note(fmt::format(
        "{}: ok: {} tensors, {}{}", path, result.tensors, human_bytes(result.bytes),
        result.manifest.empty() ? "; no manifest to compare with" : "; all checksums are those of " + result.manifest));
  return 0;
}

int verify_verb(const Parsed& parsed) {
  const po::variables_map& values = parsed.values;
  const auto paths = values["file"].as<std::vector<std::string>>();
  VerifyOptions options;
  options.manifest = value_or<std::string>(values, "manifest", {});
  if (!options.manifest.empty() && paths.size() > 1)
    return fail(usage_error("--manifest is of one file", "verify that file alone, or name the manifests as files"));
  if (values.count("threads")) {
    const auto threads = parse_threads(values["threads"].as<std::string>());
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

const Verb kVerifyVerb{"verify", "read models from end to end: are they complete, valid, and as their manifests say?",
                       verify_command, verify_verb};

}  // namespace ggufmill
