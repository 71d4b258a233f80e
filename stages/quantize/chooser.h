#pragma once
// The choice of types for tensors that are divided among budgets: the possible types of each group of tensors, with
// their sizes and losses, and the best choice within a limit.

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stages/quantize/candidates.h"
#include "stages/quantize/measurement.h"
#include "stages/quantize/target.h"

namespace ggufmill {

// Help of errors that measuring again fixes.
inline constexpr std::string_view kMeasureAgain =
    "run `ggufmill measure` again; if `measured` names a file, add --output FILE --overwrite";

// Prepared once, then asked for choices. Refers to the options and the model, which must outlive it. Not thread-safe.
class Chooser {
 public:
  // `is_cautious`: tensors of little known importance get no type below the objective's least.
  Chooser(const TargetOptions& options, const Model& model, bool is_cautious = true)
      : options_(options), model_(model), is_cautious_(is_cautious) {}
  Chooser(const Chooser&) = delete;  // groups point into the measurement
  Chooser& operator=(const Chooser&) = delete;

  // Groups the tensors in `open`, and computes the sizes and losses of their possible types. Fails with exit code 2 if
  // the measurement is outdated, a pattern matches nothing, or a group has no possible type.
  Status prepare(const std::vector<std::size_t>& open);

  bool has_cautious() const { return std::ranges::any_of(groups_, &Group::is_cautious); }
  const std::vector<std::string>& estimated() const { return estimated_; }
  // Bytes of a budget's tensors that are not open to choice.
  std::uint64_t fixed_bytes(std::size_t budget) const { return fixed_bytes_[budget]; }
  // Returns the possible sizes of the open tensors of a budget, and the smallest possible loss.
  std::uint64_t min_bytes(std::size_t budget) const;
  std::uint64_t max_bytes(std::size_t budget) const;
  double min_loss(std::size_t budget) const;
  std::uint64_t weights(std::size_t budget) const;  // of all tensors of a budget
  // Returns the bytes of all tensors of a budget, with the types that they have in `model`.
  std::uint64_t bytes_in(std::size_t budget, const Model& model) const;

  // Returns the best choice for a budget's open tensors within `bytes`; nullopt if no choice is that small.
  std::optional<Choice> within(std::size_t budget, std::uint64_t bytes) const { return solve(budget, bytes, false); }
  // Returns the smallest choice whose sum of losses is at most `loss`.
  std::optional<Choice> at_most(std::size_t budget, double loss) const;
  // Returns the loss with the types that the tensors have in `model`, of one budget or (nullopt) of all; nullopt if one
  // of these types was not measured.
  std::optional<double> loss_of(const Model& model, std::optional<std::size_t> budget = {}) const;

 private:
  // A class of the choice: one tensor, or several that share one type. All members have the same types as options.
  struct Member {
    std::size_t tensor;  // index into the model
    const MeasuredTensor* measured;
    double counts = 0;
  };
  struct Group {
    std::size_t budget = 0;
    bool is_cautious = false;  // has no types below the objective's least
    std::vector<Member> members;
    Candidates candidates;
    std::vector<const TypeInfo*> types;  // the candidates that are possible
    std::vector<std::uint64_t> bytes;    // for each type, the sum over all members
    std::vector<double> loss;
  };

  template <class Function>
  std::uint64_t sum(std::size_t budget, const Function& of) const {
    std::uint64_t sum = 0;
    for (const Group& group : groups_)
      if (group.budget == budget) sum += of(group);
    return sum;
  }
  // Returns how well an entry of a measurement fits a tensor: 2 if it is of this target's sample, whose types are those
  // of this target; 1 if it is of all rows; otherwise 0.
  Result<int> fitness(const MeasuredTensor& measured, const Tensor& tensor) const;
  // Returns the measurement with one entry for each name: the one that fits this model's tensor best if there are
  // several, as other outputs may measure the tensor in other ways.
  Result<Measurement> own_measurement() const;
  Result<const MeasuredTensor*> measured(const Tensor& tensor) const;
  // Assigns each tensor to the first budget that matches it.
  Status divide();
  // Refuses groups and bounds that match no open tensor.
  Status check_patterns(const std::vector<std::size_t>& open) const;
  Status group(const std::vector<std::size_t>& open);
  Error two_budgets(const Group& group) const;
  Status count(const std::vector<std::size_t>& open);
  // Returns the first bound that does not allow a type; null: none.
  Result<const TypeBound*> forbids(const TypeInfo& type, const Tensor& tensor) const;
  static bool is_measured_as(const Member& member, const TypeInfo& type, const Tensor& tensor);
  // Returns why no candidate is left for a group.
  Status no_candidate(const Group& group) const;
  Status add_options(Group& group);
  // Adds the candidates that fit and have no fewer bits than `least` (null: any).
  Status add_options(Group& group, const TypeInfo* least);
  void scale();
  // Minimizes losses within a limit of bytes, or bytes within a limit of losses. Each budget has its own tensors, so
  // that the best choices for all budgets together are the best overall.
  std::optional<Choice> solve(std::size_t budget, std::uint64_t limit, bool limits_loss) const;
  // Returns the cheapest type with a smaller loss.
  static std::optional<BetterType> next_better(const Group& group, std::size_t picked);

  const TargetOptions& options_;
  const Model& model_;
  bool is_cautious_;
  Measurement measurement_;  // by use of experts
  std::map<std::string_view, const MeasuredTensor*> by_name_;
  std::vector<std::size_t> budget_of_;  // for each tensor of the model
  std::vector<Group> groups_;
  std::vector<std::uint64_t> fixed_bytes_;  // for each budget
  std::vector<std::string> estimated_;
  double scale_ = 0;
};

}  // namespace ggufmill
