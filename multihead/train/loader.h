// Prepares the batches of a task ahead of their use, on a thread of its own.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "multihead/tasks/task.h"

namespace mh {

class Loader {
 public:
  // Keeps a reference to `task`.
  explicit Loader(const Task& task) : task_(task) {}
  ~Loader();
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Epoch after epoch, without end. Throws: OutOfMemory; io where no thread can be started.
  std::unique_ptr<Batch> next();
  // What the next batch is.
  Position position() const { return position_; }
  // The batches after it are those that a loader which came there by itself gives, bit for bit.
  // Throws: invalid_argument for a batch that the epoch has not.
  void seek(const Position& position);

 private:
  struct Ready {
    std::unique_ptr<Batch> batch;
    Position next;
  };
  void work(Position at);
  void stop();

  const Task& task_;
  Position position_;

  std::mutex lock_;
  std::condition_variable changed_;
  std::deque<Ready> ready_;     // behind the lock, as all that follows
  std::exception_ptr failure_;  // what ended the thread
  bool stopping_ = false;
  std::thread thread_;  // runs from the first next() on
};

}  // namespace mh
