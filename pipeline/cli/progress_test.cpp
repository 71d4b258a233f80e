#include "pipeline/cli/progress.h"

#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("progress shows bar, share, bytes, rate and time left") {
  CHECK(progress_text(512ull << 20, 1ull << 30, 4) ==
        "############............  50%  512.00 MiB of 1.00 GiB  134 MB/s  4 s left");
}

TEST_CASE("progress of nothing is complete") {
  CHECK(progress_text(0, 0, 0) == "######################## 100%  0 B of 0 B  0 MB/s");
}

TEST_CASE("long times are in hours") {
  CHECK(progress_text(1 << 20, 1ull << 40, 1).find(" 291:16 h left") != std::string::npos);
}
