// ggufmill-scaling: shows how the engine scales to more threads than this machine has CPUs. Run by `./dev bench
// scaling`.
//
// The real engine runs with kernels that wait as long as measured kernels compute, and with sources and outputs that
// cost nothing. What remains is the engine's own work: its part that one thread at a time does (Profile), which limits
// any number of threads, and the rest, which every thread does for itself.
//
// The engine's work needs real CPUs. If they do not suffice for a number of threads, the kernels are slowed down until
// they do; such a run shows whether slabs and threads suffice to keep each other busy. The prediction for CPUs that are
// not slowed down is the least of three: what the threads compute, what one thread at a time allows, and what the
// memory allows.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <boost/program_options.hpp>
#include <cmath>
#include <fstream>
#include <iostream>
#include <limits>

#include "pipeline/graph/engine.h"
#include "pipeline/graph/profile.h"
#include "pipeline/io/atomic_file.h"
#include "pipeline/io/machine.h"
#include "pipeline/journal/journal.h"
#include "tests/bench/plot.h"
#include "tests/bench/scaling/no_io.h"
#include "tests/bench/scaling/waiting.h"
#include "tests/bench/timing.h"
#include "tests/support/plan_maker.h"
#include "tests/support/temp_dir.h"

namespace ggufmill::bench {
namespace {

namespace po = boost::program_options;

constexpr const char* kUsage =
    "usage: ./dev bench scaling [options] [PLOT.svg]\n"
    "Runs the engine with kernels that wait as long as the measured ones compute. GB are those read; `busy` is the "
    "part\n"
    "of the threads' time spent in kernels, `idle` the part in which they wait; `slowed` is how many times longer the "
    "kernels wait, so that the CPUs of "
    "this\n"
    "machine suffice for the engine's own work.\n";

struct Options {
  std::string isa, plot;
  double seconds = 0, memory = 0, weights = 0, file_rate = 0, slow = 1;
  std::vector<unsigned> threads;
};

// A kind of quantization: the types of a model's layers.
struct Recipe {
  const char* name;
  const char* color;
  const char* usual;  // type of most tensors
  const char* better;
};
constexpr Recipe kRecipes[] = {{"Q4_K_M", "#3060b0", "Q4_K", "Q6_K"}, {"Q8_0", "#b03060", "Q8_0", "Q8_0"}};

// Layers of a model with 8 billion weights.
Plan plan_of_layers(const Recipe& recipe, std::size_t layers) {
  std::vector<testing::TensorRecipe> tensors;
  for (std::size_t i = 0; i < layers; ++i) {
    const char* const sometimes = i % 2 == 0 ? recipe.better : recipe.usual;
    const auto add = [&](const char* name, std::vector<std::uint64_t> dims, const char* from, const char* to) {
      tensors.push_back({fmt::format("blk.{}.{}.weight", i, name), testing::shape_of(std::move(dims)), from, {to}});
    };
    add("attn_norm", {4096}, "F32", "F32");
    add("attn_q", {4096, 4096}, "BF16", recipe.usual);
    add("attn_k", {4096, 1024}, "BF16", recipe.usual);
    add("attn_v", {4096, 1024}, "BF16", sometimes);
    add("attn_output", {4096, 4096}, "BF16", recipe.usual);
    add("ffn_norm", {4096}, "F32", "F32");
    add("ffn_gate", {4096, 14336}, "BF16", recipe.usual);
    add("ffn_up", {4096, 14336}, "BF16", recipe.usual);
    add("ffn_down", {14336, 4096}, "BF16", sometimes);
  }
  return testing::plan_of(tensors, "nothing://model", Limits::kDefaultMemory);
}

double gigabytes(std::uint64_t bytes) { return static_cast<double>(bytes) / 1e9; }

double process_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// The measurements of one run.
struct Measured {
  unsigned threads = 0;
  double slowdown = 1;
  double rate = 0;   // GB per second
  double busy = 0;   // part of the threads' time in kernels
  double idle = 0;   // part of the threads' time, from opening to closing, in which they waited
  double alone = 0;  // seconds per GB of one thread at a time
  double cpu = 0;    // seconds per GB of the engine, on all threads
  std::uint64_t memory = 0;
  Profile::Summary profile;
};

class Bench {
 public:
  Bench(const Options& options, const std::string& journals) : options_(options) { add_no_io(journals); }

  // Seconds of one thread's kernels per GB.
  double kernel_seconds(const Recipe& recipe) {
    waiting_.set_slow_factor(1);
    waiting_.set_speeds(options_.isa, 1e-3);  // in reality a thousandth, to be quick
    const Plan plan = plan_of_layers(recipe, 2);
    waiting_.take_seconds();
    run(plan, 1, nullptr);
    return 1e3 * waiting_.take_seconds() / gigabytes(plan.bytes_read());
  }

  Measured measure(const Recipe& recipe, unsigned threads, double slowdown, double rate) {
    waiting_.set_slow_factor(options_.slow);
    waiting_.set_speeds(options_.isa, slowdown);
    const double layer = gigabytes(plan_of_layers(recipe, 1).bytes_read());
    const double wanted = options_.weights > 0 ? 2e-9 * options_.weights : rate * options_.seconds;
    const auto layers = static_cast<std::size_t>(std::ceil(std::max(wanted / layer, 2.0)));
    set_file_rate(1e9 * options_.file_rate / slowdown);
    const Plan plan = plan_of_layers(recipe, layers);
    const double read = gigabytes(plan.bytes_read());
    Measured measured;
    Profile profile;
    waiting_.take_seconds();
    const double cpu = process_seconds();
    const RunReport report = run(plan, threads, &profile);
    measured.profile = profile.summary();
    measured.threads = threads;
    measured.slowdown = slowdown;
    measured.rate = read / report.seconds;
    measured.busy = waiting_.take_seconds() / (threads * report.seconds);
    measured.idle = measured.profile.wait / (threads * measured.profile.wall);
    measured.alone = Profile::seconds_of(measured.profile.alone) / read;
    measured.cpu = (process_seconds() - cpu) / read;
    measured.memory = report.peak_budget;
    return measured;
  }

 private:
  RunReport run(const Plan& plan, unsigned threads, Profile* profile) {
    const auto journal = Journal::open(plan);
    if (!journal) throw std::runtime_error(render(journal.error()));
    EngineOptions options;
    options.threads = threads;
    options.profile = profile;
    options.ledger = journal.value().get();
    auto report = run_plan(plan, waiting_.kernels(), options);
    if (!report) throw std::runtime_error(render(report.error()));
    journal.value()->remove();
    return std::move(report).value();
  }

  const Options& options_;
  Waiting waiting_;
};

// The costs of a recipe, per GB read.
struct Cost {
  double kernel = 0;   // seconds of a thread in kernels
  double own = 0;      // seconds of a thread in the engine
  double alone = 0;    // seconds of one thread at a time
  double written = 0;  // bytes written, for each byte read
  // Bytes moved between memory and CPUs for each byte read: that is copied from the page cache and read by a kernel,
  // and what the kernel writes is copied to the page cache.
  double traffic() const { return 3 + 3 * written; }
};

struct Prediction {
  double rate = 0, busy = 0;
  const char* limit = "";
};

Prediction predict(const Cost& cost, unsigned threads, double memory) {
  const std::pair<double, const char*> limits[] = {{threads / (cost.kernel + cost.own), "kernels"},
                                                   {1 / cost.alone, "one thread at a time"},
                                                   {memory / cost.traffic(), "memory"}};
  const auto least = std::ranges::min(limits);
  return {least.first, least.first * cost.kernel / threads, least.second};
}

// Returns how many GB per second one thread writes to a new file in a folder through the page cache, in its own CPU
// time. Linux lets one thread at a time write to a file in this way, so this is what one file takes from any number.
double one_file_rate(const std::string& folder) {
  constexpr std::uint64_t kBytes = 256 << 20, kPiece = 1 << 20;
  const std::vector<std::byte> piece(kPiece, std::byte{1});
  std::vector<double> rates;
  for (int round = 0; round < 3; ++round) {
    auto file = AtomicFile::create(folder + "/written", kBytes, {.overwrite = true});
    if (!file) throw std::runtime_error(render(file.error()));
    const double start = thread_seconds();
    for (std::uint64_t offset = 0; offset < kBytes; offset += kPiece)
      if (const Status written = file.value()->write(offset, piece); !written)
        throw std::runtime_error(render(written.error()));
    rates.push_back(gigabytes(kBytes) / (thread_seconds() - start));
  }
  return median(rates);
}

// Returns a slowdown with which the engine's own work needs at most half of this machine's CPUs.
double slowdown_for(unsigned threads, double kernel, double cpu) {
  const double needed = threads / kernel * cpu;
  return std::exp2(std::ceil(std::max(std::log2(needed / (0.5 * usable_cpus())), 0.0)));
}

void print_alone(const Measured& measured) {
  fmt::print("  one thread at a time, per GB:");
  for (std::size_t i = 0; i < kProfileSteps; ++i)
    if (const Profile::Sum& sum = measured.profile.alone[i]; sum.calls != 0)
      fmt::print("  {} {:.3f} ms", name_of(static_cast<ProfileStep>(i)),
                 1e3 * measured.alone * sum.seconds / Profile::seconds_of(measured.profile.alone));
  fmt::print("\n");
}

void print_idle(const Measured& measured) {
  fmt::print("{:>16}  idle for", "");
  for (std::size_t i = 0; i < kIdleReasons; ++i)
    fmt::print("{} {} {:.1f} %", i == 0 ? "" : ",", name_of(static_cast<IdleReason>(i)),
               100 * measured.profile.idle[i] / (measured.threads * measured.profile.wall));
  fmt::print("\n");
}

void bench_recipe(Bench& bench, const Options& options, const Recipe& recipe, Plot& plot) {
  Cost cost;
  cost.kernel = bench.kernel_seconds(recipe);
  const Plan sample = plan_of_layers(recipe, 2);
  cost.written = static_cast<double>(sample.bytes_written()) / static_cast<double>(sample.bytes_read());
  fmt::print("\n{}: kernels of {} need {:.3f} s per GB\n", recipe.name, options.isa, cost.kernel);
  fmt::print("{:>8}{:>8}{:>9}{:>9}{:>8}{:>8}{:>16}{:>12}{:>9}\n", "threads", "slowed", "GB/s", "ideal", "busy", "idle",
             "alone ms/GB", "CPU s/GB", "MB");
  Curve measured{fmt::format("{}, measured", recipe.name), recipe.color, Curve::kDots, {}};
  double cpu = 0.05;  // of the run before
  std::vector<double> alone, own;
  for (const unsigned threads : options.threads) {
    const double slowdown = slowdown_for(threads, cost.kernel, cpu);
    const double fast = threads - threads / 2, slow = threads / 2;  // every second thread is slow
    const double ideal = (fast + slow / options.slow) / cost.kernel / slowdown;
    const Measured now = bench.measure(recipe, threads, slowdown, ideal);
    cpu = now.cpu;
    alone.push_back(now.alone);
    own.push_back(now.cpu - now.alone);
    fmt::print("{:>8}{:>8}{:>9.2f}{:>9.2f}{:>6.1f} %{:>6.1f} %{:>16.3f}{:>12.4f}{:>9.0f}\n", threads, slowdown,
               now.rate, ideal, 100 * now.busy, 100 * now.idle, 1e3 * now.alone, now.cpu,
               1e-6 * static_cast<double>(now.memory));
    std::fflush(stdout);
    if (slowdown == 1) measured.points.emplace_back(threads, now.rate);
    if (threads == options.threads.back()) print_alone(now);
    print_idle(now);
  }
  cost.alone = median(alone);
  cost.own = std::max(median(own), 0.0);
  Curve predicted{fmt::format("{}, predicted", recipe.name), recipe.color, Curve::kLine, {}};
  Curve ideal{fmt::format("{}, kernels alone", recipe.name), recipe.color, Curve::kDashed, {}};
  for (double threads = 1; threads <= 256; threads *= std::exp2(0.25)) {
    predicted.points.emplace_back(threads, predict(cost, static_cast<unsigned>(threads + 0.5), options.memory).rate);
    ideal.points.emplace_back(threads, threads / cost.kernel);
  }
  fmt::print("  one thread at a time allows {:.0f} GB/s, {:.0f} GB/s of memory {:.0f} GB/s\n", 1 / cost.alone,
             options.memory, options.memory / cost.traffic());
  for (const unsigned threads : {16u, 64u, 192u}) {
    const Prediction all = predict(cost, threads, options.memory);
    const Prediction alone_busy = predict(cost, threads, std::numeric_limits<double>::infinity());
    fmt::print(
        "  predicted for {:>3} threads: {:6.1f} GB/s, limited by {}; without the memory's limit {:6.1f} GB/s, "
        "{:.0f} % busy\n",
        threads, all.rate, all.limit, alone_busy.rate, 100 * alone_busy.busy);
  }
  for (Curve* const curve : {&predicted, &ideal, &measured}) plot.curves.push_back(std::move(*curve));
}

po::options_description description(Options& options) {
  po::options_description all(kUsage);
  auto add = all.add_options();
  add("help,h", "this");
  add("isa", po::value(&options.isa)->default_value("x86-64-v4"), "whose kernels are waited for");
  add("seconds", po::value(&options.seconds)->default_value(2), "of each run, about");
  add("weights", po::value(&options.weights)->default_value(0), "of the model; 0: as many as the seconds need");
  add("file-rate", po::value(&options.file_rate)->default_value(0),
      "GB/s that one file takes, however many write to it; 0: no limit");
  add("slow", po::value(&options.slow)->default_value(1),
      "every second thread takes so many times as long, as efficiency cores do");
  add("memory", po::value(&options.memory)->default_value(150), "GB/s of the memory of the imagined machine");
  add("threads", po::value(&options.threads)->default_value({1, 2, 4, 8, 16, 32, 64, 128, 192}, "1 ... 192"),
      "a number of threads; may be repeated");
  add("plot", po::value(&options.plot), "write the picture to this SVG file");
  return all;
}

void run(const Options& options) {
  const TempDir journals;
  Bench bench(options, journals.path());
  fmt::print(
      "{} CPUs here. One file in {} takes {:.1f} GB/s through the page cache, from one thread at a time; direct I/O "
      "and several files do not have this limit.\n",
      usable_cpus(), journals.path().parent_path().string(), one_file_rate(journals.path()));
  Plot plot{"GB read per second, with kernels that wait for " + options.isa,
            {"threads", 1, 256, {1, 2, 4, 8, 16, 32, 64, 128, 192}, ""},
            {"", 0.3, 300, {0.5, 1, 2, 5, 10, 20, 50, 100, 200}, ""},
            {}};
  for (const Recipe& recipe : kRecipes) bench_recipe(bench, options, recipe, plot);
  if (!options.plot.empty()) std::ofstream(options.plot) << to_svg(plot);
}

}  // namespace
}  // namespace ggufmill::bench

int main(int argc, char** argv) {
  namespace po = boost::program_options;
  using namespace ggufmill::bench;
  try {
    Options options;
    const po::options_description known = description(options);
    po::positional_options_description plot;
    plot.add("plot", 1);
    po::variables_map values;
    po::store(po::command_line_parser(argc, argv).options(known).positional(plot).run(), values);
    po::notify(values);
    if (values.count("help")) {
      std::cout << known;
      return 0;
    }
    ggufmill::bench::run(options);
    return 0;
  } catch (const po::error& error) {
    std::cerr << "ggufmill-scaling: " << error.what() << "; see --help\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "ggufmill-scaling: " << error.what() << '\n';
    return 1;
  }
}
