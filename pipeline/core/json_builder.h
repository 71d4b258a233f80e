#pragma once
// Builds the values of a JSON document from the events of its parser.

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/value_stack.hpp>
#include <charconv>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/core/json.h"

namespace ggufmill {

// Builds the values of a document, or passes them to a sink.
class JsonBuilder {
 public:
  using Kind = JsonEvent::Kind;

  explicit JsonBuilder(JsonSink* sink) : sink_(sink) { values_.reset(); }

  boost::json::value release() { return values_.release(); }

  // Each returns an error message, or an empty string on success.
  std::string open(Kind kind) {
    if (depth_ == kMaxJsonDepth) return fmt::format("nested more than {} levels deep", kMaxJsonDepth);
    ++depth_;
    members_.push_back(0);
    if (!captured_) {
      const bool may_want = sink_ && depth_ <= 3;
      if (!may_want || !sink_->wants(outer_, inner_)) return count();
      captured_ = true;
      captured_at_ = depth_;
    }
    return sink_->take({kind, {}});
  }
  std::string close(Kind kind) {
    --depth_;
    const std::size_t members = members_.back();
    members_.pop_back();
    if (!captured_) {
      if (kind == Kind::kObjectEnd)
        values_.push_object(members);
      else
        values_.push_array(members);
      return add_member();
    }
    if (std::string problem = sink_->take({kind, {}}); !problem.empty()) return problem;
    if (depth_ + 1 == captured_at_) {
      captured_ = false;
      values_.push_null();
    }
    return add_member();
  }
  std::string key(std::string_view key) {
    if (captured_) return sink_->take({Kind::kKey, key});
    if (depth_ == 1) {
      outer_ = key;
      inner_.clear();
    }
    if (depth_ == 2) inner_ = key;
    values_.push_key({key.data(), key.size()});
    return {};
  }
  std::string string(std::string_view text) {
    return scalar({Kind::kString, text}, [&] { values_.push_string({text.data(), text.size()}); });
  }
  std::string number(std::string_view text) {
    return scalar({Kind::kNumber, text}, [&] { push_number(text); });
  }
  std::string other(const boost::json::value& value) {
    return scalar({Kind::kOther, value.is_null()    ? "null"
                                 : value.get_bool() ? "true"
                                                    : "false"},
                  [&] {
                    if (value.is_bool())
                      values_.push_bool(value.get_bool());
                    else
                      values_.push_null();
                  });
  }

 private:
  std::string count() {
    return ++count_ <= kMaxJsonValues ? std::string() : fmt::format("more than {} values", kMaxJsonValues);
  }
  std::string add_member() {
    if (!members_.empty()) ++members_.back();
    return {};
  }
  std::string scalar(const JsonEvent& event, const auto& push) {
    if (captured_) return sink_->take(event);
    push();
    add_member();
    return count();
  }
  void push_number(std::string_view text) {
    const char* const end = text.data() + text.size();
    std::int64_t integer = 0;
    std::uint64_t natural = 0;
    double real = 0;
    if (std::from_chars(text.data(), end, integer) == std::from_chars_result{end, {}}) {
      values_.push_int64(integer);
    } else if (std::from_chars(text.data(), end, natural) == std::from_chars_result{end, {}}) {
      values_.push_uint64(natural);
    } else {
      if (std::from_chars(text.data(), end, real).ec == std::errc::result_out_of_range) real = out_of_range(text);
      values_.push_double(real);
    }
  }
  // Value of a number outside the range of double: infinity, or zero if it is too small.
  static double out_of_range(std::string_view text) {
    const bool negative = text.starts_with('-');
    text.remove_prefix(negative ? 1 : 0);
    const std::size_t e = text.find_first_of("eE");
    const std::string_view digits = text.substr(0, e);
    std::int64_t exponent = 0;
    if (e != text.npos) {
      const bool is_small = text[e + 1] == '-';
      const std::size_t first = e + 1 + (is_small || text[e + 1] == '+' ? 1 : 0);
      const auto read = std::from_chars(text.data() + first, text.data() + text.size(), exponent);
      if (read.ec != std::errc()) exponent = INT64_MAX / 2;
      if (is_small) exponent = -exponent;
    }
    const auto point = static_cast<std::int64_t>(std::min(digits.find('.'), digits.size()));
    const auto first_digit = static_cast<std::int64_t>(std::min(digits.find_first_not_of("0."), digits.size()));
    const double size = exponent + point - first_digit > 0 ? std::numeric_limits<double>::infinity() : 0;
    return negative ? -size : size;
  }

  JsonSink* sink_;
  boost::json::value_stack values_;
  std::string outer_, inner_;  // keys of the first two levels
  std::size_t depth_ = 0;
  std::vector<std::size_t> members_;  // number of members so far, for every open array or object
  std::size_t count_ = 0;
  bool captured_ = false;
  std::size_t captured_at_ = 0;  // depth of the captured member
};

}  // namespace ggufmill
