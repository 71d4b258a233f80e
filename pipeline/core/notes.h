#pragma once
// Notes: what one stage tells the others, which know nothing of it.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace ggufmill {

// A name, and the type of what is noted under it.
template <class T>
struct Note {
  const char* name;
};

namespace notes {

// Layers that were left out so far: recipes place tensors among the layers that there were.
inline constexpr Note<std::uint64_t> kPrunedLayers{"pruned_layers"};
// An importance matrix was given, whether or not it covers every tensor.
inline constexpr Note<bool> kImportanceGiven{"importance_given"};
// What quantized the model: `{recipe}` in output paths.
inline constexpr Note<std::string> kRecipe{"recipe"};

}  // namespace notes

// The notes on a model. Two notes of one name have one type.
class Notes {
 public:
  template <class T>
  void set(const Note<T>& note, std::type_identity_t<T> value) {
    values_[note.name] = std::move(value);
  }
  // 0, false or empty where nothing was noted.
  template <class T>
  T get(const Note<T>& note) const {
    const auto found = values_.find(note.name);
    return found == values_.end() ? T{} : std::get<T>(found->second);
  }

 private:
  std::map<std::string, std::variant<bool, std::uint64_t, std::string>, std::less<>> values_;
};

}  // namespace ggufmill
