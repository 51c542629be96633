// Every verb of the program through every row of the table of hostile conditions.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>

#include "tests/cli/hostile/conditions.h"
#include "tests/cli/run_program.h"
#include "tests/harness/temporary_folder.h"

namespace mh::cli {
namespace {

namespace fs = std::filesystem;

struct Flag {
  std::string command, name, value, limits, about;
};

// The program's own list: a line for every flag of every verb.
std::vector<Flag> program_flags() {
  std::vector<Flag> out;
  std::istringstream lines(run("reference flags").out);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    Flag flag;
    for (std::string* field : {&flag.command, &flag.name, &flag.value, &flag.limits, &flag.about})
      std::getline(fields, *field, '\t');
    out.push_back(flag);
  }
  return out;
}

std::map<std::string, std::string> files_below(const std::string& folder) {
  std::map<std::string, std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const bool readable = fs::is_regular_file(entry.symlink_status()) && access(entry.path().c_str(), R_OK) == 0;
    if (readable) out[entry.path().lexically_relative(folder)] = text_of(entry.path());
  }
  return out;
}

class Hostile : public Program {
 protected:
  void SetUp() override {
    Program::SetUp();
    if (IsSkipped()) return;
    make_inputs(folder_ / "inputs");
    ASSERT_FALSE(samples().empty());
  }

  Start start_of(const Sample& sample) {
    Start start{.arguments = sample.words(), .folder = folder_ / fmt::format("cell{}", next_++), .input = sample.input};
    start.arguments.push_back("--quiet");
    fs::copy(folder_ / "inputs", start.folder, fs::copy_options::recursive);
    return start;
  }

  // How a verb ends where nothing is wrong.
  void run_plain() {
    in_parallel(samples().size(), [&](size_t n) {
      const Sample& sample = samples()[n];
      const Start start = start_of(sample);
      const Ended ended = run_child(start);
      const std::lock_guard guard(lock_);
      EXPECT_EQ(verdict(sample, start, {.codes = {0}}, {}, ended), "") << sample.command;
      if (!sample.output.empty() && sample.brief.empty()) {
        EXPECT_TRUE(fs::exists(start.folder + "/" + sample.output)) << sample.command;
      }
      plain_[&sample] = ended;
      made_[&sample] = made(sample, start);
    });
  }

  // The file it wrote; nothing where that is a folder.
  static std::string made(const Sample& sample, const Start& start) {
    const std::string path = start.folder + "/" + sample.output;
    return !sample.output.empty() && fs::is_regular_file(path) ? text_of(path) : "";
  }

  void run_cell(const Sample& sample, const Condition& condition) {
    if (condition.applies && !condition.applies(sample)) return;
    Start start = start_of(sample);
    const Expected expected = condition.change(sample, plain_[&sample], start);
    const auto before = files_below(start.folder);
    const Ended ended = run_child(start);
    std::string wrong = verdict(sample, start, expected, plain_[&sample], ended);
    for (const auto& [file, text] : before)
      if (wrong.empty() && (!fs::exists(start.folder + "/" + file) || text_of(start.folder + "/" + file) != text))
        wrong = file + " was changed";
    if (wrong.empty() && ended.code == 0 && expected.same_made && made(sample, start) != made_[&sample])
      wrong = sample.output + " is not what it is otherwise";
    const std::lock_guard guard(lock_);
    ++cells_;
    EXPECT_EQ(wrong, "") << sample.command << ": " << condition.name;
    fs::permissions(start.folder + "/locked", fs::perms::owner_all, none_);
    fs::remove_all(start.folder, none_);
  }

  void walk(const std::function<std::vector<Condition>(const Sample&)>& conditions) {
    run_plain();
    std::vector<std::pair<const Sample*, Condition>> cells;
    for (const Sample& sample : samples())
      for (Condition& each : conditions(sample)) cells.emplace_back(&sample, std::move(each));
    ASSERT_GE(cells.size(), samples().size());
    in_parallel(cells.size(), [&](size_t n) { run_cell(*cells[n].first, cells[n].second); });
    EXPECT_GT(cells_, 0);
  }

  static void in_parallel(size_t count, const std::function<void(size_t)>& work) {
    std::atomic<size_t> next{0};
    const auto worker = [&] {
      for (size_t n; (n = next++) < count;) work(n);
    };
    std::thread other(worker);
    worker();
    other.join();
  }

  TemporaryFolder folder_;
  std::map<const Sample*, Ended> plain_;
  std::map<const Sample*, std::string> made_;
  std::mutex lock_;
  std::atomic<int> next_{0};
  int cells_ = 0;
  std::error_code none_;
};

TEST_F(Hostile, EveryVerbHasASample) {
  std::set<std::string> verbs, sampled;
  for (const Flag& flag : program_flags()) verbs.insert(flag.command);
  for (const Sample& sample : samples()) sampled.insert(sample.command);
  EXPECT_FALSE(verbs.empty());
  EXPECT_EQ(verbs, sampled) << "tests/cli/hostile/samples.cpp has a command line for every verb";
}

TEST_F(Hostile, EveryOutputIsSampled) {
  int outputs = 0;
  for (const Flag& flag : program_flags()) {
    if (!std::set<std::string>{"--out", "--output", "--record", "--show"}.contains(flag.name)) continue;
    ++outputs;
    // One verb stands for all that have --show: they write the page in one place.
    EXPECT_TRUE(std::any_of(samples().begin(), samples().end(),
                            [&](const Sample& sample) {
                              return sample.output_flag == flag.name &&
                                     (flag.name == "--show" || sample.command == flag.command);
                            }))
        << flag.command << " " << flag.name;
  }
  EXPECT_GT(outputs, 5);
}

TEST_F(Hostile, EveryNumberNamesItsLimits) {
  int numbers = 0;
  for (const Flag& flag : program_flags()) {
    if (!std::set<std::string>{"N", "X", "P", "S", "TYPE", "PASS", "FORM", "LIST"}.contains(flag.value)) continue;
    ++numbers;
    EXPECT_NE(flag.limits, "") << flag.command << " " << flag.name;
    const Ran ran = run(flag.command + " " + flag.name + " no_such_value", true);
    EXPECT_EQ(ran.code, 2) << ran.out;
    EXPECT_NE(ran.out.find(flag.limits), std::string::npos) << ran.out;
    EXPECT_EQ(std::count(ran.out.begin(), ran.out.end(), '\n'), 1) << ran.out;
  }
  EXPECT_GT(numbers, 20);
}

TEST_F(Hostile, StreamsSignalsThreadsAndLocales) {
  walk([](const Sample&) { return general_conditions(); });
}

TEST_F(Hostile, FilesThatAreReadAndAreNone) { walk(input_conditions); }

TEST_F(Hostile, OutputsThatMustNotBeWritten) { walk(output_conditions); }

TEST_F(Hostile, TooLittleMemory) {
  // What the program needs to start at all.
  const auto encode = std::find_if(samples().begin(), samples().end(),
                                   [](const Sample& sample) { return sample.command == "tokenizer encode"; });
  Start start = start_of(*encode);
  start.variables = {{"MH_THREADS", "1"}};
  start.after_input = true;
  const Ended ended = run_child(start);
  ASSERT_GT(ended.peak_bytes, 0);
  walk([&](const Sample&) { return memory_conditions(ended.peak_bytes); });
}

}  // namespace
}  // namespace mh::cli
