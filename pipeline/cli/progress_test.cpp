#include "pipeline/cli/progress.h"

#include "pipeline/api/table.h"
#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("progress shows the bar, percentage, bytes, rate, and time left") {
  CHECK(progress_text(512ull << 20, 1ull << 30, 4) ==
        "############............  50%  512.00 MiB of 1.00 GiB  134 MB/s  4 s left");
}

TEST_CASE("progress of zero bytes is complete") {
  CHECK(progress_text(0, 0, 0) == "######################## 100%  0 B of 0 B  0 MB/s");
}

TEST_CASE("long times are shown in hours") {
  CHECK(progress_text(1 << 20, 1ull << 40, 1).find(" 291:16 h left") != std::string::npos);
}

TEST_CASE("a progress line fits a terminal of any width") {
  const std::string name =
      "models/a-rather-long-folder/\xe6\xa8\xa1\xe5\x9e\x8b\x1b[31m/Llama-3.1-70B-Instruct-IQ2_XXS.gguf";
  for (std::size_t columns = 1; columns < 200; ++columns) {
    const std::vector<std::string> lines = progress_lines({{name, 5ull << 30, 9ull << 30}}, 100, columns, 24);
    CAPTURE(columns, lines);
    REQUIRE(lines.size() == 1);
    if (columns > 7) CHECK(display_width(lines[0]) < columns);
    if (columns > 7) CHECK(lines[0].find("56%") != std::string::npos);
    CHECK(lines[0].find('\x1b') == std::string::npos);
  }
  CHECK(progress_lines({{"a.gguf", 512ull << 20, 1ull << 30}}, 4, 120, 24)[0] ==
        "a.gguf  ############............  50%  512.00 MiB of 1.00 GiB  134 MB/s  4 s left");
}

TEST_CASE("the bar is shown in 80 columns or fewer") {
  const ProgressItem item{"models/Llama-3.1-70B-Instruct-IQ2_XXS.gguf", 512ull << 20, 1ull << 30};
  CHECK(progress_lines({item}, 4, 80, 24)[0] ==
        "models/L..._XXS.gguf  ####....  50%  512.00 MiB of 1.00 GiB  134 MB/s  4 s left");
  CHECK(progress_lines({item}, 4, 72, 24)[0] ==
        "models/Ll...2_XXS.gguf  ####....  50%  512.00 MiB of 1.00 GiB  4 s left");
  for (std::size_t columns = 36; columns < 200; ++columns) {
    const std::string line = progress_lines({item}, 4, columns, 24)[0];
    CAPTURE(columns, line);
    CHECK(line.find("####....") != std::string::npos);
  }
}

TEST_CASE("a log has one line for a run, at most once a minute") {
  std::vector<ProgressItem> items{{"out/a.gguf", 512ull << 20, 1ull << 30}};
  CHECK(progress_log_line(items, 4) == "out/a.gguf   50%  512.00 MiB of 1.00 GiB  134 MB/s  4 s left");
  items.push_back({"out/b.gguf", 0, 1ull << 30});
  CHECK(progress_log_line(items, 4) == "2 files   25%  512.00 MiB of 2.00 GiB  134 MB/s  12 s left");
  CHECK(progress_pace(false, LogFormat::kText) == std::chrono::minutes(1));
  CHECK(progress_pace(true, LogFormat::kText) < std::chrono::seconds(1));
}

TEST_CASE("items beyond the rows of the terminal are summed in the last line") {
  std::vector<ProgressItem> items;
  for (int i = 0; i < 25; ++i) items.push_back({"out-" + std::to_string(i) + ".gguf", 1ull << 30, 2ull << 30});
  CHECK(progress_lines(items, 1, 100, 30).size() == 25);
  const std::vector<std::string> lines = progress_lines(items, 1, 100, 11);
  REQUIRE(lines.size() == 10);
  CHECK(lines[8].find("out-8.gguf ") == 0);
  CHECK(lines[9].find("16 more files ") == 0);
  CHECK(lines[9].find("16.00 GiB of 32.00 GiB") != std::string::npos);
  CHECK(progress_lines(items, 1, 100, 2).size() == 1);
}

TEST_CASE("the line of a program fits the terminal") {
  const std::string name = "Meta-Llama-3.1-70B-Instruct-Q4_K_M.gguf";
  CHECK(chunks_line("quality", name, 12, 100, 0) ==
        "quality of Meta-Llama-3.1-70B-Instruct-Q4_K_M.gguf  12 of 100 chunks");
  CHECK(chunks_line("quality", name, 0, 0, 0) == "quality of Meta-Llama-3.1-70B-Instruct-Q4_K_M.gguf");
  const std::string line = chunks_line("quality", name, 12, 100, 49);
  CHECK(line.size() <= 49);
  CHECK(line.starts_with("quality of Meta"));
  CHECK(line.ends_with("  12 of 100 chunks"));
}
