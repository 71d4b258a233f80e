#include "pipeline/api/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>

#include "pipeline/api/context.h"
#include "pipeline/api/llama_programs.h"
#include "pipeline/api/reports.h"
#include "pipeline/config/yaml_words.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "pipeline/core/written_json.h"
#include "pipeline/io/input_file.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/machine.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/source_path.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

std::string describe(const SourceFile& file) {
  return fmt::format("{} {:x} {}", file.bytes, file.header_hash, file.modified);
}

class Prober {
 public:
  Prober(const Context& context, const Job& job, const ProbeOptions& options)
      : context_(context), job_(job), options_(options) {
    text_.program = options.perplexity;
    text_.text = options.text;
    text_.chunks = options.chunks;
    text_.context = options.context;
    programs_.threads = threads_for(options.threads);
    programs_.stop = options.stop;
  }

  Result<Probes> run() {
    if (options_.context < PerplexityOptions::kMinContext)
      return usage_error(fmt::format("a context of {} tokens is too small", options_.context),
                         fmt::format("it must be at least {}", PerplexityOptions::kMinContext));
    BOOST_OUTCOME_TRY(const Model shared, shared_model(job_));
    if (shared.files.size() != 1 || !shared.files.front()->path.ends_with(".gguf"))
      return usage_error("probing needs a source in a single GGUF file, which the program reads as the base model",
                         "write one first with a job that has quantize: COPY");
    base_ = shared.files.front()->path;
    BOOST_OUTCOME_TRY(const std::vector<Tensor> tensors, open_tensors(shared));
    BOOST_OUTCOME_TRY(const auto text, InputFile::open(options_.text));
    measured_on_ = text_hash(fmt::format("{} {} {} {}", describe(*shared.files.front()), describe(*text->describe()),
                                         options_.chunks, options_.context));
    BOOST_OUTCOME_TRY(check_targets());
    if (!tensors.empty()) {
      BOOST_OUTCOME_TRY(check_type(tensors.front()));
    }
    BOOST_OUTCOME_TRY(recall());
    if (!std::ranges::all_of(tensors, [this](const Tensor& tensor) { return is_known(tensor); })) {
      BOOST_OUTCOME_TRY(write_base_answers());
    }
    std::size_t done = 0;
    for (const Tensor& tensor : tensors) {
      if (options_.progress) options_.progress(tensor.name, done, tensors.size());
      if (options_.stop && *options_.stop) return interrupted();
      BOOST_OUTCOME_TRY(probe(tensor));
      ++done;
    }
    std::error_code ignored;
    fs::remove(base_answers(), ignored);
    return std::move(probes_);
  }

 private:
  Result<std::vector<Tensor>> open_tensors(const Model& shared) const {
    for (const JobOutput& output : job_.outputs) {
      BOOST_OUTCOME_TRY(const auto made, undecided(output.stages, shared));
      if (!made) continue;
      std::vector<Tensor> tensors;
      for (const std::size_t i : made->open) tensors.push_back(made->model.tensors[i]);
      return tensors;
    }
    return usage_error("no output of the job has a target, so there is nothing to probe",
                       "set a target, for example quantize: {target: {bits: 4.5}}");
  }

  // The sensitivity file and the files next to it are replaced, so none of them may be an input. The target may name
  // the sensitivity file already: it reads the file once types are chosen.
  Status check_targets() const {
    BOOST_OUTCOME_TRY(std::vector<std::string> read, context_.inputs(job_));
    for (const JobOutput& output : job_.outputs)
      for (const auto& stage : output.stages)
        if (const TargetOptions* target = target_of(*stage)) std::erase(read, target->sensitivities);
    read.insert(read.end(), {options_.text, options_.perplexity});
    for (const std::string& path : {options_.output, base_answers(), beside(".base.part"), beside(".probe.gguf")}) {
      BOOST_OUTCOME_TRY(context_.check_written({path, "sensitivity file"}, read, true));
    }
    return ok();
  }

  // Refuses a type that does not exist or that the model cannot have, before the program runs.
  Status check_type(const Tensor& tensor) const {
    BOOST_OUTCOME_TRY(const Plan plan, plan_model(tensor, beside(".probe.gguf")));
    const std::vector<Error> problems = context_.problems(plan);
    if (!problems.empty()) return problems.front();
    return ok();
  }

  // Loads the results of an earlier call for the same input. The base's answers are trusted only if the sensitivity
  // file, which is written first, exists: without it they could come from any source.
  Status recall() {
    if (is_file(options_.output)) {
      BOOST_OUTCOME_TRY(ProbeFile file, read_probes(options_.output));
      if (file.measured_on == measured_on_) {
        probes_ = std::move(file.probes);
        return ok();
      }
      if (!file.probes.empty())
        return input_error(options_.output,
                           "these sensitivities were measured on another source, text, number of chunks, or context",
                           fmt::format("give another {}, or remove the file", option_reference("output")));
    }
    std::error_code ignored;
    fs::remove(base_answers(), ignored);
    return write_probes();
  }

  bool is_known(const Tensor& tensor) const {
    const auto known = probes_.find(tensor.name);
    return known != probes_.end() && known->second.type == options_.type;
  }

  std::string base_answers() const { return beside(".base"); }
  std::string beside(const char* ending) const { return options_.output + ending; }

  Status write_base_answers() const {
    if (is_file(base_answers())) return ok();
    std::error_code error;
    if (const Status written = write_predictions(text_, base_, beside(".base.part"), programs_); !written) {
      fs::remove(beside(".base.part"), error);
      return written;
    }
    fs::rename(beside(".base.part"), base_answers(), error);
    if (error) return io_error(base_answers(), "rename the base model's results", error.value());
    return ok();
  }

  Status probe(const Tensor& tensor) {
    if (is_known(tensor)) return ok();
    const std::string path = beside(".probe.gguf");
    Status measured = ok();
    if (Status made = write_model(tensor, path); !made) return made;
    if (const auto quality = measure_quality(text_, path, base_answers(), programs_))
      probes_[tensor.name] = {options_.type, quality.value().divergence};
    else
      measured = quality.error();
    std::error_code ignored;
    fs::remove(path, ignored);
    if (!measured) return measured;
    return write_probes();
  }

  Result<Plan> plan_model(const Tensor& tensor, const std::string& path) const {
    const RecipeCatalog catalog = context_.recipes();
    QuantizeStageOptions options;
    BOOST_OUTCOME_TRY(options.recipe, recipe_of_target(catalog));
    options.recipe.keep.clear();
    BOOST_OUTCOME_TRY(Pattern match, Pattern::compile("^" + regex_literal(tensor.name) + "$"));
    const TypeInfo* type = catalog.types().find(options_.type);
    if (!type)
      return usage_error(fmt::format("unknown type {}", quoted_name(options_.type)), "`ggufmill types` lists them");
    options.rules.push_back({std::move(match), type, tensor.name});
    Job job = job_;
    job.report.reset();
    job.manifest = false;
    job.outputs.clear();
    BOOST_OUTCOME_TRY(auto sink, make_gguf_sink({.path = path}));
    job.outputs.push_back({std::move(sink), {make_quantize_stage(std::move(options), catalog)}});
    return context_.plan(job);
  }

  Status write_model(const Tensor& tensor, const std::string& path) const {
    BOOST_OUTCOME_TRY(const Plan plan, plan_model(tensor, path));
    RunOptions run;
    run.overwrite = true;
    run.stop = options_.stop;
    BOOST_OUTCOME_TRY(context_.run(plan, run));
    return ok();
  }

  Status write_probes() const {
    json::object tensors;
    for (const auto& [name, probe] : probes_)
      tensors[name] = json::object{{"type", probe.type}, {"divergence", probe.divergence}};
    const json::object all{{"format", "ggufmill sensitivities"},
                           {"version", 1},
                           {"measured_on", measured_on_},
                           {"tensors", std::move(tensors)}};
    return write_text(options_.output, written_json(all) + "\n", true);
  }

  const Context& context_;
  const Job& job_;
  const ProbeOptions& options_;
  PerplexityOptions text_;  // as far as it concerns the program
  ProgramOptions programs_;
  std::string base_;         // path of the source
  std::string measured_on_;  // see ProbeFile
  Probes probes_;
};

}  // namespace

Result<Probes> probe(const Context& context, const Job& job, const ProbeOptions& options) {
  return Prober(context, job, options).run();
}

}  // namespace ggufmill
