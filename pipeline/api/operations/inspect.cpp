// `inspect`: shows the metadata and tensors of a model, statistics or values of a tensor, conversations rendered with
// its chat templates, or a page with pictures.

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <span>

#include "pipeline/api/chat_template.h"
#include "pipeline/api/describe.h"
#include "pipeline/api/edit.h"
#include "pipeline/api/operations/context_options.h"
#include "pipeline/api/operations/operations.h"
#include "pipeline/api/pages.h"
#include "pipeline/api/tensor_statistics.h"
#include "pipeline/core/option_reference.h"
#include "pipeline/core/text.h"
#include "pipeline/report/json_text.h"
#include "pipeline/report/models_page.h"

namespace ggufmill {
namespace {

namespace json = boost::json;

constexpr std::size_t kBarWidth = 40, kShownColumns = 8;

// A range of rows: "FIRST:COUNT".
struct RowRange {
  std::uint64_t first = 0, count = 0;
};

struct InspectRequest {
  std::string path{};
  OutType out_type = OutType::kAuto;
  std::string tensor{};
  bool values = false;
  std::optional<RowRange> rows{};
  std::uint64_t bins = 24;
  bool templates = false;
  std::string conversation{};
};

struct TensorValues {
  std::uint64_t first = 0, rows = 0;
  std::vector<float> values{};  // row by row
};

// The model, or what was asked about a tensor of it.
struct Inspected {
  Model model;
  std::size_t tensor = 0;  // its number in the model
  std::optional<TensorStatistics> statistics{};
  std::optional<TensorValues> values{};
  std::optional<std::vector<RenderedTemplate>> templates{};
};

Form<RowRange> rows_form() {
  return converted<RowRange>(text(), [](const std::string& text) -> Result<RowRange> {
    RowRange range;
    const char* const end = text.data() + text.size();
    const auto first = std::from_chars(text.data(), end, range.first);
    if (first.ec == std::errc() && first.ptr != end && *first.ptr == ':') {
      const auto count = std::from_chars(first.ptr + 1, end, range.count);
      if (count.ec == std::errc() && count.ptr == end && range.count <= UINT64_MAX - range.first) return range;
    }
    return usage_error(fmt::format("{} must be FIRST:COUNT, not {}", option_reference("rows"), quoted_name(text)),
                       fmt::format("for example {}", option_reference("rows", "0:4")));
  });
}

Status check_inspect(const InspectRequest& request) {
  const auto requires_other = [](const char* option, const char* other) {
    return usage_error(fmt::format("{} requires {}", option_reference(option), option_reference(other)));
  };
  if (request.values && request.tensor.empty()) return requires_other("values", "tensor");
  if (request.rows && !request.values) return requires_other("rows", "values");
  if (!request.conversation.empty() && !request.templates) return requires_other("conversation", "template");
  if (request.templates && !request.tensor.empty()) return cannot_be_together("tensor", "template");
  return ok();
}

Result<std::size_t> number_of(const std::string& name, const Model& model) {
  std::vector<std::string> names;
  for (const Tensor& tensor : model.tensors) {
    if (tensor.name == name) return names.size();
    names.push_back(tensor.name);
  }
  const std::string meant = did_you_mean(name, names);
  return usage_error(fmt::format("the model has no tensor {}", quoted_name(name)),
                     meant.empty() ? fmt::format("`ggufmill inspect` without {} lists them", option_reference("tensor"))
                                   : fmt::format("did you mean '{}'?", meant));
}

// Opens a model with its warnings and notes.
Result<Model> open_noted(const Context& context, const std::string& path, OutType out_type, const Call& call) {
  BOOST_OUTCOME_TRY(Model model, context.inspect(path, out_type));
  call.warn_all(model.warnings);
  for (const EditLeftover& left : edit_leftovers(path))
    call.note({fmt::format("{}  {}, left by an edit that was killed; the next edit removes it", left.path,
                           human_bytes(left.bytes))});
  return model;
}

Result<Answer<Inspected>> run_templates(const InspectRequest& request, Model model, const Call& call) {
  RenderOptions options{.stop = call.stop()};
  if (!request.conversation.empty()) {
    BOOST_OUTCOME_TRY(options.conversation, read_conversation(request.conversation));
  }
  Answer<Inspected> answer{};
  BOOST_OUTCOME_TRY(answer.value.templates, render_templates(request.path, model.metadata, options));
  answer.value.model = std::move(model);
  Diagnostics errors;
  for (const RenderedTemplate& each : *answer.value.templates) {
    call.warn_all(each.warnings);
    if (!each.error.empty())
      errors.add(input_error(request.path, fmt::format("{} cannot be rendered: {}", each.name, each.error),
                             request.conversation.empty()
                                 ? "correct the template, or set another one with `ggufmill edit --chat-template-file`"
                                 : "change the conversation, or the template"));
  }
  if (!errors.empty()) answer.failure = errors.together();
  return answer;
}

Result<Answer<Inspected>> run_inspect(const Context& context, const InspectRequest& request, const Call& call) {
  BOOST_OUTCOME_TRY(Model model, open_noted(context, request.path, request.out_type, call));
  if (request.templates) return run_templates(request, std::move(model), call);
  Answer<Inspected> answer{{.model = std::move(model)}};
  Inspected& it = answer.value;
  if (request.tensor.empty()) return answer;
  BOOST_OUTCOME_TRY(it.tensor, number_of(request.tensor, it.model));
  const Tensor& tensor = it.model.tensors[it.tensor];
  if (!request.values) {
    BOOST_OUTCOME_TRY(it.statistics, tensor_statistics(context, tensor, request.bins, call.stop()));
    return answer;
  }
  const RowRange range = request.rows.value_or(RowRange{0, std::min<std::uint64_t>(4, tensor.shape().rows())});
  it.values = TensorValues{range.first, range.count};
  BOOST_OUTCOME_TRY(it.values->values, tensor_values(context, tensor, range.first, range.count));
  return answer;
}

// ---- text ----

void print_model(const Model& model, TextOutput& to) {
  std::vector<Row> rows;
  for (const MetadataEntry& entry : model.metadata.entries())
    rows.push_back({entry.key, std::string(metadata_type_name(entry.value.type)), describe(entry.value)});
  to.out += fmt::format("{} metadata values\n{}\n", rows.size(),
                        render_table({name_column("key"), whole_column("type"), {"value"}}, rows));
  rows.clear();
  std::uint64_t bytes = 0, weights = 0;
  for (const Tensor& tensor : model.tensors) {
    const Extent* const data = tensor.expression->as_extent();
    rows.push_back({tensor.name, describe(tensor.shape()), std::string(tensor.type->name),
                    with_commas(tensor.source_bytes()), data ? with_commas(data->offset) : ""});
    bytes += tensor.source_bytes();
    weights += tensor.shape().elements();
  }
  to.out += fmt::format("{}\n{}", counted(rows.size(), "tensor"),
                        render_table({name_column("tensor"),
                                      whole_column("shape"),
                                      whole_column("type"),
                                      {"bytes", Align::kRight},
                                      {"offset", Align::kRight}},
                                     rows));
  to.out += fmt::format("{} weights, {}, {:.4f} bits per weight, in {}\n", with_commas(weights), human_bytes(bytes),
                        weights ? 8.0 * static_cast<double>(bytes) / static_cast<double>(weights) : 0,
                        counted(model.files.size(), "file"));
  if (const auto parts = parts_of(model); parts.size() > 1)
    to.out += fmt::format("parts of the checkpoint: {}; only the {} part is shown\n", list_parts(parts),
                          part_name(parts.front()));
}

void print_values(const TensorValues& it, TextOutput& to) {
  const std::uint64_t columns = it.rows == 0 ? 0 : it.values.size() / it.rows;
  for (std::uint64_t row = 0; row < it.rows; ++row) {
    to.out += fmt::format("{:>8} ", it.first + row);
    for (const float value : std::span(it.values).subspan(row * columns, std::min<std::size_t>(kShownColumns, columns)))
      to.out += fmt::format(" {:>8.3g}", value);
    to.out += columns > kShownColumns ? " ...\n" : "\n";
  }
}

void print_statistics(const Tensor& tensor, const TensorStatistics& it, TextOutput& to) {
  to.out += fmt::format("{}  {}  {}\n", printable(tensor.name), describe(tensor.shape()), tensor.type->name);
  to.out += fmt::format("{} values, {} zero, {} not finite\n", with_commas(it.count), with_commas(it.zeros),
                        with_commas(it.not_finite));
  to.out += fmt::format("{:.6g} to {:.6g}, mean {:.4g}, standard deviation {:.4g}\n", it.least, it.largest, it.mean,
                        it.deviation);
  const std::uint64_t most = *std::ranges::max_element(it.histogram);
  const std::size_t bins = it.histogram.size();
  for (std::size_t bin = 0; most != 0 && bin < bins; ++bin) {
    const double from = it.least + (it.largest - it.least) * static_cast<double>(bin) / static_cast<double>(bins);
    const auto width =
        static_cast<std::size_t>(static_cast<double>(it.histogram[bin]) * kBarWidth / static_cast<double>(most));
    to.out += fmt::format("{:>11.4g}  {:<{}}  {}\n", from, std::string(width, '#'), kBarWidth,
                          with_commas(it.histogram[bin]));
  }
}

void print_templates(const std::vector<RenderedTemplate>& templates, TextOutput& to) {
  for (const RenderedTemplate& each : templates) {
    if (!each.error.empty()) continue;
    const std::string prompt = each.generation_prompt.empty()
                                   ? "no generation prompt"
                                   : "generation prompt " + quoted_name(each.generation_prompt);
    to.out += fmt::format("{}{}: {}, {}\n{}\n", to.out.empty() ? "" : "\n", each.name,
                          counted(each.text.size(), "byte"), prompt, printable(each.text, "\n\t"));
  }
}

void print_inspected(const Inspected& it, TextOutput& to) {
  if (it.templates) return print_templates(*it.templates, to);
  if (it.values) return print_values(*it.values, to);
  if (it.statistics) return print_statistics(it.model.tensors[it.tensor], *it.statistics, to);
  print_model(it.model, to);
}

// ---- JSON ----

json::object describe_values(const Tensor& tensor, const TensorValues& it) {
  const std::uint64_t columns = tensor.shape().columns();
  json::array lines;
  for (std::uint64_t row = 0; row < it.rows; ++row) {
    json::array numbers;
    for (const float value : std::span(it.values).subspan(row * columns, columns))
      numbers.push_back(json_number(value));
    lines.push_back(std::move(numbers));
  }
  return {{"tensor", tensor.name}, {"first", it.first}, {"values", std::move(lines)}};
}

json::object describe_templates(const std::vector<RenderedTemplate>& templates) {
  json::array list;
  for (const RenderedTemplate& each : templates) {
    json::object object{{"name", each.name}};
    if (each.error.empty()) {
      object["text"] = each.text;
      object["generation_prompt"] = each.generation_prompt;
    } else {
      object["error"] = each.error;
    }
    list.push_back(std::move(object));
  }
  return {{"templates", std::move(list)}};
}

void write_inspected(const Inspected& it, const TextSink& sink) {
  if (it.templates) return sink(to_json_text(describe_templates(*it.templates)));
  if (it.values) return sink(to_json_text(describe_values(it.model.tensors[it.tensor], *it.values)));
  if (it.statistics) return sink(to_json_text(describe_statistics(it.model.tensors[it.tensor], *it.statistics)));
  describe_model(it.model, sink);
}

// ---- pages ----

struct PageRequest {
  std::vector<std::string> models{};
  std::string html{};
  OutType out_type = OutType::kAuto;
  bool overwrite = false;
};

struct Page {
  std::string html;
};

Result<Answer<Page>> run_page(const Context& context, const PageRequest& request, const Call& call) {
  if (request.models.empty()) return usage_error("no models given");
  std::vector<PicturedModel> models;
  std::vector<std::string> read;
  for (const std::string& path : request.models) {
    BOOST_OUTCOME_TRY(const Model model, open_noted(context, path, request.out_type, call));
    models.push_back(pictured(path, model));
    for (std::string& file : model.paths()) read.push_back(std::move(file));
  }
  BOOST_OUTCOME_TRY(write_page(context, request.html, models_html(models), std::move(read), request.overwrite));
  return Answer<Page>{{request.html}};
}

constexpr SharedVerb kInspectVerb{
    .name = "inspect",
    .summary = "Show the metadata and tensors of models",
    .description =
        "Show the metadata and tensors of a GGUF file (the first shard of a sharded model), a checkpoint folder (as "
        "`ggufmill convert` would write them), or a safetensors file (unchanged). Tensors without an offset are "
        "assembled from several places or have their values changed.\n\nWith --tensor, show a histogram of the "
        "tensor's values, or with --values, the values of some rows. With --template, render a conversation with each "
        "chat template, and warn of what is wrong with it. With --html, draw pictures of the models.",
    .examples =
        "  ggufmill inspect model.gguf\n"
        "  ggufmill inspect models/Llama-3-8B\n"
        "  ggufmill inspect model-00001-of-00005.gguf --json\n"
        "  ggufmill inspect model.gguf --tensor blk.0.ffn_up.weight\n"
        "  ggufmill inspect model.gguf --template --conversation chat.json\n"
        "  ggufmill inspect model-Q4_K_M.gguf model-Q4_K_S.gguf --html models.html",
    .usage = "MODEL... [options]"};

}  // namespace

OperationSpec inspect_operation() {
  using Inspect = InspectRequest;
  return operation(OperationOf<InspectRequest, Inspected>{
      .name = "inspect",
      .group = OperationGroup::kInspect,
      .summary = "Show the metadata and tensors of a model",
      .description =
          "Show the metadata and tensors of a GGUF file (the first shard of a sharded model), a checkpoint folder (as "
          "`ggufmill convert` would write them), or a safetensors file (unchanged). Tensors without an offset are "
          "assembled from several places or have their values changed. With @tensor, give statistics of the tensor's "
          "values, or with @values, the values of some rows.\n\nWith @template, render a conversation, by default one "
          "with a call of a tool, with each chat template of the model, and warn if a template fails for system "
          "messages "
          "or tools, does not add a generation prompt, uses tokens that the vocabulary does not have, writes the first "
          "token although programs add it, or uses what is not defined. Jinja of Python renders, as in transformers, "
          "because no C++ library of Jinja is packaged: python3 and its module jinja2 must be installed. A template "
          "runs "
          "in a process of its own, without files and network, for at most 5 s and with 512 MiB of memory. @Error4: a "
          "template cannot be rendered.",
      .has_headings = true,
      .shared = &kInspectVerb,
      .options = {option("path", &Inspect::path, path(), "the model").each_word("MODEL"),
                  option("outtype", &Inspect::out_type, enumeration<OutType>(kOutTypeWords), kOutTypeHelp),
                  option("tensor", &Inspect::tensor, text(), "show statistics of the values of this tensor"),
                  option("values", &Inspect::values, "with @tensor: show its first values instead of statistics"),
                  option("rows", &Inspect::rows, rows_form(),
                         "with @values: the rows to show, as FIRST:COUNT; default: the first four"),
                  option("template", &Inspect::templates,
                         "render a conversation with the chat templates, and check them"),
                  option("conversation", &Inspect::conversation, path(),
                         "with @template: a JSON file with the messages, as a list or as {messages, tools}"),
                  option("bins", &Inspect::bins, integer().at_least(1).at_most(1'000'000),
                         "with @tensor: number of bins of the histogram")},
      .result = {.write = write_inspected,
                 .doc = "{files, metadata: [{key, type, value}], tensors: [{name, shape, type, bytes, ..}], parts}; "
                        "for a tensor {tensor, type, count, zeros, not_finite, least, largest, mean, deviation, "
                        "histogram} or {tensor, first, values}; with @template {templates: [{name, text, "
                        "generation_prompt}]}, with "
                        "error in place of the last two if there is one"},
      .context = ContextUse::kCheckpoints,
      .check = check_inspect,
      .run = run_inspect,
      .print = print_inspected});
}

OperationSpec models_page_operation() {
  return operation(OperationOf<PageRequest, Page>{
      .name = "models_page",
      .group = OperationGroup::kInspect,
      .summary = "Write an HTML page with pictures of models",
      .description = "Write an HTML page with pictures of one or several models, of every kind that `inspect` reads.",
      .prints_data = true,
      .shared = &kInspectVerb,
      .choice = "--html",
      .options = {option("models", &PageRequest::models, list_of(path()), "the models").word("MODEL"),
                  option("html", &PageRequest::html, path(),
                         "write an HTML page with pictures of the models to this file")
                      .choice("html", "FILE"),
                  option("outtype", &PageRequest::out_type, enumeration<OutType>(kOutTypeWords), kOutTypeHelp),
                  option("overwrite", &PageRequest::overwrite, "replace an existing page")},
      .result = {{result("html", &Page::html, "path of the page")}},
      .context = ContextUse::kCheckpoints,
      .run = run_page,
      .print = [](const Page& page, TextOutput& to) { to.notes.push_back({fmt::format("wrote {}", page.html)}); }});
}

}  // namespace ggufmill
