// fork, exec, and a descriptor of the process to wait for.
#include "tests/cli/hostile/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <iterator>

#include "tests/cli/run_program.h"
#include "tests/harness/child.h"

extern char** environ;

namespace mh::cli {
namespace {

// A run takes a fraction of a second; a busy machine may be hundreds of times as slow.
constexpr int kPatience = 300'000;  // ms

std::string all_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Both ends, closed by exec.
struct Pipe {
  std::array<int, 2> ends{-1, -1};
  Pipe() { EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0); }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_end(size_t which) {
    if (ends[which] >= 0) close(ends[which]);
    ends[which] = -1;
  }
};

// `target` becomes the file, or what `fd` is, or closed. In the child.
void place(const char* path, int flags, int fd, int target) {
  if (path == std::string_view("closed")) {
    close(target);
    return;
  }
  const int opened = *path == '\0' ? fd : open(path, flags | O_CLOEXEC, 0600);
  if (opened < 0 || dup2(opened, target) < 0) _exit(126);
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> environment(const Start& start) {
  std::vector<std::string> out;
  for (char** at = environ; *at; ++at) {
    const std::string_view whole = *at, name = whole.substr(0, whole.find('='));
    bool replaced = false;
    for (const auto& [other, value] : start.variables) replaced |= name == other;
    if (!replaced) out.emplace_back(whole);
  }
  for (const auto& [name, value] : start.variables) out.push_back(name + "=" + value);
  return out;
}

int64_t address_space(pid_t child) {
  std::ifstream status("/proc/" + std::to_string(child) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmPeak:")) return 1024 * std::stoll(line.substr(7));
  return 0;
}

// Whether the process ended within so many milliseconds.
bool ends(int process, int milliseconds) {
  pollfd ready{.fd = process, .events = POLLIN, .revents = 0};
  return poll(&ready, 1, milliseconds) > 0;
}

// Until it has read all that `pipe` held, or ended.
void wait_for_reading(int pipe, int process) {
  int unread = 1;
  for (int i = 0; i < kPatience && unread > 0 && !ends(process, 1); ++i) ioctl(pipe, FIONREAD, &unread);
}

}  // namespace

Ended run_child(const Start& start) {
  std::vector<std::string> words = start.arguments, variables = environment(start);
  words.insert(words.begin(), MH_PROGRAM);
  const std::vector<char*> argv = pointers(words), envp = pointers(variables);
  const std::string out = start.out.empty() ? start.folder + "/stdout" : start.out;
  const std::string err = start.err.empty() ? start.folder + "/stderr" : start.err;
  Pipe input, running;  // `running` ends where exec succeeds
  const pid_t child = fork_child();
  if (child == 0) {
    constexpr int kWrite = O_RDWR | O_CREAT | O_APPEND;
    if (chdir(start.folder.c_str()) != 0) _exit(126);
    place(start.in.c_str(), O_RDONLY, input.ends[0], STDIN_FILENO);
    place(out.c_str(), kWrite, -1, STDOUT_FILENO);
    place(err.c_str(), kWrite, -1, STDERR_FILENO);
    if (start.prepare) start.prepare();
    execve(MH_PROGRAM, argv.data(), envp.data());
    _exit(127);
  }
  Ended ended;
  if (child < 0) return ended;
  const int process = static_cast<int>(syscall(SYS_pidfd_open, child, 0));
  input.close_end(0);
  running.close_end(1);
  char none = 0;
  EXPECT_EQ(read(running.ends[0], &none, 1), 0);
  // Short texts: the pipe takes them whole. A child that reads none of it is no error.
  signal(SIGPIPE, SIG_IGN);
  [[maybe_unused]] const ssize_t given = write(input.ends[1], start.input.data(), start.input.size());
  if (start.after_input) {
    wait_for_reading(input.ends[1], process);
    ended.peak_bytes = address_space(child);
  }
  if (start.signal != 0) syscall(SYS_pidfd_send_signal, process, start.signal, nullptr, 0);
  input.close_end(1);
  ended.in_time = ends(process, kPatience);
  if (!ended.in_time) kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  close(process);
  if (WIFEXITED(status)) ended.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) ended.signal = WTERMSIG(status);
  ended.out = all_of(start.folder + "/stdout");
  ended.err = all_of(start.folder + "/stderr");
  return ended;
}

}  // namespace mh::cli
