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

TEST_CASE("a type that a gain does not help gets none") {
  CHECK(encoder_for(search_encoder(), type_named("Q6_K"), true).gain == Gain::kNone);
  CHECK(encoder_for(search_encoder(), type_named("Q6_K"), true).is_search());
}

TEST_CASE("every type with a gain has at most two scales, which are halves") {
  for (const TypeInfo& type : built_in_types()) {
    if (!has_gain(type)) continue;
    INFO(type.name);
    CHECK((type.scales().format == FieldFormat::kF16 || type.scales().format == FieldFormat::kIq1m));
    CHECK(type.scales().count <= 2);
    CHECK(1024 % type.block_elements == 0);
  }
}

TEST_CASE("a type whose lattice is not recognised has none") {
  CHECK(encoder_for(search_encoder(), type_named("Q2_K"), true).lattice == Lattice::kOff);
  CHECK(encoder_for(search_encoder(), type_named("Q4_0"), true).lattice == Lattice::kAuto);
}

TEST_CASE("the greatest effort compensates unless it is told not to") {
  CHECK(usual_compensation(2) == Compensation::kNone);
  CHECK(usual_compensation(3) == Compensation::kRows);
}

TEST_CASE("a type whose search cannot compensate does not") {
  Encoder wanted = search_encoder();
  wanted.compensation = Compensation::kRows;
  CHECK(encoder_for(wanted, type_named("Q4_K"), true).compensation == Compensation::kRows);
  CHECK(encoder_for(wanted, type_named("IQ3_S"), true).compensation == Compensation::kNone);
}

TEST_CASE("errors are measured without compensation") {
  Encoder encoder = search_encoder();
  encoder.compensation = Compensation::kRows;
  CHECK(as_measured(encoder) == search_encoder());
}

TEST_CASE("an encoder is described with the options that it has") {
  CHECK(describe(reference_encoder()) == "reference");
  CHECK(describe({&reference_method(), Gain::kRow, 0, {}, Lattice::kAuto}) == "reference with row gain, lattice");
  CHECK(describe(search_encoder()) == "search (effort 2, row gain, lattice)");
  CHECK(describe({&search_method(), Gain::kRow, 3, SearchWeights::kPlain, Lattice::kOff, Compensation::kRows}) ==
        "search (effort 3, plain weights, compensation, row gain)");
}
