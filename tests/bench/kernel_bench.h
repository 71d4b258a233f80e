#pragma once
// The speed of kernels, one thread: all modules' and ggml's kernels of one job in turn.

#include <cstdint>
#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "pipeline/kernels/kernels.h"
#include "tests/bench/contenders.h"
#include "tests/bench/timing.h"

namespace ggufmill::bench {

// Where the data is when a call begins.
enum class Place : std::uint8_t {
  kCache,   // second-level cache: every call works on the same weights
  kMemory,  // beyond the last-level cache: every call takes the next ones of a buffer that is larger
};

std::string name_of(Place place);

// One contender's speed in a row. A ratio is how many times faster it is than the other, 0 where there is no other.
struct KernelTime {
  std::string name;  // "reference", "x86-64-v3", ..., a foreign module's name and ISA, "ggml"
  double weights_per_second = 0;
  double bytes_per_second = 0;  // read and written together
  double of_reference = 0;
  double of_ggml = 0;
  double of_memcpy = 0;          // decoders: a copy of the bytes that they write
  std::optional<double> target;  // for of_ggml (of_reference without ggml), for decoders of_memcpy
  bool met = false;              // the target
  bool same_bytes = true;        // as the reference
};

struct KernelRow {
  std::string type;
  std::string operation;  // "decode", "encode", "encode, importance"
  std::string place;      // "L2", "memory"
  std::vector<KernelTime> times;
};

struct KernelJobs {
  std::regex filter;  // of "TYPE OPERATION PLACE": what to measure
  std::vector<Place> places;
  std::string isa;          // beside the reference this one alone; empty: all
  const GgmlLibrary* ggml;  // null: none
  Effort effort;
};

// A row for every type, operation and place, in this order, that any loaded module has a kernel for. Throws
// std::runtime_error when a kernel fails.
std::vector<KernelRow> time_kernels(const Kernels& kernels, const KernelJobs& jobs);

}  // namespace ggufmill::bench
