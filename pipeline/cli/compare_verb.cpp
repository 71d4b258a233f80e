// `ggufmill compare`: measures how far the values of one model are from those of another.

#include <fmt/format.h>

#include <cmath>
#include <cstdio>

#include "pipeline/cli/messages.h"
#include "pipeline/cli/planning.h"
#include "pipeline/cli/progress.h"
#include "pipeline/cli/signals.h"
#include "pipeline/cli/table.h"
#include "pipeline/cli/verb.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

namespace po = boost::program_options;

CommandSpec compare_command() {
  CommandSpec spec;
  spec.usage = "ggufmill compare A B [options]";
  spec.description =
      "Compare the values of two models, tensor by tensor, matching tensors by name. A and B are GGUF files (the first "
      "shard of a sharded model), checkpoint folders (compared as the models that `ggufmill convert` writes for them), "
      "or safetensors files (compared unchanged). A is the reference for B: with a the values of A and b those of B, "
      "RMSE is sqrt(mean (a - b)^2), the relative error is sqrt(sum (a - b)^2 / sum a^2), and with --imatrix the "
      "weighted error is sqrt(sum w (a - b)^2 / sum w a^2), where w is the importance of the column. Totals cover the "
      "tensors whose values differ. The exit code is 0 even if values differ, but 3 if --max-rmse is given and "
      "exceeded.";
  spec.examples =
      "  ggufmill compare model-BF16.gguf model-Q4_K_M.gguf\n"
      "  ggufmill compare models/Llama-3-8B model-Q4_K_M.gguf\n"
      "  ggufmill compare a.gguf b.gguf --json > errors.json\n"
      "  ggufmill compare a.gguf b.gguf --html errors.html --imatrix imatrix.gguf\n"
      "  ggufmill compare old.gguf new.gguf --max-rmse 0";
  spec.positional = "files";
  spec.many = true;
  auto add = spec.options.add_options();
  add("json", "print one JSON object, in the format of reports");
  add("html", po::value<std::string>(), "write an HTML page to this file");
  add("imatrix", po::value<std::string>(), "importance matrix for A, GGUF or legacy .dat; adds the weighted error");
  add_out_type_option(spec.options);
  add("max-rmse", po::value<double>(), "exit with code 3 if a tensor's RMSE is greater or tensors cannot be compared");
  add("memory", po::value<std::string>(), "maximum bytes of tensor data in memory: 512MiB");
  add("threads", po::value<std::string>()->default_value("auto"), "number of threads, or auto");
  add("quiet,q", "print no progress");
  add("overwrite", "replace an existing page");
  add_kernel_options(spec.options);
  return spec;
}

std::string number_text(double figure) { return std::isfinite(figure) ? fmt::format("{:.4g}", figure) : "-"; }

Row figure_cells(const ErrorSums& sums, bool weighted) {
  const ErrorFigures statistics = statistics_of(sums);
  Row cells{number_text(statistics.rmse), number_text(statistics.largest), number_text(statistics.relative)};
  if (weighted) cells.push_back(number_text(statistics.weighted));
  cells.push_back(std::isfinite(statistics.cosine) ? fmt::format("{:.7f}", statistics.cosine) : "-");
  return cells;
}

Row row_of(const ReportTensor& tensor, bool weighted) {
  Row row{tensor.name, describe(tensor.shape), std::string(tensor.source_type->name), std::string(tensor.type->name)};
  Row cells = figure_cells(tensor.sums, weighted);
  if (tensor.state == ErrorState::kExact) cells.assign(cells.size(), ""), cells[0] = "equal";
  if (tensor.state == ErrorState::kNotMeasured) cells.assign(cells.size(), "-"), cells[0] = "differs";
  row.insert(row.end(), cells.begin(), cells.end());
  return row;
}

void print_text(const Report& report, bool weighted) {
  const ReportOutput& output = report.outputs[0];
  std::vector<Column> columns{name_column("tensor"), whole_column("shape"), whole_column("A"), whole_column("B")};
  for (const char* title : {"RMSE", "largest", "relative"}) columns.push_back({title, Align::kRight});
  if (weighted) columns.push_back({"weighted", Align::kRight});
  columns.push_back({"cosine", Align::kRight});
  std::vector<Row> rows;
  for (const ReportTensor& tensor : output.tensors) rows.push_back(row_of(tensor, weighted));
  const ErrorSums total = total_of(output);
  Row last{"all that differ", "", "", ""};
  const Row cells = figure_cells(total, weighted);
  last.insert(last.end(), cells.begin(), cells.end());
  if (total.count != 0) rows.push_back(last);
  fmt::print("{}", render_table(columns, rows));
  for (const UnmatchedTensor& tensor : output.unmatched)
    fmt::print("not compared: {}: {}\n", printable(tensor.name), printable(tensor.what));
  if (total.not_finite != 0) fmt::print("skipped pairs with NaN or infinity: {}\n", with_commas(total.not_finite));
  if (total.count == 0 && output.unmatched.empty()) fmt::print("all values are equal\n");
}

// Describes the first tensor that exceeds `most` or was not compared; empty if there is none.
std::string excess(const Report& report, double most) {
  for (const UnmatchedTensor& tensor : report.outputs[0].unmatched)
    return fmt::format("{} was not compared: {}", quoted_name(tensor.name), tensor.what);
  for (const ReportTensor& tensor : report.outputs[0].tensors) {
    const double rmse = statistics_of(tensor.sums).rmse;
    if (tensor.state == ErrorState::kMeasured && !(rmse <= most) && tensor.sums.count > 0)
      return fmt::format("the RMSE of {} is {:.4g}, more than {:.4g}", quoted_name(tensor.name), rmse, most);
    if (tensor.state == ErrorState::kNotMeasured || tensor.sums.not_finite > 0)
      return fmt::format("{} has values that cannot be compared", quoted_name(tensor.name));
  }
  return "";
}

Result<ComparisonOptions> read_comparison_options(const po::variables_map& values) {
  ComparisonOptions options;
  options.importance = value_or<std::string>(values, "imatrix", "");
  options.html = value_or<std::string>(values, "html", "");
  options.overwrite = values.count("overwrite") > 0;
  options.stop = catch_signals();
  BOOST_OUTCOME_TRY(options.out_type, read_out_type(values));
  if (values.count("memory")) {
    BOOST_OUTCOME_TRY(const std::uint64_t memory, parse_bytes(values["memory"].as<std::string>()));
    options.memory = memory;
  }
  if (values.count("threads")) {
    BOOST_OUTCOME_TRY(options.threads, parse_option("--threads", threads_form(), values["threads"].as<std::string>()));
  }
  return options;
}

int compare_verb(const Parsed& parsed) {
  const po::variables_map& values = parsed.values;
  const auto files = values["files"].as<Strings>();
  if (files.size() != 2)
    return fail(
        usage_error(fmt::format("expected two models, got {} model{}", files.size(), files.size() > 1 ? "s" : ""),
                    "usage: ggufmill compare A B [options]"));
  const auto context = open_context(values);
  if (!context) return fail(context.error());
  ProgressMeter meter(values.count("quiet") > 0);
  auto options = read_comparison_options(values);
  if (!options) return fail(options.error());
  options.value().progress = [&](std::uint64_t done, std::uint64_t total) { meter.show("comparing", done, total); };
  const auto comparison = context.value().compare(files[0], files[1], options.value());
  meter.finish();
  if (!comparison) {
    const int code = fail(comparison.error());
    return signal_exit_code().value_or(code);
  }
  print_warnings(comparison.value().warnings);
  const Report& report = comparison.value().report;
  if (values.count("json"))
    report_json(report, [](std::string_view piece) { std::fwrite(piece.data(), 1, piece.size(), stdout); });
  else
    print_text(report, values.count("imatrix") > 0);
  if (!values.count("max-rmse")) return 0;
  const std::string beyond = excess(report, values["max-rmse"].as<double>());
  return beyond.empty() ? 0 : fail({ExitCode::kVerification, files[1], beyond, "", ""});
}

}  // namespace

const Verb kCompareVerb{"compare", VerbGroup::kInspect, "Compare the values of two models", compare_command,
                        compare_verb};

}  // namespace ggufmill
