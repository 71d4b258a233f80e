#include "pipeline/api/llama_programs.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "pipeline/io/command.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"

namespace ggufmill {
namespace {

// Bytes of a line that are looked at: those that count chunks are short.
constexpr std::size_t kMaxLine = 4096;

// The programs log from a thread of their own, which may lose the last lines of a short run.
constexpr int kMaxTries = 10;

// Length of the header of a file of predictions: a word of eight bytes, then the numbers of tokens of a chunk, of the
// vocabulary, and of chunks (llama.cpp, tools/perplexity/perplexity.cpp).
constexpr std::uint64_t kPredictionsHeader = 20;

// Runs a program on a model with a text in chunks of `context` tokens.
Result<std::string> run(const std::vector<std::string>& words, const std::string& model, unsigned context,
                        const ProgramOptions& options) {
  ChunkCounter counter;
  CommandOptions how;
  how.stop = options.stop;
  if (options.progress)
    how.printed = [&](std::string_view text) {
      if (counter.read(text)) options.progress(model, counter.done(), counter.total());
    };
  how.help = fmt::format("if it gives no reason, the text may be too short: it needs {} tokens", least_tokens(context));
  return run_and_capture(words, how);
}

std::vector<std::string> command_of(const std::string& program, const std::string& model, const std::string& text,
                                    unsigned chunks, unsigned context, const ProgramOptions& options) {
  std::vector<std::string> words{program, "-m", model, "-f", text, "-c", std::to_string(context)};
  words.insert(words.end(), {"-t", std::to_string(options.threads)});
  if (chunks != 0) words.insert(words.end(), {"--chunks", std::to_string(chunks)});
  return words;
}

std::vector<std::string> command_of(const PerplexityOptions& quality, const std::string& model,
                                    const std::string& predictions, const ProgramOptions& options) {
  std::vector<std::string> words =
      command_of(quality.program, model, quality.text, quality.chunks, quality.context, options);
  words.insert(words.end(), {"--kl-divergence-base", predictions});
  words.insert(words.end(), quality.options.begin(), quality.options.end());
  return words;
}

// Fails unless a program that has succeeded has written more than `least` bytes to its file.
Status check_result(const std::string& program, const std::string& path, const char* what, unsigned context,
                    std::uint64_t least) {
  std::error_code error;
  if (is_file(path) && fs::file_size(path, error) > least && !error) return ok();
  return input_error(program, fmt::format("wrote no {}", what),
                     fmt::format("the text may be too short: it needs {} tokens; or this may be another program",
                                 least_tokens(context)));
}

// Returns the number that follows `name` and a colon or equals sign. The name also stands in headings of tables.
std::optional<double> number_after(const std::string& printed, std::string_view name) {
  for (std::size_t at = printed.find(name); at != printed.npos; at = printed.find(name, at + 1)) {
    const std::size_t begin = std::min(printed.find_first_not_of(" :=", at + name.size()), printed.size());
    double value = 0;
    const auto read = std::from_chars(printed.data() + begin, printed.data() + printed.size(), value);
    if (read.ec == std::errc() && std::isfinite(value)) return value;
  }
  return {};
}

// Returns the standard error, which follows the number behind a plus-minus sign.
double error_after(const std::string& printed, std::string_view name) {
  const std::size_t at = printed.find("±", printed.find(name));
  return at == printed.npos ? 0 : number_after(printed.substr(at), "±").value_or(0);
}

}  // namespace

bool ChunkCounter::read(std::string_view printed) {
  const std::uint64_t before = done_, total = total_;
  for (const char c : printed) {
    if (line_.size() < kMaxLine) line_ += c;
    if (c == ',' || c == '\n') read_line();
  }
  return done_ != before || total_ != total;
}

void ChunkCounter::read_line() {
  const std::string line = std::move(line_);
  line_.clear();
  const auto number_at = [&](std::size_t at) {
    std::uint64_t value = 0;
    return std::from_chars(line.data() + at, line.data() + line.size(), value).ec == std::errc() ? value : 0;
  };
  constexpr std::string_view kOver = "over ";
  if (const std::size_t at = line.find(kOver); at != line.npos && line.find("chunks", at) != line.npos)
    total_ = number_at(at + kOver.size());
  else if (const std::size_t first = line.find_first_not_of(' '); first != line.npos)
    if (const std::uint64_t chunk = number_at(line[first] == '[' ? first + 1 : first);
        chunk == done_ + 1 && chunk <= total_)
      done_ = chunk;
}

Status compute_importance(const ImportanceComputation& computation, const std::string& model, const std::string& into,
                          const ProgramOptions& options) {
  std::vector<std::string> words =
      command_of(computation.program, model, computation.text, computation.chunks, computation.context, options);
  words.insert(words.end(), {"-o", into});
  words.insert(words.end(), computation.options.begin(), computation.options.end());
  BOOST_OUTCOME_TRY(run(words, model, computation.context, options));
  return check_result(computation.program, into, "importance matrix", computation.context, 0);
}

Status write_predictions(const PerplexityOptions& quality, const std::string& model, const std::string& into,
                         const ProgramOptions& options) {
  BOOST_OUTCOME_TRY(run(command_of(quality, model, into, options), model, quality.context, options));
  return check_result(quality.program, into, "predictions of the base model", quality.context, kPredictionsHeader);
}

Result<MeasuredQuality> measure_quality(const PerplexityOptions& quality, const std::string& model,
                                        const std::string& predictions, const ProgramOptions& options) {
  std::vector<std::string> words = command_of(quality, model, predictions, options);
  words.emplace_back("--kl-divergence");
  for (int i = 1;; ++i) {
    BOOST_OUTCOME_TRY(const std::string printed, run(words, model, quality.context, options));
    Result<MeasuredQuality> measured = read_quality(printed);
    if (measured) return measured;
    if (i == kMaxTries)
      return Error{ExitCode::kBadInput, quality.program,
                   fmt::format("did not print {} for {}", measured.error().what, model), "",
                   "the text may be too short; or use a llama-perplexity that supports --kl-divergence"};
  }
}

Result<MeasuredQuality> read_quality(const std::string& printed) {
  MeasuredQuality measured;
  const std::pair<const char*, double MeasuredQuality::*> numbers[] = {
      {"Mean PPL(Q)", &MeasuredQuality::perplexity},     {"Mean PPL(base)", &MeasuredQuality::base_perplexity},
      {"Mean    KLD", &MeasuredQuality::divergence},     {"99.0%   KLD", &MeasuredQuality::divergence_99},
      {"Maximum KLD", &MeasuredQuality::divergence_max}, {"Same top p", &MeasuredQuality::same_top}};
  for (const auto& [name, member] : numbers) {
    const std::optional<double> value = number_after(printed, name);
    if (!value) return input_error("", fmt::format("'{}'", name));
    measured.*member = *value;
  }
  measured.same_top /= 100;
  measured.divergence_error = error_after(printed, "Mean    KLD");
  return measured;
}

}  // namespace ggufmill
