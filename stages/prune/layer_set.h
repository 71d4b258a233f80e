#pragma once
// A set of layer numbers of any size, stored as ranges.

#include <cstdint>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/model.h"

namespace ggufmill {

class LayerSet {
 public:
  // Adds numbers and ranges from a text such as "0-3,10"; both ends are included. If the text is invalid, returns an
  // error of one line and adds nothing.
  Status add(std::string_view text);

  bool empty() const { return ranges_.empty(); }
  bool contains(std::uint64_t layer) const { return count(layer, layer + 1) == 1; }
  // Number of layers in the set from `begin` to `end` - 1.
  std::uint64_t count(std::uint64_t begin, std::uint64_t end) const;
  std::uint64_t last() const { return ranges_.back().end - 1; }  // the set must not be empty

 private:
  struct Range {
    std::uint64_t begin;
    std::uint64_t end;  // one past the last layer
  };
  static Result<Range> parse_range(std::string_view text);
  void merge(std::vector<Range> ranges);

  std::vector<Range> ranges_;  // sorted; no range touches the next
};

}  // namespace ggufmill
