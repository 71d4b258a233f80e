// ggufmill VERB [options]: looks the verb up and runs it.

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <exception>

#include "pipeline/cli/messages.h"
#include "pipeline/cli/verb.h"
#include "pipeline/core/text.h"
#include "pipeline/io/io_service.h"

namespace ggufmill {
namespace {

constexpr Verb kVerbs[] = {
    {"run", "carry out a pipeline file", run_verb},
    {"check", "check a pipeline file, its headers, disk space and memory; write nothing", check_verb},
    {"plan", "show what a pipeline file does to every tensor; write nothing", plan_verb},
    {"status", "say how far the runs of a pipeline file are, and what was left", status_verb},
    {"submit", "bring a pipeline file to a cluster, in parts", submit_verb},
    {"part", "do one part of a cluster job", part_verb},
    {"seal", "end a cluster job whose parts are done", seal_verb},
    {"resume", "go on with a cluster job that nobody is at", resume_verb},
    {"cancel", "take a cluster job from its engine", cancel_verb},
    {"render", "print a cluster job as manifests of Kubernetes", render_verb},
    {"measure", "measure what each type would cost each tensor, for a target", measure_verb},
    {"probe", "measure how much each tensor matters, by llama-perplexity", probe_verb},
    {"inspect", "show the metadata and tensors of a GGUF file", inspect_verb},
    {"compare", "compare the values of two GGUF files", compare_verb},
    {"verify", "read a model from end to end: is it whole, sound, and as its manifest says?", verify_verb},
    {"types", "list the tensor types and what can be done with them", types_verb},
    {"kernels", "list the kernel modules, loaded and refused", kernels_verb},
    {"quantize", "do the job of llama-quantize, with its arguments", quantize_verb},
    {"convert", "do the job of convert_hf_to_gguf.py, with its arguments", convert_verb},
    {"recipe", "list the built-in recipes, print one to start from, or make one of a file", recipe_verb},
    {"architectures", "list the built-in maps of checkpoints, or print one to start from", architectures_verb},
    {"schema", "print the JSON Schema or the reference of pipeline files, recipes and architectures", schema_verb},
};

void print_help() {
  std::string text = "ggufmill " GGUFMILL_VERSION
                     ": turns model weight files into other model weight files\n\n"
                     "usage: ggufmill VERB [options]\n\nverbs:\n";
  for (const Verb& verb : kVerbs) text += fmt::format("  {:<13} {}\n", verb.name, verb.summary);
  text += "\n`ggufmill VERB --help` explains a verb.\nexample: ggufmill run configs/demo.yaml\n";
  std::fputs(text.c_str(), stdout);
}

int unknown_verb(const std::string& word) {
  std::vector<std::string> names;
  for (const Verb& verb : kVerbs) names.emplace_back(verb.name);
  const std::string meant = did_you_mean(word, names);
  return fail(usage_error(fmt::format("unknown verb '{}'", word), meant.empty()
                                                                      ? "`ggufmill --help` lists the verbs"
                                                                      : fmt::format("did you mean '{}'?", meant)));
}

int dispatch(const Arguments& arguments) {
  if (arguments.empty()) return fail(usage_error("no verb given", "`ggufmill --help` lists the verbs"));
  if (arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") {
    print_help();
    return 0;
  }
  if (arguments[0] == "--version") {
    std::puts("ggufmill " GGUFMILL_VERSION);
    return 0;
  }
  for (const Verb& verb : kVerbs)
    if (verb.name == arguments[0]) return verb.run({arguments.begin() + 1, arguments.end()});
  return unknown_verb(arguments[0]);
}

// Whether standard output is a pipe that nobody reads any more: `ggufmill plan x | head`.
bool nobody_reads() {
  struct pollfd pipe {
    STDOUT_FILENO, POLLOUT, 0
  };
  return ::poll(&pipe, 1, 0) == 1 && (pipe.revents & (POLLERR | POLLHUP)) != 0;
}

// Data that did not get out is an error, whatever the verb thought. Where nobody wants it the program ends as programs
// do that do not ignore SIGPIPE: without a word, and the shell sees 141.
int finish(int exit_code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit_code;
  if (nobody_reads()) {
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
    return 128 + SIGPIPE;  // where the signal is blocked
  }
  return fail(io_error("standard output", "write", errno == 0 ? EIO : errno));
}

}  // namespace

// Exceptions come from libraries only: stdout that cannot be written, no memory, or a defect.
int run_program(const Arguments& arguments) try { return finish(dispatch(arguments)); } catch (const std::exception&) {
  if (std::ferror(stdout)) return finish(0);
  return fail(error_of_exception());
}

}  // namespace ggufmill

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a run goes on where nobody reads what it says; see finish()
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit is a write error too
  return ggufmill::run_program({argv + 1, argv + argc});
}
