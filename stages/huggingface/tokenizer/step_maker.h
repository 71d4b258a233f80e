#pragma once
// Helpers shared by the makers of normalizers, pre-tokenizers and decoders.

#include <fmt/format.h>

#include <boost/json/value.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/json.h"
#include "pipeline/core/text.h"
#include "stages/huggingface/tokenizer/regex.h"
#include "stages/huggingface/tokenizer/text_steps.h"

namespace ggufmill::huggingface {

inline constexpr std::size_t kMaxSteps = 64;  // per kind, including those in sequences

// Returns a member that is a string, or `otherwise` if there is none.
std::string step_text(const boost::json::value& step, std::string_view name, std::string_view otherwise);
// Compiles `pattern`: {"Regex": ...} or {"String": ...}.
Result<Regex> step_pattern(const std::string& path, const boost::json::value& step,
                           std::shared_ptr<MatchBudget> budget);
// Replaces every match of the pattern; a result longer than kMaxText is truncated.
Result<std::string> replaced(const Regex& regex, std::string_view content, std::string_view text);

// Makes steps of one kind; the steps of a sequence run in order.
template <class T, class Value>
class Maker {
 public:
  Maker(const std::string& path, std::string_view kind, std::string_view members, std::size_t (*size)(const Value&))
      : path_(path), kind_(kind), members_(members), size_(size) {}
  virtual ~Maker() = default;

  Result<T> make(const boost::json::value& step) {
    if (++steps_ > kMaxSteps) return input_error(path_, fmt::format("more than {} steps in one {}", kMaxSteps, kind_));
    const std::string type = step_text(step, "type", "");
    if (type == "Sequence") return sequence(step);
    BOOST_OUTCOME_TRY(T made, of_type(type, step));
    if (made) return bounded(std::move(made));
    return input_error(path_, fmt::format("the {} has an unknown type {}", kind_, quoted_name(type)));
  }

 protected:
  // Returns an empty function for an unknown type.
  virtual Result<T> of_type(const std::string& type, const boost::json::value& step) = 0;

  const std::string path_;
  const std::shared_ptr<MatchBudget> budget_ = std::make_shared<MatchBudget>();

 private:
  Result<T> sequence(const boost::json::value& step) {
    const boost::json::array* items = json_array(step, members_);
    if (!items) return input_error(path_, fmt::format("a sequence of {}s has no `{}` list", kind_, members_));
    std::vector<T> made;
    for (const boost::json::value& item : *items) {
      BOOST_OUTCOME_TRY(made.emplace_back(), make(item));
    }
    return T([made = std::move(made)](Value& value) -> Status {
      for (const T& one : made) {
        BOOST_OUTCOME_TRY(one(value));
      }
      return ok();
    });
  }
  T bounded(T made) const {
    return [made = std::move(made), path = path_, kind = kind_, size = size_](Value& value) -> Status {
      BOOST_OUTCOME_TRY(made(value));
      if (size(value) <= kMaxText) return ok();
      return input_error(path, fmt::format("the {} expands a short text to more than {} bytes", kind, kMaxText));
    };
  }

  const std::string kind_, members_;
  std::size_t (*const size_)(const Value&);  // in bytes
  std::size_t steps_ = 0;
};

}  // namespace ggufmill::huggingface
