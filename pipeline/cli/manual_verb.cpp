// `ggufmill manual`: prints manual pages, generated from the same table as help and completion.

#include <fmt/format.h>

#include <cstdio>

#include "pipeline/api/reports.h"
#include "pipeline/cli/messages.h"
#include "pipeline/cli/verb.h"
#include "pipeline/cli/verb_options.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

struct ManualRequest {
  std::string verb{}, folder{};  // may be empty
};

std::vector<OperationOption> manual_options() {
  using Manual = ManualRequest;
  return {Option<Manual>(option("verb", &Manual::verb, "").optional_word("VERB")),
          Option<Manual>(
              option("folder", &Manual::folder, path(), "write all pages to this folder, as FOLDER/ggufmill-VERB.1"))};
}

CommandSpec manual_command() {
  CommandSpec spec;
  spec.usage = "ggufmill manual [VERB | --folder FOLDER]";
  spec.description =
      "Print the manual page of a verb, or of the program, in roff format with man macros. Packages install these "
      "pages; `ggufmill manual run | man -l -` displays one.";
  spec.examples = "  ggufmill manual run | man -l -";
  spec.positional = "verb";
  add_options(manual_options(), spec);
  spec.optional = true;
  for (const Verb& verb : verbs()) spec.words.emplace_back(verb.name);
  return spec;
}

// Escapes a line of text for roff: backslashes, hyphens, and control characters at the start of the line.
std::string roff(std::string_view text) {
  std::string out;
  for (const char letter : text)
    out += letter == '\\' ? std::string("\\e") : letter == '-' ? std::string("\\-") : std::string(1, letter);
  if (!out.empty() && (out[0] == '.' || out[0] == '\'')) out.insert(0, "\\&");
  return out;
}

std::string paragraphs(const std::string& text) {
  std::string out;
  for (const std::string& paragraph : paragraphs_of(text)) out += (out.empty() ? "" : ".PP\n") + roff(paragraph) + "\n";
  return out;
}

// Formats commands verbatim, one per line.
std::string verbatim(std::string_view text) {
  std::string out = ".nf\n";
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    out += roff(line) + "\n";
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out + ".fi\n";
}

std::string head(std::string_view name, std::string_view summary) {
  const std::string dashed(name);
  return fmt::format(".TH {} 1 \"\" \"ggufmill " GGUFMILL_VERSION "\" \"ggufmill\"\n.SH NAME\n{} \\- {}\n",
                     roff(dashed), roff(dashed), roff(summary));
}

constexpr std::string_view kExitCodes =
    ".SH \"EXIT STATUS\"\n"
    ".TP\n0\nSuccess.\n"
    ".TP\n1\nInternal error: a bug in ggufmill.\n"
    ".TP\n2\nInvalid arguments or pipeline file.\n"
    ".TP\n3\nVerification failed: values differ, or a file does not match its manifest.\n"
    ".TP\n4\nAn input is missing, damaged, or has changed.\n"
    ".TP\n5\nNo kernel supports the requested operation, or a kernel module has a defect.\n"
    ".TP\n6\nReading or writing failed.\n"
    ".TP\n75\nTemporary failure, try again: out of memory or threads, or a part was terminated by SIGTERM.\n"
    ".TP\n130, 143\nTerminated by SIGINT or SIGTERM; the same command resumes the work.\n";

std::string page_of(const Verb& verb) {
  const CommandSpec spec = full_command(command_of(verb));
  std::string out = head(fmt::format("ggufmill-{}", verb.name), verb.summary);
  out += ".SH SYNOPSIS\n" + roff(spec.usage) + "\n.SH DESCRIPTION\n" + paragraphs(spec.description);
  out += ".SH OPTIONS\n";
  for (const auto& option : spec.options.options())
    out += fmt::format(".TP\n.B {}\n{}\n", roff(written_name(*option)), roff(option->description()));
  out += ".SH EXAMPLES\n" + verbatim(spec.examples);
  out += kExitCodes;
  return out + ".SH \"SEE ALSO\"\n.BR ggufmill (1)\n";
}

std::string page_of_program() {
  std::string out = head("ggufmill", "converts and quantizes model weight files");
  out += ".SH SYNOPSIS\nggufmill VERB [options]\n.SH DESCRIPTION\nThe verbs; each has its own manual page:\n";
  for (const Verb& verb : verbs())
    out += fmt::format(".TP\n.BR ggufmill\\-{} (1)\n{}\n", verb.name, roff(verb.summary));
  return out + std::string(kExitCodes);
}

int write_all(const std::string& folder) {
  const auto write = [&](std::string_view name, const std::string& page) {
    return write_text(fmt::format("{}/{}.1", folder, name), page, true);
  };
  Status written = write("ggufmill", page_of_program());
  for (const Verb& verb : verbs())
    if (written) written = write(fmt::format("ggufmill-{}", verb.name), page_of(verb));
  return written ? 0 : fail(written.error());
}

int manual_verb(const Parsed& parsed) {
  ManualRequest request;
  if (const Status read = read_options(manual_command(), manual_options(), parsed, &request); !read)
    return fail(read.error());
  if (!request.folder.empty()) return write_all(request.folder);
  if (request.verb.empty()) {
    std::fputs(page_of_program().c_str(), stdout);
    return 0;
  }
  for (const Verb& verb : verbs()) {
    if (verb.name != request.verb) continue;
    std::fputs(page_of(verb).c_str(), stdout);
    return 0;
  }
  return fail(
      usage_error(fmt::format("unknown verb {}", quoted_name(request.verb)), "`ggufmill --help` lists the verbs"));
}

}  // namespace

const Verb kManualVerb{"manual", OperationGroup::kReference, "Print the manual page of a verb", manual_command,
                       manual_verb};

}  // namespace ggufmill
