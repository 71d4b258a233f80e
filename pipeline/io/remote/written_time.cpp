#include "pipeline/io/remote/written_time.h"

#include <chrono>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace ggufmill::remote {
namespace {

// Parts of a time in UTC, as written.
struct WrittenTime {
  unsigned year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
};

// Returns seconds since 1970; 0 if it is not a time.
std::int64_t seconds_of(const WrittenTime& time) {
  namespace chrono = std::chrono;
  const chrono::year_month_day date{chrono::year(static_cast<int>(time.year)), chrono::month(time.month),
                                    chrono::day(time.day)};
  if (!date.ok() || time.hour > 23 || time.minute > 59 || time.second > 60) return 0;
  return chrono::sys_seconds(chrono::sys_days(date)).time_since_epoch().count() + time.hour * 3600 + time.minute * 60 +
         time.second;
}

}  // namespace

std::int64_t seconds_of_http_date(const std::string& text) {
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  WrittenTime time;
  char month[4] = {};
  if (std::sscanf(text.c_str(), "%*3s, %u %3s %u %u:%u:%u GMT", &time.day, month, &time.year, &time.hour, &time.minute,
                  &time.second) != 6)
    return 0;
  const std::size_t at = std::strlen(month) == 3 ? kMonths.find(month) : kMonths.npos;
  time.month = at < kMonths.size() && at % 3 == 0 ? static_cast<unsigned>(at / 3 + 1) : 0;
  return seconds_of(time);
}

std::int64_t seconds_of_iso_time(const std::string& text) {
  WrittenTime time;
  int end = 0;
  if (std::sscanf(text.c_str(), "%4u-%2u-%2u%*1[T ]%2u:%2u:%2u%n", &time.year, &time.month, &time.day, &time.hour,
                  &time.minute, &time.second, &end) != 6)
    return 0;
  const std::int64_t seconds = seconds_of(time);
  std::string_view zone = std::string_view(text).substr(static_cast<std::size_t>(end));
  if (zone.starts_with('.')) {
    const std::size_t digits = zone.find_first_not_of("0123456789", 1);
    zone = digits == zone.npos ? std::string_view() : zone.substr(digits);
  }
  if (seconds == 0 || zone.empty() || zone == "Z" || zone == "UTC") return seconds;
  unsigned hours = 0, minutes = 0;
  std::string digits(zone.substr(1));
  std::erase(digits, ':');
  if (digits.size() != 4 || std::sscanf(digits.c_str(), "%2u%2u", &hours, &minutes) != 2 || hours > 23 || minutes > 59)
    return 0;
  const std::int64_t ahead = hours * 3600 + minutes * 60;
  return zone.front() == '+' ? seconds - ahead : zone.front() == '-' ? seconds + ahead : 0;
}

}  // namespace ggufmill::remote
