// `reproduce`: makes files again from what an attestation names, and compares them.

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/api/operations/context_options.h"
#include "pipeline/api/operations/measuring.h"
#include "pipeline/api/operations/run_pipeline.h"
#include "pipeline/api/publish/reproduction.h"
#include "pipeline/api/table.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"

namespace ggufmill {

std::vector<OperationSpec> publish_operations();

namespace {

struct ReproduceRequest {
  std::string attestation{}, key{}, sources{};
  std::string output = "reproduced";
  bool overwrite = false;
};

struct Reproduced {
  std::string attestation, folder, key_id;
  std::vector<ReproducedFile> files;
  std::vector<std::string> differences;  // of the program
};

// "a.gguf differs, first in the key 'general.name'".
std::string first_difference(const ReproducedFile& file) {
  const std::string name = quoted_name(file.name);
  if (!file.keys.empty()) return fmt::format("{} differs, first in the key {}", name, quoted_name(file.keys.front()));
  if (!file.tensors.empty())
    return fmt::format("{} differs, first in the tensor {}", name, quoted_name(file.tensors.front()));
  return fmt::format("{} differs in no key and no tensor: in their order, or in the padding", name);
}

// "1 key: general.name; 2 tensors: a, b".
std::string all_differences(const ReproducedFile& file) {
  std::string text;
  for (const auto& [noun, names] : {std::pair("key", &file.keys), {"tensor", &file.tensors}})
    if (!names->empty())
      text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", counted(names->size(), noun), list_some(*names));
  return text.empty() ? "no key and no tensor, but their order or the padding" : text;
}

Error differing(const Reproduced& made) {
  const auto count = std::ranges::count(made.files, false, &ReproducedFile::is_same);
  const auto first = std::ranges::find(made.files, false, &ReproducedFile::is_same);
  std::string detail = first_difference(*first);
  for (const std::string& line : made.differences) detail += "\n" + line;
  return {ExitCode::kVerification, made.attestation,
          fmt::format("{} of {} could not be reproduced", count, counted(made.files.size(), "file")), detail,
          made.differences.empty()
              ? "the files were not made from these sources by this program and pipeline file, or were changed"
              : "use the version, and the modules, that made the files"};
}

Result<Answer<Reproduced>> run_reproduce(const Context& context, const ReproduceRequest& request, const Call& call) {
  BOOST_OUTCOME_TRY(const SignedAttestation attestation, read_attestation(request.attestation, request.key));
  if (const std::string warning = unsigned_warning(attestation, option_reference("key", "PUBLIC.pem"));
      !warning.empty())
    call.warn(warning);
  const Reproduction again(context, attestation, request.sources, request.output);
  Answer<Reproduced> answer{{request.attestation, request.output, attestation.key_id, {}, again.differences()}};
  for (const std::string& line : answer.value.differences) call.warn(line);
  const std::string step = "sources";
  const auto read = [&](std::uint64_t done, std::uint64_t total) {
    if (call.step_progress) call.step_progress(step, done, total);
  };
  BOOST_OUTCOME_TRY(again.check_sources(call.stop(), read));
  BOOST_OUTCOME_TRY(Job job, again.job());
  BOOST_OUTCOME_TRY(take_measurement(context, job, IfUnmeasured::kMeasure, call));
  BOOST_OUTCOME_TRY(Plan plan, context.plan(job));
  if (again.record_paths(plan, job)) {
    BOOST_OUTCOME_TRY(plan, context.plan(job));
  }
  BOOST_OUTCOME_TRY(again.check_inputs(plan));
  RunOptions options;
  options.overwrite = request.overwrite;
  options.stop = call.stop();
  if (call.run_progress) options.progress = [&](const Progress& now) { call.run_progress(plan, now); };
  BOOST_OUTCOME_TRY(const RunReport report, context.run(plan, options));
  call.warn_all(report.warnings);
  BOOST_OUTCOME_TRY(answer.value.files, again.compare(plan));
  if (std::ranges::any_of(answer.value.files, [](const ReproducedFile& each) { return !each.is_same; }))
    answer.failure = differing(answer.value);
  return answer;
}

void print_reproduced(const Reproduced& made, TextOutput& to) {
  std::vector<Row> rows;
  for (const ReproducedFile& file : made.files) {
    const std::string how = file.is_same ? "same bytes" : "differs: " + all_differences(file);
    rows.push_back({printable(file.name), printable(how)});
  }
  to.table = Table{{whole_column("file"), {"reproduced"}}, rows};
  const auto same = std::ranges::count(made.files, true, &ReproducedFile::is_same);
  to.notes.push_back({fmt::format("{} of {} reproduced in {}", same, counted(made.files.size(), "file"), made.folder)});
}

OperationSpec reproduce_operation() {
  using Request = ReproduceRequest;
  const ResultForm<ReproducedFile> file{
      {result("name", &ReproducedFile::name, "name in the attestation"),
       result("path", &ReproducedFile::path, "path of the file that was made"),
       result("is_same", &ReproducedFile::is_same, "true if it has the attested checksum"),
       result("keys", &ReproducedFile::keys, "keys of the metadata that differ"),
       result("tensors", &ReproducedFile::tensors, "tensors that differ")}};
  ResultForm<Reproduced> made{
      {result("attestation", &Reproduced::attestation, "path of the attestation"),
       result("folder", &Reproduced::folder, "folder of the files"),
       result("signed_by", &Reproduced::key_id, "identifier of @key, if the signature was checked"),
       result("files", &Reproduced::files, file, "the files of the attestation"),
       result("differences", &Reproduced::differences, "what of this program is not as that which made the files")}};
  made.members[2].none_if_empty = true;
  return operation(OperationOf<Request, Reproduced>{
      .name = "reproduce",
      .group = OperationGroup::kInspect,
      .summary = "Make files again from what their attestation names, and compare them",
      .description =
          "Make files again from an attestation that `attestation` in a pipeline file has written. The sources that it "
          "names are checked first: addresses (hf://) are read where they are, and other names start from the folder "
          "@sources. Outputs go to the folder @output, and are compared with the checksums of the attestation. "
          "The pipeline file is that of the attestation, without its limits, reports and steps: no program "
          "is started, and importance that was computed is read from its file, which is one of the sources. @Error3: "
          "the signature is not valid, a source is another one, or a file differs; it has the keys and tensors that "
          "do, and whether the version or a module is another one.",
      .examples = "  ggufmill reproduce attestation.intoto.jsonl --key public.pem\n"
                  "  ggufmill reproduce attestation.intoto.jsonl --sources models -o again",
      .options = {option("attestation", &Request::attestation, path(),
                         "the attestation: a DSSE envelope, a bundle of Sigstore, or an in-toto statement")
                      .word("ATTESTATION"),
                  option("output", &Request::output, path(), "folder for the files").short_flag('o'),
                  option("sources", &Request::sources, path(),
                         "folder that the names of local sources start from; default: the current one"),
                  option("key", &Request::key, path(),
                         "public key in PEM (Ed25519 or ECDSA) with which the attestation must be signed"),
                  option("overwrite", &Request::overwrite, "replace existing files")},
      .result = std::move(made),
      .context = ContextUse::kCheckpoints,
      .progress = "",
      .run = run_reproduce,
      .print = print_reproduced});
}

}  // namespace

std::vector<OperationSpec> publish_operations() { return {reproduce_operation()}; }

}  // namespace ggufmill
