// Passes on what comes in any order in the order it belongs.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace mh::cli {

// Texts with the numbers 0, 1, 2, … come from any threads; each is passed on as soon as all before it have been, by one
// thread at a time.
class InOrder {
 public:
  explicit InOrder(std::function<void(size_t number, const std::string& text)> pass_on)
      : pass_on_(std::move(pass_on)) {}

  void put(size_t number, std::string text) {
    const std::lock_guard lock(mutex_);
    waiting_[number] = std::move(text);
    for (auto at = waiting_.find(next_); at != waiting_.end(); at = waiting_.find(next_)) {
      pass_on_(next_, at->second);
      waiting_.erase(at);
      ++next_;
    }
  }

 private:
  std::function<void(size_t number, const std::string& text)> pass_on_;
  std::mutex mutex_;
  std::map<size_t, std::string> waiting_;
  size_t next_ = 0;
};

}  // namespace mh::cli
