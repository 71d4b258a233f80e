#include "pipeline/cluster/cut.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace ggufmill {
namespace {

// Fraction of a part's cost by which a cut may move away from the best place to fall between two shards.
constexpr double kShardTolerance = 0.25;

// Returns for each boundary i, between units i - 1 and i, the number of shards that are started but not finished.
std::vector<int> shards_open(const Plan& plan) {
  constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  struct Users {
    std::size_t first = kNone, last = 0;
  };
  std::vector<std::vector<Users>> files;
  for (const PlannedOutput& output : plan.outputs) files.emplace_back(output.files.size());
  for (std::size_t i = 0; i < plan.units.size(); ++i)
    for (const Encoding& encoding : plan.steps[plan.units[i].step].encodings)
      for (const Place& place : encoding.places) {
        Users& users = files[place.output][place.file];
        users.first = std::min(users.first, i);
        users.last = i;
      }
  std::vector<int> open(plan.units.size() + 1);
  for (const std::vector<Users>& shards : files) {
    if (shards.size() == 1) continue;
    for (const Users& users : shards) {
      if (users.first == kNone) continue;
      ++open[users.first + 1];
      --open[users.last + 1];
    }
  }
  for (std::size_t i = 1; i < open.size(); ++i) open[i] += open[i - 1];
  return open;
}

}  // namespace

std::vector<std::size_t> cut_plan(const Plan& plan, const std::vector<double>& costs, std::size_t parts) {
  const std::size_t units = costs.size();
  parts = std::max<std::size_t>(1, std::min(parts, units));
  std::vector<double> before(units + 1);  // cost of all units before each unit
  for (std::size_t i = 0; i < units; ++i) before[i + 1] = before[i] + costs[i];
  const std::vector<int> open = shards_open(plan);
  const double share = before[units] / static_cast<double>(parts);
  std::vector<std::size_t> cuts{0};
  for (std::size_t k = 1; k < parts; ++k) {
    const double wanted = share * static_cast<double>(k);
    const std::size_t least = cuts.back() + 1, most = units - (parts - k);
    const auto distance = [&](std::size_t cut) { return std::abs(before[cut] - wanted); };
    const auto at = std::lower_bound(before.begin(), before.end(), wanted) - before.begin();
    std::size_t best = std::clamp(static_cast<std::size_t>(at), least, most);
    if (best > least && distance(best - 1) < distance(best)) --best;
    if (open[best] != 0) {
      std::size_t between = units;  // the nearest boundary without an open shard
      for (std::size_t i = best; i <= most && distance(i) <= kShardTolerance * share; ++i)
        if (open[i] == 0) {
          between = i;
          break;
        }
      for (std::size_t i = best; i >= least && distance(i) <= kShardTolerance * share; --i)
        if (open[i] == 0) {
          if (between == units || distance(i) < distance(between)) between = i;
          break;
        }
      if (between != units) best = between;
    }
    cuts.push_back(best);
  }
  cuts.push_back(units);
  return cuts;
}

std::size_t usual_parts(const Plan& plan) {
  constexpr std::uint64_t kBytes = std::uint64_t{16} << 30;
  return std::clamp<std::size_t>((plan.bytes_read() + kBytes - 1) / kBytes, 1, ClusterOptions::kMaxParts);
}

Result<std::vector<std::size_t>> share_parts(const std::vector<Plan>& plans, std::size_t parts,
                                             const ImaginedMachine& machine) {
  std::size_t usual = 0;
  std::vector<double> costs;
  for (const Plan& plan : plans) {
    usual += usual_parts(plan);
    const std::vector<double> of_units = unit_costs(plan, machine);
    costs.push_back(std::accumulate(of_units.begin(), of_units.end(), 0.0));
  }
  if (parts == 0) parts = std::min<std::size_t>(usual, ClusterOptions::kMaxParts);
  if (parts < plans.size())
    return usage_error(fmt::format("each of the {} sources needs a part of its own, but there {} only {}", plans.size(),
                                   parts == 1 ? "is" : "are", parts),
                       plans.size() <= ClusterOptions::kMaxParts
                           ? fmt::format("set cluster.parts to {} or more", plans.size())
                           : fmt::format("an array has at most {} parts: split the sources over several pipeline files",
                                         ClusterOptions::kMaxParts));
  // Give each remaining part to the plan with the longest parts.
  std::vector<std::size_t> shares(plans.size(), 1);
  for (std::size_t left = parts - plans.size(); left > 0; --left) {
    double longest = 0;
    std::size_t best = plans.size();
    for (std::size_t i = 0; i < plans.size(); ++i) {
      const double length = costs[i] / static_cast<double>(shares[i]);
      if (shares[i] < plans[i].units.size() && length > longest) {
        longest = length;
        best = i;
      }
    }
    if (best == plans.size()) break;  // every part is a single unit
    ++shares[best];
  }
  return shares;
}

}  // namespace ggufmill
