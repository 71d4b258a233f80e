#pragma once
// A set of layer numbers, however large: ranges.

#include <cstdint>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/model.h"

namespace ggufmill {

class LayerSet {
 public:
  // Adds what a text such as "0-3,10" says: numbers and ranges, both ends included. The error is one line, and nothing
  // is added then.
  Status add(std::string_view text);

  bool empty() const { return ranges_.empty(); }
  bool contains(std::uint64_t layer) const { return count(layer, layer + 1) == 1; }
  // How many of the layers from `begin` to `end` - 1 are in the set.
  std::uint64_t count(std::uint64_t begin, std::uint64_t end) const;
  std::uint64_t last() const { return ranges_.back().end - 1; }  // not of an empty set

 private:
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;  // one past the last
  };
  static Result<Range> parse_range(std::string_view text);
  void merge(std::vector<Range> ranges);

  std::vector<Range> ranges_;  // in order, none touching the next
};

}  // namespace ggufmill
