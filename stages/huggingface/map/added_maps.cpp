#include "stages/huggingface/map/added_maps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "pipeline/core/text.h"
#include "pipeline/io/input_file.h"
#include "pipeline/io/json_file.h"
#include "pipeline/io/platform/filesystem.h"
#include "pipeline/io/platform/process.h"
#include "pipeline/io/platform/system.h"
#include "pipeline/io/source_path.h"
#include "stages/huggingface/tokenizer/tables.h"

namespace ggufmill::huggingface {
namespace {

constexpr std::string_view kTable = "pre_tokenizers.tsv";

std::vector<MapPlace> with_environment(std::vector<MapPlace> places) {
  const std::string paths = environment_variable(kMapsVariable).value_or("");
  for (std::size_t begin = 0; begin < paths.size();) {
    const std::size_t end = std::min(paths.find(kPathListSeparator, begin), paths.size());
    if (end > begin) places.push_back({paths.substr(begin, end - begin), {std::string("$") + kMapsVariable, {}}});
    begin = end + 1;
  }
  return places;
}

// Returns the line of a table, counted from 1, that contains `row`.
std::size_t line_of(const std::vector<std::string_view>& row, std::string_view table) {
  for (const std::string_view column : row)
    if (!column.empty()) return 1 + static_cast<std::size_t>(std::count(table.data(), column.data(), '\n'));
  return 1;
}

}  // namespace

// Reads the places one after the other; collects the errors of all.
class AddedMaps::Reader {
 public:
  explicit Reader(AddedMaps& into) : into_(into) {}

  void add(const MapPlace& place) {
    if (!known_.insert(place.path).second) return;
    ++places_;
    if (is_address(place.path))
      return fault(error_at(place.origin, fmt::format("architecture maps at the address {}", quoted_name(place.path)),
                            "download them, and give the folder or file"));
    if (is_file(place.path)) return add_file(place, place.path);
    if (!is_folder(place.path)) {
      const std::string_view kind = kind_of_path(place.path);
      return fault(error_at(place.origin,
                            kind.empty() ? fmt::format("{} does not exist", quoted_name(place.path))
                                         : fmt::format("{} is {}", quoted_name(place.path), kind),
                            "give a folder of architecture maps, or a map file (*.yaml)"));
    }
    add_folder(place);
  }

  const Diagnostics& errors() const { return errors_; }

 private:
  void fault(Error error) {
    error.code = ExitCode::kUsage;
    errors_.add(std::move(error));
  }

  void add_folder(const MapPlace& place) {
    const auto paths = paths_in(place.path);
    if (!paths) return fault(paths.error());
    std::size_t found = 0;
    for (const std::string& path : paths.value())
      if (is_file(path) && (path.ends_with(".yaml") || fs::path(path).filename() == kTable)) {
        add_file(place, path);
        ++found;
      }
    if (found == 0)
      fault(error_at(
          place.origin,
          fmt::format("the folder {} has no architecture maps (*.yaml) and no {}", quoted_name(place.path), kTable),
          "`ggufmill architectures new CHECKPOINT -o FILE` writes a first map"));
  }

  void add_file(const MapPlace& place, const std::string& path) {
    if (files_ == kMaxFiles || bytes_ > kMaxBytes) {
      if (std::exchange(is_full_, true)) return;
      return fault(error_at(
          place.origin,
          fmt::format("more than {} files or {} of architecture maps are added", kMaxFiles, human_bytes(kMaxBytes)),
          "give a folder with fewer maps, or the one map that is needed"));
    }
    ++files_;
    const auto text = read_text_file(path, kMaxMapBytes);
    if (!text) return fault(text.error());
    bytes_ += text.value().size();
    const Status read = path.ends_with(".tsv") ? add_table(path, text.value()) : add_map(path, text.value());
    if (!read) fault(read.error());
  }

  Status add_map(const std::string& path, const std::string& text) {
    Map map{fs::path(path).stem().string(), path, places_, {}};
    BOOST_OUTCOME_TRY(map.own, parse_document(text, path, map_form()));
    if (!into_.named(map.name)) into_.maps_.push_back(std::move(map));
    return ok();
  }

  Status add_table(const std::string& path, const std::string& text) {
    into_.tables_.push_back(path);
    PreTokenizers table;
    const auto lines = table_lines(text);
    if (lines.empty() || lines[0].size() < 2 || lines[0][0] != "hash" || lines[0][1] != "pre")
      return input_error(
          path, "the first line that is not a comment must have the names of the columns",
          "write a first line with the names hash, pre, and perhaps repository, with a tab between them");
    for (const auto& row : table_rows(text)) {
      if (row.size() < 2 || !is_pre_tokenizer_hash(row[0]) || row[1].empty())
        return input_error(fmt::format("{}:{}", path, line_of(row, text)),
                           "expected a SHA-256 in 64 lowercase hexadecimal digits, a tab, and a pre-tokenizer's name",
                           "the first line that is not a comment has the names of the columns: hash, pre, repository");
      table.insert_or_assign(std::string(row[0]), std::string(row[1]));
    }
    into_.pre_tokenizers_.merge(table);  // keeps those of earlier places
    return ok();
  }

  AddedMaps& into_;
  Diagnostics errors_;
  std::set<std::string> known_;  // paths of places
  std::size_t places_ = 0, files_ = 0, bytes_ = 0;
  bool is_full_ = false;
};

Result<AddedMaps> AddedMaps::read(const std::vector<MapPlace>& places) {
  AddedMaps maps;
  Reader reader(maps);
  for (const MapPlace& place : with_environment(places)) reader.add(place);
  if (!reader.errors().empty()) return reader.errors().together();
  return maps;
}

const AddedMaps::Map* AddedMaps::named(std::string_view name) const {
  const auto found = std::ranges::find(maps_, name, &Map::name);
  return found == maps_.end() ? nullptr : &*found;
}

namespace {

bool describes(const MapFile& map, std::string_view architecture) {
  return map.name == architecture ||
         std::ranges::any_of(map.other_names, [&](const OtherName& other) { return other.name == architecture; });
}

}  // namespace

Result<MapOfModel> map_of_model(const std::string& architecture, const AddedMaps& added) {
  for (const AddedMaps::Map& each : added.maps())
    if (describes(each.own, architecture)) return MapOfModel{each.path, &each.own};
  if (const BuiltInArchitecture* const same = built_in_named(architecture)) {
    BOOST_OUTCOME_TRY(const MapFile* const own, built_in_file(*same));
    return MapOfModel{architecture, own};
  }
  for (const BuiltInArchitecture& each : built_in_architectures()) {
    if (each.text.find(architecture) == std::string_view::npos) continue;
    BOOST_OUTCOME_TRY(const MapFile* const own, built_in_file(each));
    if (describes(*own, architecture)) return MapOfModel{std::string(each.name), own};
  }
  return MapOfModel{};
}

std::vector<MapPlace> map_places(const std::vector<std::string>& paths) {
  std::vector<MapPlace> places;
  for (const std::string& path : paths) places.push_back({path, {}});
  return places;
}

const AddedMaps& no_added_maps() {
  static const AddedMaps none;
  return none;
}

}  // namespace ggufmill::huggingface
