#pragma once
// What the benchmarks measured, for people and for programs.

#include <string>
#include <vector>

#include "tests/bench/file_bench.h"
#include "tests/bench/kernel_bench.h"

namespace ggufmill::bench {

struct Report {
  std::vector<KernelRow> kernels;
  std::vector<FileTime> files;
};

// A line a row, a group of columns a contender; encoders, decoders; then how many targets are met. Empty without rows.
std::string kernel_tables(const std::vector<KernelRow>& rows);
// A line for each type and ISA: what it is decoded and encoded at, in millions of weights a second; "-" where no kernel
// does that. What pipeline/cluster reckons the cost of parts with.
std::string speed_table(const std::vector<KernelRow>& rows);
std::string file_table(const std::vector<FileTime>& times);

// {"kernels": [{...}], "files": [{...}]}, the members named as in the structs; no "target" and "met" where none is set.
std::string to_json(const Report& report);

}  // namespace ggufmill::bench
