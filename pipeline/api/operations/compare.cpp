// `compare`: measures how far the values of one model are from those of another.

#include <fmt/format.h>

#include <cmath>

#include "pipeline/api/operations/context_options.h"
#include "pipeline/api/operations/operations.h"
#include "pipeline/api/table.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"

namespace ggufmill {
namespace {

struct CompareRequest : ComparisonOptions {
  std::string a{}, b{};
  std::optional<double> max_rmse{};
};

struct Compared : Comparison {
  bool is_weighted = false;
};

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

void print_comparison(const Compared& compared, TextOutput& to) {
  const ReportOutput& output = compared.report.outputs[0];
  const bool weighted = compared.is_weighted;
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
  to.out = render_table(columns, rows);
  for (const UnmatchedTensor& tensor : output.unmatched)
    to.out += fmt::format("not compared: {}: {}\n", printable(tensor.name), printable(tensor.what));
  if (total.not_finite != 0)
    to.out += fmt::format("skipped pairs with NaN or infinity: {}\n", with_commas(total.not_finite));
  if (total.count == 0 && output.unmatched.empty()) to.out += "all values are equal\n";
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

Result<Answer<Compared>> run_compare(const Context& context, const CompareRequest& request, const Call& call) {
  ComparisonOptions options = request;
  options.stop = call.stop();
  options.progress = call.progress;
  BOOST_OUTCOME_TRY(Comparison compared, context.compare(request.a, request.b, options));
  call.warn_all(compared.warnings);
  Answer<Compared> answer{{std::move(compared), !request.importance.empty()}};
  if (!request.max_rmse) return answer;
  const std::string beyond = excess(answer.value.report, *request.max_rmse);
  if (!beyond.empty()) answer.failure = Error{ExitCode::kVerification, request.b, beyond, "", ""};
  return answer;
}

Status check_compare(const CompareRequest& request) {
  if (!request.overwrite || !request.html.empty()) return ok();
  return usage_error(fmt::format("{} has no effect: no page is written", option_reference("overwrite")),
                     fmt::format("name one, {}, or omit it", option_reference("html", "PAGE.html")));
}

void write_comparison(const Compared& compared, const TextSink& sink) {
  std::string last;  // ends with a newline, which is not part of the object
  report_json(compared.report, [&](std::string_view piece) {
    sink(last);
    last = piece;
  });
  last.pop_back();
  sink(last);
}

}  // namespace

OperationSpec compare_operation() {
  return operation(OperationOf<CompareRequest, Compared>{
      .name = "compare",
      .group = OperationGroup::kInspect,
      .summary = "Compare the values of two models",
      .description =
          "Compare the values of two models, tensor by tensor, matching tensors by name. @a and @b are GGUF files (the "
          "first shard of a sharded model), checkpoint folders (compared as the models that `ggufmill convert` writes "
          "for them), or safetensors files (compared unchanged). @a is the reference for @b: for values a of @a and b "
          "of @b, RMSE is sqrt(mean (a - b)^2), the relative error is sqrt(sum (a - b)^2 / sum a^2), and with "
          "@importance the weighted error is sqrt(sum w (a - b)^2 / sum w a^2), where w is the importance of the "
          "column. Totals cover the tensors whose values differ. A difference is not a failure unless @max_rmse is "
          "given and exceeded (@error3).",
      .examples = "  ggufmill compare model-BF16.gguf model-Q4_K_M.gguf\n"
                  "  ggufmill compare models/Llama-3-8B model-Q4_K_M.gguf\n"
                  "  ggufmill compare a.gguf b.gguf --json > errors.json\n"
                  "  ggufmill compare a.gguf b.gguf --html errors.html --imatrix imatrix.gguf\n"
                  "  ggufmill compare old.gguf new.gguf --max-rmse 0",
      .expected_words = "two models",
      .counted_word = "model",
      .options = {option("a", &CompareRequest::a, path(), "the reference").word("A"),
                  option("b", &CompareRequest::b, path(), "the model to compare with it").word("B"),
                  option("html", &CompareRequest::html, path(), "write an HTML page to this file"),
                  option("importance", &CompareRequest::importance, path(),
                         "importance matrix for @a, GGUF or legacy .dat; adds the weighted error")
                      .on_command_line("imatrix"),
                  option("outtype", &CompareRequest::out_type, enumeration<OutType>(kOutTypeWords), kOutTypeHelp),
                  option("max_rmse", &CompareRequest::max_rmse,
                         "fail with @error3 if a tensor's RMSE is greater or tensors cannot be compared"),
                  option("memory", &CompareRequest::memory, bytes(), "maximum bytes of tensor data in memory: 512MiB"),
                  option("threads", &CompareRequest::threads, threads_form(), "number of threads, or auto").or_zero(),
                  option("overwrite", &CompareRequest::overwrite, "replace an existing page")},
      .result = {.write = write_comparison, .doc = "the report, in the format of report files"},
      .context = ContextUse::kCheckpoints,
      .progress = "comparing",
      .check = check_compare,
      .run = run_compare,
      .print = print_comparison});
}

}  // namespace ggufmill
