#pragma once
// Notes: information that a stage passes to other stages, which do not know that stage.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace ggufmill {

// The name of a note and the type of its value.
template <class T>
struct Note {
  const char* name;
};

namespace notes {

// Number of layers pruned so far: recipes place tensors relative to the original layer count.
inline constexpr Note<std::uint64_t> kPrunedLayers{"pruned_layers"};
// Set if an importance matrix was given, even if it does not cover every tensor.
inline constexpr Note<bool> kImportanceGiven{"importance_given"};
// Set if covariances of inputs were given, so that levels are chosen with them unless an encoder is named.
inline constexpr Note<bool> kCovarianceGiven{"covariance_given"};
// Name of the recipe that quantized the model, used for `{recipe}` in output paths.
inline constexpr Note<std::string> kRecipe{"recipe"};
// Bytes of the output files other than tensors and the zero padding after them. A stage that targets a total size has
// to reserve this space. 0 if not known yet.
inline constexpr Note<std::uint64_t> kOtherBytes{"other_bytes"};
// The number of bytes that tensors in the output files are aligned to; 0 if they are not aligned.
inline constexpr Note<std::uint64_t> kTensorAlignment{"tensor_alignment"};
// Set while the model is laid out only to learn kOtherBytes: a stage that targets a total size then leaves the types as
// they are.
inline constexpr Note<bool> kOnlyHeaders{"only_headers"};
// For the user: the objective that such a stage minimized and the gain; empty if there is no such stage.
inline constexpr Note<std::string> kChoice{"choice"};
// Set if readers of the model's files need its dimensions as they are, with trailing ones.
inline constexpr Note<bool> kKeepsDimensions{"keeps_dimensions"};

}  // namespace notes

// The notes attached to a model. Notes with the same name must have the same type.
class Notes {
 public:
  template <class T>
  void set(const Note<T>& note, std::type_identity_t<T> value) {
    values_[note.name] = std::move(value);
  }
  // Returns the value of a note; 0, false or empty if the note is not set.
  template <class T>
  T get(const Note<T>& note) const {
    const auto found = values_.find(note.name);
    return found == values_.end() ? T{} : std::get<T>(found->second);
  }

 private:
  std::map<std::string, std::variant<bool, std::uint64_t, std::string>, std::less<>> values_;
};

}  // namespace ggufmill
