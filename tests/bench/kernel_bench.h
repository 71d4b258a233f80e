#pragma once
// Measures the speed of kernels on one thread, running the kernels of all modules and of ggml for a job in rotation.

#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "pipeline/kernels/kernels.h"
#include "tests/bench/contenders.h"
#include "tests/bench/timing.h"

namespace ggufmill::bench {

// Location of the data when a call begins.
enum class Place : std::uint8_t {
  kCache,   // second-level cache: every call uses the same weights
  kMemory,  // beyond the last-level cache: each call uses the next weights of a larger buffer
};

std::string name_of(Place place);

// One contender's speed in a row. A ratio is the speedup over another contender, or 0 if that one does not exist.
struct KernelTime {
  std::string name;  // "reference", "x86-64-v3", ..., name and ISA of a foreign module, "ggml"
  double weights_per_second = 0;
  double bytes_per_second = 0;  // read plus written
  double of_reference = 0;
  double of_ggml = 0;
  double of_memcpy = 0;          // decoders: a copy of the bytes that they write
  std::optional<double> target;  // for of_ggml (of_reference without ggml), or of_memcpy for decoders
  bool met = false;              // set if the target is met
  bool same_bytes = true;        // set if the output equals the reference's
};

struct KernelRow {
  std::string type;
  std::string operation;  // "decode", "encode", "encode, importance", "search 2", "search 2, importance"
  std::string place;      // "L2", "memory"
  std::vector<KernelTime> times;
};

struct KernelJobs {
  std::regex filter;  // selects rows by "TYPE OPERATION PLACE"
  std::vector<Place> places;
  std::string isa;          // only this one and the reference; empty: all
  const GgmlLibrary* ggml;  // null: no ggml
  Effort effort;
};

// Returns a row for every type, operation and place, in this order, for which a loaded module has a kernel. Throws
// std::runtime_error if a kernel fails.
std::vector<KernelRow> time_kernels(const Kernels& kernels, const KernelJobs& jobs);

}  // namespace ggufmill::bench
