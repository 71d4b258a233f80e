#include "pipeline/cli/program.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <optional>

#include "pipeline/call/operations.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/verb.h"
#include "pipeline/core/installation.h"
#include "pipeline/core/text.h"
#include "pipeline/core/wings.h"
#include "pipeline/io/io_service.h"
#include "pipeline/io/platform/process.h"
#include "pipeline/io/source_path.h"

namespace ggufmill {
namespace {

// By OperationGroup.
constexpr std::string_view kGroupTitles[] = {"Convert and quantize",        "Look at models", "Edit and split files",
                                             "Choose types by measurement", "Cluster jobs",   "Reference"};

Verb verb_of(std::string_view name) {
  OperationList list;
  for (const OperationSpec& each : operations())
    if (each.verb() == name) list.push_back(&each);
  const OperationSpec& first = *list.front();
  const std::string_view summary = first.shared ? first.shared->summary : first.summary;
  return {std::string(name), first.group, summary, nullptr, nullptr, std::move(list)};
}

void print_help() {
  std::string text =
      fmt::format("ggufmill {}: {}\n\nusage: ggufmill VERB [options]\n", GGUFMILL_VERSION, kProgramSummary);
  std::optional<OperationGroup> group;
  for (const Verb& verb : verbs()) {
    if (group != verb.group) text += fmt::format("\n{}:\n", kGroupTitles[static_cast<std::size_t>(verb.group)]);
    group = verb.group;
    text += fmt::format("  {:<13} {}\n", verb.name, verb.summary);
  }
  text +=
      "\nSee `ggufmill help VERB` for the options of a verb; `ggufmill --version --verbose` lists the libraries in "
      "use.\n"
      "Example: ggufmill run job.yaml\n";
  std::fputs(text.c_str(), stdout);
}

// Suggests a verb for arguments that start with a model or a pipeline file instead of a verb.
std::string command_for(const Arguments& arguments) {
  const std::string& path = arguments[0];
  const bool is_model =
      path.ends_with(".gguf") || path.ends_with(".safetensors") || is_address(path) || is_folder(path);
  if (path.ends_with(".yaml") || path.ends_with(".yml")) return "run";
  if (!is_model) return {};
  if (arguments.size() > 1) return "quantize";
  return path.ends_with(".gguf") || path.ends_with(".safetensors") ? "inspect" : "convert";
}

int unknown_verb(const Arguments& arguments) {
  const std::string& word = arguments[0];
  if (const std::string verb = command_for(arguments); !verb.empty())
    return fail(usage_error(fmt::format("{} is not a verb", quoted_name(word)),
                            fmt::format("did you mean `ggufmill {} {}`?", verb, fmt::join(arguments, " "))));
  if (std::string omitted = omitted_wing_help(word); !omitted.empty())
    return fail(usage_error(fmt::format("unknown verb {}", quoted_name(word)), std::move(omitted)));
  std::vector<std::string> names;
  for (const Verb& verb : verbs()) names.emplace_back(verb.name);
  const std::string meant = did_you_mean(word, names);
  return fail(
      usage_error(fmt::format("unknown verb {}", quoted_name(word)),
                  meant.empty() ? "`ggufmill --help` lists the verbs" : fmt::format("did you mean '{}'?", meant)));
}

int print_version(const Arguments& arguments) {
  const bool is_verbose = arguments.size() == 2 && arguments[1] == "--verbose";
  if (arguments.size() > 1 && !is_verbose)
    return fail(
        usage_error(fmt::format("unexpected argument {}", quoted_name(arguments[arguments[1] == "--verbose" ? 2 : 1])),
                    "usage: ggufmill --version [--verbose]"));
  std::fputs(is_verbose ? verbose_version().c_str() : "ggufmill " GGUFMILL_VERSION "\n", stdout);
  return 0;
}

int dispatch(const Arguments& arguments) {
  if (arguments.empty()) return fail(usage_error("no verb given", "`ggufmill --help` lists the verbs"));
  if (arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") {
    const bool is_of_verb = arguments.size() > 1 && arguments[1] != "help" && !arguments[1].starts_with('-');
    if (is_of_verb) return dispatch({arguments[1], "--help"});
    print_help();
    return 0;
  }
  if (arguments[0] == "--version") return print_version(arguments);
  for (const Verb& verb : verbs()) {
    if (verb.name != arguments[0]) continue;
    const Parsed parsed = parse_command(command_of(verb), {arguments.begin() + 1, arguments.end()});
    return parsed.exit_code ? *parsed.exit_code : run_verb(verb, parsed);
  }
  return unknown_verb(arguments);
}

// Reports an error if output could not be written, regardless of the verb's exit code. If the reader has closed the
// pipe, the program ends like one that does not ignore SIGPIPE: silently, with exit code 141 in the shell.
int finish(int exit_code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  if (is_output_unread()) return end_unread();
  return fail(io_error("standard output", "write", errno == 0 ? EIO : errno));
}

}  // namespace

namespace {

// Returns all verbs, in the order of the help: by group, those of operations first.
std::vector<Verb> all_verbs() {
  std::vector<Verb> all;
  for (const OperationSpec& operation : operations())
    if (operation.has_verb && std::ranges::count(all, operation.verb(), &Verb::name) == 0)
      all.push_back(verb_of(operation.verb()));
  all.insert(all.end(), {kManualVerb, kCompletionVerb});
  std::ranges::stable_sort(all, {}, &Verb::group);
  return all;
}

}  // namespace

std::span<const Verb> verbs() {
  static const std::vector<Verb> kVerbs = all_verbs();
  return kVerbs;
}

CommandSpec command_of(const Verb& verb) {
  return verb.operations.empty() ? verb.command() : operation_command(verb.operations);
}

int run_verb(const Verb& verb, const Parsed& parsed) {
  return verb.operations.empty() ? verb.run(parsed) : run_operation(verb.operations, parsed);
}

namespace {

// Allocates no memory, for use when an error cannot be printed because memory is exhausted.
int fail_without_memory() {
  constexpr std::string_view kText = "error: out of memory\n",
                             kJson = R"({"level":"error","code":75,"message":"out of memory"})"
                                     "\n";
  const std::string_view line = log_format() == LogFormat::kText ? kText : kJson;
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fflush(stderr);
  return static_cast<int>(ExitCode::kTransient);
}

// In an archive made by `./dev dist`, which runs on a system whose libraries and settings may be of any age, gives the
// process its name, gives programs that it starts the environment that bin/ggufmill was started with, and lets no
// configuration of the system load a library of the system.
void prepare_for_archive() {
  if (!is_in_archive()) return;
  use_own_libraries("ggufmill");
  // The system's openssl.cnf may name providers and options that this OpenSSL does not have.
  if (!environment_variable("OPENSSL_CONF")) ::OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, nullptr);
}

// Reports the exception that is being handled and returns the exit code.
int fail_of_exception() {
  try {
    if (std::ferror(stdout)) return finish(0);
    return fail(error_of_exception());
  } catch (...) {
    return fail_without_memory();
  }
}

}  // namespace

// Exceptions come only from libraries: stdout cannot be written, memory is exhausted, or there is a bug.
int run_program(const Arguments& arguments) try { return finish(dispatch(arguments)); } catch (...) {
  return fail_of_exception();
}

int run_program(int argc, char** argv) try {
  prepare_for_archive();
  prepare_program();
  return run_program(program_arguments(argc, argv));
} catch (...) {
  return fail_of_exception();
}

}  // namespace ggufmill
