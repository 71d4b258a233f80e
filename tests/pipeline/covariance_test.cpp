// Levels chosen with the covariance of inputs: the bytes of the specification, whatever the machine and the limits.

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <random>

#include "pipeline/api/context.h"
#include "pipeline/api/run.h"
#include "pipeline/core/half.h"
#include "pipeline/core/rows.h"
#include "pipeline/plan/written.h"
#include "stages/gguf/gguf.h"
#include "stages/importance/covariance_file.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/importance_files.h"
#include "tests/support/sha256.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tsv.h"

using namespace ggufmill;

namespace {

const Context& context(const std::string& isa = "") {
  static std::map<std::string, Context> all;
  auto found = all.find(isa);
  if (found == all.end()) found = all.emplace(isa, Context::create({{}, isa}).value()).first;
  return found->second;
}

Plan plan_of(const std::string& text, const Context& with = context()) {
  auto job = with.parse_job(text, "job.yaml");
  if (!job) FAIL(render(job.error()));
  auto plan = with.plan(job.value());
  if (!plan) FAIL(render(plan.error()));
  return plan.value();
}

void run(const Plan& plan, EngineOptions engine = {}, const Context& with = context()) {
  RunOptions options;
  options.overwrite = engine.overwrite = true;
  options.engine = engine.engine;
  const auto report = run_resumably(plan, with.kernels(), options, engine);
  if (!report) FAIL(render(report.error()));
}

// Returns the bytes of a tensor of a GGUF file.
std::string bytes_of_tensor(const std::string& path, const std::string& name) {
  const Model model = gguf_opener()(path).value();
  for (const Tensor& tensor : model.tensors)
    if (tensor.name == name) {
      const Extent& extent = *tensor.expression->as_extent();
      return read_text(path).substr(extent.offset, extent.bytes);
    }
  return {};
}

constexpr const char* kGolden = "tests/golden/covariance/";

std::string golden_job(const TempDir& folder, const std::string& more = "") {
  std::string text = fmt::format(
      "version: 1\n{1}source: {{gguf: {0}source.gguf}}\nstages: [{{importance: {{covariance: {0}covariance.gguf}}}}]\n"
      "outputs:\n",
      kGolden, more);
  for (const auto& row : read_tsv(std::string(kGolden) + "expected.tsv").rows)
    text += fmt::format("  - {{gguf: {}, quantize: {{type: {}}}}}\n", folder.file(row[0] + ".gguf"), row[0]);
  return text;
}

// Returns the types whose rows are not those of the specification.
std::string wrong_types(const TempDir& folder) {
  std::string wrong;
  for (const auto& row : read_tsv(std::string(kGolden) + "expected.tsv").rows) {
    const std::string rows = bytes_of_tensor(folder.file(row[0] + ".gguf"), "blk.0.ffn_gate.weight");
    if (sha256_hex(std::as_bytes(std::span(rows))) != row[1]) wrong += row[0] + " ";
  }
  return wrong;
}

}  // namespace

TEST_CASE("levels are those of the specification, on every ISA and with any number of threads") {
  const TempDir folder;
  const std::string isa = GENERATE("", "reference", "x86-64-v2", "x86-64-v3", "x86-64-v4");
  if (!Context::create({{}, isa})) return;  // not the ISA of this machine
  const unsigned threads = GENERATE(1u, 3u);
  const Plan plan = plan_of(golden_job(folder, fmt::format("limits: {{threads: {}}}\n", threads)), context(isa));
  run(plan, {}, context(isa));
  CHECK(wrong_types(folder) == "");
}

TEST_CASE("levels are those of the specification in the least memory, in any order of slabs") {
  const TempDir folder;
  Plan plan = plan_of(golden_job(folder));
  plan.limits.memory = plan.least_memory;
  EngineOptions engine;
  engine.engine = GENERATE(EngineKind::kGraph, EngineKind::kSimple);
  engine.shuffle_seed = GENERATE(0u, 1u);
  run(plan, engine);
  CHECK(wrong_types(folder) == "");
}

namespace {

// The specification, for Q8_0: rows in single precision, the factor in double precision, each sum in the order of the
// columns.
class PlainRows {
 public:
  // `correlations` of all pairs i < k of columns that are stored, in rows.
  explicit PlainRows(const CovarianceInput& input, std::uint64_t expert, double shrink = 0.7)
      : n_(input.columns()), h_(n_ * n_), a_(n_ * n_) {
    std::vector<float> sums(n_), packed(*input.covariance.packing().length());
    REQUIRE(input.read_sums(expert, 0, sums));
    if (!packed.empty()) REQUIRE(input.read(input.covariance.is_pooled ? 0 : expert, 0, packed));
    double all = 0;
    for (const float sum : sums) all += double{sum};
    const std::uint64_t block = input.covariance.packing().block();
    std::size_t next = 0;
    for (std::uint64_t i = 0; i < n_; ++i) {
      for (std::uint64_t k = i + 1; k < std::min(n_, (i / block + 1) * block); ++k)
        h_[i * n_ + k] = h_[k * n_ + i] =
            shrink * double{packed[next++]} * std::sqrt(double{sums[i]}) * std::sqrt(double{sums[k]});
      h_[i * n_ + i] = double{sums[i]} + 0.01 * (all / static_cast<double>(n_));
    }
    factor();
  }

  // Chooses the levels of an encoded row.
  void choose(const float* w, char* row) const {
    std::vector<float> scales(n_), errors(n_), pushed(n_), gradient(n_);
    std::vector<std::int8_t> levels(n_);
    const auto value = [&](std::uint64_t i) {
      return scales[i] * static_cast<float>(levels[i] + 128) + -128 * scales[i];
    };
    const auto choose = [&](std::uint64_t i, float wanted) {
      const float x = (wanted - -128 * scales[i]) / scales[i];
      if (scales[i] == 0 || !(x - x == 0)) return;
      levels[i] = static_cast<std::int8_t>(static_cast<int>(std::nearbyint(std::clamp(x, 1.0f, 255.0f))) - 128);
      errors[i] = w[i] - value(i);
    };
    for (std::uint64_t i = 0; i < n_; ++i) {
      const char* const block = row + i / 32 * 34;
      std::uint16_t half = 0;
      std::memcpy(&half, block, sizeof half);
      scales[i] = float_of_half(half);
      levels[i] = static_cast<std::int8_t>(block[2 + i % 32]);
      errors[i] = w[i] - value(i);
    }
    for (std::uint64_t i = 0; i < n_; ++i) {
      choose(i, w[i] + pushed[i] * static_cast<float>(1 / a_[i * n_ + i]));
      for (std::uint64_t k = i + 1; k < n_; ++k) pushed[k] += errors[i] * static_cast<float>(a_[i * n_ + k]);
    }
    for (std::uint64_t i = 0; i < n_; ++i)
      for (std::uint64_t k = 0; k < n_; ++k) gradient[k] += errors[i] * static_cast<float>(h_[i * n_ + k]);
    for (int sweep = 0; sweep < 2; ++sweep)
      for (std::uint64_t i = 0; i < n_; ++i) {
        const float before = errors[i];
        choose(i, value(i) + gradient[i] * static_cast<float>(1 / h_[i * n_ + i]));
        const float change = errors[i] - before;
        if (change == 0) continue;
        for (std::uint64_t k = 0; k < n_; ++k) gradient[k] += change * static_cast<float>(h_[i * n_ + k]);
      }
    for (std::uint64_t i = 0; i < n_; ++i) row[i / 32 * 34 + 2 + i % 32] = static_cast<char>(levels[i]);
  }

 private:
  void factor() {
    a_ = h_;
    for (std::uint64_t k = n_; k-- > 0;) {
      const double root = std::sqrt(a_[k * n_ + k]);
      for (std::uint64_t i = 0; i < k; ++i) a_[i * n_ + k] /= root;
      a_[k * n_ + k] = root;
      for (std::uint64_t i = 0; i < k; ++i)
        for (std::uint64_t j = i; j < k; ++j) a_[i * n_ + j] -= a_[i * n_ + k] * a_[j * n_ + k];
    }
  }

  std::uint64_t n_;
  std::vector<double> h_, a_;
};

// A model whose matrices have several tiles and groups of rows, shared inputs, experts of which one saw no token, and a
// matrix without covariance.
class Folder {
 public:
  explicit Folder(std::uint32_t block, std::size_t held_out = 0) {
    GgufBuilder model;
    model.metadata = {{"general.architecture", metadata_string("llama")}};
    const auto add = [&](const std::string& name, const std::vector<std::uint64_t>& dims) {
      std::uint64_t count = 1;
      for (const std::uint64_t dim : dims) count *= dim;
      std::vector<float>& x = weights_[name];
      std::normal_distribution<float> normal;
      for (std::uint64_t i = 0; i < count; ++i) x.push_back(normal(random_));
      model.tensors.push_back({name, dims, "F32", float_bytes(x)});
    };
    add("blk.0.attn_q.weight", {160, 70});
    add("blk.0.ffn_down.weight", {96, 33});
    add("blk.0.ffn_gate_exps.weight", {64, 40, 3});
    add("blk.0.ffn_up_exps.weight", {64, 7, 3});
    add("blk.0.attn_k.weight", {160, 5});
    add("blk.0.attn_output.weight", {64, 9});
    model.write(path("model.gguf"));
    gguf_covariance(
        {{{"blk.0.attn_q.weight", "blk.0.attn_k.weight"}, 160, {held_out == 0 ? 40u : 400u}, false, 160, held_out},
         {{"blk.0.ffn_down.weight"}, 96, {300}, false, 5, held_out},
         {{"blk.0.ffn_gate_exps.weight", "blk.0.ffn_up_exps.weight"}, 64, {50, 0, 20}, block == 0, 64, held_out}},
        block)
        .write(path("covariance.gguf"));
  }

  std::string path(const std::string& name) const { return folder_.file(name); }

  // A job that writes Q8_0 with the encoder, and others with the covariance.
  std::string job(const std::string& encoder = "", const std::string& more = "") const {
    return fmt::format(
        "version: 1\n{3}source: {{gguf: {0}}}\nstages: [{{importance: {{covariance: {1}}}}}]\noutputs:\n"
        "  - {{gguf: {2}, quantize: {{type: Q8_0{4}}}}}\n",
        path("model.gguf"), path("covariance.gguf"), path("q8.gguf"), more, encoder);
  }

  // Returns the expected rows of all tensors.
  std::map<std::string, std::string> expected() const {
    run(plan_of(job(", encoder: search")));
    const CovarianceFile file = open_covariance(path("covariance.gguf"), gguf_opener()).value();
    std::map<std::string, std::string> rows;
    for (const auto& [name, x] : weights_) {
      std::string& bytes = rows[name] = bytes_of_tensor(path("q8.gguf"), name);
      const CovarianceInput* const input = file.input_of(name);
      if (!input) continue;
      const std::uint64_t columns = input->columns(), all = x.size() / columns / input->experts();
      for (std::uint64_t expert = 0; expert < input->experts(); ++expert) {
        if (input->experts() > 1 && expert == 1) continue;
        const PlainRows plain(*input, expert);
        for (std::uint64_t row = expert * all; row < (expert + 1) * all; ++row)
          plain.choose(x.data() + row * columns, bytes.data() + row * columns / 32 * 34);
      }
    }
    return rows;
  }

  const std::vector<float>& weights_of(const std::string& name) const { return weights_.at(name); }

  std::string wrong(const std::map<std::string, std::string>& expected) const {
    std::string wrong;
    for (const auto& [name, rows] : expected)
      if (bytes_of_tensor(path("q8.gguf"), name) != rows) wrong += name + " ";
    return wrong;
  }

 private:
  TempDir folder_;
  std::map<std::string, std::vector<float>> weights_;
  std::mt19937 random_{3};
};

}  // namespace

TEST_CASE("experts, blocks of columns and shared inputs have the levels of the plain loops") {
  const Folder folder(GENERATE(0u, 40u, 1u, 64u));
  const auto expected = folder.expected();
  Plan plan = plan_of(folder.job());
  plan.limits.threads = GENERATE(1u, 4u);
  EngineOptions engine;
  engine.engine = plan.limits.threads == 1 ? EngineKind::kSimple : EngineKind::kGraph;
  SECTION("at once") { run(plan, engine); }
  SECTION("in the least memory") {
    plan.limits.memory = plan.least_memory;
    run(plan, engine);
  }
  SECTION("in random order") {
    plan.limits.memory = plan.least_memory + 100000;
    engine.shuffle_seed = 1;
    engine.slab_bytes = 1;
    run(plan, engine);
  }
  SECTION("from the written plan") {
    const auto read = read_plan(write_plan(plan), "plan", context().kernels().types());
    if (!read) FAIL(render(read.error()));
    CHECK(identity_of(read.value()) == identity_of(plan));
    Plan again = read.value();
    again.limits.memory = 64 << 20;
    run(again, engine);
  }
  CHECK(folder.wrong(expected) == "");
}

namespace {

// Returns the sum of squares of the products of errors of Q8_0 rows with half of the held-out vectors.
double loss_of(const CovarianceInput& input, std::uint64_t expert, std::span<const float> weights,
               std::string_view rows, bool is_second) {
  const std::uint64_t columns = input.columns();
  std::vector<float> vectors(input.covariance.held_out * columns);
  REQUIRE(input.read_vectors(expert, 0, vectors));
  double loss = 0;
  for (std::uint64_t row = 0; row < weights.size() / columns; ++row)
    for (std::uint64_t k = 0, count = input.covariance.held_out / 2; k < count; ++k) {
      const std::uint64_t t = is_second ? count + k : k;
      double product = 0;
      for (std::uint64_t i = 0; i < columns; ++i) {
        const char* const block = rows.data() + (row * columns + i) / 32 * 34;
        std::uint16_t half = 0;
        std::memcpy(&half, block, sizeof half);
        const float value = float_of_half(half) * static_cast<float>(static_cast<std::int8_t>(block[2 + i % 32]));
        product += double{weights[row * columns + i] - value} * double{vectors[t * columns + i]};
      }
      loss += product * product;
    }
  return loss;
}

std::map<std::string, std::string> tensors_of(const Folder& folder) {
  std::map<std::string, std::string> rows;
  for (const char* const name : {"blk.0.attn_q.weight", "blk.0.attn_k.weight", "blk.0.ffn_down.weight",
                                 "blk.0.ffn_gate_exps.weight", "blk.0.ffn_up_exps.weight"})
    rows[name] = bytes_of_tensor(folder.path("q8.gguf"), name);
  return rows;
}

}  // namespace

TEST_CASE("with held-out vectors, one shrinkage is chosen for each input, or the search where that is better") {
  const Folder folder(GENERATE(0u, 40u), 24);
  run(plan_of(folder.job(", encoder: search")));
  const auto searched = tensors_of(folder);
  run(plan_of(folder.job()));
  const auto written = tensors_of(folder);
  const CovarianceFile file = open_covariance(folder.path("covariance.gguf"), gguf_opener()).value();
  std::map<std::string, double> shrinks;  // of each input and expert
  std::size_t changed = 0;
  for (const auto& [name, rows] : written) {
    const CovarianceInput& input = *file.input_of(name);
    const std::vector<float>& all = folder.weights_of(name);
    const std::uint64_t columns = input.columns(), row_bytes = columns / 32 * 34;
    const std::uint64_t each = all.size() / columns / input.experts();
    for (std::uint64_t expert = 0; expert < input.experts(); ++expert)
      for (std::uint64_t first = 0; first < each; first += kLevelRows) {
        const std::uint64_t row = expert * each + first, count = std::min(kLevelRows, each - first);
        const std::span weights = std::span(all).subspan(row * columns, count * columns);
        const std::string_view before = std::string_view(searched.at(name)).substr(row * row_bytes, count * row_bytes);
        const std::string_view after = std::string_view(rows).substr(row * row_bytes, count * row_bytes);
        CAPTURE(name, expert, first);
        if (after == before) continue;
        ++changed;
        CHECK(expert != 1);  // it saw no token
        for (const bool is_second : {false, true})
          CHECK(loss_of(input, expert, weights, after, is_second) < loss_of(input, expert, weights, before, is_second));
        double chosen = 0;
        for (const double shrink : kShrinks) {
          const PlainRows plain(input, expert, shrink);
          std::string expected(before);
          for (std::uint64_t i = 0; i < count; ++i)
            plain.choose(weights.data() + i * columns, expected.data() + i * row_bytes);
          if (expected == after) chosen = shrink;
        }
        CHECK(chosen != 0);
        const auto [known, is_new] = shrinks.emplace(fmt::format("{} {}", input.owner, expert), chosen);
        CHECK(known->second == chosen);
      }
  }
  CHECK(changed >= 10);  // of 17 groups
}

TEST_CASE("levels are chosen in the same way in any memory, order and number of threads, and on every ISA") {
  const Folder folder(0, 24);
  run(plan_of(folder.job()));
  const auto expected = tensors_of(folder);
  SECTION("in the least memory") {
    Plan plan = plan_of(folder.job());
    plan.limits.memory = plan.least_memory;
    EngineOptions engine;
    engine.engine = GENERATE(EngineKind::kGraph, EngineKind::kSimple);
    engine.slab_bytes = 1;
    engine.shuffle_seed = GENERATE(0u, 1u);
    run(plan, engine);
  }
  SECTION("from the written plan") {
    const Plan plan = plan_of(folder.job());
    const auto read = read_plan(write_plan(plan), "plan", context().kernels().types());
    if (!read) FAIL(render(read.error()));
    CHECK(identity_of(read.value()) == identity_of(plan));
    Plan again = read.value();
    again.limits.memory = 64 << 20;
    run(again);
  }
  SECTION("with another ISA") {
    const std::string isa = GENERATE("reference", "x86-64-v2", "x86-64-v3", "x86-64-v4");
    if (!Context::create({{}, isa})) return;  // not the ISA of this machine
    run(plan_of(folder.job(), context(isa)), {}, context(isa));
  }
  CHECK(tensors_of(folder) == expected);
}

TEST_CASE("a covariance that does not help on held-out vectors is not used, with a warning") {
  const Folder folder(0, 24);
  run(plan_of(folder.job(", encoder: search")));
  const std::string searched = bytes_of_tensor(folder.path("q8.gguf"), "blk.0.ffn_down.weight");
  const CovarianceFile file = open_covariance(folder.path("covariance.gguf"), gguf_opener()).value();
  const Extent& extent = file.input_of("blk.0.ffn_down.weight")->covariance.vectors;
  std::string bytes = read_text(folder.path("covariance.gguf"));
  for (std::uint64_t i = 0; i < extent.bytes; i += 2)  // one column each, in turn: 1, or 0
    bytes.replace(extent.offset + i, 2, i / 2 % 97 == 0 ? std::string("\x80\x3f", 2) : std::string(2, '\0'));
  write_text(folder.path("covariance.gguf"), bytes);
  const auto report = context().run(plan_of(folder.job()), {.overwrite = true});
  REQUIRE(report);
  REQUIRE(!report.value().warnings.empty());
  CHECK(report.value().warnings.back() ==
        "levels chosen with the covariance of 1 input, for example that of 'blk.0.ffn_down.weight', would not be "
        "better on the held-out vectors: those of their tensors are of the search alone");
  CHECK(bytes_of_tensor(folder.path("q8.gguf"), "blk.0.ffn_down.weight") == searched);
}

TEST_CASE("a shrinkage that is given is used for all rows") {
  const Folder folder(0, 24);
  const auto expected = folder.expected();
  run(plan_of(folder.job(", encoder: {covariance: {shrink: 0.7}}")));
  CHECK(folder.wrong(expected) == "");
}

TEST_CASE("a number of the held-out vectors that is not finite stops the run") {
  const Folder folder(0, 24);
  const CovarianceFile file = open_covariance(folder.path("covariance.gguf"), gguf_opener()).value();
  const Extent& extent = file.input_of("blk.0.ffn_down.weight")->covariance.vectors;
  std::string bytes = read_text(folder.path("covariance.gguf"));
  bytes.replace(extent.offset + 200, 2, std::string("\x80\x7f", 2));
  write_text(folder.path("covariance.gguf"), bytes);
  const auto report = context().run(plan_of(folder.job()), {.overwrite = true});
  REQUIRE_FALSE(report);
  CHECK(report.error().code == ExitCode::kBadInput);
  CHECK(report.error().what ==
        "the held-out vectors of the input of 'blk.0.ffn_down.weight' contain an infinite number; they are finite");
  CHECK(report.error().detail == fmt::format("at byte {:#x}", extent.offset + 200));
}

TEST_CASE("a run that was stopped is resumed with the same levels") {
  const Folder folder(0);
  const auto expected = folder.expected();
  Plan plan = plan_of(folder.job());
  plan.limits.threads = 1;
  std::atomic<bool> stop = false;
  EngineOptions engine;
  engine.engine = EngineKind::kSimple;
  engine.slab_bytes = 1;
  RunOptions options;
  options.overwrite = engine.overwrite = true;
  options.engine = EngineKind::kSimple;
  engine.stop = options.stop = &stop;
  engine.progress = [&](const Progress& progress) { stop = progress.bytes_written > 20000; };
  const auto stopped = run_resumably(plan, context().kernels(), options, engine);
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code == ExitCode::kInterrupted);
  stop = false;
  engine.progress = {};
  const auto resumed = run_resumably(plan, context().kernels(), options, engine);
  REQUIRE(resumed);
  CHECK(folder.wrong(expected) == "");
}

TEST_CASE("the plan says which encoder each tensor has, and its identity depends on the covariance") {
  const Folder folder(0);
  const Plan plan = plan_of(folder.job());
  const auto reason = [&](const std::string& name) {
    for (const PlannedTensor& tensor : plan.outputs[0].tensors)
      if (tensor.name == name) return tensor.reason;
    return std::string();
  };
  const std::string encoder = "covariance (effort 3, quarter weights, lattice, shrink 0.7, damp 0.01, 2 sweeps)";
  CHECK(reason("blk.0.attn_q.weight").find(encoder) != std::string::npos);
  CHECK(reason("blk.0.ffn_up_exps.weight").find(encoder + "; 1 of 3 experts have no covariance: search") !=
        std::string::npos);
  CHECK(reason("blk.0.attn_output.weight")
            .find("search (effort 3, plain weights, lattice): no covariance of its inputs") != std::string::npos);
  const std::string other = identity_of(plan_of(folder.job(", encoder: {covariance: {shrink: 0.8}}")));
  CHECK(identity_of(plan) != other);
  CHECK(identity_of(plan) == identity_of(plan_of(folder.job(", encoder: covariance"))));
  write_text(folder.path("covariance.gguf"), read_text(folder.path("covariance.gguf")));
  CHECK(identity_of(plan) != identity_of(plan_of(folder.job())));
}

TEST_CASE("a memory limit without room for a covariance is refused, with what is needed") {
  const Folder folder(0);
  Plan plan = plan_of(folder.job());
  plan.limits.memory = plan.least_memory - 1;
  const auto report = context().run(plan, {});
  REQUIRE_FALSE(report);
  CHECK(report.error().code == ExitCode::kUsage);
  CHECK(report.error().detail.find("the covariance of the 160 inputs of tensor 'blk.0.attn_q.weight' takes 2") == 0);
  CHECK(report.error().help == "set limits.memory to 1MiB or more");
}

TEST_CASE("a covariance that cannot be factored leaves the search, with a warning") {
  const Folder folder(0);
  run(plan_of(folder.job(", encoder: search")));
  const std::string searched = bytes_of_tensor(folder.path("q8.gguf"), "blk.0.ffn_down.weight");
  const CovarianceFile file = open_covariance(folder.path("covariance.gguf"), gguf_opener()).value();
  const Extent& extent = file.input_of("blk.0.ffn_down.weight")->covariance.correlations;
  std::string bytes = read_text(folder.path("covariance.gguf"));
  for (std::uint64_t i = 0; i < extent.bytes; i += 2)  // 1, -1, -1, 1, ...
    bytes.replace(extent.offset + i, 2, i % 6 == 0 ? std::string("\x00\x3c", 2) : std::string("\x00\xbc", 2));
  write_text(folder.path("covariance.gguf"), bytes);
  const Plan plan = plan_of(folder.job(", encoder: {covariance: {shrink: 1}}"));
  const auto report = context().run(plan, {.overwrite = true});
  REQUIRE(report);
  REQUIRE(!report.value().warnings.empty());
  CHECK(
      report.value().warnings.back() ==
      "the covariance of the input of 'blk.0.ffn_down.weight' is not positive definite: the levels of its tensors are "
      "those of the search alone");
  CHECK(bytes_of_tensor(folder.path("q8.gguf"), "blk.0.ffn_down.weight") == searched);
}

TEST_CASE("an invalid correlation stops the run") {
  const Folder folder(0);
  const CovarianceFile file = open_covariance(folder.path("covariance.gguf"), gguf_opener()).value();
  const Extent& extent = file.input_of("blk.0.ffn_down.weight")->covariance.correlations;
  std::string bytes = read_text(folder.path("covariance.gguf"));
  bytes.replace(extent.offset + 1000, 2, std::string("\x00\x7e", 2));
  write_text(folder.path("covariance.gguf"), bytes);
  const auto report = context().run(plan_of(folder.job()), {.overwrite = true});
  REQUIRE_FALSE(report);
  CHECK(report.error().code == ExitCode::kBadInput);
  CHECK(report.error().where == folder.path("covariance.gguf"));
  CHECK(report.error().what ==
        "the correlations of the input of 'blk.0.ffn_down.weight' contain NaN; they are from -1 to 1");
  CHECK(report.error().detail == fmt::format("at byte {:#x}", extent.offset + 1000));
}

TEST_CASE("the encoder needs a covariance") {
  const Folder folder(0);
  const auto job = context().parse_job(
      fmt::format(
          "version: 1\nsource: {{gguf: {}}}\noutputs: [{{gguf: {}, quantize: {{type: Q8_0, encoder: covariance}}}}]\n",
          folder.path("model.gguf"), folder.path("q8.gguf")),
      "job.yaml");
  REQUIRE(job);
  const auto plan = context().plan(job.value());
  REQUIRE(plan);
  REQUIRE(plan.value().outputs[0].problems.size() == 1);
  CHECK(plan.value().outputs[0].problems[0].what ==
        "no covariance is given, but the encoder of tensor 'blk.0.attn_k.weight' is 'covariance'");
}
