#pragma once
// The architecture maps and hashes of pre-tokenizers that a user adds to the built-in ones: folders and files that
// `--architectures`, `architectures:` of the source, and $GGUFMILL_ARCHITECTURES name.

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/core/error.h"
#include "pipeline/core/lifetime.h"
#include "stages/huggingface/map/architecture.h"

namespace ggufmill::huggingface {

// The variable of the environment with a list of paths of maps, separated by kPathListSeparator.
inline constexpr const char* kMapsVariable = "GGUFMILL_ARCHITECTURES";

// A map takes precedence over the built-in one of the same name, and for the classes that it serves. Maps of earlier
// places take precedence over those of later ones. Immutable once read.
class AddedMaps {
 public:
  static constexpr std::size_t kMaxFiles = 256;       // of all places
  static constexpr std::size_t kMaxBytes = 16 << 20;  // of all their texts

  struct Map {
    std::string name;  // file name without folder and extension
    std::string path;
    std::size_t place = 0;  // number of the place that it is from
    MapFile own;            // without what it inherits
  };

  AddedMaps() = default;

  // Reads `places`, then those of $GGUFMILL_ARCHITECTURES. A folder has maps (*.yaml) and a table of hashes
  // (pre_tokenizers.tsv); its subfolders are not read. Exit code 2 for a place that does not exist, is an address, or
  // has neither; for errors in any of the files, each with its place, all at once; and beyond the limits.
  static Result<AddedMaps> read(const std::vector<MapPlace>& places);

  // In order of precedence. Names are unique.
  const std::vector<Map>& maps() const GGUFMILL_OUTLIVES_RESULT { return maps_; }
  // Returns null if there is none.
  const Map* named(std::string_view name) const GGUFMILL_OUTLIVES_RESULT;
  // The pre-tokenizers of the tables, by hash. Those of maps are in Architecture::pre_tokenizers.
  const PreTokenizers& pre_tokenizers() const GGUFMILL_OUTLIVES_RESULT { return pre_tokenizers_; }
  // The tables of hashes that were read.
  const std::vector<std::string>& tables() const GGUFMILL_OUTLIVES_RESULT { return tables_; }

 private:
  class Reader;

  std::vector<Map> maps_;
  PreTokenizers pre_tokenizers_;
  std::vector<std::string> tables_;
};

// The map that describes models with a value of general.architecture.
struct MapOfModel {
  std::string place;             // its name, or the path of an added one; empty: there is none
  const MapFile* own = nullptr;  // without what it inherits; null: there is none. Valid while the added maps are
};
// Finds it: an added map, the built-in one of the same name, or any other built-in one. Exit code 2.
Result<MapOfModel> map_of_model(const std::string& architecture, GGUFMILL_OUTLIVES_RESULT const AddedMaps& added);

// Returns the places of paths that no pipeline file names.
std::vector<MapPlace> map_places(const std::vector<std::string>& paths);

}  // namespace ggufmill::huggingface
