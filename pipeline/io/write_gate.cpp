#include "pipeline/io/write_gate.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <utility>

namespace ggufmill {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

double WriterCount::throughput_of(unsigned writers) const {
  const auto level = static_cast<unsigned>(std::bit_width(writers)) - 1;
  return level < kLevels ? throughput_[level] : 0;
}

void WriterCount::try_level(unsigned level) {
  is_trying_ = level != settled_;
  level_ = level;
  value_ = 1u << level;
  until_look_ = kBeforeLook;
}

void WriterCount::measured(double throughput) {
  // The settled number is measured often: its mean is compared with what is on trial.
  double& known = throughput_[level_];
  known = is_trying_ || known == 0 ? throughput : known + kNew * (throughput - known);
  if (!is_trying_) {
    if (--until_look_ > 0) return;
    looks_up_ = !looks_up_;
    const bool up = settled_ == 0 || (looks_up_ && settled_ + 1 < kLevels);
    return try_level(up ? settled_ + 1 : settled_ - 1);
  }
  if (level_ == settled_) return try_level(level_ + 1);  // the first measurement of all
  const unsigned more = std::max(level_, settled_), fewer = std::min(level_, settled_);
  const bool is_worthwhile = throughput_[more] >= kWorthwhile * throughput_[fewer];
  const unsigned better = is_worthwhile ? more : fewer;
  const bool goes_on = better == level_;  // in the direction of the trial
  const bool up = level_ > settled_;
  settled_ = better;
  if (goes_on && up && better + 1 < kLevels) return try_level(better + 1);
  if (goes_on && !up && better > 0) return try_level(better - 1);
  try_level(better);
}

void WriteGate::start(IoService& io, WriteTarget& file, std::uint64_t offset, std::span<const std::byte> from,
                      IoService::Completion done) {
  const Write write{&io, &file, offset, from, std::make_shared<IoService::Completion>(std::move(done))};
  {
    const std::scoped_lock lock(mutex_);
    if (active_ >= count_.value()) return waiting_.push_back(write);
    ++active_;
  }
  try {
    begin(write);
  } catch (...) {
    ended(0);
    throw;
  }
}

// If this throws, nothing has been started.
void WriteGate::begin(const Write& write) {
  write.io->write(*write.file, write.offset, write.from,
                  [this, bytes = write.from.size(), done = write.done](const Status& status) {
                    ended(bytes);
                    (*done)(status);
                  });
}

// Counts a write of `bytes` as ended, and starts those that may start now.
void WriteGate::ended(std::uint64_t bytes) {
  {
    const std::scoped_lock lock(mutex_);
    --active_;
    const double now = seconds_now();
    if (waiting_.empty()) {
      is_sampling_ = false;
    } else if (!is_sampling_) {
      is_sampling_ = true;
      sample_start_ = now;
      sample_bytes_ = 0;
    } else if (sample_bytes_ += bytes; sample_bytes_ >= kSampleBytes && now > sample_start_) {
      count_.measured(static_cast<double>(sample_bytes_) / (now - sample_start_));
      is_sampling_ = false;  // the next sample begins when the writes of this number of writers have ended
    }
    if (active_ == 0 && waiting_.empty()) idle_.notify_all();
  }
  start_waiting();
}

bool WriteGate::when_idle(const std::function<void()>& work) {
  {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return is_cancelled_ || (active_ == 0 && waiting_.empty()); });
    if (is_cancelled_) return false;
    ++active_;
  }
  work();
  {
    const std::scoped_lock lock(mutex_);
    --active_;
    is_sampling_ = false;  // no write was made meanwhile
  }
  start_waiting();
  return true;
}

void WriteGate::cancel() {
  const std::scoped_lock lock(mutex_);
  is_cancelled_ = true;
  idle_.notify_all();
}

void WriteGate::start_waiting() {
  for (Write write; next(write);) {
    try {
      begin(write);
    } catch (...) {
      {
        const std::scoped_lock lock(mutex_);
        --active_;
      }
      (*write.done)(error_of_exception());
    }
  }
}

// Takes the write that may start now; returns false if there is none.
bool WriteGate::next(Write& write) {
  const std::scoped_lock lock(mutex_);
  if (waiting_.empty() || active_ >= count_.value()) return false;
  write = std::move(waiting_.front());
  waiting_.pop_front();
  ++active_;
  return true;
}

std::string WriteGate::findings() const {
  const std::scoped_lock lock(mutex_);
  std::string measured;
  for (unsigned writers = 1; writers <= WriterCount::kMax; writers *= 2)
    if (const double throughput = count_.throughput_of(writers); throughput > 0)
      measured += fmt::format("{}{}: {:.1f} GB/s", measured.empty() ? "" : ", ", writers, throughput / 1e9);
  if (measured.empty()) return "";
  return fmt::format("{} at a time ({})", count_.value(), measured);
}

}  // namespace ggufmill
