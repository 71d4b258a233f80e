#include "tests/random/job_check.h"

#include "pipeline/io/platform/filesystem.h"
#include "tests/support/files.h"

namespace ggufmill::testing {
namespace {

void add_files(const fs::path& folder, const std::string& prefix, Files& files) {
  for (const std::string& name : names_in(folder)) {
    const fs::path path = folder / name;
    if (fs::is_directory(path))
      add_files(path, prefix + name + "/", files);
    else
      files[prefix + name] = read_text(path);
  }
}

}  // namespace

Result<Files> run_job(const Context& context, const std::string& text, const RunSettings& settings,
                      const std::string& folder) {
  fs::remove_all(folder);
  fs::create_directories(folder);
  BOOST_OUTCOME_TRY(Job job, context.parse_job(text, "job.yaml"));
  RunOptions options;
  options.engine = settings.engine;
  options.io = settings.io;
  MeasureOptions measure;
  measure.run = options;
  measure.cache.clear();
  if (needs_measurement(job)) {
    BOOST_OUTCOME_TRY(Measurement measured, context.measure(job, measure));
    give_measurement(job, std::make_shared<const Measurement>(std::move(measured)));
  }
  BOOST_OUTCOME_TRY(const Plan plan, context.plan(job));
  if (const std::vector<Error> errors = context.check(plan, false); !errors.empty()) return errors.front();
  EngineOptions engine = engine_options(options);
  engine.shuffle_seed = settings.shuffle_seed;
  engine.slab_bytes = settings.slab_bytes;
  BOOST_OUTCOME_TRY(run_resumably(plan, context.kernels(), options, engine));
  Files files;
  add_files(folder, "", files);
  return files;
}

void write_files(const Files& files, const std::string& folder) {
  fs::remove_all(folder);
  for (const auto& [name, bytes] : files) {
    const fs::path path = fs::path(folder) / name;
    fs::create_directories(path.parent_path());
    write_text(path, bytes);
  }
}

Files files_of(const Files& files, const std::string& output) {
  Files own;
  for (const auto& [name, bytes] : files)
    if (name.starts_with(output)) own.emplace(name, bytes);
  return own;
}

}  // namespace ggufmill::testing
