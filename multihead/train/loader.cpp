// A thread that keeps a few batches ready.
#include "multihead/train/loader.h"

#include <pthread.h>

#include <system_error>
#include <utility>

#include "multihead/base/error.h"
#include "multihead/base/signals_blocked.h"

namespace mh {

namespace {

// Packing takes microseconds where a step takes milliseconds or more: this only has to cover the plan of a new epoch.
constexpr size_t kAhead = 8;

}  // namespace

Loader::~Loader() { stop(); }

std::unique_ptr<Batch> Loader::next() {
  if (!thread_.joinable()) {
    const SignalsBlocked blocked;
    try {
      thread_ = std::thread([this, at = position_] { work(at); });
    } catch (const std::system_error& error) {
      fail(ErrorKind::io,
           "Loader: no thread can be started to prepare batches ({}); expected memory and a thread to be left",
           error.code().message());
    }
    pthread_setname_np(thread_.native_handle(), "mh-loader");
  }
  std::unique_lock guard(lock_);
  changed_.wait(guard, [&] { return !ready_.empty() || failure_; });
  if (ready_.empty()) std::rethrow_exception(failure_);
  Ready ready = std::move(ready_.front());
  ready_.pop_front();
  guard.unlock();
  changed_.notify_one();
  position_ = ready.next;
  return std::move(ready.batch);
}

void Loader::work(Position at) {
  try {
    while (true) {
      std::unique_ptr<Batch> batch = task_.batch(at);
      at = task_.after(at);
      std::unique_lock guard(lock_);
      changed_.wait(guard, [&] { return ready_.size() < kAhead || stopping_; });
      if (stopping_) return;
      ready_.push_back({std::move(batch), at});
      changed_.notify_one();
    }
  } catch (...) {
    const std::lock_guard guard(lock_);
    failure_ = std::current_exception();
    changed_.notify_one();
  }
}

void Loader::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard guard(lock_);
    stopping_ = true;
  }
  changed_.notify_one();
  thread_.join();
  stopping_ = false;
  failure_ = nullptr;
  ready_.clear();
}

void Loader::seek(const Position& position) {
  task_.after(position);  // refuses a batch that is not there
  stop();
  position_ = position;
}

}  // namespace mh
