#include "tests/conformance/golden_check.h"

#include <fmt/format.h>

#include <span>
#include <stdexcept>

#include "pipeline/kernels/check/kernel_run.h"
#include "tests/support/sha256.h"
#include "tests/support/synth.h"
#include "tests/support/tsv.h"

namespace ggufmill::conformance {
namespace {

std::vector<float> input_of(const GoldenRow& row) {
  std::vector<float> values = synth::values(row.distribution, row.seed, 0, row.rows * row.cols);
  if (sha256_hex(std::as_bytes(std::span(values))).substr(0, 16) != row.input)
    throw std::runtime_error(fmt::format("{}: the input is not the one of the table", describe(row)));
  return values;
}

void judge(const GoldenRow& row, const Bytes& bytes, const std::string& expected, Tally& tally) {
  ++tally.cases;
  const std::string found = sha256_hex(bytes);
  if (found == expected)
    ++tally.right;
  else
    tally.wrong.push_back(fmt::format("{}: {} instead of {}", describe(row), found, expected));
}

Bytes quantize(const ggufmill_kernel& encoder, const GoldenRow& row) {
  const std::vector<float> values = input_of(row);
  std::vector<float> importance;
  if (row.importance != "no") importance = synth::importance(row.seed + 1, row.cols, row.importance);
  return run_kernel(encoder, {std::as_bytes(std::span(values)), row.rows, row.cols, importance});
}

void check_row(const ggufmill_module& module, const ggufmill_module& fallback, const GoldenRow& row,
               std::string_view encoder_name, GoldenResult& result) {
  const ggufmill_kernel* own = find_kernel(kernels_of(module), GGUFMILL_ENCODE, row.type, encoder_name);
  const ggufmill_kernel* encoder = own ? own : find_kernel(kernels_of(fallback), GGUFMILL_ENCODE, row.type);
  const ggufmill_kernel* decoder = find_kernel(kernels_of(module), GGUFMILL_DECODE, row.type);
  if (!decoder && !encoder_name.empty()) decoder = find_kernel(kernels_of(fallback), GGUFMILL_DECODE, row.type);
  if (!own) ++result.quantized.lacking;
  if (!decoder || !encoder) ++result.dequantized.lacking;
  if (!encoder) return;
  const Bytes packed = quantize(*encoder, row);
  if (own) judge(row, packed, row.quantized, result.quantized);
  if (decoder) judge(row, run_kernel(*decoder, {packed, row.rows, row.cols, {}}), row.dequantized, result.dequantized);
}

GoldenRow parse_row(const std::vector<std::string>& fields) {
  if (fields.size() != 9) throw std::runtime_error(fmt::format("{} fields instead of 9", fields.size()));
  if (fields[2] != "no") synth::importance(0, 0, fields[2]);  // throws if the kind is unknown
  if (fields[6].size() != 16 || fields[7].size() != 64 || fields[8].size() != 64)
    throw std::runtime_error("a digest of the wrong length");
  return {fields[0], fields[1], fields[2], std::stoull(fields[3]), std::stoull(fields[4]), std::stoull(fields[5]),
          fields[6], fields[7], fields[8]};
}

}  // namespace

GoldenResult check_golden(const ggufmill_module& module, const ggufmill_module& fallback,
                          const std::vector<GoldenRow>& rows, std::string_view encoder) {
  GoldenResult result;
  for (const GoldenRow& row : rows) check_row(module, fallback, row, encoder, result);
  return result;
}

std::string describe(const GoldenRow& row) {
  return fmt::format("{} {} {}x{} seed {}{}", row.type, row.distribution, row.rows, row.cols, row.seed,
                     row.importance == "no"    ? ""
                     : row.importance == "yes" ? ", with importance"
                                               : fmt::format(", with importance '{}'", row.importance));
}

std::vector<GoldenRow> load_golden_table(const std::string& path) {
  std::vector<GoldenRow> rows;
  for (const std::vector<std::string>& fields : read_tsv(path).rows) {
    try {
      rows.push_back(parse_row(fields));
    } catch (const std::exception& error) {
      throw std::runtime_error(fmt::format("{}:{}: {}", path, rows.size() + 2, error.what()));
    }
  }
  return rows;
}

}  // namespace ggufmill::conformance
