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
// Bytes of all files besides tensors and the zeros behind them: what a stage that fills a size has to leave. 0: not
// known yet.
inline constexpr Note<std::uint64_t> kOtherBytes{"other_bytes"};
// The bytes of tensors and zeros that such a stage came to; 0: there is none.
inline constexpr Note<std::uint64_t> kFilledBytes{"filled_bytes"};

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
