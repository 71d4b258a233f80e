// `verify`: reads and checks an entire model, or its header.

#include <fmt/format.h>

#include <algorithm>

#include "pipeline/api/attested.h"
#include "pipeline/api/operations/operations.h"
#include "pipeline/api/table.h"
#include "pipeline/core/checkpoint.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "pipeline/io/remote/address.h"
#include "stages/gguf/specification.h"

namespace ggufmill {
namespace {

struct VerifyRequest : VerifyOptions {
  std::string path{}, attestation{}, key{};
  bool spec = false;
};

struct SpecCheck {
  std::string file;
  std::vector<gguf::Finding> findings;
};

struct AttestedOrigin {
  std::string file, attestation;
  AttestedFile found;
  std::string key_id, key;  // empty: the signature was not checked
  std::string ggufmill, llama_cpp;
  std::vector<AttestedSource> made_from;
};

// One of three, as the request asks.
struct Verified {
  std::string path{}, against{};
  std::optional<Verification> values{};
  std::optional<SpecCheck> header{};
  std::optional<AttestedOrigin> origin{};
};

std::string_view level_of(const gguf::Finding& finding) { return finding.is_required ? "error" : "advice"; }

ResultForm<Verified> verify_result() {
  const std::vector<ResultMember> values{
      result("files", &Verification::files, "paths of the files that were read"),
      result("tensors", &Verification::tensors, "number of tensors"),
      result("bytes", &Verification::bytes, "size of the files"),
      result("manifest", &Verification::manifest, "path of the manifest that the files match, if there is one"),
      result("compared", &Verification::compared, "number of tensors compared with @against"),
      result("skipped", &Verification::skipped, "number of other tensors, if there is @against")};
  const ResultForm<gguf::Finding> finding{
      {result<gguf::Finding>(
           "level", [](const gguf::Finding& it) { return boost::json::value(level_of(it)); }, "error or advice"),
       result("where", &gguf::Finding::where, "key or tensor"), result("what", &gguf::Finding::what, "what it is"),
       result("rule", &gguf::Finding::rule, "what the specification requires")}};
  const std::vector<ResultMember> header{
      result("file", &SpecCheck::file, "path of the model"),
      result("findings", &SpecCheck::findings, finding, "what differs from the specification")};
  const ResultForm<AttestedSource> source{{result("name", &AttestedSource::name, "path or address"),
                                           result("sha256", &AttestedSource::sha256, "checksum"),
                                           result("bytes", &AttestedSource::bytes, "size")}};
  const std::vector<ResultMember> origin{
      result<AttestedOrigin>(
          "name", [](const AttestedOrigin& it) { return boost::json::value(it.found.name); },
          "name of the file when it was made"),
      result<AttestedOrigin>(
          "sha256", [](const AttestedOrigin& it) { return boost::json::value(it.found.sha256); },
          "checksum of the file"),
      result("signed_by", &AttestedOrigin::key_id, "identifier of @key, if the signature was checked"),
      result("ggufmill", &AttestedOrigin::ggufmill, "version of ggufmill that made the file"),
      result("llama_cpp", &AttestedOrigin::llama_cpp, "version of llama.cpp that it followed"),
      result("made_from", &AttestedOrigin::made_from, source, "the files that were read")};
  ResultForm<Verified> form{results_within(&Verified::values, values) +
                            results_within(&Verified::header, header, "with @spec") +
                            results_within(&Verified::origin, origin, "with @attestation")};
  for (ResultMember& each : form.members)
    if (each.name == "manifest" || each.name == "signed_by") each.none_if_empty = true;
  return form;
}

Status check_verify(const VerifyRequest& request) {
  if (!request.key.empty() && request.attestation.empty())
    return usage_error(option_reference("key") + " checks the signature of an attestation, and there is none",
                       "add " + option_reference("attestation", "FILE.jsonl"));
  if (!request.attestation.empty()) {
    const std::pair<const char*, bool> others[] = {{"manifest", !request.manifest.empty()},
                                                   {"against", !request.against.empty()},
                                                   {"allow_missing", request.allow_missing},
                                                   {"threads", request.threads != 0},
                                                   {"spec", request.spec}};
    for (const auto& [name, is_given] : others)
      if (is_given)
        return cannot_be_together(name, "attestation",
                                  option_reference("attestation") + " compares nothing but the checksum of the file");
  }
  if (!request.spec) return ok();
  const std::pair<const char*, bool> given[] = {{"manifest", !request.manifest.empty()},
                                                {"against", !request.against.empty()},
                                                {"allow_missing", request.allow_missing},
                                                {"threads", request.threads != 0}};
  for (const auto& [name, is_given] : given)
    if (is_given) return cannot_be_together(name, "spec", option_reference("spec") + " reads only the header");
  return ok();
}

Result<Answer<Verified>> check_header(const Context& context, const std::string& path) {
  BOOST_OUTCOME_TRY(const Model model, context.inspect(path));
  Answer<Verified> answer{{.path = path, .header = SpecCheck{path, gguf::check_specification(path, model)}}};
  const auto broken = std::ranges::count(answer.value.header->findings, true, &gguf::Finding::is_required);
  answer.value_shows_failure = true;
  if (broken != 0)
    answer.failure = Error{ExitCode::kVerification, path,
                           fmt::format("breaks {} of the GGUF specification", counted(broken, "rule")), "",
                           "`ggufmill edit` sets and renames keys"};
  return answer;
}

Result<Answer<Verified>> check_origin(const VerifyRequest& request, const Call& call) {
  BOOST_OUTCOME_TRY(const SignedAttestation attestation, read_attestation(request.attestation, request.key));
  if (const std::string warning = unsigned_warning(attestation, option_reference("key", "PUBLIC.pem"));
      !warning.empty())
    call.warn(warning);
  BOOST_OUTCOME_TRY(AttestedFile found, find_attested(attestation, request.path, call.stop(), call.progress));
  const Attestation& statement = attestation.statement;
  return Answer<Verified>{
      {.path = request.path,
       .origin = AttestedOrigin{request.path, request.attestation, std::move(found), attestation.key_id, request.key,
                                statement.ggufmill, statement.llama_cpp, statement.sources}}};
}

Result<Answer<Verified>> run_verify(const Context& context, const VerifyRequest& request, const Call& call) {
  if (!request.attestation.empty()) return check_origin(request, call);
  if (request.spec) return check_header(context, request.path);
  VerifyOptions options = request;
  options.stop = call.stop();
  options.progress = call.progress;
  BOOST_OUTCOME_TRY(Verification verified, context.verify(request.path, options));
  call.warn_all(verified.warnings);
  return Answer<Verified>{{.path = request.path, .against = request.against, .values = std::move(verified)}};
}

void print_findings(const Verified& verified, TextOutput& to) {
  std::vector<Row> rows;
  bool is_broken = false;
  for (const gguf::Finding& it : verified.header->findings) {
    rows.push_back({std::string(level_of(it)), it.where, it.what, it.rule});
    is_broken = is_broken || it.is_required;
  }
  if (!rows.empty()) to.out = render_table({{"level"}, {"where"}, {"what"}, {"the specification requires"}}, rows);
  if (!is_broken)
    to.notes.push_back(
        {fmt::format("{}: follows the GGUF specification{}", verified.path, rows.empty() ? "" : ", with advice")});
}

void print_origin(const AttestedOrigin& origin, TextOutput& to) {
  std::vector<Row> rows;
  for (const AttestedSource& each : origin.made_from)
    rows.push_back({printable(each.name), human_bytes(each.bytes), each.sha256});
  to.out = render_table({{"made from"}, {"size", Align::kRight}, {"sha256"}}, rows);
  to.notes.push_back({fmt::format("{}: ok: is {} of {}{}; made by ggufmill {}, which follows llama.cpp {}", origin.file,
                                  quoted_name(origin.found.name), origin.attestation,
                                  origin.key_id.empty() ? "" : fmt::format(", signed with {}", origin.key),
                                  printable(origin.ggufmill), printable(origin.llama_cpp))});
}

void print_verified(const Verified& verified, TextOutput& to) {
  if (verified.origin) return print_origin(*verified.origin, to);
  if (verified.header) return print_findings(verified, to);
  const Verification& values = *verified.values;
  to.notes.push_back({fmt::format(
      "{}: ok: {}, {}{}{}", verified.path, counted(values.tensors, "tensor"), human_bytes(values.bytes),
      values.manifest.empty() ? "; no manifest to compare with" : "; all checksums match " + values.manifest,
      verified.against.empty() ? ""
                               : fmt::format("; {} compared with {}, {} skipped", counted(values.compared, "tensor"),
                                             remote::without_secrets(verified.against), values.skipped))});
}

}  // namespace

OperationSpec verify_operation() {
  return operation(OperationOf<VerifyRequest, Verified>{
      .name = "verify",
      .group = OperationGroup::kInspect,
      .summary = "Check that models are complete, valid, and match their manifests",
      .description =
          "Read a model from end to end and check that its structure is valid, the padding is zero, and all numbers "
          "and scales are finite. @path is a GGUF file, the first shard of a sharded model, a safetensors file, a "
          "checkpoint folder, which must be complete unless @allow_missing is given, or a manifest. If there is a "
          "manifest (`manifest: true` in a pipeline file writes one), sizes and "
          "checksums are compared as well; without one, a changed weight is not found as long as it is finite. "
          "@Error4: malformed or not finite; @error3: does not match the manifest.\n\n"
          "With @against, tensors are also compared with those of the same name in the model that @path was made "
          "from: a kept tensor must have the same values, and an encoded one must be closer to the source than zeros "
          "would be. Tensors that stages renamed are skipped. So are all tensors of layers if layers were pruned, "
          "which renumbers the others. @Error3: a tensor differs.\n\n"
          "With @spec, only the header is read and compared with the GGUF specification: keys that an architecture "
          "needs, types and ranges of values, and names and shapes of tensors.\n\n"
          "With @attestation, the checksum of the file is compared with an attestation that `attestation` in a "
          "pipeline "
          "file has written, and what the file was made from is reported; with @key, the attestation must be signed "
          "with "
          "that key. @path can then be any file. @Error3: the file is another one, or the signature is not valid.",
      .for_command_line =
          "With --spec, exit code 3: a rule is broken; advice alone does not count. With several FILEs, "
          "the exit code is the first that is not 0.",
      .for_programs = "With @spec, a broken rule is not an error: it is one of the findings.",
      .examples = "  ggufmill verify out/model-Q4_K_M.gguf\n"
                  "  ggufmill verify out/model-Q4_K_M.gguf.manifest.json\n"
                  "  ggufmill verify out/model-Q4_K_M.gguf --against model-BF16.gguf\n"
                  "  ggufmill verify out/model-Q4_K_M.gguf --spec\n"
                  "  ggufmill verify *.gguf --attestation attestation.intoto.jsonl --key public.pem",
      .options = {option("path", &VerifyRequest::path, path(), "model or manifest to verify").each_word("FILE"),
                  option("manifest", &VerifyRequest::manifest, path(), "manifest, if not @path.manifest.json")
                      .not_with_several("verify one file at a time, or give the manifests as files"),
                  option("against", &VerifyRequest::against, path(),
                         "model that @path was made from; its kept tensors must have the same values"),
                  option("allow_missing", &VerifyRequest::allow_missing, kAllowMissingHelp),
                  option("threads", &VerifyRequest::threads, threads_form(), "number of threads, or auto").or_zero(),
                  option("spec", &VerifyRequest::spec,
                         "compare the header with the GGUF specification without reading weights"),
                  option("attestation", &VerifyRequest::attestation, path(),
                         "attestation of the file: a DSSE envelope, a bundle of Sigstore, or an in-toto statement"),
                  option("key", &VerifyRequest::key, path(),
                         "public key in PEM (Ed25519 or ECDSA) with which the attestation must be signed")},
      .result = verify_result(),
      .progress = "",
      .check = check_verify,
      .run = run_verify,
      .print = print_verified});
}

}  // namespace ggufmill
