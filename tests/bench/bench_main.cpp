// ggufmill-bench: kernels by ISA, and whole files beside llama-quantize. Run by ./dev bench.
#include <boost/program_options.hpp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <stdexcept>

#include "tests/bench/file_bench.h"
#include "tests/bench/kernel_bench.h"
#include "tests/bench/report.h"

namespace ggufmill::bench {
namespace {

namespace po = boost::program_options;

using Names = std::vector<std::string>;

po::options_description options() {
  po::options_description all("usage: ./dev bench [options]; LLAMA_QUANTIZE names the program to compare with");
  auto add = all.add_options();
  add("help,h", "this");
  add("only", po::value<std::string>()->default_value("all"), "kernels or files");
  add("type", po::value<Names>()->default_value({}, ""), "a tensor type for the kernels; may be repeated (all)");
  add("file-type", po::value<Names>()->default_value({"Q4_K", "Q6_K", "Q8_0", "F16"}, "Q4_K Q6_K Q8_0 F16"),
      "a type or recipe for the files; may be repeated");
  add("isa", po::value<std::string>()->default_value(""), "kernels of this ISA alone");
  add("kernel-dir", po::value<Names>()->default_value({}, ""), "a folder of further modules; may be repeated");
  add("rounds", po::value<unsigned>()->default_value(5), "the median of so many counts");
  add("seconds", po::value<double>()->default_value(0.05), "of a round of a kernel, at least");
  add("threads", po::value<unsigned>()->default_value(2), "for the files");
  add("ggufmill", po::value<std::string>()->default_value("build/release/bin/ggufmill"), "the program");
  add("model", po::value<std::string>()->default_value("build/bench/model.gguf"), "for the files");
  add("json", "print JSON in place of tables");
  return all;
}

std::vector<KernelTime> kernels(const po::variables_map& values) {
  auto loaded = Kernels::load({values["kernel-dir"].as<Names>(), values["isa"].as<std::string>()});
  if (!loaded) throw std::runtime_error(render(loaded.error()));
  const Effort effort{values["rounds"].as<unsigned>(), values["seconds"].as<double>()};
  return time_kernels(*loaded.value(), values["type"].as<Names>(), effort);
}

std::vector<FileTime> files(const po::variables_map& values) {
  const char* llama = std::getenv("LLAMA_QUANTIZE");
  const FileJob job{values["ggufmill"].as<std::string>(), llama ? llama : "",
                    values["model"].as<std::string>(),    "build/bench/out",
                    values["threads"].as<unsigned>(),     values["rounds"].as<unsigned>()};
  return time_files(job, values["file-type"].as<Names>());
}

void run(const po::variables_map& values) {
  const auto only = values["only"].as<std::string>();
  if (only != "all" && only != "kernels" && only != "files") throw po::error("--only is kernels or files");
  Report report;
  if (only != "files") report.kernels = kernels(values);
  if (only != "kernels") report.files = files(values);
  std::cout << (values.count("json") ? to_json(report) : to_tables(report));
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
