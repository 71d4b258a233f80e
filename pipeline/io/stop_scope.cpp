#include "pipeline/io/stop_scope.h"

#include <utility>

namespace ggufmill {
namespace {

thread_local const std::atomic<bool>* stop_now = nullptr;

}  // namespace

StopScope::StopScope(const std::atomic<bool>* stop) : before_(std::exchange(stop_now, stop)) {}
StopScope::~StopScope() { stop_now = before_; }

const std::atomic<bool>* stop_of_thread() { return stop_now; }

}  // namespace ggufmill
