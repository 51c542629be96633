// The table's rows for streams, signals, threads, memory and locales, and the verdict on every cell.
#include "tests/cli/hostile/conditions.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>

namespace mh::cli {
namespace {

void make_loud(Start& start) { std::erase(start.arguments, "--quiet"); }

bool reads_stdin(const Sample& sample) { return !sample.input.empty(); }

// `fd` becomes a pipe whose reader is gone. In the child.
void break_pipe(int fd) {
  int ends[2];
  if (pipe(ends) != 0 || dup2(ends[1], fd) < 0) _exit(126);
  close(ends[0]);
  close(ends[1]);
}

// From here on, no thread can be made: as where a limit on processes is reached, which root never meets. In the child.
void forbid_threads() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 2),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),  // the C library then tries clone
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  sock_fprog program{.len = sizeof rules / sizeof rules[0], .filter = rules};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    _exit(126);
}

Condition stream(std::string name, std::string Start::*which, std::string file) {
  return {
      .name = std::move(name),
      .change = [which, file = std::move(file)](const Sample& sample, const Ended& plain, Start& start) {
        start.*which = file;
        const bool hurt = which == &Start::in ? reads_stdin(sample) : which == &Start::out ? !plain.out.empty() : false;
        if (which == &Start::err) make_loud(start);
        return Expected{.codes = {hurt ? 1 : 0}, .same_out = which == &Start::in && !hurt};
      }};
}

Condition broken_pipe(std::string name, int fd) {
  return {.name = std::move(name), .change = [fd](const Sample&, const Ended& plain, Start& start) {
            if (fd == STDERR_FILENO) make_loud(start);
            start.prepare = [fd] { break_pipe(fd); };
            const bool hurt = fd == STDOUT_FILENO && !plain.out.empty();
            return Expected{.codes = {hurt ? 1 : 0, 3}, .speaks = false};  // training saves and stops
          }};
}

Condition signalled(int number, bool waiting) {
  Condition out{.name = fmt::format("signal {} {}", number, waiting ? "while it waits for input" : "as it starts"),
                .change = [number, waiting](const Sample&, const Ended&, Start& start) {
                  start.signal = number;
                  start.after_input = waiting;
                  // Nobody asked it to stop: the pipe of another did break.
                  if (number == SIGPIPE) return Expected{.codes = {0, 3}};
                  return Expected{.codes = {0, 3}, .or_signal = true};
                }};
  if (waiting) out.applies = reads_stdin;
  return out;
}

Condition locale(const std::string& name) {
  return {.name = "LC_ALL=" + name, .change = [name](const Sample&, const Ended&, Start& start) {
            start.variables = {{"LC_ALL", name}, {"LANG", name}, {"LANGUAGE", name.substr(0, 2)}};
            return Expected{.codes = {0}, .same_out = true};
          }};
}

}  // namespace

std::vector<Condition> general_conditions() {
  std::vector<Condition> all = {
      stream("stdin closed", &Start::in, "closed"),
      stream("stdin is a folder", &Start::in, "/"),
      stream("stdout closed", &Start::out, "closed"),
      stream("stdout full", &Start::out, "/dev/full"),
      stream("stderr closed", &Start::err, "closed"),
      stream("stderr full", &Start::err, "/dev/full"),
      broken_pipe("stdout without a reader", STDOUT_FILENO),
      broken_pipe("stderr without a reader", STDERR_FILENO),
      {.name = "all streams closed",
       .change =
           [](const Sample& sample, const Ended& plain, Start& start) {
             make_loud(start);
             start.in = start.out = start.err = "closed";
             return Expected{.codes = {reads_stdin(sample) || !plain.out.empty() ? 1 : 0, 1}, .speaks = false};
           }},
      {.name = "stdin and stdout are the same file",
       .change =
           [](const Sample&, const Ended&, Start& start) {
             start.in = start.out = start.folder + "/text.txt";
             return Expected{.codes = {1}, .part = "same file"};
           },
       .applies = reads_stdin},
      {.name = "a wrong flag",
       .change =
           [](const Sample&, const Ended&, Start& start) {
             start.arguments.push_back("--no-such-flag");
             return Expected{.codes = {2}, .part = "--no-such-flag"};
           }},
      {.name = "a wrong flag, stderr full",
       .change =
           [](const Sample&, const Ended&, Start& start) {
             start.arguments.push_back("--no-such-flag");
             start.err = "/dev/full";
             return Expected{.codes = {2}};
           }},
      {.name = "no threads",
       .change =
           [](const Sample& sample, const Ended&, Start& start) {
             start.variables = {{"MH_THREADS", "3"}};
             start.prepare = forbid_threads;
             return Expected{.codes = {sample.needs_thread ? 1 : 0}, .part = "thread"};
           }},
  };
  for (const char* name : {"de_DE.UTF-8", "tr_TR.UTF-8", "C"}) all.push_back(locale(name));
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGPIPE})
    for (const bool waiting : {false, true}) all.push_back(signalled(number, waiting));
  return all;
}

std::vector<Condition> memory_conditions(int64_t least_bytes) {
  std::vector<Condition> all;
  for (const int64_t more : {1, 4, 16, 64}) {
    const rlim_t bytes = static_cast<rlim_t>(least_bytes) + (static_cast<rlim_t>(more) << 20);
    all.push_back({.name = fmt::format("{} MiB of memory", bytes >> 20),
                   .change = [bytes](const Sample&, const Ended&, Start& start) {
                     start.prepare = [bytes] {
                       const rlimit limit{.rlim_cur = bytes, .rlim_max = bytes};
                       if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(126);
                     };
                     return Expected{.codes = {0, 1}, .part = "memory"};
                   }});
  }
  return all;
}

std::string verdict(const Sample& sample, const Start& start, const Expected& expected, const Ended& plain,
                    const Ended& ended) {
  if (!ended.in_time) return "did not end";
  const bool as_asked = expected.or_signal && ended.signal == start.signal;
  if (as_asked && ended.signal != 0) return "";
  if (ended.signal != 0) return fmt::format("signal {} ended it; stderr: {}", ended.signal, ended.err);
  if (!expected.codes.contains(ended.code)) return fmt::format("exit code {}; stderr: {}", ended.code, ended.err);
  const auto lines = std::count(ended.err.begin(), ended.err.end(), '\n');
  const bool readable = start.err.empty() && !start.arguments.empty() &&
                        std::find(start.arguments.begin(), start.arguments.end(), "--quiet") != start.arguments.end();
  const bool failed = ended.code == 1 || ended.code == 2;
  if (readable && lines != (failed && expected.speaks ? 1 : 0))
    return fmt::format("{} lines on stderr with code {}: {}", lines, ended.code, ended.err);
  if (readable && lines == 1 && (!ended.err.starts_with("multihead") || ended.err.find("std::") != std::string::npos))
    return "no sentence of the program: " + ended.err;
  if (readable && failed && ended.err.find(expected.part) == std::string::npos)
    return fmt::format("'{}' is missing in: {}", expected.part, ended.err);
  if (expected.same_out && sample.repeatable && ended.out != plain.out) return "another output: " + ended.out;
  return "";
}

}  // namespace mh::cli
