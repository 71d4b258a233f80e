// Modules with one defect each (tests/support/modules/defect.c): the checks must find and name it.

#include "pipeline/kernels/check/module_conformance.h"

#include <fmt/format.h>

#include "pipeline/io/platform/system.h"
#include "tests/support/catch.h"

using namespace ggufmill;

namespace {

using Kind = conformance::Finding::Kind;

std::string path_of(const std::string& name) {
  return fmt::format("{0}/{1}/{1}{2}", GGUFMILL_TEST_MODULES, name, GGUFMILL_MODULE_ENDING);
}

ModuleConformance checked(const ConformanceOptions& options) {
  auto result = check_module(options);
  if (!result) FAIL(render(result.error()));
  return std::move(result).value();
}

// Returns the failed checks, one line each: "encode rows: ...".
std::string failures(const ModuleConformance& conformance) {
  std::string text;
  for (const conformance::ConformanceResult& result : conformance.results)
    if (result.finding.kind == Kind::kFailed)
      text += fmt::format("{} {}: {}\n", result.operation, result.check, result.finding.detail);
  return text;
}

struct Defect {
  const char* module;
  const char* found;  // the beginning of a line of failures()
};

constexpr Defect kDefects[] = {
    {"defect_many",
     "encode bounds: writes to byte 1 after the end of the target (3 rows of 32 columns, 36 bytes each)"},
    {"defect_before", "encode bounds: writes to byte 1 before the target"},
    {"defect_few", "encode complete: leaves byte 107 of the target as it was (3 rows of 32 columns, 36 bytes each)"},
    {"defect_block", "encode complete: leaves byte 36 of the target as it was (3 rows of 32 columns, 40 bytes each)"},
    {"defect_header", "encode complete: leaves byte 108 of the target as it was (3 rows of 32 columns, 40 bytes each)"},
    {"defect_rows",
     "encode rows: writes other bytes in row 0 of 2 if each row is a call of its own (65 rows of 32 columns"},
    {"defect_lanes", "encode rows: writes other bytes in row 7 of 8 if each row is a call of its own (65 rows of 32 "},
    {"defect_state", "encode state: writes other bytes after other calls"},
    {"defect_counter", "encode state: writes other bytes after other calls (3 rows of 32 columns, 36 bytes each)"},
    {"defect_race", "encode threads: writes other bytes while other threads call it (2 rows of 2048 columns, "},
    {"defect_threads", "encode threads: writes other bytes while other threads call it"},
    {"defect_beyond", "encode bounds: reads byte 1 after the end of the source"},
    {"defect_importance_beyond", "encode bounds: reads byte 1 after the end of the importance"},
    {"defect_source", "encode bounds: writes to byte 0 of the source, which is read-only"},
    {"defect_importance", "encode importance: writes the same bytes whatever the importance is"},
    {"defect_floats", "encode floats: changes the floating-point environment"},
    {"defect_alignment", "encode alignment: writes other bytes if the memory is aligned for elements only"},
    {"defect_status", "encode status: returns status 7 for ordinary values"},
    {"defect_crash", kIsPosix ? "encode bounds: the process is killed by signal 6"
                              : "encode bounds: the process ends with the exception 0x40000015"},
    {"defect_scratch", "encode bounds: the process "},
    {"defect_zeros", "encode round trip: decoding its output gives values no closer to the input than zeros"},
    {"defect_values",
     "encode values: writes a scale that is not finite for values near zero, as the fields describe it"},
    {"defect_decoder", "decode bounds: reads byte 1 after the end of the target"},
};

}  // namespace

TEST_CASE("a module without defects passes all checks that apply") {
  for (const char* name : {"sound", "mine", "row_header", "version_0"}) {
    const ModuleConformance conformance = checked({path_of(name), "", {}, false, nullptr, nullptr});
    CAPTURE(name);
    CHECK(failures(conformance) == "");
    CHECK(conformance.results.size() == 2 * conformance::kernel_checks().size());
    CHECK(conformance.count(Kind::kPassed) >= 15);
  }
}

TEST_CASE("every defect is found and named") {
  for (const Defect& defect : kDefects) {
    const std::string found = failures(checked({path_of(defect.module), "", {}, false, nullptr, nullptr}));
    INFO(defect.module << ":\n" << found);
    std::string expected = defect.found;
#if !defined(__x86_64__)
    for (const char* verb : {"writes to", "reads"})
      if (const auto at = expected.find(verb); at != expected.npos && expected.find("read-only") == expected.npos)
        expected.replace(at, std::string_view(verb).size(), "reads or writes");
#endif
    CHECK(("\n" + found).find("\n" + expected) != std::string::npos);
  }
}

TEST_CASE("checks that need the result of one that failed are skipped") {
  for (const auto& [module, failed] : {std::pair("defect_many", "bounds"), std::pair("defect_status", "status"),
                                       std::pair("defect_counter", "state")}) {
    const ModuleConformance conformance = checked({path_of(module), "", {}, false, nullptr, nullptr});
    INFO(failures(conformance));
    CHECK(conformance.count(Kind::kFailed) == 1);
    for (const conformance::ConformanceResult& result : conformance.results)
      if (result.operation == "encode" && result.check == "rows")
        CHECK(result.finding.detail == fmt::format("needs `{}`, which failed", failed));
  }
  for (const conformance::ConformanceResult& result :
       checked({path_of("defect_decoder"), "", {}, false, nullptr, nullptr}).results)
    if (result.operation == "encode" && result.check == "values")
      CHECK(result.finding.detail == "needs the decoder, which fails `bounds`");
}

TEST_CASE("a collision with a loaded module is found") {
  const auto loaded = Kernels::load({{fmt::format("{}/registered_type", GGUFMILL_TEST_MODULES)}, ""}).value();
  const std::string other = path_of("registered_type_other");
  const std::string found = failures(checked({other, "", {}, false, nullptr, loaded.get()}));
  CHECK(
      found.starts_with("decode collisions: the module 'other' defines type 'IQ4_K' (id 139) differently than the "
                        "module 'variant'\n"));
  CHECK(failures(checked({other, "", {}, false, nullptr, nullptr})).find("collisions") == std::string::npos);
  // A module is not compared with another build of itself.
  const std::string same = failures(checked({path_of("own_type"), "", {}, false, nullptr, loaded.get()}));
  CHECK(same.find("collisions") == std::string::npos);
}

TEST_CASE("memory that remains allocated is found") {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)
  GGUFMILL_SKIP("the heap has no statistics in this build");
#endif
  const std::string found = failures(checked({path_of("defect_heap"), "", {}, false, nullptr, nullptr}));
  CHECK(found.starts_with("encode heap: leaves "));  // the heap may take the first chunks from its cache
}

TEST_CASE("bytes are compared with those of another module") {
  CHECK(failures(checked({path_of("sound"), path_of("sound"), {}, false, nullptr, nullptr})) == "");
  const std::string found =
      failures(checked({path_of("own_type_rebuilt"), path_of("own_type"), {}, false, nullptr, nullptr}));
  INFO(found);
  CHECK(found.find("\nencode reference: encode X_OWN, seed 1, input ") != std::string::npos);
  const std::string decoder =
      failures(checked({path_of("defect_reference"), path_of("sound"), {}, false, nullptr, nullptr}));
  CHECK(decoder.find("\ndecode reference: decode X_SOUND, seed 1, input ") != std::string::npos);
  const std::string alone = failures(checked({path_of("defect_reference"), "", {}, false, nullptr, nullptr}));
  CHECK(alone.starts_with("encode round trip: "));
  CHECK(alone.find("reference: ") == std::string::npos);
}

TEST_CASE("rows of another size than the reference's are found before their bytes") {
  const std::string found = failures(checked({path_of("defect_block"), path_of("sound"), {}, false, nullptr, nullptr}));
  CHECK(
      found.find("decode reference: has 40 bytes for 32 elements after a row header of 0 bytes, but the reference has "
                 "36 bytes for 32 elements after a row header of 0 bytes\n") != std::string::npos);
}

TEST_CASE("kernels are timed, beside those that they are compared with") {
  const auto times = checked({path_of("sound"), path_of("sound"), {}, true, nullptr, nullptr}).times;
  REQUIRE(times.size() == 3);  // the encoder with and without importance, and the decoder
  for (const conformance::KernelTime& time : times) {
    CHECK(time.rate > 0);
    CHECK(time.reference > 0);
  }
  CHECK(times[1].weighted);
}

TEST_CASE("only the kernels of some types are checked") {
  CHECK(checked({path_of("sound"), "", {"x_sound"}, false, nullptr, nullptr}).results.size() ==
        2 * conformance::kernel_checks().size());
  const auto none = check_module({path_of("sound"), "", {"Q4_K"}, false, nullptr, nullptr});
  REQUIRE_FALSE(none);
  CHECK(none.error().code == ExitCode::kKernel);
  CHECK(none.error().what == "the module has no kernel of Q4_K");
}

TEST_CASE("a module that the host refuses is not checked") {
  const auto refused = check_module({path_of("operation"), "", {}, false, nullptr, nullptr});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ExitCode::kKernel);
  CHECK(refused.error().what == "the kernel module is refused: a kernel has the unknown operation 3");
}
