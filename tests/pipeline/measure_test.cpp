// Tests measuring for a target: the results must not depend on threads, memory, parts or interruptions.

#include <fmt/format.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <future>
#include <map>
#include <numeric>
#include <optional>

#include "pipeline/api/context.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/system.h"
#include "tests/support/catch.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/importance_files.h"
#include "tests/support/synth.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
namespace {

constexpr std::size_t kTensors = 10;  // whose types are chosen
constexpr std::uint64_t kExperts = 3;

class Fixture {
 public:
  Fixture() {
    GgufBuilder file;
    GgufBuilder importance = gguf_importance();
    const auto add = [&](const std::string& name, const std::vector<std::uint64_t>& dims) {
      file.add_tensor(name, dims);
      std::vector<float> values(file.tensors.back().data.size() / sizeof(float));
      synth::fill(synth::Distribution::kNormal, file.tensors.size(), 0, values);
      file.tensors.back().data = float_bytes(values);
      std::vector<float> sums(dims[0] * (dims.size() > 2 ? dims[2] : 1)), counts(dims.size() > 2 ? dims[2] : 1, 2);
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<float>(i % 50) + 1;
      add_entry(importance, name, sums, counts);
    };
    add("token_embd.weight", {256, 40});
    for (int layer = 0; layer < 3; ++layer) {
      add(fmt::format("blk.{}.ffn_down.weight", layer), {512, 33});
      add(fmt::format("blk.{}.ffn_up_exps.weight", layer), {256, 7, kExperts});
      add(fmt::format("blk.{}.attn_q.weight", layer), {256, 20});
    }
    file.write(folder.file("in.gguf"));
    importance.write(folder.file("imatrix.gguf"));
  }

  // `more`: further options of `quantize`.
  Job job(const std::string& candidates = "[Q3_K, Q4_K, Q8_0, F32]", const std::string& more = "") const {
    const std::string text = fmt::format(
        "version: 1\nsource: {{gguf: {0}/in.gguf}}\nstages: [{{importance: {{file: {0}/imatrix.gguf}}}}]\n"
        "outputs: [{{gguf: {0}/out.gguf, quantize: {{target: {{bits: 5}}, candidates: {1}{2}}}}}]\n",
        folder.path().string(), candidates, more);
    auto job = context.parse_job(text, "job.yaml");
    if (!job) FAIL(render(job.error()));
    return std::move(job).value();
  }

  Measurement measure(const MeasureOptions& options = {}) const { return measure(job(), options); }
  Measurement measure(const Job& job, const MeasureOptions& options = {}) const {
    auto measured = context.measure(job, options);
    if (!measured) FAIL(render(measured.error()));
    return std::move(measured).value();
  }

  // Returns the measurement with a cache. `known` is set to the number of tensors found in it.
  std::string whole(const std::string& cache, std::size_t& known) const {
    MeasureOptions options = with_cache(cache);
    known = 0;
    options.known = [&](std::size_t found, std::size_t all) {
      CHECK(all == kTensors);
      known = found;
    };
    return write_measurement(measure(options));
  }

  MeasureOptions with_cache(const std::string& name) const {
    MeasureOptions options;
    options.cache = folder.file(name);
    options.batch_bytes = 1;  // each tensor separately
    return options;
  }

  TempDir folder;
  Context context = Context::create().value();
};

const Fixture& fixture() {
  static const Fixture made;
  return made;
}

const std::string& expected() {
  MeasureOptions options;
  options.cache.clear();
  static const std::string text = write_measurement(fixture().measure(options));
  return text;
}

// Fills an empty cache of this name and returns the paths of its files.
std::vector<std::string> filled_cache(const std::string& name) {
  fs::remove_all(fixture().folder.file(name));
  std::size_t known = 0;
  CHECK(fixture().whole(name, known) == expected());
  CHECK(known == 0);
  std::vector<std::string> files;
  for (const auto& file : fs::directory_iterator(fixture().folder.file(name))) files.push_back(file.path());
  REQUIRE(files.size() == kTensors);
  return files;
}

MeasureOptions no_cache() {
  MeasureOptions options;
  options.cache.clear();
  return options;
}

}  // namespace

TEST_CASE("the same figures whatever the threads and the memory") {
  Job job = fixture().job();
  job.limits.threads = GENERATE(1u, 3u);
  job.limits.memory = GENERATE(64ull << 10, 64ull << 20);
  CHECK(write_measurement(fixture().measure(job, no_cache())) == expected());
}

TEST_CASE("experts are measured one by one, and are together their tensor") {
  const Measurement measurement = fixture().measure(no_cache());
  REQUIRE(measurement.tensors.size() == kTensors);
  for (const MeasuredTensor& tensor : measurement.tensors) {
    INFO(tensor.name);
    const std::size_t experts = tensor.name.find("_exps") == std::string::npos ? 0 : kExperts;
    CHECK(tensor.matrices.plain.size() == experts);
    if (experts == 0) continue;
    const auto is_sum = [&](const MatrixSums& sums, double plain, double weighted) {
      CHECK(std::accumulate(sums.plain.begin(), sums.plain.end(), 0.0) == Approx(plain).epsilon(1e-14));
      CHECK(std::accumulate(sums.weighted.begin(), sums.weighted.end(), 0.0) == Approx(weighted).epsilon(1e-14));
      CHECK(sums.weighted.size() == experts);
    };
    is_sum(tensor.matrices, tensor.energy, tensor.weighted_energy);
    for (const MeasuredType& type : tensor.types) {
      is_sum(type.matrices, type.error, type.weighted_error);
      CHECK(type.bytes % experts == 0);
    }
  }
}

TEST_CASE("an interrupted measurement resumes, with the same results") {
  for (const std::size_t done : {0, 1, 6, 10}) {
    const std::vector<std::string> files = filled_cache("ended");
    for (std::size_t i = done; i < files.size(); ++i) fs::remove(files[i]);
    std::size_t known = 0;
    CHECK(fixture().whole("ended", known) == expected());
    CHECK(known == done);
    CHECK(fixture().whole("ended", known) == expected());
    CHECK(known == kTensors);
  }
}

TEST_CASE("a measurement that is stopped says so and keeps what it has") {
  std::atomic<bool> stop{false};
  MeasureOptions options = fixture().with_cache("stopped");
  options.run.stop = &stop;
  std::size_t calls = 0;
  options.progress = [&](std::uint64_t, std::uint64_t) { stop = ++calls == 5; };
  const auto stopped = fixture().context.measure(fixture().job(), options);
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code == ExitCode::kInterrupted);
  std::size_t known = 0;
  CHECK(fixture().whole("stopped", known) == expected());
  CHECK(known > 0);
}

TEST_CASE("the parts of a measurement together are complete") {
  for (const std::size_t parts : {1, 3, 20}) {
    const std::string cache = fmt::format("of-{}", parts);
    std::size_t measured = 0;
    for (std::size_t part = 0; part < parts; ++part) {
      MeasureOptions options = fixture().with_cache(cache);
      options.part = part;
      options.parts = parts;
      const std::size_t tensors = fixture().measure(options).tensors.size();
      if (parts == 3) CHECK(tensors > 1);
      measured += tensors;
    }
    CHECK(measured == kTensors);
    std::size_t known = 0;
    CHECK(fixture().whole(cache, known) == expected());
    CHECK(known == kTensors);
  }
}

TEST_CASE("a damaged file of the cache is measured again, with a warning") {
  const std::vector<std::string> files = filled_cache("damaged");
  std::string text = read_text(files[0]);
  SECTION("a changed byte") { text[text.size() / 2] ^= 1; }
  SECTION("cut short") { text.resize(text.size() - 10); }
  SECTION("something else") { text = "[]\n"; }
  write_text(files[0], text);
  MeasureOptions options = fixture().with_cache("damaged");
  std::vector<std::string> warnings;
  options.warn = [&](const std::string& warning) { warnings.push_back(warning); };
  CHECK(write_measurement(fixture().measure(options)) == expected());
  CHECK(warnings == std::vector<std::string>{"a file in the cache of measurements is not used, so its tensor is "
                                             "measured again: " +
                                             files[0] + ": it is damaged"});
  std::size_t known = 0;
  fixture().whole("damaged", known);
  CHECK(known == kTensors);
}

TEST_CASE("a line of the cache that another tensor could have is not taken") {
  const std::vector<std::string> files = filled_cache("strange");
  const std::string folder = fixture().folder.file("strange");
  const std::string text = read_text(files[0]);
  MeasuredTensor line = read_measured_line(text.substr(17, text.find('\n') - 17)).value();
  SECTION("another shape") { line.shape.dims[1] += 1; }
  SECTION("matrices") { line.matrices.plain.resize(line.matrices.plain.size() + 1); }
  SECTION("another type") { line.types[0].type = "Q2_K"; }
  MeasurementCache(folder).add(fs::path(files[0]).filename(), {&line, 1});
  std::size_t known = 0;
  CHECK(fixture().whole("strange", known) == expected());
  CHECK(known == kTensors - 1);
}

TEST_CASE("a file of the cache that others may write to is not used") {
  if (!kIsPosix) GGUFMILL_SKIP("files have no modes");
  const std::vector<std::string> files = filled_cache("shared");
  fs::permissions(files[0], fs::perms::others_write, fs::perm_options::add);
  std::size_t known = 0;
  CHECK(fixture().whole("shared", known) == expected());
  CHECK(known == kTensors - 1);
}

TEST_CASE("a cache that cannot be written is a warning") {
  write_text(fixture().folder.file("file"), "");
  MeasureOptions options = fixture().with_cache("file/cache");
  std::size_t warnings = 0;
  options.warn = [&](const std::string&) { ++warnings; };
  CHECK(write_measurement(fixture().measure(options)) == expected());
  CHECK(warnings == 1);
}

TEST_CASE("only a candidate that is added is measured") {
  filled_cache("added");
  const Job more = fixture().job("[Q3_K, Q6_K, Q4_K, Q8_0, F32]");
  const MeasureOptions options = fixture().with_cache("added");
  const Plan missing = fixture().context.plan_measurement(more, options).value();
  CHECK(missing.steps.size() == kTensors);
  for (const Step& step : missing.steps) {
    REQUIRE(step.encodings.size() == 1);
    CHECK(step.encodings[0].type->name == "Q6_K");
  }
  CHECK(write_measurement(fixture().measure(more, options)) == write_measurement(fixture().measure(more, no_cache())));
  std::size_t known = 0;
  CHECK(fixture().whole("added", known) == expected());
  CHECK(known == kTensors);
}

TEST_CASE("a measurement that starts over measures what the cache contains, too") {
  filled_cache("over");
  MeasureOptions options = fixture().with_cache("over");
  options.starts_over = true;
  CHECK(fixture().context.plan_measurement(fixture().job(), options).value().steps.size() == kTensors);
  options.known = [](std::size_t, std::size_t) { FAIL("starts over"); };
  CHECK(write_measurement(fixture().measure(options)) == expected());
}

TEST_CASE("several measurements may fill a cache at once") {
  const MeasureOptions options = fixture().with_cache("at-once");
  std::vector<std::future<Measurement>> all;
  for (const char* candidates : {"[Q3_K, Q4_K, Q8_0, F32]", "[Q3_K, Q4_K, Q8_0, F32]", "[Q6_K, Q4_K]"})
    all.push_back(std::async(std::launch::async, [&options, job = fixture().job(candidates)] {
      return fixture().context.measure(job, options).value();
    }));
  CHECK(write_measurement(all[0].get()) == expected());
  CHECK(write_measurement(all[1].get()) == expected());
  all[2].get();
  CHECK(write_measurement(fixture().measure(options)) == expected());
}

TEST_CASE("pipeline files share a measurement") {
  const TempDir cache;
  Environment environment;
  environment.set("GGUFMILL_CACHE", cache.path().c_str());
  const Context& context = fixture().context;
  const std::string text = fmt::format(
      "version: 1\nsource: {{gguf: {0}/in.gguf}}\nstages: [{{importance: {{file: {0}/imatrix.gguf}}}}]\n"
      "outputs: [{{gguf: {0}/small.gguf, quantize: {{target: {{bits: 4.5}}, candidates: [Q8_0, Q3_K]}}}}]\n",
      fixture().folder.path().string());
  const Job other = context.parse_job(text, "other.yaml").value();
  CHECK_FALSE(context.plan(other).value().outputs[0].problems.empty());
  fixture().measure();
  const Recalled recalled = context.recall(other).value();
  CHECK(recalled.known == kTensors);
  REQUIRE(recalled.measurement);
  CHECK(write_measurement(*recalled.measurement) == write_measurement(fixture().measure(other, no_cache())));
  CHECK(context.plan(other).value().outputs[0].problems.empty());
}

TEST_CASE("the cache is where the environment says") {
  if (!kIsPosix) GGUFMILL_SKIP("the variables are those of POSIX systems");
  Environment environment;
  environment.set("HOME", "/home/a");
  environment.set("XDG_CACHE_HOME", nullptr);
  environment.set("GGUFMILL_CACHE", nullptr);
  CHECK(measurement_cache_folder() == "/home/a/.cache/ggufmill/measurements");
  environment.set("XDG_CACHE_HOME", "relative");
  CHECK(measurement_cache_folder() == "/home/a/.cache/ggufmill/measurements");
  environment.set("XDG_CACHE_HOME", "/caches");
  CHECK(measurement_cache_folder() == "/caches/ggufmill/measurements");
  environment.set("GGUFMILL_CACHE", "/mine");
  CHECK(measurement_cache_folder() == "/mine/measurements");
  for (const char* name : {"HOME", "XDG_CACHE_HOME", "GGUFMILL_CACHE"}) environment.set(name, nullptr);
  CHECK(measurement_cache_folder().empty());
}

TEST_CASE("candidates are measured with the encoders of the output") {
  const std::string search = "{search: {weights: importance}}";
  const std::string option = GENERATE_COPY(", encoder: " + search, ", encoders: {Q4_K: " + search + "}");
  filled_cache("searched");
  const Job searched = fixture().job("[Q3_K, Q4_K, Q8_0, F32]", option);
  MeasureOptions options = fixture().with_cache("searched");
  options.known = [](std::size_t, std::size_t) { FAIL("another encoder"); };
  const Measurement found = fixture().measure(searched, options), reference = fixture().measure(no_cache());
  REQUIRE(found.tensors.size() == reference.tensors.size());
  for (std::size_t i = 0; i < found.tensors.size(); ++i) {
    INFO(found.tensors[i].name);
    CHECK(found.tensors[i].find("Q4_K")->weighted_error < reference.tensors[i].find("Q4_K")->weighted_error);
    CHECK(found.tensors[i].find("Q4_K")->bytes == reference.tensors[i].find("Q4_K")->bytes);
  }
}

namespace {

// Measures a matrix of 1600 rows and three experts of 320 rows each, whose rows differ in size.
class SampleFixture {
 public:
  // `bad` replaces one value of each row.
  explicit SampleFixture(std::optional<float> bad = {}) {
    GgufBuilder file;
    for (const std::vector<std::uint64_t>& dims : {std::vector<std::uint64_t>{256, 1600}, {256, 320, 3}}) {
      file.add_tensor(fmt::format("blk.{}.ffn_down{}.weight", file.tensors.size(), dims.size() > 2 ? "_exps" : ""),
                      dims);
      std::vector<float> values(file.tensors.back().data.size() / sizeof(float));
      synth::fill(synth::Distribution::kNormal, file.tensors.size(), 0, values);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] *= static_cast<float>(1 + i / 256 * 7919 % 5);
      for (std::size_t i = 3; bad && i < values.size(); i += 256) values[i] = *bad;
      file.tensors.back().data = float_bytes(values);
    }
    file.write(folder_.file("in.gguf"));
  }

  Measurement measure(const std::string& sample, const MeasureOptions& options = no_cache(),
                      unsigned threads = 1) const {
    return try_measure(sample, options, threads).value();
  }
  Result<Measurement> try_measure(const std::string& sample, const MeasureOptions& options = no_cache(),
                                  unsigned threads = 1) const {
    Job job = context_
                  .parse_job(fmt::format("version: 1\nsource: {{gguf: {0}/in.gguf}}\noutputs: [{{gguf: {0}/out.gguf, "
                                         "quantize: {{target: {{bits: 5}}, candidates: [Q3_K, Q8_0, F32], sample: "
                                         "{1}}}}}]\n",
                                         folder_.path().string(), sample),
                             "job.yaml")
                  .value();
    job.limits.threads = threads;
    return context_.measure(job, options);
  }

 private:
  TempDir folder_;
  Context context_ = Context::create().value();
};

}  // namespace

TEST_CASE("a sample is extrapolated to all rows, with its standard error") {
  const SampleFixture fixture;
  const Measurement all = fixture.measure("all"), some = fixture.measure("1/8");
  CHECK(all.tensors[0].rows == 0);
  CHECK(some.tensors[0].rows == 1600 / 7);
  CHECK(some.tensors[1].rows == 3 * (320 / 7));
  for (std::size_t i = 0; i < all.tensors.size(); ++i) {
    const MeasuredTensor &of_all = all.tensors[i], &of_some = some.tensors[i];
    INFO(of_all.name);
    CHECK(of_some.shape == of_all.shape);
    CHECK(of_some.energy == Approx(of_all.energy).epsilon(0.2));
    for (std::size_t t = 0; t < of_all.types.size(); ++t) {
      const MeasuredType &exact = of_all.types[t], &estimate = of_some.types[t];
      CHECK(estimate.bytes == exact.bytes);
      CHECK(exact.standard_error == 0);
      CHECK(std::abs(of_some.relative_square(estimate) - of_all.relative_square(exact)) <=
            4 * of_some.standard_error(estimate));
      CHECK(of_some.standard_error(estimate) <= 0.05 * of_some.relative_square(estimate));
    }
  }
}

TEST_CASE("a value that is not finite is reported with its place in the sample") {
  const auto refused = SampleFixture(NAN).try_measure("1/8");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().what == "tensor 'blk.0.ffn_down.weight', sampled row 0, column 3: NaN");
  CHECK(refused.error().detail.find("nothing was written") == std::string::npos);
}

TEST_CASE("a sample does not depend on threads and parts") {
  const SampleFixture fixture;
  const Measurement whole = fixture.measure("1/8");
  CHECK(write_measurement(fixture.measure("1/8", no_cache(), 3)) == write_measurement(whole));
  for (const std::size_t part : {0, 1}) {
    MeasureOptions options = no_cache();
    options.part = part;
    options.parts = 2;
    const Measurement measured = fixture.measure("1/8", options);
    REQUIRE(measured.tensors.size() == 1);
    CHECK(write_measured_line(measured.tensors[0]) == write_measured_line(whole.tensors[part]));
  }
}

TEST_CASE("a written measurement keeps its standard errors") {
  const SampleFixture fixture;
  const TempDir folder;
  const Measurement measured = fixture.measure("1/8");
  write_text(folder.file("m.json"), write_measurement(measured));
  const Measurement read = read_measurement(folder.file("m.json")).value();
  CHECK(read.tensors[0].rows == measured.tensors[0].rows);
  CHECK(read.tensors[0].types[0].standard_error == measured.tensors[0].types[0].standard_error);
}
