#pragma once
// Environment variables of this process, for tests.

#include <map>
#include <optional>
#include <string>

#include "pipeline/io/platform/process.h"

namespace ggufmill {

// Sets variables until the end of a test. Not thread-safe, as the environment is not.
class Environment {
 public:
  Environment() = default;
  Environment(const std::string& name, const char* value) { set(name, value); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() {
    for (const auto& [name, value] : before_) put(name, value ? value->c_str() : nullptr);
  }
  // Null: removes the variable.
  void set(const std::string& name, const char* value) {
    before_.emplace(name, environment_variable(name.c_str()));
    put(name, value);
  }

 private:
  static void put(const std::string& name, const char* value);  // in process.cpp, as it is a call of the system
  std::map<std::string, std::optional<std::string>> before_;
};

}  // namespace ggufmill
