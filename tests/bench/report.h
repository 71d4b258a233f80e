#pragma once
// What the benchmarks measured, for people and for programs.

#include <string>
#include <vector>

#include "tests/bench/file_bench.h"
#include "tests/bench/kernel_bench.h"

namespace ggufmill::bench {

struct Report {
  std::vector<KernelTime> kernels;
  std::vector<FileTime> files;
};

std::string to_tables(const Report& report);
// {"kernels": [{...}], "files": [{...}]}, the members named as in the structs.
std::string to_json(const Report& report);

}  // namespace ggufmill::bench
