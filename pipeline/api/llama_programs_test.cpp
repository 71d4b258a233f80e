#include "pipeline/api/llama_programs.h"

#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("the numbers of llama-perplexity are read, and headings with their names are not") {
  const auto quality = read_quality(
      "chunk             PPL               ln(PPL(Q)/PPL(base))          KL Divergence              Same top p\n"
      "   1      40.1 ± 3.1       0.01 ± 0.01      0.034 ± 0.002    83.333 ± 2.352 %\n"
      "Mean PPL(Q)                   :  51.026428 ±   2.123456\n"
      "Mean PPL(base)                :  48.853747 ±   2.012345\n"
      "Mean    KLD:   0.034504 ±   0.001973\nMaximum KLD:   0.205784\n99.9%   KLD:   0.200000\n"
      "99.0%   KLD:   0.140811\nSame top p: 83.333 ± 2.352 %\n");
  REQUIRE(quality);
  CHECK(quality.value().perplexity == 51.026428);
  CHECK(quality.value().base_perplexity == 48.853747);
  CHECK(quality.value().divergence == 0.034504);
  CHECK(quality.value().divergence_error == 0.001973);
  CHECK(quality.value().divergence_max == 0.205784);
  CHECK(quality.value().divergence_99 == 0.140811);
  CHECK(quality.value().same_top == Approx(0.83333));
}

TEST_CASE("a number that llama-perplexity did not print is named") {
  const auto quality = read_quality("Mean PPL(Q)   :  51.0 ± 2.1\nMean PPL(base)  :  48.8 ± 2.0\n");
  REQUIRE(!quality);
  CHECK(quality.error().what == "'Mean    KLD'");
  CHECK(!read_quality("Mean PPL(Q) : nan\n"));
}

TEST_CASE("chunks are counted as the programs print them, however the text is divided") {
  const std::string imatrix = "compute_imatrix: computing over 3 chunks, n_ctx=512\n[1]5.1,[2]4.9,[3]4.8,\n";
  const std::string perplexity =
      "kl_divergence: computing over 2 chunks\n   1   5.1 ± 0.1\n   2   5.0 ± 0.1\n\n99.0 x\n";
  for (const std::size_t piece : {1, 7, 1000}) {
    ChunkCounter first, second;
    for (std::size_t at = 0; at < imatrix.size(); at += piece) first.read(imatrix.substr(at, piece));
    for (std::size_t at = 0; at < perplexity.size(); at += piece) second.read(perplexity.substr(at, piece));
    CHECK(first.done() == 3);
    CHECK(first.total() == 3);
    CHECK(second.done() == 2);
    CHECK(second.total() == 2);
  }
}
