#pragma once
// Results of steps that are expensive to repeat, kept in the user's cache under a key of everything they depend on.

#include <boost/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "pipeline/core/error.h"

namespace ggufmill {

// Returns a key for a result: a hash of the parts, which are kept apart.
std::string result_key(std::span<const std::string> parts);

// One JSON file per result in cache_folder("steps"), replaced atomically. A damaged file counts as missing.
class StepResults {
 public:
  StepResults();
  std::optional<boost::json::object> find(const std::string& key) const;
  // Fails with exit code 6 if the file cannot be written, and 2 if there is no folder for the cache.
  Status add(const std::string& key, const boost::json::object& result) const;
  void remove(const std::string& key) const;

 private:
  std::string folder_;
};

// Returns the folder of the cache for this kind of data, after creating it; only its owner may read it. Fails with exit
// code 6, or 2 if no variable says where it is.
Result<std::string> made_cache_folder(const std::string& kind);

}  // namespace ggufmill
