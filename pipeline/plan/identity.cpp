// The identity of a plan.

#include <fmt/format.h>
#include <xxhash.h>

#include <map>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <unordered_map>

#include "pipeline/plan/written.h"

namespace ggufmill {
namespace {

// A hash of numbers and texts in their order. Texts and lists begin with their length: other ones give other bytes.
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

class Identity {
 public:
  std::string of(const Plan& plan, const Step& step, const Encoding& encoding) {
    if (encoding.taken) return encoding.taken->made_of;
    hash_.add(GGUFMILL_VERSION);
    hash_.add(static_cast<std::uint64_t>(plan.nonfinite));
    add(*step.expression);
    add(encoding);
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
    return hash_.digest();
  }

 private:
  // Sources are numbered, and added once.
  std::size_t number_of(const SourceFile& source) {
    const auto [known, is_new] = sources_.emplace(&source, sources_.size());
    if (!is_new) return known->second;
    hash_.add(source.bytes);
    hash_.add(source.header_hash);
    hash_.add(static_cast<std::uint64_t>(source.modified));
    return known->second;
  }

  void add(const Encoding& encoding) {
    hash_.add(encoding.type->name);
    hash_.add(encoding.big_endian ? 1 : 0);
    add(encoding.importance.get());
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

  // Parts that expressions share are numbered, and added once.
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

std::string identity_of(const Plan& plan) { return Identity().of(plan); }
std::string identity_of(const Plan& plan, std::size_t output) { return Identity().of(plan, output); }
std::string identity_of(const Plan& plan, const Step& step, const Encoding& encoding) {
  return Identity().of(plan, step, encoding);
}

}  // namespace ggufmill
