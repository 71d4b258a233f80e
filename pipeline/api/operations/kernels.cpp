// `kernels` and `check_module`: list the kernel modules and the kernels in use, and check the kernels of a module.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/api/operations/operations.h"
#include "pipeline/core/text.h"
#include "pipeline/kernels/check/module_conformance.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

constexpr SharedVerb kKernelsVerb{
    .name = "kernels",
    .summary = "List the kernel modules, loaded and refused",
    .description =
        "List all kernel modules that were found, with the reason for each refused module, and the kernels chosen for "
        "each type. With --check, run the kernels of a module to see whether they follow the rules of the ABI, which "
        "plugins/README.md lists. Each check runs in a process of its own, for at most a minute of computing, so that "
        "a "
        "defect is reported and does not end the program. The exit code is 3 if a check fails.",
    .examples =
        "  ggufmill kernels\n"
        "  ggufmill kernels --isa x86-64-v2 --kernel-dir ./my-kernels\n"
        "  ggufmill kernels --check my-kernels/mine.so\n"
        "  ggufmill kernels --check mine-avx2.so --reference mine.so",
    .usage = "[options] [--check MODULE [--reference MODULE] [--type NAME ...] [--time]]"};

// ---- kernels ----

struct KernelsRequest {};

// The kernels of a type; a text for each: "x86-64-v3 (ggufmill)", or "-" if there is none.
struct TypeKernels {
  std::string type, decode, encode;
  std::vector<std::pair<std::string, std::string>> encoders{};  // besides the default one, by name
};

struct ListedKernels {
  std::vector<ModuleReport> modules;
  std::vector<TypeKernels> types;
  std::string isa;
};

std::string kernel_text(const KernelChoice* choice) {
  return choice ? fmt::format("{} ({})", choice->module->isa, choice->module->name) : "-";
}

Result<Answer<ListedKernels>> run_kernels(const Context& context, const KernelsRequest&, const Call& call) {
  const Kernels& kernels = context.kernels();
  if (!call.is_program) call.warn_all(kernels.warnings());  // the program prints them for every operation
  Answer<ListedKernels> answer{{kernels.reports(), {}, std::string(kernels.isa())}};
  for (const TypeInfo* type : kernels.types().all()) {
    TypeKernels& listed = answer.value.types.emplace_back(TypeKernels{
        std::string(type->name), kernel_text(kernels.decode(type->id)), kernel_text(kernels.encode(type->id))});
    for (const EncoderMethod* method : kernels.types().encoders())
      if (const KernelChoice* choice = kernels.encode(type->id, *method); choice && method != &reference_method())
        listed.encoders.emplace_back(method->name, kernel_text(choice));
  }
  return answer;
}

std::string type_table(const std::vector<TypeKernels>& types) {
  std::vector<Row> rows;
  for (const TypeKernels& it : types) {
    if (it.decode == "-" && it.encode == "-") continue;
    std::vector<std::string> others;
    for (const auto& [name, kernel] : it.encoders) others.push_back(name + ": " + kernel);
    rows.push_back({it.type, it.decode, it.encode, fmt::format("{}", fmt::join(others, ", "))});
  }
  return render_table({whole_column("type"), {"decode"}, {"encode"}, {"other encoders"}}, rows);
}

void print_kernels(const ListedKernels& kernels, TextOutput& to) {
  to.table = Table{{name_column("module"),
                    {"name"},
                    whole_column("version"),
                    whole_column("ISA"),
                    whole_column("state"),
                    {"kernels", Align::kRight},
                    {"why"}},
                   {}};
  for (const ModuleReport& it : kernels.modules) {
    to.table->rows.push_back({it.path, it.name, it.version, it.isa, it.loaded ? "loaded" : "refused",
                              std::to_string(it.kernels), it.refusal});
    if (!it.loaded) continue;
    for (const std::string& refusal : it.kernel_refusals)
      to.out += fmt::format("{}\n", printable(it.path + ": " + refusal));
  }
  to.out += "\n" + type_table(kernels.types);
}

ResultForm<ListedKernels> kernels_result() {
  using Module = ModuleReport;
  const ResultForm<Module> module{{result("path", &Module::path, "path of the module"),
                                   result("name", &Module::name, "its name"),
                                   result("version", &Module::version, "its version"),
                                   result("isa", &Module::isa, "instruction set of its kernels"),
                                   result("loaded", &Module::loaded, "false: it was refused"),
                                   result("refusal", &Module::refusal, "why it was refused"),
                                   result("kernels", &Module::kernels, "number of kernels in use")}};
  const auto encoders = [](const TypeKernels& it) -> std::optional<json::value> {
    json::object names;
    for (const auto& [name, kernel] : it.encoders) names[name] = kernel;
    return names;
  };
  const ResultForm<TypeKernels> type{{result("type", &TypeKernels::type, "name of the type"),
                                      result("decode", &TypeKernels::decode, "kernel that reads it, or \"-\""),
                                      result("encode", &TypeKernels::encode, "kernel that writes it, or \"-\""),
                                      result<TypeKernels>("encoders", encoders, "kernels of its other encoders")}};
  return {
      {result("modules", &ListedKernels::modules, module, "the modules that were found"),
       result("types", &ListedKernels::types, type, "the kernels in use, by type"),
       result("isa", &ListedKernels::isa, "instruction set of the kernels: the forced one, or the best one loaded")}};
}

// ---- check_module ----

struct CheckModuleRequest {
  std::string path{}, reference{};
  std::vector<std::string> types{};
  bool times = false;
};

struct CheckedModule {
  ModuleReport module;
  std::vector<conformance::ConformanceResult> checks;
  std::size_t passed = 0, failed = 0, skipped = 0;
  std::vector<conformance::KernelTime> times;
  bool has_times = false;
};

std::string_view result_text(conformance::Finding::Kind kind) {
  using State = conformance::Finding::Kind;
  return kind == State::kPassed ? "passed" : kind == State::kFailed ? "failed" : "skipped";
}

Result<Answer<CheckedModule>> run_check_module(const Context& context, const CheckModuleRequest& request,
                                               const Call& call) {
  BOOST_OUTCOME_TRY(const ModuleConformance checked, check_module({.module = request.path,
                                                                   .reference = request.reference,
                                                                   .types = request.types,
                                                                   .times = request.times,
                                                                   .stop = call.stop(),
                                                                   .loaded = &context.kernels()}));
  using State = conformance::Finding::Kind;
  Answer<CheckedModule> answer{{checked.module, checked.results, checked.count(State::kPassed),
                                checked.count(State::kFailed), checked.count(State::kSkipped), checked.times,
                                request.times}};
  if (answer.value.failed != 0) answer.exit_code = static_cast<int>(ExitCode::kVerification);  // the table has them
  return answer;
}

void print_checks(const CheckedModule& checked, TextOutput& to) {
  to.table = Table{{whole_column("type"),
                    whole_column("operation"),
                    whole_column("encoder"),
                    whole_column("check"),
                    whole_column("result"),
                    {"why"}},
                   {}};
  for (const conformance::ConformanceResult& it : checked.checks)
    to.table->rows.push_back(
        {it.type, it.operation, it.encoder, it.check, std::string(result_text(it.finding.kind)), it.finding.detail});
  to.out = fmt::format("{}: {} checks passed, {} failed, {} skipped\n", printable(checked.module.path), checked.passed,
                       checked.failed, checked.skipped);
  if (!checked.has_times) return;
  std::vector<Row> rows;
  for (const conformance::KernelTime& time : checked.times)
    rows.push_back({time.type, time.operation, time.encoder, time.weighted ? "yes" : "no",
                    fmt::format("{:.3f}", time.rate / 1e9),
                    time.reference > 0 ? fmt::format("{:.2f}", time.rate / time.reference) : ""});
  to.out += "\n" + render_table({whole_column("type"),
                                 whole_column("operation"),
                                 whole_column("encoder"),
                                 whole_column("importance"),
                                 {"GB of F32 per second", Align::kRight},
                                 {"times the reference", Align::kRight}},
                                rows);
}

ResultForm<CheckedModule> checked_module_result() {
  using Check = conformance::ConformanceResult;
  using Time = conformance::KernelTime;
  const auto module = [](const CheckedModule& it) {
    const ModuleReport& report = it.module;
    return std::optional<json::value>(
        json::object{{"path", report.path}, {"name", report.name}, {"version", report.version}, {"isa", report.isa}});
  };
  const auto state = [](const Check& it) { return std::optional(json::value(result_text(it.finding.kind))); };
  const auto why = [](const Check& it) { return std::optional(json::value(it.finding.detail)); };
  const ResultForm<Check> check{
      {result("type", &Check::type, "name of the type"), result("operation", &Check::operation, "encode or decode"),
       result("encoder", &Check::encoder, "name of the encoder"), result("check", &Check::check, "what is checked"),
       result<Check>("result", state, "passed, failed, or skipped"), result<Check>("why", why, "why it did not pass")}};
  const ResultForm<Time> time{
      {result("type", &Time::type, "name of the type"), result("operation", &Time::operation, "encode or decode"),
       result("encoder", &Time::encoder, "name of the encoder"),
       result("importance", &Time::weighted, "true: with importance"),
       result("bytes_per_second", &Time::rate, "bytes of F32"),
       result("reference_bytes_per_second", &Time::reference, "the same of the reference, or 0")}};
  ResultForm<CheckedModule> form{
      {result<CheckedModule>("module", module, "the module"),
       result("checks", &CheckedModule::checks, check, "the checks"),
       result("passed", &CheckedModule::passed, "number of checks that passed"),
       result("failed", &CheckedModule::failed, "number of checks that failed"),
       result("skipped", &CheckedModule::skipped, "number of checks that were skipped"),
       result("times", &CheckedModule::times, time, "how fast the kernels are; empty without @times")}};
  form.members.front().shape = "{path, name, version, isa}";
  return form;
}

}  // namespace

OperationSpec kernels_operation() {
  return operation(OperationOf<KernelsRequest, ListedKernels>{
      .name = "kernels",
      .group = OperationGroup::kReference,
      .summary = "List the kernel modules, loaded and refused",
      .description =
          "List all kernel modules that were found, with the reason for each refused module, and the kernels "
          "chosen for each type.",
      .shared = &kKernelsVerb,
      .result = kernels_result(),
      .run = run_kernels,
      .print = print_kernels});
}

OperationSpec check_module_operation() {
  using Check = CheckModuleRequest;
  return operation(OperationOf<CheckModuleRequest, CheckedModule>{
      .name = "check_module",
      .group = OperationGroup::kReference,
      .summary = "Check the kernels of a module",
      .description =
          "Run the kernels of a module to see whether they follow the rules of the ABI, which plugins/README.md lists. "
          "Each check runs in a process of its own, for at most a minute of computing, so that a defect is reported "
          "and "
          "does not end the program. @error5: the module is refused, or has none of the types.",
      .for_programs = "A check that fails is not an error: it is one of the results.",
      .shared = &kKernelsVerb,
      .choice = "--check",
      .options =
          {option("path", &Check::path, path(), "check the kernels of this module (a file)").choice("check", "MODULE"),
           option("reference", &Check::reference, path(),
                  "the module whose bytes the kernels must reproduce; default: ggufmill's own kernels"),
           option("types", &Check::types, list_of(text()), "only this type").on_command_line("type"),
           option("times", &Check::times, "also measure how fast the kernels are, on one thread")
               .on_command_line("time")},
      .result = checked_module_result(),
      .run = run_check_module,
      .print = print_checks});
}

}  // namespace ggufmill
