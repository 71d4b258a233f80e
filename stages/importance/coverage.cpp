#include "stages/importance/coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "pipeline/core/importance.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

// Returns true for token embeddings: their rows are looked up, never multiplied.
bool is_token_embedding(const std::string& name) {
  return name == "token_embd.weight" || name == "per_layer_token_embd.weight";
}

std::string too_few(std::uint64_t least_counts) {
  return least_counts <= 1 ? "no token" : fmt::format("fewer than {} tokens", least_counts);
}

std::string describe_some(const Tensor& tensor, std::size_t matrices) {
  if (tensor.shape().dims[2] == 1) return quoted_name(tensor.name);
  return fmt::format("{} ({} of {})", quoted_name(tensor.name), matrices, tensor.shape().dims[2]);
}

class Coverage {
 public:
  Coverage(const MergedImportance& data, const Selection& selection, CoveragePolicy policy, Model& model)
      : data_(data), selection_(selection), policy_(policy), model_(model) {}

  Status attach() {
    for (Tensor& tensor : model_.tensors) tensors_.emplace(tensor.name, &tensor);
    for (const MergedEntry& entry : data_.entries) {
      const auto at = tensors_.find(entry.name);
      if (at != tensors_.end() && fits(entry, *at->second)) {
        BOOST_OUTCOME_TRY(give(entry, *at->second));
      } else {
        BOOST_OUTCOME_TRY(check(entry));
      }
    }
    if (policy_.missing == Missing::kError) {
      BOOST_OUTCOME_TRY(report_missing());
    }
    if (policy_.missing == Missing::kNeighbours) {
      BOOST_OUTCOME_TRY(take_from_neighbours());
    }
    if (policy_.missing == Missing::kMean) report_starved();
    for (Tensor& tensor : model_.tensors) {
      BOOST_OUTCOME_TRY(const bool missing, is_missing(tensor));
      tensor.importance_is_missing = missing && starved_.count(tensor.name) == 0;  // those have been reported
    }
    report_rare();
    return ok();
  }

 private:
  void problem(std::string what, std::string help) {
    model_.problems.push_back(input_error(data_.path, std::move(what), std::move(help)));
  }

  void warn(const std::string& what) { model_.warnings.push_back(fmt::format("{}: {}", data_.path, what)); }

  // Checks the numbers of an entry that is not used.
  static Status check(const MergedEntry& entry) {
    BOOST_OUTCOME_TRY(fingerprint_weights(
        entry.size(), [&](std::uint64_t first, std::span<float> into) { return entry.weights(first, into); }));
    return ok();
  }

  // Returns false, and reports it, if the entry has another size than the tensor needs.
  bool fits(const MergedEntry& entry, Tensor& tensor) {
    met_.insert(tensor.name);
    const Shape& shape = tensor.shape();
    std::uint64_t needed = 0;
    if (!__builtin_mul_overflow(shape.columns(), shape.dims[2], &needed) && entry.size() == needed) return true;
    const std::string what = fmt::format("the entry of tensor {} has {} values, but the tensor ({}) needs {}",
                                         quoted_name(tensor.name), entry.size(), describe(shape), needed);
    if (is_token_embedding(tensor.name)) {
      warn(what + ": ignored");
      return false;
    }
    Error fault =
        with_options(input_error(data_.path, what, "recreate the file with this model, or skip the entry: exclude"),
                     fmt::format("recreate the file with this model, or skip the entry: {}",
                                 option_reference("exclude_weights", shell_word(tensor.name))));
    if (tensor.converted())
      model_.problems.push_back(std::move(fault));
    else  // relevant only once a stage decides the type
      tensor.importance_fault = std::make_shared<const Error>(std::move(fault));
    return false;
  }

  Status give(const MergedEntry& entry, Tensor& tensor) {
    EntryUse use = use_of(entry, tensor.shape().columns(), tensor.shape().dims[2], policy_.least_counts);
    BOOST_OUTCOME_TRY(const std::vector<std::uint64_t> zero, zero_matrices(use));
    if (!zero.empty() && policy_.missing == Missing::kNone) zero_.push_back(describe_some(tensor, zero.size()));
    if (policy_.missing != Missing::kNone) add_zero(zero, use);
    std::vector<float> substitute;
    std::string note;
    if (!use.rare.empty()) {
      BOOST_OUTCOME_TRY(check(entry));
    }
    if (!use.rare.empty() && policy_.missing != Missing::kError) {
      if (!use.has_data() && policy_.missing != Missing::kNone) {
        starved_.insert(tensor.name);
        return ok();
      }
      BOOST_OUTCOME_TRY(substitute, substitute_of(use));
      note = note_of(use);
      rare_.push_back(describe_some(tensor, use.rare.size()));
    }
    if (!use.rare.empty() && policy_.missing == Missing::kError) report_rare(tensor, use, zero.size());
    BOOST_OUTCOME_TRY(Importance importance, importance_of(tensor.name, use, std::move(substitute)));
    importance.note = std::move(note);
    tensor.importance = std::make_shared<const Importance>(std::move(importance));
    if (use.has_data()) uses_.emplace(tensor.name, use);
    return ok();
  }

  Result<std::vector<float>> substitute_of(const EntryUse& use) const {
    if (policy_.missing == Missing::kNone) return std::vector<float>(use.columns, 1.0f);
    return mean_weights(use);
  }

  // Matrices with weights of 0 have no data unless the policy is that of llama-quantize.
  void add_zero(const std::vector<std::uint64_t>& zero, EntryUse& use) {
    has_zero_ = has_zero_ || !zero.empty();
    use.rare.insert(use.rare.end(), zero.begin(), zero.end());
    std::ranges::sort(use.rare);
  }

  std::string note_of(const EntryUse& use) const {
    if (use.matrices == 1) return fmt::format("importance is not used: it saw {}", too_few(policy_.least_counts));
    return fmt::format("importance of {} of {} experts is {}", use.rare.size(), use.matrices,
                       policy_.missing == Missing::kNone ? "not used" : "taken from the mean of the others");
  }

  // `zero` of the rare matrices are so because all their weights are 0.
  void report_rare(const Tensor& tensor, const EntryUse& use, std::size_t zero) {
    std::string why = fmt::format("saw {}", too_few(policy_.least_counts));
    if (zero != 0) why = zero == use.rare.size() ? "have only zeros" : why + " or have only zeros";
    problem(
        use.matrices == 1
            ? fmt::format("the data of tensor {} {}", quoted_name(tensor.name), zero != 0 ? "is all zeros" : why)
            : fmt::format("{} of {} experts of tensor {} {}", use.rare.size(), use.matrices, quoted_name(tensor.name),
                          why),
        "calibrate with more text, exclude the tensor (exclude), or choose what to use instead: missing: none, mean "
        "or neighbours");
  }

  void report_rare() {
    const std::string rare =
        fmt::format("saw {}{}", too_few(policy_.least_counts), has_zero_ ? " or have only zeros" : "");
    if (!rare_.empty())
      warn(fmt::format("tensors or experts that {} get {} (in {}): {}", rare,
                       policy_.missing == Missing::kNone ? "no importance" : "the mean of the others",
                       counted(rare_.size(), "tensor"), list_some(rare_)));
    if (!zero_.empty())
      warn(
          fmt::format("importance is 0 in every column for {} or experts of them; llama-quantize uses it unchanged, "
                      "and many types then lose all values: {}; in a pipeline file, missing: error, mean, or "
                      "neighbours treats it as missing",
                      counted(zero_.size(), "tensor"), list_some(zero_)));
  }

  // Names the tensors that `mean` leaves without importance.
  void report_starved() {
    std::vector<std::string> names;
    for (const Tensor& tensor : model_.tensors)
      if (starved_.count(tensor.name) > 0) names.push_back(quoted_name(tensor.name));
    if (!names.empty())
      warn(fmt::format("no expert has data, so there is no importance for {}: {}", counted(names.size(), "tensor"),
                       list_some(names)));
  }

  // Returns true for tensors that should have data but have none.
  Result<bool> is_missing(const Tensor& tensor) const {
    if (starved_.count(tensor.name) > 0) return true;
    const bool matrix = tensor.shape().rows() > 1 && tensor.name.ends_with("weight");
    if (tensor.importance || !matrix || is_token_embedding(tensor.name) || met_.count(tensor.name) > 0) return false;
    return selection_.keeps(tensor.name);
  }

  Status report_missing() {
    for (const Tensor& tensor : model_.tensors) {
      BOOST_OUTCOME_TRY(const bool missing, is_missing(tensor));
      if (missing)
        problem(fmt::format("it has no data for tensor {}", quoted_name(tensor.name)),
                "calibrate with more text, exclude the tensor (exclude), or allow it: missing: none or neighbours");
    }
    return ok();
  }

  Status take_from_neighbours() {
    std::vector<std::string> taken, without;
    LayersOfRoles layers;
    for (const auto& [name, use] : uses_)
      if (const auto layer = layer_of(name)) layers[{role_of(name), use.columns}].emplace(*layer, &use);
    for (Tensor& tensor : model_.tensors) {
      BOOST_OUTCOME_TRY(const bool missing, is_missing(tensor));
      const std::optional<std::uint64_t> layer = layer_of(tensor.name);
      if (!missing || (!layer && starved_.count(tensor.name) == 0)) continue;
      if (!layer) {
        without.push_back(quoted_name(tensor.name));
        continue;
      }
      const std::vector<const EntryUse*> nearest =
          nearest_layers(layers[{role_of(tensor.name), tensor.shape().columns()}], *layer);
      (nearest.empty() ? without : taken).push_back(quoted_name(tensor.name));
      if (nearest.empty()) continue;
      BOOST_OUTCOME_TRY(take(nearest, tensor));
    }
    if (!taken.empty())
      warn(fmt::format("{} without data get{} that of the nearest layers: {}", counted(taken.size(), "tensor"),
                       taken.size() == 1 ? "s" : "", list_some(taken)));
    if (!without.empty())
      warn(fmt::format("{} no data in any layer and get{} no importance: {}",
                       without.size() == 1 ? "1 tensor has" : counted(without.size(), "tensor") + " have",
                       without.size() == 1 ? "s" : "", list_some(without)));
    return ok();
  }

  using Layers = std::map<std::uint64_t, const EntryUse*>;
  using LayersOfRoles = std::map<std::pair<std::string_view, std::uint64_t>, Layers>;  // by role and columns

  // Returns ".attn_q.weight" for "blk.N.attn_q.weight".
  static std::string_view role_of(std::string_view name) {
    return name.substr(name.find('.', std::string_view("blk.").size()));
  }

  // Returns the data of the layers that are nearest to `layer`: none, one, or two that are equally near.
  static std::vector<const EntryUse*> nearest_layers(const Layers& layers, std::uint64_t layer) {
    const auto above = layers.upper_bound(layer);
    const auto below = above == layers.begin() ? layers.end() : std::prev(above);
    if (above == layers.end() && below == layers.end()) return {};
    if (above == layers.end()) return {below->second};
    if (below == layers.end()) return {above->second};
    const std::uint64_t up = above->first - layer, down = layer - below->first;
    if (up != down) return {up < down ? above->second : below->second};
    return {below->second, above->second};
  }

  // All matrices get the same weights, since experts of different layers have nothing in common.
  static Status take(const std::vector<const EntryUse*>& nearest, Tensor& tensor) {
    BOOST_OUTCOME_TRY(std::vector<float> weights, mean_weights(*nearest[0]));
    std::string names = nearest[0]->entry->name;
    if (nearest.size() == 2) {
      BOOST_OUTCOME_TRY(const std::vector<float> others, mean_weights(*nearest[1]));
      for (std::size_t i = 0; i < weights.size(); ++i)
        weights[i] = static_cast<float>((static_cast<double>(weights[i]) + static_cast<double>(others[i])) / 2);
      names = fmt::format("the mean of {} and {}", names, nearest[1]->entry->name);
    }
    EntryUse use{nullptr, tensor.shape().columns(), tensor.shape().dims[2]};
    for (std::uint64_t matrix = 0; matrix < use.matrices; ++matrix) use.rare.push_back(matrix);
    BOOST_OUTCOME_TRY(Importance importance, importance_of(tensor.name, use, std::move(weights)));
    importance.note = fmt::format("importance is taken from {}", names);
    tensor.importance = std::make_shared<const Importance>(std::move(importance));
    return ok();
  }

  const MergedImportance& data_;
  const Selection& selection_;
  const CoveragePolicy policy_;
  Model& model_;
  std::unordered_map<std::string_view, Tensor*> tensors_;
  std::unordered_map<std::string, EntryUse> uses_;  // tensors with data of their own
  std::unordered_set<std::string_view> met_;        // tensors with an entry of any size
  std::unordered_set<std::string_view> starved_;    // tensors whose entry fits but has too little data
  std::vector<std::string> rare_;                   // tensors with experts that have too little data
  std::vector<std::string> zero_;                   // tensors with weights of 0 that are used as they are
  bool has_zero_ = false;                           // some experts count as rare because their weights are 0
};

}  // namespace

void check_model(const ImportanceFile& file, bool any_model, const std::string& remedy, Model& model) {
  std::unordered_set<std::string_view> names;
  for (const Tensor& tensor : model.tensors) names.insert(tensor.name);
  std::vector<std::string> strangers;
  for (const ImportanceEntry& entry : file.entries)
    if (names.count(entry.name) == 0) strangers.push_back(quoted_name(entry.name));
  if (strangers.empty()) return;
  if (strangers.size() == file.entries.size() && !any_model)
    model.problems.push_back(input_error(
        file.path,
        fmt::format("none of its {} entries matches a tensor of the model: {}", strangers.size(), list_some(strangers)),
        "it was created with another model, or the tensors were renamed; " + remedy));
  else
    model.warnings.push_back(fmt::format("{}: {} of {} entries match no tensor of the model: {}", file.path,
                                         strangers.size(), file.entries.size(), list_some(strangers)));
}

Status attach_importance(const MergedImportance& data, const Selection& selection, CoveragePolicy policy,
                         Model& model) {
  return Coverage(data, selection, policy, model).attach();
}

}  // namespace ggufmill
