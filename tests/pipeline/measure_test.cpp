// Tests measuring for a target: the results must not depend on threads, memory, parts or interruptions.

#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <numeric>
#include <sstream>

#include "pipeline/api/context.h"
#include "tests/support/catch.h"
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

  // Returns the complete measurement, using one journal and the journals of others. `known` is set to the number of
  // tensors found in them.
  std::string whole(const std::string& journal, const std::vector<std::string>& others, std::size_t& known) const {
    MeasureOptions options = by_journal(journal);
    options.other_journals = others;
    known = 0;
    options.goes_on = [&](std::size_t found, std::size_t all) {
      CHECK(all == kTensors);
      known = found;
    };
    return write_measurement(measure(options));
  }

  MeasureOptions by_journal(const std::string& name) const {
    MeasureOptions options;
    options.journal = folder.file(name);
    options.journal_bytes = 1;  // each tensor separately
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
  static const std::string text = write_measurement(fixture().measure());
  return text;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream parts(text);
  for (std::string line; std::getline(parts, line);) lines.push_back(line);
  return lines;
}

// Returns the lines of a journal with all tensors.
std::vector<std::string> journal_lines() {
  std::size_t known = 0;
  std::filesystem::remove(fixture().folder.file("all.partial"));
  CHECK(fixture().whole("all.partial", {}, known) == expected());
  const std::vector<std::string> lines = lines_of(read_text(fixture().folder.file("all.partial")));
  REQUIRE(lines.size() == kTensors);
  return lines;
}

}  // namespace

TEST_CASE("the same figures whatever the threads and the memory") {
  Job job = fixture().job();
  job.limits.threads = GENERATE(1u, 3u);
  job.limits.memory = GENERATE(64ull << 10, 64ull << 20);
  CHECK(write_measurement(fixture().measure(job)) == expected());
}

TEST_CASE("experts are measured one by one, and are together their tensor") {
  const Measurement measurement = fixture().measure();
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

TEST_CASE("a measurement that was ended goes on, to the same figures") {
  const std::vector<std::string> lines = journal_lines();
  for (const std::size_t done : {0, 1, 6, 10}) {
    std::string text;
    for (std::size_t i = 0; i < done; ++i) text += lines[i] + "\n";
    if (done < lines.size()) text += lines[done].substr(0, lines[done].size() / 2);  // ends in the middle of a line
    write_text(fixture().folder.file("ended.partial"), text);
    std::size_t known = 0;
    CHECK(fixture().whole("ended.partial", {}, known) == expected());
    CHECK(known == done);
    CHECK(fixture().whole("ended.partial", {}, known) == expected());
    CHECK(known == kTensors);
  }
}

TEST_CASE("a measurement that is stopped says so and keeps what it has") {
  const std::atomic<bool> stop{true};
  MeasureOptions options = fixture().by_journal("stopped.partial");
  options.run.stop = &stop;
  const auto stopped = fixture().context.measure(fixture().job(), options);
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code == ExitCode::kInterrupted);
  std::size_t known = 0;
  CHECK(fixture().whole("stopped.partial", {}, known) == expected());
}

TEST_CASE("parts are together the whole") {
  for (const std::size_t parts : {1, 3, 20}) {
    std::vector<std::string> journals;
    std::size_t measured = 0;
    for (std::size_t part = 0; part < parts; ++part) {
      MeasureOptions options = fixture().by_journal(fmt::format("{}-of-{}.partial", part, parts));
      options.part = part;
      options.parts = parts;
      journals.push_back(options.journal);
      const std::size_t tensors = fixture().measure(options).tensors.size();
      if (parts == 3) CHECK(tensors > 1);
      measured += tensors;
    }
    CHECK(measured == kTensors);
    std::size_t known = 0;
    CHECK(fixture().whole(fmt::format("of-{}.partial", parts), journals, known) == expected());
    CHECK(known == kTensors);
  }
}

TEST_CASE("what is damaged, of another version or of other types is measured again") {
  const std::vector<std::string> lines = journal_lines();
  std::string text = lines[0] + "\n" + lines[1] + "\n\n0123456789abcdef {}\nx\n" + lines[2] + "\n";
  text[lines[0].size() / 2] ^= 1;
  const std::size_t version = text.rfind("\"ggufmill\":\"") + 12;
  text[version] = '9';
  write_text(fixture().folder.file("damaged.partial"), text);
  std::size_t known = 0;
  CHECK(fixture().whole("damaged.partial", {}, known) == expected());
  CHECK(known == 1);

  const Job other = fixture().job("[Q3_K, Q4_K, Q6_K, F32]");
  MeasureOptions options = fixture().by_journal("all.partial");
  options.goes_on = [](std::size_t, std::size_t) { FAIL("other types"); };
  CHECK(write_measurement(fixture().measure(other, options)) == write_measurement(fixture().measure(other)));
}

TEST_CASE("candidates are measured with the encoders of the output") {
  const std::string search = "{search: {weights: importance, gain: none}}";
  const std::string option = GENERATE_COPY(", encoder: " + search, ", encoders: {Q4_K: " + search + "}");
  const std::vector<std::string> lines = journal_lines();
  const Job searched = fixture().job("[Q3_K, Q4_K, Q8_0, F32]", option);
  MeasureOptions options = fixture().by_journal("all.partial");
  options.goes_on = [](std::size_t, std::size_t) { FAIL("another encoder"); };
  const Measurement found = fixture().measure(searched, options), reference = fixture().measure();
  REQUIRE(found.tensors.size() == reference.tensors.size());
  for (std::size_t i = 0; i < found.tensors.size(); ++i) {
    INFO(found.tensors[i].name);
    CHECK(found.tensors[i].find("Q4_K")->weighted_error < reference.tensors[i].find("Q4_K")->weighted_error);
    CHECK(found.tensors[i].find("Q4_K")->bytes == reference.tensors[i].find("Q4_K")->bytes);
  }
}

TEST_CASE("one journal is for one measurement at a time") {
  MeasureOptions options = fixture().by_journal("locked.partial");
  MeasureOptions within = options;
  bool refused = false;
  options.goes_on = [&](std::size_t, std::size_t) {
    const auto second = fixture().context.measure(fixture().job(), within);
    refused = !second && second.error().code == ExitCode::kTransient;
  };
  write_text(options.journal, journal_lines()[0] + "\n");
  fixture().measure(options);
  CHECK(refused);
}

namespace {

// Measures a matrix of 1600 rows and three experts of 320 rows each, whose rows differ in size.
class SampleFixture {
 public:
  SampleFixture() {
    GgufBuilder file;
    for (const std::vector<std::uint64_t>& dims : {std::vector<std::uint64_t>{256, 1600}, {256, 320, 3}}) {
      file.add_tensor(fmt::format("blk.{}.ffn_down{}.weight", file.tensors.size(), dims.size() > 2 ? "_exps" : ""),
                      dims);
      std::vector<float> values(file.tensors.back().data.size() / sizeof(float));
      synth::fill(synth::Distribution::kNormal, file.tensors.size(), 0, values);
      for (std::size_t i = 0; i < values.size(); ++i) values[i] *= static_cast<float>(1 + i / 256 * 7919 % 5);
      file.tensors.back().data = float_bytes(values);
    }
    file.write(folder_.file("in.gguf"));
  }

  Measurement measure(const std::string& sample, const MeasureOptions& options = {}, unsigned threads = 1) const {
    Job job = context_
                  .parse_job(fmt::format("version: 1\nsource: {{gguf: {0}/in.gguf}}\noutputs: [{{gguf: {0}/out.gguf, "
                                         "quantize: {{target: {{bits: 5}}, candidates: [Q3_K, Q8_0, F32], sample: "
                                         "{1}}}}}]\n",
                                         folder_.path().string(), sample),
                             "job.yaml")
                  .value();
    job.limits.threads = threads;
    return context_.measure(job, options).value();
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

TEST_CASE("a sample does not depend on threads and parts") {
  const SampleFixture fixture;
  const Measurement whole = fixture.measure("1/8");
  CHECK(write_measurement(fixture.measure("1/8", {}, 3)) == write_measurement(whole));
  for (const std::size_t part : {0, 1}) {
    MeasureOptions options;
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
