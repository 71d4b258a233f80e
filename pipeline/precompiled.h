// The headers of other projects that most sources include, for CMake to precompile. No source includes this file.
#pragma once

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <atomic>
#include <boost/json.hpp>
#include <boost/outcome/basic_result.hpp>  // first: Boost 1.81's policies do not stand alone
#include <boost/outcome/policy/terminate.hpp>
#include <boost/outcome/try.hpp>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>
