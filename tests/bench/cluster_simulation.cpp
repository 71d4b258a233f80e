// ggufmill-cluster-simulation: computes how long a job of 1.2 TB in 1,000 parts takes on a given number of nodes. Run
// by `./dev bench cluster`.
//
// The model consists of:
// - the plan and its cuts, as `submit` makes them;
// - the time that a thread needs for each unit, from the table of kernel speeds;
// - one file system, whose bandwidth is shared evenly by the running parts; no part gets more than it needs or than the
//   network of its node can carry;
// - nodes that fail at random, and the reaction of Slurm and of the parts.
// A part reads, computes and writes at the same time, so its rate is limited by the CPU or the file system, whichever
// is slower.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "pipeline/cluster/cut.h"
#include "tests/bench/plot.h"
#include "tests/support/plan_maker.h"

namespace ggufmill::bench {
namespace {

using testing::TensorRecipe;

constexpr std::size_t kParts = 1000;

struct Cluster {
  std::size_t nodes = 1;
  double bytes_per_second = 10e9;        // of the file system, in total
  double node_bytes_per_second = 3e9;    // network of one node: 25 Gbit/s
  double threads = 16;                   // per part; one part per node
  double hours_between_failures = 0;     // of one node, on average; 0: nodes never fail
  double detection_seconds = 300 + 120;  // SlurmdTimeout, plus the delay before a requeued job may start
  double repair_seconds = 1800;
  double start_seconds = 3;  // per part: scheduler, plan, headers and their hashes
};

struct Part {
  double cpu_seconds = 0;  // on one thread
  double bytes = 0;        // read and written
  double written = 0;
  double unit = 0;      // fraction of the part lost with a node: half a unit
  double done = 0;      // from 0 to 1
  double ready_at = 0;  // earliest start
  double again = 0;     // bytes to read back before it resumes
};

struct Outcome {
  double parts_seconds = 0, seal_seconds = 0;
  double bound = 0;  // lower bound for any schedule
  std::size_t failures = 0;
};

// A mixture-of-experts model of 600 billion BF16 weights, quantized to Q4_K, with Q6_K where Q4_K_M uses it.
Plan model() {
  std::vector<TensorRecipe> tensors;
  const auto add = [&](std::string name, std::vector<std::uint64_t> dims, const char* to) {
    tensors.push_back({std::move(name), testing::shape_of(std::move(dims)), "BF16", {to}});
  };
  add("token_embd.weight", {7168, 128000}, "Q4_K");
  for (int i = 0; i < 61; ++i) {
    const auto in_layer = [&](const char* name) { return fmt::format("blk.{}.{}.weight", i, name); };
    add(in_layer("attn_q"), {7168, 7168}, "Q4_K");
    add(in_layer("attn_k"), {7168, 1024}, "Q4_K");
    add(in_layer("attn_v"), {7168, 1024}, "Q6_K");
    add(in_layer("attn_output"), {7168, 7168}, "Q4_K");
    add(in_layer("ffn_gate_exps"), {7168, 1760, 256}, "Q4_K");
    add(in_layer("ffn_up_exps"), {7168, 1760, 256}, "Q4_K");
    add(in_layer("ffn_down_exps"), {1760 / 256 * 256, 7168, 256}, i % 2 ? "Q6_K" : "Q4_K");
  }
  add("output.weight", {7168, 128000}, "Q6_K");
  return testing::plan_of(tensors);
}

std::vector<Part> parts_of(const Plan& plan, const Cluster& cluster) {
  // Compute time only: with infinite bandwidth, unit_costs() ignores I/O. The simulation shares the bandwidth itself.
  ImaginedMachine computing;
  computing.threads = 1;
  computing.bytes_per_second = std::numeric_limits<double>::infinity();
  const std::vector<double> cpu = unit_costs(plan, computing);
  ImaginedMachine usual;
  usual.threads = cluster.threads;
  const std::vector<std::size_t> cuts = cut_plan(plan, unit_costs(plan, usual), kParts);
  std::vector<Part> parts;
  for (std::size_t k = 0; k + 1 < cuts.size(); ++k) {
    Part& part = parts.emplace_back();
    for (std::size_t i = cuts[k]; i < cuts[k + 1]; ++i) {
      const Step& step = plan.steps[plan.units[i].step];
      const double rows = static_cast<double>(plan.units[i].rows);
      part.cpu_seconds += cpu[i];
      part.bytes += rows * static_cast<double>(step.expression->row_bytes());
      for (const Encoding& encoding : step.encodings)
        part.written += rows * static_cast<double>(row_bytes(*encoding.type, step.expression->shape));
    }
    part.bytes += part.written;
    part.unit = 0.5 / static_cast<double>(cuts[k + 1] - cuts[k]);
  }
  return parts;
}

class Simulation {
 public:
  Simulation(std::vector<Part> parts, const Cluster& cluster)
      : cluster_(cluster), parts_(std::move(parts)), nodes_(cluster.nodes) {
    for (std::size_t i = 0; i < parts_.size(); ++i) waiting_.push_back(i);
    for (Node& node : nodes_) node.fails_at = next_failure();
  }

  Outcome run() {
    Outcome outcome;
    outcome.bound = bound();
    for (std::size_t left = parts_.size(); left != 0;) {
      start_parts();
      share_bandwidth();
      const double step = std::max(time_to_event(), 1e-9);
      for (Node& node : nodes_)
        if (node.part != kIdle && now_ >= node.begins_at) advance(parts_[node.part], node.rate * step);
      now_ += step;
      for (Node& node : nodes_) {
        if (node.part != kIdle && parts_[node.part].done >= 1 - 1e-12) {
          node.part = kIdle;
          --left;
        }
        if (now_ >= node.fails_at) {
          fail(node);
          ++outcome.failures;
        }
      }
    }
    outcome.parts_seconds = now_;
    double written = 0;
    for (const Part& part : parts_) written += part.written;
    outcome.seal_seconds = written / std::min(cluster_.bytes_per_second, cluster_.node_bytes_per_second);
    outcome.bound += outcome.seal_seconds;
    return outcome;
  }

 private:
  static constexpr std::size_t kIdle = std::numeric_limits<std::size_t>::max();
  struct Node {
    std::size_t part = kIdle;
    double begins_at = 0;  // start of the part's work
    double back_at = 0;    // the node is down until then
    double fails_at = 0;
    double rate = 0;  // of the part, per second
  };

  // The lower bound: the work divided without gaps, or the longest part, whichever takes longer.
  double bound() const {
    double cpu = 0, bytes = 0, longest = 0;
    for (const Part& part : parts_) {
      cpu += part.cpu_seconds / cluster_.threads;
      bytes += part.bytes;
      longest = std::max(longest, std::max(part.cpu_seconds / cluster_.threads, part.bytes / most_of_node()));
    }
    const double nodes = static_cast<double>(cluster_.nodes);
    return std::max({cpu / nodes, bytes / cluster_.bytes_per_second, bytes / (nodes * most_of_node()), longest});
  }
  double most_of_node() const { return std::min(cluster_.node_bytes_per_second, cluster_.bytes_per_second); }

  double next_failure() {
    if (cluster_.hours_between_failures <= 0) return std::numeric_limits<double>::infinity();
    return now_ + std::exponential_distribution<double>(1 / (3600 * cluster_.hours_between_failures))(random_);
  }

  void start_parts() {
    for (Node& node : nodes_) {
      if (node.part != kIdle || now_ < node.back_at) continue;
      const auto ready = std::ranges::find_if(waiting_, [&](std::size_t i) { return parts_[i].ready_at <= now_; });
      if (ready == waiting_.end()) return;
      node.part = *ready;
      node.begins_at = now_ + cluster_.start_seconds + parts_[*ready].again / most_of_node();
      waiting_.erase(ready);
    }
  }

  // Max-min fair: a part that needs less than an even share leaves the rest to the others.
  void share_bandwidth() {
    std::vector<std::pair<double, Node*>> wants;  // bytes per second that a part can use
    for (Node& node : nodes_) {
      node.rate = 0;
      if (node.part == kIdle || now_ < node.begins_at) continue;
      const Part& part = parts_[node.part];
      wants.emplace_back(std::min(part.bytes * cluster_.threads / part.cpu_seconds, most_of_node()), &node);
    }
    std::ranges::sort(wants);
    double left = cluster_.bytes_per_second;
    for (std::size_t i = 0; i < wants.size(); ++i) {
      const double share = std::min(wants[i].first, left / static_cast<double>(wants.size() - i));
      left -= share;
      wants[i].second->rate = share / parts_[wants[i].second->part].bytes;
    }
  }

  double time_to_event() const {
    double least = std::numeric_limits<double>::infinity();
    const auto at = [&](double time) {
      if (time > now_) least = std::min(least, time - now_);
    };
    for (const Node& node : nodes_) {
      at(node.fails_at);
      at(node.back_at);
      if (node.part == kIdle) continue;
      at(node.begins_at);
      if (node.rate > 0) least = std::min(least, (1 - parts_[node.part].done) / node.rate);
    }
    for (const std::size_t i : waiting_) at(parts_[i].ready_at);
    return least;
  }

  static void advance(Part& part, double progress) { part.done = std::min(1.0, part.done + progress); }

  void fail(Node& node) {
    if (node.part != kIdle) {
      Part& part = parts_[node.part];
      part.done = std::max(0.0, part.done - part.unit);
      part.again = part.done * part.written;
      part.ready_at = now_ + cluster_.detection_seconds;
      waiting_.push_back(node.part);
      node.part = kIdle;
    }
    node.back_at = now_ + cluster_.repair_seconds;
    node.fails_at = next_failure();
  }

  const Cluster cluster_;
  std::vector<Part> parts_;
  std::vector<Node> nodes_;
  std::vector<std::size_t> waiting_;
  double now_ = 0;
  std::mt19937 random_{1};
};

// Names the resource that would take longest if the others cost nothing.
std::string limit_of(const Cluster& cluster, const std::vector<Part>& parts, const Outcome& outcome) {
  const double nodes = static_cast<double>(cluster.nodes);
  double cpu = 0, bytes = 0;
  for (const Part& part : parts) cpu += part.cpu_seconds, bytes += part.bytes;
  const std::pair<double, const char*> limits[] = {
      {cpu / cluster.threads / nodes, "computing"},
      {bytes / (nodes * cluster.node_bytes_per_second), "the nodes' network"},
      {bytes / cluster.bytes_per_second, "the file system"},
      {static_cast<double>(parts.size()) * cluster.start_seconds / nodes, "starting parts"},
      {outcome.seal_seconds, "the seal"},
      {outcome.failures == 0 ? 0 : cluster.detection_seconds, "noticing a dead node"}};
  return std::ranges::max(limits).second;
}

void run(const char* svg) {
  const Plan plan = model();
  const std::vector<Part> parts = parts_of(plan, {});
  double cpu = 0, bytes = 0;
  for (const Part& part : parts) cpu += part.cpu_seconds, bytes += part.bytes;
  fmt::print("{} units, {:.2f} TB read, {:.2f} TB read and written, {:.1f} hours of one thread\n\n", plan.units.size(),
             static_cast<double>(plan.bytes_read()) / 1e12, bytes / 1e12, cpu / 3600);
  struct Case {
    double bytes_per_second, hours_between_failures;
    const char *name, *color;
  };
  constexpr Case kCases[] = {{2e9, 0, "2 GB/s", "#b03060"},
                             {10e9, 0, "10 GB/s", "#3060b0"},
                             {50e9, 0, "50 GB/s", "#208050"},
                             {10e9, 10, "10 GB/s, a node dies every 10 h", "#d08020"},
                             {10e9, 2, "10 GB/s, a node dies every 2 h", "#805020"}};
  std::vector<Curve> curves;
  fmt::print("{:<34}{:>6}{:>10}{:>8}{:>10}{:>10}{:>8}  {}\n", "file system", "nodes", "parts h", "seal h", "bound h",
             "of bound", "lost", "limited by");
  for (const Case& one : kCases) {
    Curve curve{one.name, one.color, Curve::kLine, {}}, bound{"", one.color, Curve::kDashed, {}};
    for (const std::size_t nodes : {1, 3, 10, 30, 100, 300, 1000}) {
      Cluster cluster;
      cluster.nodes = nodes;
      cluster.bytes_per_second = one.bytes_per_second;
      cluster.hours_between_failures = one.hours_between_failures;
      const Outcome outcome = Simulation(parts, cluster).run();
      const double all = outcome.parts_seconds + outcome.seal_seconds;
      curve.points.emplace_back(nodes, all / 3600);
      bound.points.emplace_back(nodes, outcome.bound / 3600);
      fmt::print("{:<34}{:>6}{:>10.3f}{:>8.3f}{:>10.3f}{:>10.2f}{:>8}  {}\n", one.name, nodes,
                 outcome.parts_seconds / 3600, outcome.seal_seconds / 3600, outcome.bound / 3600, all / outcome.bound,
                 outcome.failures, limit_of(cluster, parts, outcome));
    }
    curves.push_back(std::move(curve));
    if (one.hours_between_failures == 0) curves.push_back(std::move(bound));
  }
  if (!svg) return;
  std::ofstream(svg) << to_svg(
      {fmt::format("1.2 TB, BF16 to Q4_K_M, in {} parts: hours with the seal, and the lower bound (dashed)", kParts),
       {"nodes of 16 threads", 1, 1000, {1, 3, 10, 30, 100, 300, 1000}, ""},
       {"", 0.02, 3, {0.03, 0.1, 0.3, 1, 3}, " h"},
       std::move(curves)});
}

}  // namespace
}  // namespace ggufmill::bench

int main(int argc, char** argv) {
  if (argc > 2) {
    std::cerr << "usage: ggufmill-cluster-simulation [PLOT.svg]\n";
    return 2;
  }
  ggufmill::bench::run(argc == 2 ? argv[1] : nullptr);
  return 0;
}
