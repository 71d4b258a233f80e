// Tests pages in a real browser: the report of a run with five outputs, and one of a thousand tensors in five outputs;
// the plan of the run; a measurement and its curve; a batch. Exits with 77, which ctest treats as skipped, if there is
// no Chromium.
//   browser_test [FOLDER]: keeps pages and screenshots in FOLDER

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <sstream>
#include <stdexcept>

#include "pipeline/io/platform/filesystem.h"
#include "pipeline/report/report.h"
#include "tests/support/files.h"
#include "tests/support/gguf_builder.h"
#include "tests/support/importance_files.h"
#include "tests/support/process.h"
#include "tests/support/report_maker.h"
#include "tests/support/skip.h"
#include "tests/support/temp_dir.h"

namespace ggufmill {
namespace {

using Words = std::vector<std::string>;

constexpr std::string_view kHostile = "</script><b id=pwned><script>pwned=1</script>&amp;";

// Returns $GGUFMILL_BROWSER, or the first browser found in PATH; empty if there is none.
std::string find_browser() {
  if (const char* named = std::getenv("GGUFMILL_BROWSER")) return named;
  const char* path = std::getenv("PATH");
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    std::istringstream folders(path ? path : "");
    for (std::string folder; std::getline(folders, folder, ':');)
      if (fs::exists(fs::path(folder) / name)) return fs::path(folder) / name;
  }
  return "";
}

class Browser {
 public:
  Browser(std::string program, std::string folder) : program_(std::move(program)), folder_(std::move(folder)) {}

  // Returns the DOM of the page after its scripts have run. `scheme` is the color scheme to report to the page: "dark"
  // or "light".
  std::string dom_of(const std::string& page, const std::string& scheme) const {
    return run({"--dump-dom", "file://" + page + "#" + scheme}, scheme, page);
  }
  void take_picture(const std::string& page, const std::string& scheme, const std::string& picture) const {
    run({"--hide-scrollbars", "--screenshot=" + picture, "file://" + page}, scheme, page);
  }

 private:
  // Batch pages are shown in a narrow window.
  std::string run(const Words& more, const std::string& scheme, const std::string& page) const {
    const bool is_narrow = fs::path(page).filename().string().starts_with("batch");
    Words words{"/usr/bin/env",
                "timeout",
                "100",
                program_,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--no-first-run",
                "--user-data-dir=" + folder_ + "/profile",
                is_narrow ? "--window-size=800,1000" : "--window-size=1500,1700",
                "--virtual-time-budget=5000",
                fmt::format("--blink-settings=preferredColorScheme={}", scheme == "dark" ? 0 : 1)};
    words.insert(words.end(), more.begin(), more.end());
    const ProcessResult result = run_process(words, folder_);
    if (result.exit_code != 0)
      throw std::runtime_error(fmt::format("{} ended with {}: {}", program_, result.exit_code, result.err));
    return result.out;
  }

  std::string program_;
  std::string folder_;
};

std::string built(const char* program) { return std::string(GGUFMILL_BUILD_DIR "/") + program; }

void must_run(const Words& words, const std::string& folder) {
  const ProcessResult result = run_process(words, folder);
  if (result.exit_code != 0) throw std::runtime_error(fmt::format("{} failed: {}", words[0], result.err));
}

// Writes importance for some tensors, so that they have a weighted error.
void write_importance(const std::string& path) {
  GgufBuilder file = gguf_importance();
  std::vector<float> sums(256);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = static_cast<float>(i % 10) + 1;
  for (int layer = 0; layer < 6; ++layer) add_entry(file, fmt::format("blk.{}.ffn_down.weight", layer), sums, {1});
  file.write(path);
}

// Converts a model of 12 layers, one of whose tensors has a name that looks like markup, into five outputs; returns
// their report page.
std::string page_of_run(const std::string& folder) {
  Words make{built("tests/ggufmill-make-gguf"), "model.gguf", "tiny", "tensor", std::string(kHostile), "F32", "256x4"};
  for (int layer = 2; layer < 12; ++layer)
    for (const char* part : {"attn_q", "attn_v", "ffn_up", "ffn_down"})
      make.insert(make.end(), {"tensor", fmt::format("blk.{}.{}.weight", layer, part), "F32", "256x8"});
  must_run(make, folder);
  write_importance(folder + "/imatrix.gguf");
  std::string job = "version: 1\nsource: {gguf: model.gguf}\nstages: [{importance: {file: imatrix.gguf}}]\noutputs:\n";
  for (const char* recipe : {"Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q2_K"})
    job += fmt::format("  - {{gguf: 'model-{{recipe}}.gguf', quantize: {}}}\n", recipe);
  write_text(folder + "/job.yaml", job + "report: {error: true, html: run.html}\n");
  must_run({built("bin/ggufmill"), "run", "job.yaml", "--overwrite", "--quiet"}, folder);
  return folder + "/run.html";
}

// Returns the page of that run's plan.
std::string page_of_plan(const std::string& folder) {
  must_run({built("bin/ggufmill"), "plan", "job.yaml", "--html", "plan.html", "--overwrite"}, folder);
  return folder + "/plan.html";
}

// Returns the measurement page of a model with one tensor whose name looks like markup and one tensor of experts.
std::string page_of_measurement(const std::string& folder) {
  must_run({built("tests/ggufmill-make-gguf"), "experts.gguf", "tiny", "tensor", std::string(kHostile) + "weight",
            "F32", "256x4", "tensor", "blk.9.attn_q.weight", "F32", "256x8", "tensor", "blk.9.ffn_down_exps.weight",
            "F32", "256x4x24"},
           folder);
  write_text(folder + "/target.yaml",
             "version: 1\nsource: {gguf: experts.gguf}\noutputs:\n"
             "  - {gguf: target.gguf, quantize: {target: {bits: 5}, candidates: [Q3_K, Q4_K, Q8_0]}}\n");
  must_run({built("bin/ggufmill"), "measure", "target.yaml", "--html", "measured.html"}, folder);
  return folder + "/measured.html";
}

// Returns the page with the curve of that target.
std::string page_of_curve(const std::string& folder) {
  must_run({built("bin/ggufmill"), "plan", "target.yaml", "--curve", "--html", "curve.html", "--overwrite"}, folder);
  return folder + "/curve.html";
}

// Returns the page of a batch with two sources that have long names; one output of each source fails.
std::string page_of_batch(const std::string& folder) {
  const std::string name = "a-model-with-a-name-that-is-rather-long-for-a-table-of-eight-hundred-pixels-";
  for (const char* each : {"1", "2"})
    must_run({built("tests/ggufmill-make-gguf"), name + each + ".gguf", "tiny"}, folder);
  write_text(folder + "/batch.yaml",
             "version: 1\nmatrix: {sources: ['" + name + "*.gguf'], recipes: [Q4_K_M, IQ1_S]}\n" +
                 "outputs: [{gguf: 'out-{name}-{recipe}.gguf', quantize: '{recipe}'}]\nreport: {html: batch.html}\n");
  const ProcessResult result =
      run_process({built("bin/ggufmill"), "run", "batch.yaml", "--overwrite", "--quiet"}, folder);
  if (result.exit_code != 2) throw std::runtime_error("the batch does not fail as it should: " + result.err);
  return folder + "/batch.html";
}

// Returns the checks for each kind of page.
const char* checks_of(const std::string& page) {
  if (page.starts_with("curve")) return "curve_checks.js";
  if (page.starts_with("batch")) return "batch_checks.js";
  if (page.starts_with("plan")) return "map_checks.js";
  return page.starts_with("measured") ? "measure_checks.js" : "page_checks.js";
}

// Returns a page with five outputs of a thousand tensors each.
std::string large_page(const std::string& folder) {
  Report report = testing::report_of({});
  report.outputs.clear();
  for (int output = 0; output < 5; ++output) {
    ReportOutput& described = report.outputs.emplace_back();
    described.files = {{fmt::format("out/model-{}.gguf", output), 1000}};
    for (int i = 0; i < 1000; ++i) {
      const float error = static_cast<float>((i * 7919 + output) % 1000 + 1) / 1e6f;
      const std::string name =
          i == 0 ? std::string(kHostile) : fmt::format("blk.{}.ffn_{}.weight", i / 10, i % 10 ? "up" : "down");
      described.tensors.push_back(testing::measured_tensor(name, {1, 2}, {1, 2 + error}));
    }
  }
  write_text(folder + "/large.html", testing::page_of(report));
  return folder + "/large.html";
}

// Writes a copy of the page with the checks appended.
std::string with_checks(const std::string& page, const std::string& checks) {
  std::string text = read_text(page);
  std::string script = "<script>";
  for (const std::string& file : {std::string("run_checks.js"), checks})
    script += read_text(GGUFMILL_BROWSER_TESTS "/" + file);
  script += "</script>\n";
  text.insert(text.rfind("</body>"), script);
  std::string copy = page.substr(0, page.size() - 5) + "-checked.html";
  write_text(copy, text);
  return copy;
}

// Prints the failed checks and returns their number; at least 1 if not all of them ran.
int count_failures(const std::string& dom, const std::string& what) {
  const std::size_t begin = dom.find("<pre id=\"checks\">"), end = dom.find("</pre>", begin);
  std::istringstream lines(begin == std::string::npos ? "" : dom.substr(begin + 17, end - begin - 17));
  int failures = 0, passed = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    const bool good = line.starts_with("ok ");
    good ? ++passed : ++failures;
    if (!good) std::cout << what << ": " << line << "\n";
  }
  const bool all_ran = dom.find("\nok all checks ran") != std::string::npos;
  if (!all_ran) std::cout << what << ": not all checks ran\n";
  std::cout << what << ": " << passed << " of " << passed + failures << " checks as expected\n";
  return failures + (all_ran ? 0 : 1);
}

int check_pages(const Browser& browser, const std::string& folder) {
  int failures = 0;
  for (const std::string& page : {page_of_run(folder), large_page(folder), page_of_plan(folder),
                                  page_of_measurement(folder), page_of_curve(folder), page_of_batch(folder)})
    for (const char* scheme : {"light", "dark"}) {
      const std::string what = fs::path(page).stem().string() + " " + scheme;
      failures += count_failures(browser.dom_of(with_checks(page, checks_of(what)), scheme), what);
      const std::string picture = page.substr(0, page.size() - 5) + "-" + scheme + ".png";
      browser.take_picture(page, scheme, picture);
      if (!fs::exists(picture) || fs::file_size(picture) < 10000) std::cout << what << ": no picture\n", ++failures;
    }
  return failures;
}

int run(const std::vector<std::string>& arguments) {
  const std::string program = find_browser();
  if (program.empty()) {
    std::cout << "skipped: no Chromium is installed (Debian: apt-get install chromium)\n";
    return kSkippedExitCode;
  }
  const TempDir own;
  const std::string folder = arguments.empty() ? own.path().string() : fs::absolute(arguments[0]).string();
  fs::create_directories(folder);
  return check_pages(Browser(program, folder), folder) == 0 ? 0 : 1;
}

}  // namespace
}  // namespace ggufmill

int main(int argc, char** argv) try {
  return ggufmill::run({argv + 1, argv + argc});
} catch (const std::exception& error) {
  std::cerr << "browser_test: " << error.what() << "\n";
  return 1;
}
