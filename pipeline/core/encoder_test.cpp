#include "pipeline/core/encoder.h"

#include "tests/support/catch.h"

using namespace ggufmill;

TEST_CASE("the weights of a search depend on the importance") {
  CHECK(encoder_for(search_encoder(), type_named("Q4_K"), true).weights == SearchWeights::kQuarter);
  CHECK(encoder_for(search_encoder(), type_named("Q4_K"), false).weights == SearchWeights::kPlain);
}

TEST_CASE("weights that were asked for do not depend on the importance") {
  Encoder wanted = search_encoder();
  wanted.weights = SearchWeights::kGgml;
  CHECK(encoder_for(wanted, type_named("Q4_K"), true) == wanted);
}

TEST_CASE("a type without a search gets the reference") {
  CHECK(encoder_for(search_encoder(), type_named("TQ2_0"), true) == reference_encoder());
}

TEST_CASE("a type whose lattice is not recognised has none") {
  CHECK(encoder_for(search_encoder(), type_named("Q2_K"), true).lattice == Lattice::kOff);
  CHECK(encoder_for(search_encoder(), type_named("Q4_0"), true).lattice == Lattice::kAuto);
}

TEST_CASE("an encoder is described with the options that it has") {
  CHECK(describe(reference_encoder()) == "reference");
  CHECK(describe({&reference_method(), 0, {}, Lattice::kAuto}) == "reference with lattice");
  CHECK(describe(search_encoder()) == "search (effort 3, lattice)");
  CHECK(describe({&search_method(), 2, SearchWeights::kPlain, Lattice::kOff}) == "search (effort 2, plain weights)");
}

TEST_CASE("a tensor or type without a covariance is encoded by the search that would have come before") {
  const Encoder wanted = covariance_encoder();
  const Encoder used = encoder_for(wanted, type_named("Q4_K"), true, true);
  CHECK(used.is_covariance());
  CHECK(used.weights == SearchWeights::kQuarter);
  CHECK(start_of(used) == encoder_for(search_encoder(), type_named("Q4_K"), true));
  CHECK(encoder_for(wanted, type_named("Q4_K"), true, false) == start_of(used));
  CHECK(encoder_for(wanted, type_named("IQ1_S"), true, true) ==
        encoder_for(search_encoder(), type_named("IQ1_S"), true));
  CHECK(encoder_for(wanted, type_named("TQ2_0"), true, true) == reference_encoder());
  CHECK(encoder_for(used, type_named("Q4_K"), true, true) == used);
}

TEST_CASE("a choice from a code book starts from the default encoder") {
  const Encoder used = encoder_for(covariance_encoder(), type_named("IQ3_S"), true, true);
  CHECK(used.is_covariance());
  CHECK_FALSE(used.searches());
  CHECK(describe(used) == "covariance (chosen shrinkage, damp 0.01, 2 sweeps)");
  CHECK(encoder_for(covariance_encoder(), type_named("IQ3_S"), true, false).is_search());
}

TEST_CASE("the text of the encoder 'covariance' has its options") {
  CHECK(describe(covariance_encoder()) == "covariance (effort 3, lattice, chosen shrinkage, damp 0.01, 2 sweeps)");
  CHECK(types_with(covariance_method()) ==
        "Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K, IQ2_XXS, IQ2_XS, "
        "IQ3_XXS, IQ4_NL, IQ3_S, IQ2_S, IQ4_XS, MXFP4, NVFP4");
}
