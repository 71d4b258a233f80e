// Damages the files in a job's folder. Outputs must never be published under their names with bytes that differ from
// those of a single run.

#include <fmt/format.h>

#include <map>
#include <random>

#include "pipeline/io/platform/filesystem.h"
#include "tests/cluster/job_fixture.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/importance_files.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::testing;
namespace {

using Files = std::map<std::string, std::string>;

// Returns all files under a folder, by their paths relative to it.
Files files_under(const fs::path& folder) {
  Files files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files[entry.path().lexically_relative(folder).string()] = read_text(entry.path());
  return files;
}

void restore(const fs::path& folder, const Files& files) {
  for (const auto& [name, text] : files_under(folder))
    if (!files.contains(name)) fs::remove(folder / name);
  for (const auto& [name, text] : files) write_text(folder / name, text);
}

void damage(std::string& text, std::mt19937& random) {
  const std::size_t at = text.empty() ? 0 : random() % text.size();
  switch (random() % 4) {
    case 0:
      text.resize(at);
      return;
    case 1:
      text.erase(at, 1 + random() % 8);
      return;
    case 2:
      text.insert(at, 1, "0123456789abcdef\",[]{}"[random() % 22]);
      return;
    default:
      if (!text.empty()) text[at] = static_cast<char>("0123456789abcdef"[random() % 16]);
  }
}

// Resumes parts and seal with the current state of the folder. Errors are expected and ignored.
void resume(const std::string& folder) {
  const auto job = load_job_folder(folder);
  if (!job) return;
  const auto plan = load_plan(job.value(), context().kernels().types());
  if (!plan) return;
  if (seal(context(), job.value(), plan.value(), {})) return;
  for (std::size_t part = 0; part < job.value().parts(); ++part) {
    PartOptions options;
    options.part = part;
    static_cast<void>(run_part(context(), job.value(), plan.value(), options));
  }
  static_cast<void>(seal(context(), job.value(), plan.value(), {}));
}

}  // namespace

TEST_CASE("whatever is damaged in a job's folder, its outputs are right or are not there") {
  const TempDir folder;
  GgufBuilder model;
  for (int i = 0; i < 6; ++i) {
    model.add_tensor(fmt::format("blk.{}.ffn_down.weight", i), {256, 16});
    std::vector<float> values(std::size_t{256} * 16);
    for (std::size_t k = 0; k < values.size(); ++k) values[k] = static_cast<float>((k * 31 + i) % 255) * 0.01f - 1.0f;
    model.tensors.back().data = float_bytes(values);
  }
  model.write(folder.file("model.gguf"));
  const auto plan_in = [&](const std::string& out) {
    const auto job = context().parse_job(
        fmt::format("version: 1\nsource: {{gguf: {0}}}\noutputs:\n  - {{gguf: {1}/a.gguf, quantize: {{type: Q8_0}}}}\n"
                    "  - {{gguf: {1}/b.gguf, quantize: {{type: F16}}}}\n",
                    folder.file("model.gguf"), folder.file(out)),
        folder.file("job.yaml"));
    REQUIRE(job);
    return context().plan(job.value()).value();
  };
  REQUIRE(context().run(plan_in("right"), {}));
  const Files right = files_under(folder.file("right"));
  REQUIRE(right.size() == 2);
  const Plan plan = plan_in("out");
  SubmitOptions options;
  options.cluster.parts = 3;
  options.cluster.folder = folder.file("job");
  const ClusterJob job = make_job(plan, options).value();
  REQUIRE(create_job(job, plan));
  do_parts(job, plan);
  const Files of_job = files_under(folder.file("job")), of_outputs = files_under(folder.file("out"));
  std::mt19937 random(1);
  std::size_t made = 0;
  for (int round = 0; round < 300; ++round) {
    restore(folder.file("job"), of_job);
    restore(folder.file("out"), of_outputs);
    const auto which = std::next(of_job.begin(), static_cast<std::ptrdiff_t>(random() % of_job.size()));
    std::string text = which->second;
    damage(text, random);
    write_text(folder.file("job/" + which->first), text);
    CAPTURE(round, which->first);
    resume(folder.file("job"));
    Files there = files_under(folder.file("out"));
    std::erase_if(there, [](const auto& file) { return file.first.starts_with("."); });
    CHECK((there.empty() || there == right));
    if (!there.empty()) ++made;
  }
  CHECK(made > 100);  // damaged markers and edges are repaired
}
