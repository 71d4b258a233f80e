#include "pipeline/journal/journal.h"

#include <array>
#include <cstring>

#include "pipeline/io/temporary_file.h"
#include "pipeline/plan/written.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/plan_maker.h"
#include "tests/support/temp_dir.h"

using namespace ggufmill;
using namespace ggufmill::testing;

namespace {

using Numbers = std::vector<std::uint64_t>;

// Two tensors, each with two encodings; all rows of a tensor are one unit.
Plan small_plan(const std::string& folder) {
  return plan_of(
      {{"a", shape_of({32, 4}), "F32", {"F16", "BF16"}, false}, {"b", shape_of({64}), "F32", {"F16", "BF16"}, false}},
      folder);
}

// A journal of the plan in which these units are done, with checksums that depend on the unit.
std::string journal_of(const Plan& plan, const std::vector<std::uint32_t>& units) {
  const std::string line = journal_header(plan, "id");
  std::string text = line;
  for (const std::uint32_t unit : units) text += journal_record(unit, Numbers{unit + 10, unit + 20}, line);
  return text;
}

JournalText read(const std::string& text) {
  auto journal = read_journal(text, "x.journal");
  if (!journal) FAIL(render(journal.error()));
  return std::move(journal).value();
}

Numbers units_in(const JournalText& journal) {
  Numbers units;
  for (const JournalText::Record& record : journal.done) units.push_back(record.unit);
  return units;
}

std::string refusal(const std::string& text) {
  const auto journal = read_journal(text, "x.journal");
  if (journal) FAIL("it is read");
  CHECK(journal.error().code == ExitCode::kBadInput);
  return render(journal.error());
}

constexpr std::uint32_t kSealed = ~std::uint32_t{0};

}  // namespace

TEST_CASE("the first line of a journal has the plan's identity, units, and sources") {
  const Plan plan = small_plan("folder");
  const JournalText journal = read(journal_header(plan, "id"));
  CHECK(journal.identity == "id");
  CHECK(journal.ggufmill == GGUFMILL_VERSION);
  CHECK(journal.units == 2);
  REQUIRE(journal.sources.size() == 1);
  CHECK(journal.sources[0].path == "folder/source.gguf");
  CHECK(journal.sources[0].bytes == plan.sources[0]->bytes);
}

TEST_CASE("records of a journal are read in their order, with their checksums") {
  const std::string text = journal_of(small_plan("folder"), {1, 0});
  const JournalText journal = read(text);
  CHECK(units_in(journal) == Numbers{1, 0});
  CHECK(journal.done[0].checksums == Numbers{11, 21});
  CHECK(journal.bytes == text.size());
  CHECK_FALSE(journal.is_damaged);
}

TEST_CASE("a journal that ends within a record is that of a killed run") {
  const Plan plan = small_plan("folder");
  const std::string first = journal_of(plan, {0}), both = journal_of(plan, {0, 1});
  for (std::size_t bytes = first.size(); bytes < both.size(); ++bytes) {
    const JournalText journal = read(both.substr(0, bytes));
    CAPTURE(bytes);
    CHECK(units_in(journal) == Numbers{0});
    CHECK(journal.bytes == first.size());
    CHECK_FALSE(journal.is_damaged);
  }
}

TEST_CASE("a journal is valid up to the first byte that has changed") {
  const Plan plan = small_plan("folder");
  const std::string first = journal_of(plan, {0}), all = journal_of(plan, {0, 1, 0});
  std::string text = all;
  text[first.size() + 9] ^= 1;  // in a checksum of the second record
  const JournalText journal = read(text);
  CHECK(units_in(journal) == Numbers{0});
  CHECK(journal.is_damaged);
}

TEST_CASE("records do not count after the first line of another journal") {
  const Plan plan = small_plan("folder");
  const std::string record = journal_record(0, Numbers{1, 2}, journal_header(plan, "other"));
  CHECK(read(journal_header(plan, "id") + record).done.empty());
}

TEST_CASE("a journal has the identities of files that are about to be renamed") {
  const Plan plan = small_plan("folder");
  const std::string line = journal_header(plan, "id");
  const std::string text = line + journal_record(kSealed, Numbers{7, 100, 7, 101}, line);
  CHECK(read(text).sealed == std::vector<FileId>{{7, 100}, {7, 101}});
}

TEST_CASE("a unit that is done after the files were complete means that they are not") {
  const Plan plan = small_plan("folder");
  const std::string line = journal_header(plan, "id");
  const std::string text =
      line + journal_record(kSealed, Numbers{7, 100, 7, 101}, line) + journal_record(1, Numbers{1, 2}, line);
  CHECK(read(text).sealed.empty());
}

TEST_CASE("a file that is not a journal is refused") {
  const std::string wrong = "x.journal: error: its first line is not a journal header\n";
  CHECK(refusal("") == wrong);
  CHECK(refusal("no newline") == wrong);
  CHECK(refusal("{}\n") == wrong);
  CHECK(refusal("{\"format\":\"ggufmill journal\",\"version\":1,\"units\":-1,\"sources\":[]}\n") == wrong);
  CHECK(refusal("{\"format\":\"ggufmill journal\",\"version\":1,\"units\":1,\"sources\":[{}]}\n") == wrong);
}

TEST_CASE("a journal of a later version is refused") {
  CHECK(refusal("{\"format\":\"ggufmill journal\",\"version\":2}\n") ==
        "x.journal: error: its version is not supported\n");
}

TEST_CASE("no journal of a plan is longer than its bound") {
  const Plan plan = small_plan("folder");
  const std::string line = journal_header(plan, "id");
  const std::string text = journal_of(plan, {0, 1, 0, 1}) + journal_record(kSealed, Numbers{1, 2, 3, 4}, line);
  CHECK(text.size() <= most_journal_bytes(plan));
}

TEST_CASE("the journal is a hidden file next to the first output") {
  CHECK(journal_path(small_plan("folder"), "id") == "folder/.out-0.gguf.ggufmill-id.journal");
}

TEST_CASE("a plan without outputs has no journal") { CHECK(journal_path(Plan(), "id").empty()); }

TEST_CASE("a run without an earlier journal starts over, with a journal of its own") {
  const TempDir folder;
  const Plan plan = small_plan(folder.path());
  const auto journal = Journal::open(plan).value();
  CHECK_FALSE(journal->goes_on());
  CHECK(journal->restart_reason().empty());
  CHECK(names_in(folder.path()).empty());
}

TEST_CASE("an unusable journal is the reason to start over") {
  const TempDir folder;
  const Plan plan = small_plan(folder.path());
  write_text(journal_path(plan, identity_of(plan)), "{}\n");
  const auto journal = Journal::open(plan).value();
  CHECK_FALSE(journal->goes_on());
  CHECK(journal->restart_reason() == "its journal cannot be used: its first line is not a journal header");
}

TEST_CASE("a journal with the name of this plan, but of another one, is the reason to start over") {
  const TempDir folder;
  const Plan plan = small_plan(folder.path());
  write_text(journal_path(plan, identity_of(plan)), journal_header(plan, "other"));
  CHECK(Journal::open(plan).value()->restart_reason() == "its journal belongs to another plan");
}

TEST_CASE("while one run keeps a journal, another run of the plan has to wait") {
  const TempDir folder;
  const Plan plan = small_plan(folder.path());
  write_text(journal_path(plan, identity_of(plan)), journal_header(plan, identity_of(plan)));
  const auto first = Journal::open(plan);
  REQUIRE(first);
  const auto second = Journal::open(plan);
  REQUIRE_FALSE(second);
  CHECK(second.error().code == ExitCode::kTransient);
  CHECK(second.error().where == plan.outputs[0].files[0].path);
}
