// Computes the identity of a plan.

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <initializer_list>
#include <iterator>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "pipeline/core/covariance.h"
#include "pipeline/core/importance.h"
#include "pipeline/plan/step_layout.h"
#include "pipeline/plan/written.h"

namespace ggufmill {
namespace {

// Hashes a sequence of numbers and texts. Texts and lists are preceded by their length, so that different sequences
// yield different input bytes.
class Hasher {
 public:
  Hasher() : state_(XXH3_createState()) {
    if (!state_) throw std::bad_alloc();
    XXH3_128bits_reset(state_.get());
  }

  void add(std::uint64_t number) { XXH3_128bits_update(state_.get(), &number, sizeof number); }
  void add(std::string_view text) {
    add(text.size());
    XXH3_128bits_update(state_.get(), text.data(), text.size());
  }
  template <class Numbers>
  void add_all(const Numbers& numbers) {
    add(std::size(numbers));
    XXH3_128bits_update(state_.get(), std::data(numbers), std::size(numbers) * sizeof *std::data(numbers));
  }
  std::string digest() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(state_.get());
    return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
  }

 private:
  struct Free {
    void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
  };
  std::unique_ptr<XXH3_state_t, Free> state_;
};

// Collects the foreign types and encoders that are needed for the steps and encodings added.
class ForeignUses {
 public:
  void add(const Step& step) {
    if (step.compared) add(*step.expression, *step.compared);
    for (const Encoding& encoding : step.encodings) add(step, encoding);
  }
  void add(const Step& step, const Encoding& encoding) {
    add(*step.expression);
    const Work work = work_of(step, encoding);
    if (converts(work)) add({step.expression->type, encoding.type});
    const EncoderMethod& method = *encoding.encoder.method;
    if (const TypeInfo& rows = plain_type(*encoding.type); work == Work::kEncode && is_foreign(method, rows))
      uses_.try_emplace({rows.name, method.name}, ForeignUse{&rows, &method});
  }
  std::vector<ForeignUse> all() const {
    std::vector<ForeignUse> uses;
    for (const auto& [name, use] : uses_) uses.push_back(use);
    return uses;
  }
  bool has(const TypeModule& module) const { return uses_.contains({module.type, module.encoder}); }

 private:
  void add(const Expression& values, const Expression& compared) {
    add(values);
    add(compared);
    add({values.type, compared.type});
  }
  void add(const Expression& node) {
    if (!nodes_.insert(&node).second) return;
    for (const ExpressionRef& input : node.inputs) {
      if (node.operation == Operation::kCast) add({input->type, node.type});
      add(*input);
    }
  }
  void add(std::initializer_list<const TypeInfo*> types) {
    for (const TypeInfo* type : types)
      if (const TypeInfo& rows = plain_type(*type); rows.type_class == TypeClass::kForeign)
        uses_.try_emplace({rows.name, ""}, ForeignUse{&rows});
  }

  std::map<std::pair<std::string_view, std::string_view>, ForeignUse> uses_;  // by the names of type and encoder
  std::unordered_set<const Expression*> nodes_;
};

class Identity {
 public:
  std::string of(const Plan& plan, const Step& step, const Encoding& encoding) {
    if (encoding.taken) return encoding.taken->made_of;
    hash_.add(GGUFMILL_VERSION);
    hash_.add(static_cast<std::uint64_t>(plan.nonfinite));
    add(*step.expression);
    add(encoding);
    if (!plan.modules.empty()) {
      ForeignUses uses;
      uses.add(step, encoding);
      for (const TypeModule& module : plan.modules)
        if (uses.has(module)) add(module);
    }
    return hash_.digest();
  }

  std::string of(const Plan& plan, std::size_t output) {
    hash_.add(GGUFMILL_VERSION);
    hash_.add(static_cast<std::uint64_t>(plan.nonfinite));
    for (const OutputFile& file : plan.outputs[output].files) {
      hash_.add(file.bytes);
      hash_.add(file.header);
    }
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::string> parts;  // by file and offset
    for (const Step& step : plan.steps)
      for (const Encoding& encoding : step.encodings)
        for (const Place& place : encoding.places)
          if (place.output == output) parts[{place.file, place.offset}] = identity_of(plan, step, encoding);
    for (const auto& [place, made_of] : parts) {
      hash_.add(made_of);
      hash_.add(place.first);
      hash_.add(place.second);
    }
    return hash_.digest();
  }

  std::string of(const Plan& plan) {
    hash_.add(GGUFMILL_VERSION);
    hash_.add(static_cast<std::uint64_t>(plan.nonfinite));
    hash_.add(plan.sources.size());
    for (const SourceRef& source : plan.sources) number_of(*source);
    hash_.add(plan.steps.size());
    for (const Step& step : plan.steps) add(step);
    hash_.add(plan.outputs.size());
    for (const PlannedOutput& output : plan.outputs) {
      hash_.add(output.files.size());
      for (const OutputFile& file : output.files) {
        hash_.add(file.bytes);
        hash_.add(file.header);
      }
    }
    for (const TypeModule& module : plan.modules) add(module);
    return hash_.digest();
  }

 private:
  // Numbers the sources; each is hashed once.
  std::size_t number_of(const SourceFile& source) {
    const auto [known, is_new] = sources_.emplace(&source, sources_.size());
    if (!is_new) return known->second;
    hash_.add(source.bytes);
    hash_.add(source.header_hash);
    hash_.add(static_cast<std::uint64_t>(source.modified));
    return known->second;
  }

  void add(const TypeModule& module) {
    for (const std::string& text : {module.type, module.encoder, module.name, module.version, module.xxh3})
      hash_.add(text);
  }

  void add(const Encoding& encoding) {
    hash_.add(encoding.type->name);
    hash_.add(encoding.big_endian ? 1 : 0);
    add(encoding.importance.get());
    if (!encoding.encoder.is_reference()) hash_.add(describe(encoding.encoder));
    if (encoding.covariance) add(*encoding.covariance);
  }

  void add(const Step& step) {
    add(*step.expression);
    hash_.add(step.compared ? 1 : 0);
    if (step.compared) add(*step.compared);
    add(step.importance.get());
    hash_.add(step.encodings.size());
    for (const Encoding& encoding : step.encodings) {
      add(encoding);
      hash_.add(encoding.places.size());
      for (const Place& place : encoding.places)
        for (const std::uint64_t number :
             {std::uint64_t{place.output}, std::uint64_t{place.file}, std::uint64_t{place.tensor}, place.offset})
          hash_.add(number);
    }
  }

  void add(const Importance* importance) {
    hash_.add(importance ? 1 : 0);
    if (!importance) return;
    hash_.add(importance->columns);
    hash_.add(importance->matrices);
    hash_.add(importance->fingerprint);
  }

  // Correlations are too many to read for a plan. Their file stands for them.
  void add(const Covariance& covariance) {
    for (const Extent* extent : {&covariance.sums, &covariance.correlations, &covariance.vectors}) {
      if (!extent->source) continue;
      hash_.add(number_of(*extent->source));
      hash_.add(extent->offset);
      hash_.add(extent->bytes);
      hash_.add(extent->big_endian ? 1 : 0);
    }
    hash_.add(covariance.columns);
    hash_.add(covariance.matrices);
    hash_.add(covariance.block);
    hash_.add_all(covariance.unused);
    if (covariance.held_out != 0) hash_.add(covariance.held_out);
  }

  // Numbers shared subexpressions; each is hashed once.
  void add(const Expression& node) {
    const auto [known, is_new] = nodes_.emplace(&node, nodes_.size());
    hash_.add(known->second);
    if (!is_new) return;
    hash_.add(name_of(node.operation));
    hash_.add(node.type->name);
    hash_.add(node.shape.rank);
    hash_.add_all(node.shape.dims);
    if (const Extent* extent = node.as_extent()) {
      hash_.add(number_of(*extent->source));
      hash_.add(extent->offset);
      hash_.add(extent->bytes);
      hash_.add(extent->big_endian ? 1 : 0);
    }
    hash_.add(node.axis);
    hash_.add(node.first);
    hash_.add_all(node.factors);
    hash_.add_all(node.order);
    hash_.add_all(node.block);
    hash_.add(node.map ? node.map->name : "");
    hash_.add_all(std::span(&node.parameter, 1));
    hash_.add(node.repack ? node.repack->name : "");
    hash_.add_all(node.values);
    hash_.add(node.inputs.size());
    for (const ExpressionRef& input : node.inputs) add(*input);
  }

  Hasher hash_;
  std::unordered_map<const SourceFile*, std::size_t> sources_;
  std::unordered_map<const Expression*, std::size_t> nodes_;
};

}  // namespace

std::vector<ForeignUse> foreign_uses_of(const Plan& plan) {
  ForeignUses uses;
  for (const Step& step : plan.steps) uses.add(step);
  return uses.all();
}

std::vector<TypeModule> modules_of(const Plan& plan, std::size_t output) {
  std::vector<TypeModule> modules;
  if (plan.modules.empty()) return modules;
  ForeignUses uses;
  for (const Step& step : plan.steps)
    for (const Encoding& encoding : step.encodings)
      if (std::ranges::any_of(encoding.places, [&](const Place& place) { return place.output == output; }))
        uses.add(step, encoding);
  std::ranges::copy_if(plan.modules, std::back_inserter(modules),
                       [&](const TypeModule& module) { return uses.has(module); });
  return modules;
}

std::string identity_of(const Plan& plan) { return Identity().of(plan); }
std::string identity_of(const Plan& plan, std::size_t output) { return Identity().of(plan, output); }
std::string identity_of(const Plan& plan, const Step& step, const Encoding& encoding) {
  return Identity().of(plan, step, encoding);
}

}  // namespace ggufmill
