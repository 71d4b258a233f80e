#pragma once
// Forms of records, the JSON objects that ggufmill writes into files of its own and reads again. One form does both: a
// list of members, each bound to a member of a struct, in the order in which they are written.
//
//   const RecordForm<Submission> kSubmission{member("parts", &Submission::parts_id),
//                                            member("seal", &Submission::seal_id)};
//   json::object written = kSubmission.write(submission);
//   Submission read = kSubmission.read(written);
//
// Reading throws InvalidJson if a member is missing or of another kind, or if a check finds a problem. Members without
// a row are ignored. Forms are immutable and can be shared between threads.

#include <fmt/format.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cmath>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "pipeline/core/json.h"

namespace ggufmill {

// Functions that write a kind of value, and read it from the member `name` of an object.
template <class Value>
struct RecordKind {
  std::function<boost::json::value(const Value& value)> write;
  std::function<Value(const boost::json::value& object, std::string_view name)> read;
};

// ---- kinds of values ----

template <class Value>
struct UsualKind;  // types without a usual kind have none

template <>
struct UsualKind<std::string> {
  static RecordKind<std::string> make() {
    return {[](const std::string& text) { return boost::json::value(text); }, needed_text};
  }
};

// Numbers from 0. An integer has to fit its type.
template <class Value>
requires(std::is_unsigned_v<Value> && !std::is_same_v<Value, bool>) struct UsualKind<Value> {
  static RecordKind<Value> make() {
    return {[](const Value& number) { return boost::json::value(number); },
            [](const boost::json::value& object, std::string_view name) {
              const std::uint64_t number = needed_number(object, name);
              if (number > std::numeric_limits<Value>::max()) throw InvalidJson{fmt::format("'{}' is too large", name)};
              return static_cast<Value>(number);
            }};
  }
};

// A missing member is false.
template <>
struct UsualKind<bool> {
  static RecordKind<bool> make() {
    return {[](const bool& flag) { return boost::json::value(flag); },
            [](const boost::json::value& object, std::string_view name) { return json_flag(object, name); }};
  }
};

// null, or a value.
template <class Value>
struct UsualKind<std::optional<Value>> {
  static RecordKind<std::optional<Value>> make() { return of(UsualKind<Value>::make()); }
  static RecordKind<std::optional<Value>> of(RecordKind<Value> kind) {
    return {[write = std::move(kind.write)](const std::optional<Value>& value) {
              return value ? write(*value) : boost::json::value();
            },
            [read = std::move(kind.read)](const boost::json::value& object, std::string_view name) {
              return needed(object, name).is_null() ? std::nullopt : std::optional<Value>(read(object, name));
            }};
  }
};

// A list. `read_item` reads an item of the list `name`.
template <class Value, class Write, class Read>
RecordKind<std::vector<Value>> list_kind(Write write_item, Read read_item) {
  return {[write_item](const std::vector<Value>& values) {
            boost::json::array list;
            for (const Value& each : values) list.push_back(write_item(each));
            return boost::json::value(std::move(list));
          },
          [read_item](const boost::json::value& object, std::string_view name) {
            std::vector<Value> values;
            for (const boost::json::value& each : needed_list(object, name)) values.push_back(read_item(each, name));
            return values;
          }};
}

template <>
struct UsualKind<std::vector<std::string>> {
  static RecordKind<std::vector<std::string>> make() {
    return list_kind<std::string>([](const std::string& text) { return boost::json::value(text); },
                                  [](const boost::json::value& item, std::string_view name) {
                                    if (item.is_string()) return std::string(item.get_string());
                                    throw InvalidJson{fmt::format("an element of '{}' is not a string", name)};
                                  });
  }
};

template <>
struct UsualKind<std::vector<double>> {
  static double number_of(const boost::json::value& item, std::string_view name) {
    const double read = item.is_double()   ? item.get_double()
                        : item.is_int64()  ? static_cast<double>(item.get_int64())
                        : item.is_uint64() ? static_cast<double>(item.get_uint64())
                                           : -1;
    if (read >= 0 && !std::isinf(read)) return read;
    throw InvalidJson{fmt::format("'{}' is not a number from 0", name)};
  }
  static RecordKind<std::vector<double>> make() {
    return list_kind<double>([](double number) { return boost::json::value(number); }, number_of);
  }
};

template <>
struct UsualKind<double> {
  static RecordKind<double> make() {
    return {[](const double& number) { return boost::json::value(number); },
            [](const boost::json::value& object, std::string_view name) {
              return UsualKind<std::vector<double>>::number_of(needed(object, name), name);
            }};
  }
};

template <class Value>
requires(std::is_unsigned_v<Value> && sizeof(Value) == 8) struct UsualKind<std::vector<Value>> {
  static RecordKind<std::vector<Value>> make() {
    return list_kind<Value>([](Value number) { return boost::json::value(number); },
                            [](const boost::json::value& item, std::string_view name) {
                              if (!item.is_int64() && !item.is_uint64())
                                throw InvalidJson{fmt::format("an element of '{}' is not an integer", name)};
                              if (item.is_int64() && item.get_int64() < 0)
                                throw InvalidJson{fmt::format("an element of '{}' is negative", name)};
                              return item.to_number<Value>();
                            });
  }
};

// A value that is written as a word: `word_of` returns it, and `value_of` the value of a word, or nullopt.
template <class Value, class WordOf, class ValueOf>
RecordKind<Value> word_kind(WordOf word_of, ValueOf value_of, std::string_view wrong) {
  return {[word_of](const Value& value) { return boost::json::value(word_of(value)); },
          [value_of, wrong](const boost::json::value& object, std::string_view name) -> Value {
            const std::optional<Value> value = value_of(needed_text(object, name));
            if (value) return *value;
            throw InvalidJson{fmt::format("'{}' {}", name, wrong)};
          }};
}

// The kind with a check, which throws InvalidJson.
template <class Value, class Check>
RecordKind<Value> checked_kind(RecordKind<Value> kind, Check check) {
  return {std::move(kind.write),
          [read = std::move(kind.read), check](const boost::json::value& object, std::string_view name) {
            Value value = read(object, name);
            check(value, name);
            return value;
          }};
}

// ---- forms ----

template <class Record>
struct RecordMember {
  std::string name;
  std::function<void(const Record& record, boost::json::object& to)> write;
  std::function<void(const boost::json::value& object, Record& into)> read;
};

template <class Record, class Value>
RecordMember<Record> member(std::string_view name, Value Record::*bound, RecordKind<Value> kind) {
  return {std::string(name),
          [name = std::string(name), bound, write = std::move(kind.write)](
              const Record& record, boost::json::object& to) { to[name] = write(record.*bound); },
          [name = std::string(name), bound, read = std::move(kind.read)](
              const boost::json::value& object, Record& into) { into.*bound = read(object, name); }};
}

template <class Record, class Value>
RecordMember<Record> member(std::string_view name, Value Record::*bound) {
  return member(name, bound, UsualKind<Value>::make());
}

template <class Record>
class RecordForm {
 public:
  RecordForm(std::initializer_list<RecordMember<Record>> members) : members_(members) {}

  boost::json::object write(const Record& record) const {
    boost::json::object object;
    add(record, object);
    return object;
  }
  // Adds the members to an object.
  void add(const Record& record, boost::json::object& to) const {
    for (const RecordMember<Record>& each : members_) each.write(record, to);
  }
  Record read(const boost::json::value& object) const {
    Record record{};
    for (const RecordMember<Record>& each : members_) each.read(object, record);
    return record;
  }

  // The record as a member of another one, and a list of such records. The form must outlive the kind.
  RecordKind<Record> kind() const {
    return {[this](const Record& record) { return boost::json::value(write(record)); },
            [this](const boost::json::value& object, std::string_view name) { return read(needed(object, name)); }};
  }
  RecordKind<std::vector<Record>> list() const {
    return list_kind<Record>([this](const Record& record) { return write(record); },
                             [this](const boost::json::value& item, std::string_view) { return read(item); });
  }

 private:
  std::vector<RecordMember<Record>> members_;
};

}  // namespace ggufmill
