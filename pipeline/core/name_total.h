#pragma once
// A bound on names that rules make: each rule can lengthen the names of all tensors.

#include <cstddef>
#include <string_view>

namespace ggufmill {

// Counts the bytes of all names of a model.
class NameTotal {
 public:
  static constexpr std::size_t kMax = 64 << 20;  // 500,000 tensors have some 40 MB of names

  // Returns false if the names added so far have more than kMax bytes together.
  bool add(std::string_view name) {
    bytes_ += name.size();
    return bytes_ <= kMax;
  }

 private:
  std::size_t bytes_ = 0;
};

}  // namespace ggufmill
