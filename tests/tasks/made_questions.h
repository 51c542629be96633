// Made-up questions in SQuAD's form: the answer is the word that follows a mark.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "multihead/base/random.h"
#include "tests/harness/temporary_folder.h"

namespace mh::test {

struct MadeQuestions {
  int64_t count = 100;
  uint64_t seed = 1;
  int64_t words = 8;        // of a context, at most
  bool impossible = false;  // every third context has no mark, and no answer
};

inline void write_questions(const std::string& path, const MadeQuestions& made) {
  using Json = nlohmann::json;
  const char* words[] = {"red", "green", "blue", "grey", "pink", "black", "white", "gold"};
  Random random(made.seed);
  Json paragraphs = Json::array();
  for (int64_t n = 0; n < made.count; ++n) {
    std::string context;
    const auto add = [&] { context += (context.empty() ? "" : " ") + std::string(words[random.below(8)]); };
    for (int64_t i = random.below(made.words / 2); i > 0; --i) add();
    Json answers = Json::array();
    if (!made.impossible || n % 3 != 0) {
      context += context.empty() ? "is" : " is";
      const size_t begin = context.size() + 1;
      add();
      answers.push_back({{"text", context.substr(begin)}, {"answer_start", begin}});
    }
    for (int64_t i = 1 + random.below(made.words / 2); i > 0; --i) add();
    paragraphs.push_back(
        {{"context", context},
         {"qas", {{{"id", "q" + std::to_string(n)}, {"question", "what colour ?"}, {"answers", answers}}}}});
  }
  put_text(path, Json{{"data", {{{"title", "made"}, {"paragraphs", paragraphs}}}}}.dump());
}

}  // namespace mh::test
