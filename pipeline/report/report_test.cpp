#include "pipeline/report/report.h"

#include <boost/json.hpp>

#include "tests/support/catch.h"
#include "tests/support/report_maker.h"

using namespace ggufmill;
using testing::json_text_of;
using testing::measured_tensor;
using testing::page_of;
using testing::report_of;

namespace json = boost::json;

namespace {

json::value parsed(const Report& report) { return json::parse(json_text_of(report)); }

const json::value& first_output(const json::value& root) { return root.at("outputs").at(0); }

std::vector<std::string> layer_names(const Report& report) {
  std::vector<std::string> names;
  for (const LayerSums& layer : layers_of(report.outputs[0])) names.push_back(layer.layer);
  return names;
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

// Returns the contents of the page's data element.
std::string data_of(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = page.find(open) + open.size();
  return page.substr(begin, page.find("</script>", begin) - begin);
}

}  // namespace

TEST_CASE("a report states its format and subject") {
  const json::value root = parsed(report_of({measured_tensor("blk.0.a", {1, 2}, {1, 1})}));
  CHECK(root.at("format") == "ggufmill-report");
  CHECK(root.at("version") == 1);
  CHECK(root.at("kind") == "run");
  CHECK(root.at("source").at("files").at(0).at("path") == "model.gguf");
  CHECK(root.at("source").at("bits_per_weight").to_number<double>() == 32);
}

TEST_CASE("a tensor has its types, sizes, and results") {
  const json::value root = parsed(report_of({measured_tensor("blk.0.a", {3, 4}, {3, 2})}));
  const json::value& tensor = first_output(root).at("tensors").at(0);
  CHECK(tensor.at("name") == "blk.0.a");
  CHECK(tensor.at("type") == "F16");
  CHECK(tensor.at("source_type") == "F32");
  CHECK(tensor.at("bytes") == 4);
  CHECK(tensor.at("error").at("largest").to_number<double>() == 2);
  CHECK(tensor.at("error").at("weighted").is_null());
}

TEST_CASE("tensors that fell back to another type are marked and counted") {
  Report report = report_of({measured_tensor("a", {1}, {1}), measured_tensor("b", {1}, {1})});
  report.outputs[0].tensors[1].fallback_from = &type_named("Q4_K");
  const json::value root = parsed(report);
  CHECK(first_output(root).at("fallbacks") == 1);
  CHECK_FALSE(first_output(root).at("tensors").at(0).as_object().contains("fallback_from"));
  CHECK(first_output(root).at("tensors").at(1).at("fallback_from") == "Q4_K");
}

TEST_CASE("an output says what its choice of types gained, if types were chosen") {
  Report report = report_of({measured_tensor("a", {1}, {1})});
  CHECK_FALSE(first_output(parsed(report)).as_object().contains("choice"));
  report.outputs[0].choice = "loss 0.1 by 'stream'";
  CHECK(first_output(parsed(report)).at("choice") == "loss 0.1 by 'stream'");
}

TEST_CASE("exact tensors have results, and unmeasured ones have none") {
  Report report = report_of({measured_tensor("a", {1}, {1}), measured_tensor("b", {1}, {1})});
  report.outputs[0].tensors[0].state = ErrorState::kExact;
  report.outputs[0].tensors[1].state = ErrorState::kNotMeasured;
  const json::value root = parsed(report);
  CHECK(first_output(root).at("tensors").at(0).at("error").at("cosine") == 1);
  CHECK(first_output(root).at("tensors").at(1).at("error").is_null());
  CHECK(first_output(root).at("error").is_null());
}

TEST_CASE("an output or layer with unmeasured tensors has no total, and says how many they are") {
  Report report = report_of({measured_tensor("blk.0.a", {1}, {2}), measured_tensor("blk.0.b", {1}, {2}),
                             measured_tensor("blk.1.a", {1}, {2}), measured_tensor("blk.2.a", {1}, {2})});
  for (const std::size_t i : {0, 3}) {
    report.outputs[0].tensors[i].state = ErrorState::kNotMeasured;
    report.outputs[0].tensors[i].sums = {};
  }
  const json::value root = parsed(report);
  CHECK(first_output(root).at("not_measured") == 2);
  CHECK(first_output(root).at("error").is_null());
  CHECK(first_output(root).at("changed_weights").is_null());
  const json::array& layers = first_output(root).at("layers").as_array();
  REQUIRE(layers.size() == 3);
  CHECK(layers[0].at("not_measured") == 1);
  CHECK(layers[0].at("error").is_null());
  CHECK_FALSE(layers[1].as_object().contains("not_measured"));
  CHECK(layers[1].at("weights") == 1);
  CHECK(layers[2].at("not_measured") == 1);
  CHECK(layers[2].at("weights").is_null());
}

TEST_CASE("without measurement, a report has no layers and counts no unmeasured tensors") {
  Report report = report_of({measured_tensor("a", {1}, {1})});
  report.measured = false;
  report.outputs[0].tensors[0].state = ErrorState::kNotMeasured;
  const json::value root = parsed(report);
  CHECK(first_output(root).at("layers").as_array().empty());
  CHECK_FALSE(first_output(root).as_object().contains("not_measured"));
}

TEST_CASE("the results of an output are those of its changed tensors") {
  const json::value root =
      parsed(report_of({measured_tensor("a", {1, 2}, {1, 2}), measured_tensor("b", {3, 4}, {3, 2})}));
  CHECK(first_output(root).at("changed_weights") == 2);
  CHECK(first_output(root).at("error").at("relative") ==
        first_output(root).at("tensors").at(1).at("error").at("relative"));
}

TEST_CASE("an output of which nothing changed has the numbers of equal values") {
  const json::value root = parsed(report_of({measured_tensor("blk.0.a", {1}, {1})}));
  CHECK(first_output(root).at("error").at("cosine") == 1);
  CHECK(first_output(root).at("layers").at(0).at("error").at("cosine") == 1);
}

TEST_CASE("layers come by number, then the parts that have none") {
  const auto tensor = [](const char* name) { return measured_tensor(name, {1}, {2}); };
  const Report report = report_of({tensor("output.weight"), tensor("blk.10.a"), tensor("blk.2.b"), tensor("blk.2.a"),
                                   tensor("token_embd.weight"), tensor("v.blk.1.a")});
  CHECK(layer_names(report) == std::vector<std::string>{"blk.2", "blk.10", "v.blk.1", "output", "token_embd"});
  CHECK(layers_of(report.outputs[0])[0].sums.count == 2);
}

TEST_CASE("name parts that only look like layers are not layers") {
  CHECK(layer_name("blk.7.attn_q.weight") == "blk.7");
  CHECK(layer_name("enc.blk.7.attn_q.weight") == "enc.blk.7");
  CHECK(layer_name("xblk.7.a") == "xblk");
  CHECK(layer_name("blk.x.a") == "blk");
  CHECK(layer_name("blk.7") == "blk");
  CHECK(layer_name("").empty());
}

TEST_CASE("a result that does not exist is null, names that are not UTF-8 are shown with escapes") {
  const json::value root = parsed(report_of({measured_tensor("a\xff", {0}, {1})}));
  const json::value& tensor = first_output(root).at("tensors").at(0);
  CHECK(tensor.at("error").at("relative").is_null());
  CHECK(std::string(tensor.at("name").as_string()).find("\\xff") != std::string::npos);
}

TEST_CASE("a page is complete and contains the JSON") {
  const Report report = report_of({measured_tensor("blk.0.a", {1, 2}, {1, 1})});
  const std::string page = page_of(report);
  CHECK(page.rfind("<!DOCTYPE html>", 0) == 0);
  CHECK(page.find("</html>") != std::string::npos);
  CHECK(page.find("@DATA@") == std::string::npos);
  CHECK(boost::json::parse(data_of(page)) == boost::json::parse(json_text_of(report)));
}

TEST_CASE("no name ends the data or begins markup") {
  const std::string name =
      GENERATE("</script><script>alert(1)</script>", "<!--<script>", "]]>&amp;\"'\\", "\xe2\x80\xa8");
  const std::string page = page_of(report_of({measured_tensor(name, {1}, {2})}));
  CHECK(count_of(page, "<script") == count_of(page_of(report_of({})), "<script"));
  CHECK(count_of(data_of(page), "<") == 0);
  const boost::json::value data = boost::json::parse(data_of(page));
  CHECK(data.at("outputs").at(0).at("tensors").at(0).at("name") == boost::json::string(name));
}

TEST_CASE("a tensor that was quantized without any error is marked") {
  Report report = report_of({measured_tensor("a", {1}, {1}), measured_tensor("b", {1}, {2})});
  for (ReportTensor& tensor : report.outputs[0].tensors) tensor.type = &type_named("Q8_0");
  const json::value root = parsed(report);
  CHECK(first_output(root).at("tensors").at(0).at("exact") == true);
  CHECK_FALSE(first_output(root).at("tensors").at(1).as_object().contains("exact"));
}
