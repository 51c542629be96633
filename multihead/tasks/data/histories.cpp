// Rows to histories, and items to a tokenizer.json.
#include "multihead/tasks/data/histories.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "multihead/base/error.h"
#include "multihead/base/printable.h"
#include "multihead/tasks/readers/table_file.h"

namespace mh {

namespace {

const std::vector<std::string> kSpecials{"<pad>", "<s>", "</s>", "<unk>"};

std::string_view trimmed_cell(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r"), text.size()));
  return text.substr(0, text.find_last_not_of(" \t\r") + 1);
}

std::optional<double> time_of(std::string_view text) {
  double out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(out)) return std::nullopt;
  return out;
}

// Numbers for names, in the order in which they are met.
class Numbering {
 public:
  int32_t of(std::string_view name) {
    const auto [at, is_new] = numbers_.try_emplace(std::string(name), static_cast<int32_t>(names_.size()));
    if (is_new) names_.emplace_back(name);
    return at->second;
  }
  std::vector<std::string> names_{};

 private:
  std::unordered_map<std::string, int32_t> numbers_{};
};

struct Event {
  double time;
  int32_t item;
};

// Of one user, and the line where the first one stands.
struct Events {
  std::vector<Event> all{};
  int64_t line = 0;
};

void leave_out_short(Histories& out, const std::vector<Events>& events, size_t shortest) {
  int64_t dropped = 0, line = 0;
  std::string first;
  std::vector<History> kept;
  const size_t before = out.users.size();
  for (size_t n = 0; n < before; ++n) {
    if (out.users[n].items.size() >= shortest) {
      kept.push_back(std::move(out.users[n]));
      continue;
    }
    if (dropped++ == 0) first = out.users[n].user, line = events[n].line;
  }
  out.users = std::move(kept);
  if (dropped > 0)
    out.report.push_back(fmt::format("{}: left out {} of {} users (the first is {}, line {}): fewer than {} items",
                                     out.name, dropped, before, printable(first), line, shortest));
}

}  // namespace

int64_t Histories::events() const {
  return std::accumulate(users.begin(), users.end(), int64_t{0}, [](int64_t sum, const History& each) {
    return sum + static_cast<int64_t>(each.items.size());
  });
}

Histories read_histories(const std::string& path, const DataConfig& data, const HistoryOptions& options) {
  TableOptions table{
      .columns = {data.user, data.item}, .format = data.format, .header = data.header, .max_broken = data.max_broken};
  if (!data.time.empty()) table.columns.push_back(data.time);
  TableFile file(path, table);
  Numbering items, users;
  std::vector<Events> events;
  while (file.next()) {
    const std::string_view user = trimmed_cell(file.fields()[0]), item = trimmed_cell(file.fields()[1]);
    const std::string_view when = data.time.empty() ? "0" : trimmed_cell(file.fields()[2]);
    const std::optional<double> time = time_of(when);
    if (user.empty() || item.empty()) {
      file.broken().skip(file.line(), user.empty() ? "no user" : "no item");
    } else if (!time) {
      file.broken().add(file.line(), fmt::format("the time {} is no number", printable(when)));
    } else if (std::find(kSpecials.begin(), kSpecials.end(), item) != kSpecials.end()) {
      file.broken().add(file.line(), fmt::format("an item is called {}, as a special token is", printable(item)));
    } else if (options.vocabulary != nullptr && !options.vocabulary->id(item)) {
      file.broken().skip(file.line(), "an item that the model does not know");
    } else {
      const auto number = static_cast<size_t>(users.of(user));
      if (number == events.size()) events.push_back({.line = file.line()});
      events[number].all.push_back({*time, items.of(item)});
    }
  }
  Histories out{.name = path, .items = std::move(items.names_), .report = file.broken().sentences(file.rows())};
  check(file.rows() > 0, "{}: empty; expected rows of user, item and time", printable_path(path));
  for (size_t n = 0; n < events.size(); ++n) {
    std::vector<Event>& all = events[n].all;
    std::stable_sort(all.begin(), all.end(), [](const Event& a, const Event& b) { return a.time < b.time; });
    out.users.push_back({.user = std::move(users.names_[n])});
    for (const Event& each : all) out.users.back().items.push_back(each.item);
  }
  leave_out_short(out, events, options.shortest);
  check(!out.users.empty(), "{}: no user is left; {}", printable_path(path), fmt::join(out.report, "; "));
  return out;
}

Tokenizer item_tokenizer(const Histories& histories) {
  using Json = nlohmann::ordered_json;
  std::vector<int64_t> counts(histories.items.size());
  for (const History& user : histories.users)
    for (const int32_t item : user.items) ++counts[static_cast<size_t>(item)];
  std::vector<size_t> order(histories.items.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return counts[a] != counts[b] ? counts[a] > counts[b] : histories.items[a] < histories.items[b];
  });
  Json::object_t vocabulary;  // by emplace_back: a look-up for each of its keys would make writing quadratic
  Json specials = Json::array();
  for (const std::string& special : kSpecials) {
    specials.push_back({{"id", vocabulary.size()},
                        {"content", special},
                        {"single_word", false},
                        {"lstrip", false},
                        {"rstrip", false},
                        {"normalized", false},
                        {"special", true}});
    vocabulary.emplace_back(special, vocabulary.size());
  }
  for (const size_t item : order) vocabulary.emplace_back(histories.items[item], vocabulary.size());
  const Json file = {{"version", "1.0"},
                     {"truncation", nullptr},
                     {"padding", nullptr},
                     {"added_tokens", specials},
                     {"normalizer", nullptr},
                     {"pre_tokenizer",
                      {{"type", "Split"}, {"pattern", {{"String", "\t"}}}, {"behavior", "Removed"}, {"invert", false}}},
                     {"post_processor", nullptr},
                     {"decoder", nullptr},
                     {"model", {{"type", "WordLevel"}, {"vocab", std::move(vocabulary)}, {"unk_token", "<unk>"}}}};
  return Tokenizer::parse(file.dump(2), "item_tokenizer");
}

std::vector<std::vector<int32_t>> item_ids(const Histories& histories, const Tokenizer& tokenizer) {
  std::vector<int32_t> ids;
  for (const std::string& item : histories.items) {
    const std::optional<int32_t> id = tokenizer.id(item);
    if (!id) fail(ErrorKind::internal, "item_ids: {} is not in the vocabulary", printable(item));
    ids.push_back(*id);
  }
  std::vector<std::vector<int32_t>> out;
  for (const History& user : histories.users) {
    out.emplace_back();
    for (const int32_t item : user.items) out.back().push_back(ids[static_cast<size_t>(item)]);
  }
  return out;
}

int32_t first_item(const Tokenizer& tokenizer) {
  int32_t out = 0;
  while (out < tokenizer.size() && tokenizer.is_special(out)) ++out;
  return out;
}

}  // namespace mh
