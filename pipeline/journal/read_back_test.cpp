#include "pipeline/journal/read_back.h"

#include <cstring>

#include "pipeline/plan/slabs.h"
#include "tests/support/catch.h"
#include "tests/support/plan_maker.h"

using namespace ggufmill;
using namespace ggufmill::testing;

namespace {

// The output files of a plan in memory, with every unit written, and the records of all units.
struct WrittenPlan {
  Plan plan = plan_of(
      {{"a", shape_of({32, 4}), "F32", {"F16", "BF16"}, false}, {"b", shape_of({64}), "F32", {"F16", "BF16"}, false}},
      "folder");
  std::vector<std::string> files;
  std::vector<JournalText::Record> records;

  WrittenPlan() {
    for (const PlannedOutput& output : plan.outputs) {
      std::string file = output.files[0].header;
      file.resize(output.files[0].bytes);
      files.push_back(file);
    }
    for (std::uint32_t unit = 0; unit < plan.units.size(); ++unit) write(unit);
  }

  FileReader reader() const {
    return [this](std::size_t index, std::uint64_t offset, std::span<std::byte> into) {
      std::memcpy(into.data(), files.at(index).data() + offset, into.size());
      return Status(ok());
    };
  }
  Status check() const { return check_units(plan, reader(), records, 2, nullptr); }
  // The position of the first byte of a unit in output `output`.
  std::uint64_t start(std::uint32_t unit, std::size_t output) const {
    return plan.steps[plan.units[unit].step].encodings[output].places[0].offset;
  }

 private:
  void write(std::uint32_t unit) {
    const Step& step = plan.steps[plan.units[unit].step];
    JournalText::Record record{unit, {}};
    for (std::size_t i = 0; i < step.encodings.size(); ++i) {
      const std::uint64_t row = step.expression->shape.columns() * 2, bytes = plan.units[unit].rows * row;
      const std::string text(bytes, static_cast<char>('a' + unit));
      files[i].replace(start(unit, i), bytes, text);
      record.checksums.push_back(checksum(std::as_bytes(std::span(text)), row, 0));
    }
    records.push_back(record);
  }
};

using Units = std::vector<bool>;

HeldUnits held_in(const WrittenPlan& written, const std::vector<JournalText::Record>& records) {
  return find_held(written.plan, written.reader(), records, 2, nullptr).value();
}

}  // namespace

TEST_CASE("a unit is held if its bytes match its record") {
  const WrittenPlan written;
  const HeldUnits held = held_in(written, written.records);
  CHECK(held.units == Units{true, true});
  CHECK(held.lost == 0);
}

TEST_CASE("a unit is lost if a byte has changed in one of its places") {
  WrittenPlan written;
  written.files[1][written.start(1, 1)] ^= 1;
  const HeldUnits held = held_in(written, written.records);
  CHECK(held.units == Units{true, false});
  CHECK(held.lost == 1);
}

TEST_CASE("a unit without a record is neither held nor lost") {
  const WrittenPlan written;
  const HeldUnits held = held_in(written, {written.records[1]});
  CHECK(held.units == Units{false, true});
  CHECK(held.lost == 0);
}

TEST_CASE("the last record of a unit counts") {
  const WrittenPlan written;
  const JournalText::Record wrong{0, {1, 2}};
  CHECK(held_in(written, {wrong, written.records[0]}).units == Units{true, false});
  CHECK(held_in(written, {written.records[0], wrong}).units == Units{false, false});
}

TEST_CASE("a record with another number of checksums does not match") {
  const WrittenPlan written;
  CHECK(held_in(written, {{0, {written.records[0].checksums[0]}}}).lost == 1);
}

TEST_CASE("records of units that the plan does not have are ignored") {
  const WrittenPlan written;
  CHECK(held_in(written, {{2, {1, 2}}}).lost == 0);
}

TEST_CASE("an error of a read is that of the search") {
  const WrittenPlan written;
  const FileReader broken = [](std::size_t, std::uint64_t, std::span<std::byte>) -> Status {
    return io_error("out", "read", 5);
  };
  const auto held = find_held(written.plan, broken, written.records, 2, nullptr);
  REQUIRE_FALSE(held);
  CHECK(held.error().where == "out");
}

TEST_CASE("a search that is stopped is interrupted") {
  const WrittenPlan written;
  const std::atomic<bool> stop{true};
  const auto held = find_held(written.plan, written.reader(), written.records, 2, &stop);
  REQUIRE_FALSE(held);
  CHECK(held.error().code == ExitCode::kInterrupted);
}

TEST_CASE("complete files have all units") { CHECK(WrittenPlan().check()); }

TEST_CASE("changed rows of a complete file are an error that names them") {
  WrittenPlan written;
  written.files[0][written.start(0, 0) + 70] ^= 1;
  const Status status = written.check();
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ExitCode::kIo);
  CHECK(status.error().where == "folder/out-0.gguf");
  CHECK(status.error().detail == "tensor 'a', rows 0 to 3, is not what was written");
}

TEST_CASE("headers and the padding between tensors are checked") {
  WrittenPlan written;
  CHECK(check_frames(written.plan, written.reader(), nullptr));
  SECTION("a byte of a header") { written.files[0][5] ^= 1; }
  SECTION("a byte after the last tensor") {
    written.plan.outputs[0].files[0].bytes += 32;
    written.files[0] += std::string(31, '\0') + "x";
  }
  const Status status = check_frames(written.plan, written.reader(), nullptr);
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ExitCode::kIo);
  CHECK(status.error().detail == "its header or the padding between its tensors is not what was written");
}
