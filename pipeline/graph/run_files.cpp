#include "pipeline/graph/run_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "pipeline/graph/on_threads.h"
#include "pipeline/io/output_target.h"

namespace ggufmill {
namespace {

std::uint64_t data_bytes(const OutputFile& file) {
  std::uint64_t bytes = 0;
  for (const Placement& tensor : file.tensors) bytes += tensor.bytes;
  return bytes;
}

std::size_t count_files(const Plan& plan) {
  std::size_t count = 0;
  for (const PlannedOutput& output : plan.outputs) count += output.files.size();
  return count;
}

Status check_paths(const Plan& plan) {
  std::vector<WrittenPath> written;
  for (const PlannedOutput& output : plan.outputs)
    for (const OutputFile& file : output.files) written.push_back({file.path});
  Diagnostics errors;
  check_distinct(written, plan.input_paths(), errors);
  if (!errors.empty()) return errors.together();
  return ok();
}

// One output file to be created.
struct Creation {
  const OutputFile* planned;
  std::unique_ptr<AtomicFile>* file;
  Status status;

  void carry_out(const AtomicFile::Options& options) {
    Result<std::unique_ptr<AtomicFile>> created = AtomicFile::create(planned->path, planned->bytes, options);
    if (created)
      *file = std::move(created).value();
    else
      status = created.error();
  }
};

AtomicFile::Options options_for(const Plan& plan, bool overwrite, IoMode mode) {
  return {overwrite, plan.input_paths(), mode};
}

// What the user has to know about the outputs that were published before a later one failed.
Error with_sealed(Error error, std::size_t sealed, std::size_t files) {
  if (sealed == 0) return error;
  if (!error.detail.empty()) error.detail += "\n";
  error.detail += fmt::format("{} of {} output files had been finished and stay", sealed, files);
  return error;
}

}  // namespace

Error interrupted(std::size_t sealed, std::size_t files) {
  return with_sealed({ExitCode::kInterrupted, "", "interrupted", sealed == 0 ? "nothing was written" : "", ""}, sealed,
                     files);
}

Result<std::unique_ptr<RunFiles>> RunFiles::open(const Plan& plan, bool overwrite, IoMode mode, unsigned threads) {
  std::unique_ptr<RunFiles> files(new RunFiles(plan));
  BOOST_OUTCOME_TRY(files->open_inputs(mode));
  BOOST_OUTCOME_TRY(check_paths(plan));
  BOOST_OUTCOME_TRY(files->create_outputs(options_for(plan, overwrite, mode), threads));
  return files;
}

Status RunFiles::open_inputs(IoMode mode) {
  for (const SourceFile& file : plan_.source.files) {
    BOOST_OUTCOME_TRY(auto input, InputFile::open(file.path, mode));
    if (input->bytes() != file.bytes)
      return input_error(file.path,
                         fmt::format("{} bytes long, but {} when its header was read", input->bytes(), file.bytes),
                         "something else writes to this file: wait until it is done");
    inputs_.push_back(std::move(input));
  }
  return ok();
}

Status RunFiles::create_outputs(const AtomicFile::Options& options, unsigned threads) {
  std::vector<Creation> creations;
  for (const PlannedOutput& output : plan_.outputs) {
    outputs_.emplace_back(output.files.size());
    for (std::size_t i = 0; i < output.files.size(); ++i)
      creations.push_back({&output.files[i], &outputs_.back()[i], ok()});
  }
  std::atomic<std::size_t> next{0};
  on_threads(static_cast<unsigned>(std::min<std::size_t>(threads, creations.size())), [&] {
    for (std::size_t i; (i = next++) < creations.size();) creations[i].carry_out(options);
  });
  for (const Creation& creation : creations) {
    BOOST_OUTCOME_TRY(creation.status);
  }
  return ok();
}

Status RunFiles::seal(const std::atomic<bool>* stop) {
  std::size_t sealed = 0;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    for (std::size_t j = 0; j < outputs_[i].size(); ++j, ++sealed) {
      if (stop && *stop) return interrupted(sealed, count_files(plan_));
      const OutputFile& file = plan_.outputs[i].files[j];
      const Status status = outputs_[i][j]->seal(std::as_bytes(std::span(file.header)), data_bytes(file));
      if (!status) return with_sealed(status.error(), sealed, count_files(plan_));
    }
  }
  return ok();
}

}  // namespace ggufmill
