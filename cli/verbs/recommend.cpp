// `multihead recommend`: what users had in, what they may want next out.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/lines_through.h"
#include "cli/one_line.h"
#include "cli/say.h"
#include "cli/standard_streams.h"
#include "cli/threads_flag.h"
#include "cli/values.h"
#include "cli/verbs.h"
#include "cli/verbs/eval_classes.h"
#include "multihead/base/printable.h"
#include "multihead/tasks/data/histories.h"
#include "multihead/tasks/verbs/recommender.h"

namespace mh::cli {
namespace {

constexpr const char* kRecommendEnd =
    "Every line of stdin is a history: items with tabs between them, the oldest first; an empty line is a user who has\n"
    "none yet. Every line out has the items that are most probably next, the best first, with tabs between them; items\n"
    "of the history are left out. Items that the model does not know are said on stderr and passed over.\n"
    "With --histories the histories of all users are read from a table as it was trained with, rows of user, item and\n"
    "time, and every line out begins with the user and a tab.\n"
    "\n"
    "  multihead new recommend films\n"
    "  multihead train films/config.toml\n"
    "  printf 'The Lighthouse\\tThe Lighthouse II\\n' | multihead recommend films/model -k 3\n"
    "  multihead recommend films/model --histories films/train.tsv --json";

constexpr size_t kHistoriesPerCall = 256;

struct RecommendChoice {
  std::string model, precision = "f32", table;
  RecommendOptions options{};
  bool json = false;
};

std::vector<std::string> items_of_line(std::string_view line) {
  std::vector<std::string> out;
  while (!line.empty()) {
    const size_t tab = line.find('\t');
    if (tab != 0) out.emplace_back(line.substr(0, tab));
    line.remove_prefix(tab == std::string_view::npos ? line.size() : tab + 1);
  }
  return out;
}

// `user`: null where the histories have no names.
std::string recommended(const RecommendChoice& choice, const std::string* user,
                        const std::vector<Recommendation>& found) {
  if (choice.json) {
    nlohmann::ordered_json json = nlohmann::ordered_json::object(), list = nlohmann::ordered_json::array();
    if (user != nullptr) json["user"] = *user;
    for (const Recommendation& each : found) list.push_back({{"item", each.item}, {"score", each.score}});
    json["items"] = list;
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
  }
  std::string out = user != nullptr ? one_line(*user) : "";
  for (const Recommendation& each : found)
    out += (&each == &found.front() && user == nullptr ? "" : "\t") + one_line(each.item);
  return out + '\n';
}

std::string recommend_lines(const RecommendChoice& choice, const Recommender& recommender,
                            std::span<const LineReader::Line> lines, int64_t first) {
  std::vector<std::vector<std::string>> histories;
  for (size_t n = 0; n < lines.size(); ++n) {
    histories.push_back(items_of_line(lines[n].text));
    std::vector<std::string> unknown;
    for (const std::string& item : histories.back())
      if (!recommender.knows(item)) unknown.push_back(item);
    if (!unknown.empty())
      mention("multihead recommend: line {}: the model does not know {} of {} items, the first is {}",
              first + static_cast<int64_t>(n), unknown.size(), histories.back().size(), printable(unknown.front()));
  }
  std::string out;
  for (const auto& found : recommender(histories, choice.options)) out += recommended(choice, nullptr, found);
  return out;
}

void recommend_table(const RecommendChoice& choice, const Recommender& recommender) {
  const Histories read = read_histories(choice.table, config_beside(choice.model).data, {.shortest = 1});
  for (const std::string& sentence : read.report) mention("multihead recommend: {}", sentence);
  std::vector<std::vector<std::string>> histories;
  for (const History& user : read.users) {
    histories.emplace_back();
    for (const int32_t item : user.items) histories.back().push_back(read.items[static_cast<size_t>(item)]);
  }
  std::vector<std::string> unknown;
  for (const std::string& item : read.items)
    if (!recommender.knows(item)) unknown.push_back(item);
  if (!unknown.empty())
    mention("multihead recommend: {}: the model does not know {} of {} items, the first is {}", choice.table,
            unknown.size(), read.items.size(), printable(unknown.front()));
  const auto found = recommender(histories, choice.options);
  std::string out;
  for (size_t n = 0; n < found.size(); ++n) out += recommended(choice, &read.users[n].user, found[n]);
  std::fwrite(out.data(), 1, out.size(), stdout);
  flush_output();
}

int recommend(const RecommendChoice& choice) {
  refuse_stdin_as_stdout();
  const Recommender recommender = Recommender::load(choice.model, precision_named(choice.precision));
  if (!choice.table.empty()) {
    recommend_table(choice, recommender);
    return kDone;
  }
  lines_through("recommend", kHistoriesPerCall, [&](std::span<const LineReader::Line> lines, int64_t first) {
    return recommend_lines(choice, recommender, lines, first);
  });
  return kDone;
}

}  // namespace

void add_recommend(CLI::App& app, int& code) {
  CLI::App* verb = app.add_subcommand("recommend", "say which items come next, for histories of items from stdin");
  auto choice = std::make_shared<RecommendChoice>();
  verb->add_option("MODEL", choice->model, "folder of the model")->type_name("")->required();
  verb->add_option("-k", choice->options.count, "items for each history (10)")
      ->type_name("N")
      ->check(whole_number(1, 1'000'000));
  verb->add_option("--histories", choice->table, "read the histories of all users from this table, not from stdin")
      ->type_name("FILE");
  verb->add_flag("--seen", choice->options.seen, "items of the history may come again");
  verb->add_flag("--json", choice->json, "print a JSON object for each history: items, each with its probability");
  add_precision_flag(*verb, choice->precision);
  add_threads_flag(*verb);
  verb->footer(kRecommendEnd);
  verb->callback([choice, &code] { code = recommend(*choice); });
}

}  // namespace mh::cli
