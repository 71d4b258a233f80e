#include "pipeline/api/probe.h"

#include <fmt/format.h>

#include <boost/json.hpp>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "pipeline/api/ggufmill.h"
#include "pipeline/api/reports.h"
#include "pipeline/core/text.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/machine.h"

namespace ggufmill {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

// The program's log comes from a thread of its own, which may lose the end of a short run.
constexpr int kMostTries = 10;

std::string pattern_for(const std::string& name) {
  std::string text = "^";
  for (const char letter : name) {
    if (std::string_view(".^$|()[]{}*+?\\").find(letter) != std::string_view::npos) text += '\\';
    text += letter;
  }
  return text + "$";
}

class Prober {
 public:
  Prober(const Context& context, const Job& job, const ProbeOptions& options)
      : context_(context), job_(job), options_(options) {}

  Result<Probes> run() {
    BOOST_OUTCOME_TRY(const Model shared, shared_model(job_));
    if (shared.files.size() != 1 || !shared.files.front()->path.ends_with(".gguf"))
      return usage_error("probing needs a source that is one GGUF file: the program reads it as the base",
                         "write one first: a job with quantize: COPY");
    base_ = shared.files.front()->path;
    BOOST_OUTCOME_TRY(const std::vector<Tensor> tensors, open_tensors(shared));
    BOOST_OUTCOME_TRY(recall());
    BOOST_OUTCOME_TRY(write_base_answers());
    std::size_t done = 0;
    for (const Tensor& tensor : tensors) {
      if (options_.progress) options_.progress(tensor.name, done, tensors.size());
      if (options_.stop && *options_.stop) return interrupted();
      BOOST_OUTCOME_TRY(probe(tensor));
      ++done;
    }
    return std::move(probes_);
  }

 private:
  Result<std::vector<Tensor>> open_tensors(const Model& shared) const {
    for (const JobOutput& output : job_.outputs) {
      Model model = shared;
      for (const auto& stage : output.stages) {
        if (!target_of(*stage)) {
          BOOST_OUTCOME_TRY(model, stage->apply(std::move(model)));
          continue;
        }
        BOOST_OUTCOME_TRY(const Undecided made, undecided(*stage, std::move(model)));
        std::vector<Tensor> tensors;
        for (const std::size_t i : made.open) tensors.push_back(made.model.tensors[i]);
        return tensors;
      }
    }
    return usage_error("no output of the job has a target, so there is nothing to probe for",
                       "quantize: {target: {bits: 4.5}}");
  }

  // What an earlier call measured of the same.
  Status recall() {
    if (!is_file(options_.output)) return ok();
    BOOST_OUTCOME_TRY(probes_, read_probes(options_.output));
    return ok();
  }

  std::string beside(const char* ending) const { return options_.output + ending; }

  std::vector<std::string> command(const std::string& model) const {
    std::vector<std::string> words{options_.perplexity,
                                   "-m",
                                   model,
                                   "-c",
                                   std::to_string(options_.context),
                                   "-t",
                                   std::to_string(threads_for(options_.threads))};
    if (options_.chunks != 0) words.insert(words.end(), {"--chunks", std::to_string(options_.chunks)});
    return words;
  }

  Status write_base_answers() const {
    if (is_file(beside(".base"))) return ok();
    std::vector<std::string> words = command(base_);
    words.insert(words.end(), {"-f", options_.text, "--kl-divergence-base", beside(".base.part")});
    BOOST_OUTCOME_TRY(options_.run_program(words));
    std::error_code error;
    fs::rename(beside(".base.part"), beside(".base"), error);
    if (error) return io_error(beside(".base"), "keep the base's answers", error.value());
    return ok();
  }

  Status probe(const Tensor& tensor) {
    if (const auto known = probes_.find(tensor.name); known != probes_.end() && known->second.type == options_.type)
      return ok();
    const std::string path = beside(".probe.gguf");
    Status measured = ok();
    if (Status made = write_model(tensor, path); !made) return made;
    if (const auto divergence = measure(path))
      probes_[tensor.name] = {options_.type, divergence.value()};
    else
      measured = divergence.error();
    std::error_code ignored;
    fs::remove(path, ignored);
    if (!measured) return measured;
    return write_probes();
  }

  Status write_model(const Tensor& tensor, const std::string& path) const {
    const RecipeShelf shelf = context_.recipes();
    QuantizeStageOptions options;
    BOOST_OUTCOME_TRY(options.recipe, recipe_of_target(shelf));
    options.recipe.keep.clear();
    BOOST_OUTCOME_TRY(Pattern match, Pattern::compile(pattern_for(tensor.name)));
    const TypeInfo* type = shelf.types().find(options_.type);
    if (!type)
      return usage_error(fmt::format("unknown type {}", quoted_name(options_.type)), "`ggufmill types` lists them");
    options.rules.push_back({std::move(match), type, tensor.name});
    Job job = job_;
    job.report.reset();
    job.manifest = false;
    job.outputs.clear();
    BOOST_OUTCOME_TRY(auto stage, make_quantize_stage(std::move(options), shelf));
    BOOST_OUTCOME_TRY(auto sink, make_gguf_sink({.path = path}));
    job.outputs.push_back({std::move(sink), {std::move(stage)}});
    BOOST_OUTCOME_TRY(const Plan plan, context_.plan(job));
    RunOptions run;
    run.overwrite = true;
    run.stop = options_.stop;
    BOOST_OUTCOME_TRY(context_.run(plan, run));
    return ok();
  }

  Result<double> measure(const std::string& model) const {
    std::vector<std::string> words = command(model);
    words.insert(words.end(), {"--kl-divergence", "--kl-divergence-base", beside(".base")});
    for (int i = 0; i < kMostTries; ++i) {
      BOOST_OUTCOME_TRY(const std::string printed, options_.run_program(words));
      if (const auto divergence = divergence_in(printed)) return *divergence;
    }
    return input_error(options_.perplexity, "did not say the mean KL divergence",
                       "give a llama-perplexity of llama.cpp that knows --kl-divergence");
  }

  Status write_probes() const {
    json::object tensors;
    for (const auto& [name, probe] : probes_)
      tensors[name] = json::object{{"type", probe.type}, {"divergence", probe.divergence}};
    const json::object all{{"format", "ggufmill sensitivities"}, {"version", 1}, {"tensors", std::move(tensors)}};
    return write_text(options_.output, json::serialize(all) + "\n", true);
  }

  const Context& context_;
  const Job& job_;
  const ProbeOptions& options_;
  std::string base_;
  Probes probes_;
};

}  // namespace

Result<Probes> probe(const Context& context, const Job& job, const ProbeOptions& options) {
  return Prober(context, job, options).run();
}

std::optional<double> divergence_in(const std::string& printed) {
  constexpr std::string_view kWords = "Mean    KLD:";
  const std::size_t at = printed.find(kWords);
  if (at == std::string::npos) return {};
  const std::size_t begin = printed.find_first_not_of(' ', at + kWords.size());
  if (begin == std::string::npos) return {};
  double value = 0;
  const auto read = std::from_chars(printed.data() + begin, printed.data() + printed.size(), value);
  if (read.ec != std::errc() || !std::isfinite(value)) return {};
  return value;
}

}  // namespace ggufmill
