// ggufmill-bench: benchmarks kernels by ISA, and the conversion of complete files against llama-quantize. Run by ./dev
// bench.
#include <boost/program_options.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>
#include <regex>
#include <stdexcept>

#include "tests/bench/file_bench.h"
#include "tests/bench/kernel_bench.h"
#include "tests/bench/report.h"

namespace ggufmill::bench {
namespace {

namespace po = boost::program_options;

using Names = std::vector<std::string>;

constexpr const char* kUsage =
    "usage: ./dev bench [options]\n"
    "Kernels: CPU time of one thread, all contenders in turn, medians. `Mw/s` is millions of weights a second, `GB/s`\n"
    "bytes read and written, `x ggml` (`x ref`) how many times faster than ggml (the reference), `x copy` the part of\n"
    "memcpy's speed on the bytes written. L2: data of that cache; memory: beyond the last-level cache.\n"
    "Environment: GGML_LIBRARY names a libggml-base.so whose kernels take part and are what encoders are measured\n"
    "against; LLAMA_QUANTIZE names the program that whole files are compared with.\n";

po::options_description options() {
  po::options_description all(kUsage);
  auto add = all.add_options();
  add("help,h", "this");
  add("only", po::value<std::string>()->default_value("all"),
      "kernels, files, or speeds: the table of pipeline/plan/kernel_speeds.tsv");
  add("filter", po::value<std::string>()->default_value(""),
      "a regular expression for kernels: what it finds in \"Q4_K encode, importance L2\", \"Q4_K decode memory\", "
      "\"Q4_K search 2 L2\"");
  add("place", po::value<std::string>()->default_value("all"), "of the kernels' data: L2 or memory");
  add("file-type", po::value<Names>()->default_value({"Q4_K", "Q6_K", "Q8_0", "F16"}, "Q4_K Q6_K Q8_0 F16"),
      "a type or recipe for the files; may be repeated");
  add("isa", po::value<std::string>()->default_value(""), "kernels of this ISA and the reference's alone");
  add("kernel-dir", po::value<Names>()->default_value({}, ""), "a folder of further modules; may be repeated");
  add("rounds", po::value<unsigned>()->default_value(5), "the median of so many counts");
  add("seconds", po::value<double>()->default_value(0.02), "of a kernel's round, at least");
  add("threads", po::value<unsigned>()->default_value(2), "for the files");
  add("ggufmill", po::value<std::string>()->default_value("build/release/bin/ggufmill"), "the program");
  add("model", po::value<std::string>()->default_value("build/bench/model.gguf"), "for the files");
  add("json", "print JSON in place of tables");
  return all;
}

std::string setting(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::vector<Place> places(const std::string& word) {
  if (word == "all") return {Place::kCache, Place::kMemory};
  for (const Place place : {Place::kCache, Place::kMemory})
    if (name_of(place) == word) return {place};
  throw po::error("--place is L2 or memory");
}

std::vector<KernelRow> kernels(const po::variables_map& values) {
  auto loaded = Kernels::load({values["kernel-dir"].as<Names>(), values["isa"].as<std::string>()});
  if (!loaded) throw std::runtime_error(render(loaded.error()));
  std::optional<GgmlLibrary> ggml;
  if (const std::string path = setting("GGML_LIBRARY"); !path.empty()) ggml.emplace(path);
  const auto filter = values["filter"].as<std::string>();
  std::vector<KernelRow> rows =
      time_kernels(*loaded.value(), {std::regex(filter),
                                     places(values["place"].as<std::string>()),
                                     values["isa"].as<std::string>(),
                                     ggml ? &*ggml : nullptr,
                                     {values["rounds"].as<unsigned>(), values["seconds"].as<double>()}});
  if (rows.empty()) throw po::error("--filter '" + filter + "' finds no kernel");
  return rows;
}

std::vector<FileTime> files(const po::variables_map& values) {
  const FileJob job{values["ggufmill"].as<std::string>(), setting("LLAMA_QUANTIZE"),
                    values["model"].as<std::string>(),    "build/bench/out",
                    values["threads"].as<unsigned>(),     values["rounds"].as<unsigned>()};
  return time_files(job, values["file-type"].as<Names>());
}

void run(const po::variables_map& values) {
  const auto only = values["only"].as<std::string>();
  if (only == "speeds") {
    std::cout << speed_table(kernels(values));
    return;
  }
  if (only != "all" && only != "kernels" && only != "files") throw po::error("--only is kernels, files or speeds");
  Report report;
  if (only != "files") report.kernels = kernels(values);
  if (only != "kernels") report.files = files(values);
  std::cout << (values.count("json") ? to_json(report) : kernel_tables(report.kernels) + file_table(report.files));
}

}  // namespace
}  // namespace ggufmill::bench

int main(int argc, char** argv) {
  namespace po = boost::program_options;
  try {
    const po::options_description options = ggufmill::bench::options();
    po::variables_map values;
    po::store(po::parse_command_line(argc, argv, options), values);
    po::notify(values);
    if (values.count("help")) {
      std::cout << options;
      return 0;
    }
    ggufmill::bench::run(values);
    return 0;
  } catch (const po::error& error) {
    std::cerr << "ggufmill-bench: " << error.what() << "; see --help\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "ggufmill-bench: " << error.what() << '\n';
    return 1;
  }
}
