// Validation against its definition: every token's probability taken alone.
#include "multihead/train/validation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/decode/tiny_model.h"
#include "tests/harness/temporary_folder.h"

namespace mh {
namespace {

class Validations : public testing::Test {
 protected:
  Validations() {
    put_text(folder_ / "pairs.tsv", "the cat\tdie Katze\na dog\tein Hund\nthe dog sat\tder Hund sass da\ncat\tKatze\n");
    text_ = PairText({.source = folder_ / "pairs.tsv"});
    tokenizer_ = train_bpe({"the cat a dog sat die Katze ein der Hund sass da"}, {.vocabulary = 270});
    data_ = Dataset(text_, tokenizer_, 40);
  }

  // The mean of -log p over all target tokens, ends included.
  double by_definition(const Transformer& model) const {
    double sum = 0;
    int64_t tokens = 0;
    for (int64_t n = 0; n < data_.size(); ++n) {
      const std::vector<int32_t> source(data_.source(n).begin(), data_.source(n).end());
      std::vector<int32_t> target(data_.target(n).begin(), data_.target(n).end()), written;
      target.push_back(model.config().end);
      for (const int32_t token : target) {
        sum -= test::log_p(model, source, written)[static_cast<size_t>(token)];
        written.push_back(token);
        ++tokens;
      }
    }
    return sum / static_cast<double>(tokens);
  }

  TemporaryFolder folder_;
  PairText text_;
  Tokenizer tokenizer_;
  Dataset data_;
};

TEST_F(Validations, TheLossIsTheMeanOverAllTokensHoweverTheyAreBatched) {
  Transformer model = test::tiny_model(tokenizer_.size());
  const double wanted = by_definition(model);
  for (const int64_t tokens : {1, 9, 4096}) {
    const Validation v = validate(model, tokenizer_, text_, data_, {.tokens_per_batch = tokens});
    EXPECT_NEAR(v.loss, wanted, 1e-5 * wanted) << tokens;  // a hundred roundings of f32
    EXPECT_EQ(v.perplexity, std::exp(v.loss));
    EXPECT_EQ(v.bleu, -1);
    EXPECT_EQ(v.chrf, -1);
  }
}

TEST_F(Validations, TranslationsAreScoredWhereTheyAreAskedFor) {
  Transformer model = test::tiny_model(tokenizer_.size());
  const Validation v = validate(model, tokenizer_, text_, data_, {.sentences = 2});
  EXPECT_GE(v.bleu, 0);
  EXPECT_GE(v.chrf, 0);
}

}  // namespace
}  // namespace mh
