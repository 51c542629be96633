// The metrics log: lines and events as others read them, and no step twice however often a run is killed and resumed.
#include "multihead/train/log/metrics_log.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "multihead/train/log/event_file.h"
#include "tests/harness/refusal.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

std::string from_hex(const std::string& hex) {
  std::string out;
  for (size_t i = 0; i < hex.size(); i += 2) out += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return out;
}

std::vector<nlohmann::json> lines(const TemporaryFolder& folder) {
  std::vector<nlohmann::json> out;
  std::istringstream in(text_of(folder / "metrics.jsonl"));
  for (std::string line; std::getline(in, line);) out.push_back(nlohmann::json::parse(line));
  return out;
}

std::vector<int64_t> line_steps(const TemporaryFolder& folder) {
  std::vector<int64_t> out;
  for (const nlohmann::json& line : lines(folder)) out.push_back(line.at("step"));
  return out;
}

std::vector<std::string> event_files(const TemporaryFolder& folder) {
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    if (entry.path().filename().string().find("tfevents") != std::string::npos) out.push_back(entry.path().string());
  return out;
}

// Of the one event file there is; -1 for the two records at its start.
std::vector<int64_t> event_steps(const TemporaryFolder& folder) {
  EXPECT_EQ(event_files(folder).size(), 1u);
  const std::string text = text_of(event_files(folder).front());
  std::vector<int64_t> out;
  std::string_view rest = text;
  while (const auto record = detail::read_event(rest)) {
    out.push_back(record->step.value_or(-1));
    rest.remove_prefix(record->bytes.size());
  }
  EXPECT_TRUE(rest.empty());
  return out;
}

TEST(EventFile, ChecksumIsCastagnolis) {
  EXPECT_EQ(detail::crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(detail::crc32c(""), 0u);
}

// The bytes that TensorBoard 2.21 itself writes for the same events.
TEST(EventFile, RecordsAreTensorBoards) {
  EXPECT_EQ(detail::event_file_start(1.5),
            from_hex("1800000000000000a37f4b2209000000000000f83f1a0d627261696e2e4576656e743a322a28646c"
                     "0d000000000000003c37b83409000000000000f83f3a020801b718825c"));
  EXPECT_EQ(detail::scalar_event(1700000000.25, 300, {{"train/loss", 2.5}, {"größe", -1e-3}}),
            from_hex("31000000000000009d8383e90900001040fc54d94110ac022a230a110a0a747261696e2f6c6f7373150000"
                     "20400a0e0a076772c3b6c39f65156f1283ba96df2e05"));
}

TEST(EventFile, AChangedOrMissingByteIsNoRecord) {
  const std::string whole = detail::scalar_event(1, 70000, {{"x", 1}});
  ASSERT_TRUE(detail::read_event(whole + "more").has_value());
  EXPECT_EQ(detail::read_event(whole + "more")->bytes, whole);
  EXPECT_EQ(detail::read_event(whole)->step, 70000);
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string altered = whole;
    altered[at] = static_cast<char>(altered[at] ^ 4);
    EXPECT_FALSE(detail::read_event(altered).has_value()) << at;
    EXPECT_FALSE(detail::read_event(whole.substr(0, at)).has_value()) << at;
  }
}

TEST(MetricsLog, WritesALineAndAnEventEachTime) {
  const TemporaryFolder folder;
  MetricsLog log(folder / "run");
  log.write(0, {{"valid/loss", 4.5}});
  log.write(12, {{"train/loss", 3.25}, {"train/norm", NAN}});
  // Not closed: what was written is there at once.
  const std::string text = text_of(folder / "run/metrics.jsonl");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2);
  const auto second = nlohmann::ordered_json::parse(text.substr(text.find('\n')));
  EXPECT_EQ(second.dump().substr(0, 19), R"({"step":12,"time":1)");
  EXPECT_EQ(second.at("train/loss"), 3.25);
  EXPECT_TRUE(second.at("train/norm").is_null());
}

TEST(MetricsLog, AResumedRunHasNoStepTwice) {
  const TemporaryFolder folder;
  const auto write = [&](std::optional<int64_t> resumed, std::vector<int64_t> steps) {
    MetricsLog log(folder.path(), resumed);
    for (const int64_t step : steps) log.write(step, {{"x", static_cast<double>(step)}});
  };
  write({}, {0, 10, 20, 30, 40});
  write(20, {30, 40, 50});
  write(20, {30, 35});
  EXPECT_EQ(line_steps(folder), (std::vector<int64_t>{0, 10, 20, 30, 35}));
  EXPECT_EQ(event_steps(folder), (std::vector<int64_t>{-1, -1, 0, 10, 20, 30, 35}));
  EXPECT_EQ(lines(folder).back().at("x"), 35);
  write({}, {5});
  EXPECT_EQ(line_steps(folder), (std::vector<int64_t>{5}));
  EXPECT_EQ(event_steps(folder), (std::vector<int64_t>{-1, -1, 5}));
}

TEST(MetricsLog, AResumedRunDropsWhatAKillCutShort) {
  const TemporaryFolder folder;
  {
    MetricsLog log(folder.path());
    for (const int64_t step : {1, 2}) log.write(step, {{"x", 1}});
  }
  std::filesystem::resize_file(folder / "metrics.jsonl", text_of(folder / "metrics.jsonl").size() - 3);
  const std::string events = event_files(folder).front();
  std::filesystem::resize_file(events, text_of(events).size() - 3);
  // A kill between the new event file and the end of the old one.
  put_text(folder / "events.out.tfevents.1000000000.000000.multihead", text_of(events));

  MetricsLog(folder.path(), 2).write(2, {{"x", 2}});
  EXPECT_EQ(line_steps(folder), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(event_steps(folder), (std::vector<int64_t>{-1, -1, 1, 2}));
}

TEST(MetricsLog, AFailedWriteLeavesWholeLines) {
  const TemporaryFolder folder;
  MetricsLog log(folder.path());
  log.write(1, {{"x", 1}});
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{.rlim_cur = text_of(folder / "metrics.jsonl").size() + 10, .rlim_max = before.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Refusal refusal = refusal_of([&] { log.write(2, {{"x", 2}}); });
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_EQ(refusal.kind, ErrorKind::io);
  EXPECT_TRUE(refusal.says("metrics.jsonl': File too large")) << refusal.sentence;
  log.write(3, {{"x", 3}});
  EXPECT_EQ(line_steps(folder), (std::vector<int64_t>{1, 3}));
}

TEST(MetricsLog, RefusesNamesItCannotTellApart) {
  const TemporaryFolder folder;
  MetricsLog log(folder.path());
  for (const char* name : {"", "step", "time", "\xff"})
    EXPECT_EQ(refusal_of([&] { log.write(1, {{name, 1}}); }).kind, ErrorKind::invalid_argument) << name;
  EXPECT_TRUE(refusal_of([&] { log.write(1, {{"x", 1}, {"x", 2}}); }).says("'x' is taken"));
  EXPECT_TRUE(line_steps(folder).empty());
}

}  // namespace
}  // namespace mh
