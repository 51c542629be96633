// The C ABI for models that read texts: loading, and labels, entities, answers, fillings and vectors.
#include "multihead/c_models.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "multihead/base/printable.h"
#include "multihead/c_boundary.h"
#include "multihead/c_model.h"
#include "multihead/tasks/results/result_json.h"
#include "multihead/tasks/verbs/sentence_modules.h"

namespace mh::detail {

// Refuses a model of another task by the name of the call that it is for.
void check_task(const char* op, const mh_model* model, bool (*fits)(const FolderFacts& facts)) {
  check(model != nullptr, "{}: model is null; expected one of mh_model_load", op);
  if (fits(model->facts)) return;
  constexpr std::array<std::string_view, 8> kCalls{"classify", "tag",      "answer",    "fill",
                                                   "embed",    "generate", "translate", "summarise"};
  const bool has_call =
      model->facts.head != HeadKind::image && std::find(kCalls.begin(), kCalls.end(), model->verb) != kCalls.end();
  fail(ErrorKind::invalid_argument, "{}: {} is a {}, which is not for this call; {}", op, printable_path(model->folder),
       model->facts.description(), has_call ? fmt::format("use mh_{}", model->verb) : model->facts.advice());
}

Strings strings_of(const char* op, const char* what, const char* const* list, int64_t count) {
  check(count >= 0, "{}: the number of {} is {}; expected 0 or more", op, what, count);
  check(list != nullptr || count == 0, "{}: {} is null; expected {} strings", op, what, count);
  Strings out;
  for (int64_t n = 0; n < count; ++n) {
    check(list[n] != nullptr, "{}: number {} of {} is null; expected a string", op, n + 1, what);
    out.emplace_back(list[n]);
  }
  return out;
}

Strings texts_alone(const char* op, const mh_texts* given) {
  const mh_texts texts = known_part(op, "texts", given);
  check(texts.pair == nullptr, "{}: pair is given; expected null, as texts stand alone here", op);
  return strings_of(op, "text", texts.text, texts.count);
}

}  // namespace mh::detail

namespace {

using mh::HeadKind;
using mh::detail::array_of;
using mh::detail::check_task;
using mh::detail::give_result;
using mh::detail::given_options;
using mh::detail::Strings;
using mh::detail::strings_of;
using mh::detail::texts_alone;

// Of a folder whose modules.json keeps the model in a folder of its own, what that one is.
mh::FolderFacts facts_with_modules(const std::string& folder) {
  std::error_code ignored;
  const auto stands = [&](const char* file) { return std::filesystem::exists(folder + file, ignored); };
  if (stands("/config.json") || !stands("/modules.json")) return mh::folder_facts(folder);
  mh::FolderFacts facts = mh::folder_facts(mh::read_sentence_modules(folder).model_folder);
  facts.sentence_transformer = true;
  return facts;
}

bool embeds(const mh::FolderFacts& facts) {
  const bool reads_text = facts.head != HeadKind::image && facts.head != HeadKind::contrastive;
  return facts.layout == mh::FolderFacts::Layout::hugging_face && reads_text && facts.head != HeadKind::seq2seq_lm;
}

// As Classifier reads them: of a pair with a tab between the two.
Strings texts_or_pairs(const char* op, const mh_texts* given) {
  const mh_texts texts = mh::detail::known_part(op, "texts", given);
  Strings out = strings_of(op, "text", texts.text, texts.count);
  if (texts.pair == nullptr) return out;
  const Strings pair = strings_of(op, "pair", texts.pair, texts.count);
  for (size_t n = 0; n < out.size(); ++n) {
    mh::check(out[n].find('\t') == std::string::npos, "{}: text {} of a pair has a tab; expected none", op, n + 1);
    out[n].append("\t").append(pair[n]);
  }
  return out;
}

std::string classified(const char* op, const mh_model& model, const Strings& texts, const mh_classify_options& o) {
  std::vector<mh::Classification> found;
  Strings labels;
  if (o.labels != nullptr || o.label_count != 0) {
    labels = strings_of(op, "labels", o.labels, o.label_count);
    mh::ZeroShotOptions how{.multi = o.multi != 0};
    if (o.hypothesis) how.hypothesis = o.hypothesis;
    found = model.zero_shot.get(model.folder, model.compute)(texts, labels, how);
  } else {
    mh::check(o.multi == 0 && o.hypothesis == nullptr, "{}: multi and hypothesis go with labels; there are none", op);
    const mh::Classifier& classifier = model.classifier.get(model.folder, model.compute);
    labels = classifier.labels();
    found = classifier(texts);
  }
  if (o.all == 0) labels.clear();
  return array_of(found.size(), [&](size_t n) { return mh::to_json(found[n], labels); });
}

mh::Aggregation aggregation_of(const char* op, int32_t given) {
  constexpr std::array kAll{mh::Aggregation::first, mh::Aggregation::none, mh::Aggregation::simple,
                            mh::Aggregation::average, mh::Aggregation::max};  // as mh_aggregation has them
  mh::check(given >= 0 && given < static_cast<int32_t>(kAll.size()),
            "{}: the aggregation is {}; expected one of mh_aggregation", op, given);
  return kAll[static_cast<size_t>(given)];
}

}  // namespace

extern "C" {

mh_status mh_model_load(const char* folder, const mh_model_options* options, mh_model** out) {
  constexpr const char* op = "mh_model_load";
  return mh::detail::guarded([&] {
    mh::check(folder != nullptr, "{}: folder is null; expected the name of one", op);
    mh::check(out != nullptr, "{}: out is null; expected where to put the model", op);
    const mh_model_options o = given_options(op, options);
    mh::check(o.precision == MH_F32 || o.precision == MH_BF16, "{}: the precision is {}; expected MH_F32 or MH_BF16",
              op, o.precision);
    mh::check(o.reserved == 0, "{}: a reserved field of the options is {}; expected 0", op, o.reserved);
    auto model = std::make_unique<mh_model>();
    model->folder = folder;
    model->compute = o.precision == MH_BF16 ? mh::DType::bf16 : mh::DType::f32;
    model->facts = facts_with_modules(model->folder);
    model->verb = model->facts.verb();
    *out = model.release();
  });
}

void mh_model_free(mh_model* model) { delete model; }

const char* mh_model_verb(const mh_model* model) { return model ? model->verb.c_str() : ""; }

const char* mh_result_text(const mh_result* result) { return result ? result->text.c_str() : ""; }

void mh_result_free(mh_result* result) { delete result; }

mh_status mh_classify(const mh_model* model, const mh_texts* texts, const mh_classify_options* options,
                      mh_result** out) {
  constexpr const char* op = "mh_classify";
  return give_result(op, out, [&] {
    check_task(op, model, [](const mh::FolderFacts& facts) { return facts.head == HeadKind::sequence; });
    return classified(op, *model, texts_or_pairs(op, texts), given_options(op, options));
  });
}

mh_status mh_tag(const mh_model* model, const mh_texts* texts, const mh_tag_options* options, mh_result** out) {
  constexpr const char* op = "mh_tag";
  return give_result(op, out, [&] {
    check_task(op, model, [](const mh::FolderFacts& facts) { return facts.head == HeadKind::token; });
    const Strings read = texts_alone(op, texts);
    const mh_tag_options o = given_options(op, options);
    mh::TagOptions how{.aggregation = aggregation_of(op, o.aggregation)};
    if (o.has_stride) how.stride = o.stride;
    const std::vector<mh::Tagging> found = model->tagger.get(model->folder, model->compute)(read, how);
    return array_of(found.size(), [&](size_t n) { return mh::to_json(found[n], read[n]); });
  });
}

mh_status mh_answer(const mh_model* model, const mh_texts* questions, const mh_answer_options* options,
                    mh_result** out) {
  constexpr const char* op = "mh_answer";
  return give_result(op, out, [&] {
    check_task(op, model, [](const mh::FolderFacts& facts) { return facts.head == HeadKind::question; });
    const mh_texts given = mh::detail::known_part(op, "questions", questions);
    const Strings text = strings_of(op, "text", given.text, given.count),
                  pair = strings_of(op, "pair", given.pair, given.count);
    std::vector<mh::Question> asked;
    for (size_t n = 0; n < text.size(); ++n) asked.push_back({text[n], pair[n]});
    const mh_answer_options o = given_options(op, options);
    mh::AnswerOptions how{.no_answer = o.no_answer != 0};
    if (o.has_stride) how.stride = o.stride;
    if (o.window != 0) how.max_length = o.window;
    if (o.longest != 0) how.longest_answer = o.longest;
    const std::vector<mh::Answer> found = model->answerer.get(model->folder, model->compute)(asked, how);
    return array_of(found.size(), [&](size_t n) { return mh::to_json(found[n], pair[n]); });
  });
}

mh_status mh_fill(const mh_model* model, const mh_texts* texts, const mh_fill_options* options, mh_result** out) {
  constexpr const char* op = "mh_fill";
  return give_result(op, out, [&] {
    check_task(op, model, [](const mh::FolderFacts& facts) { return facts.head == HeadKind::masked_lm; });
    const Strings read = texts_alone(op, texts);
    const mh_fill_options o = given_options(op, options);
    const std::vector<mh::Filled> found =
        model->filler.get(model->folder, model->compute)(read, o.k == 0 ? int64_t{5} : o.k);
    return array_of(found.size(), [&](size_t n) { return mh::to_json(found[n]); });
  });
}

mh_status mh_embed(const mh_model* model, const mh_texts* texts, const mh_embed_options* options,
                   const mh_array* vectors) {
  constexpr const char* op = "mh_embed";
  return mh::detail::guarded([&] {
    check_task(op, model, embeds);
    const Strings read = texts_alone(op, texts);
    const mh_embed_options o = given_options(op, options);
    mh::check(!o.prompt || !o.prompt_name, "{}: prompt and prompt_name are both given; expected one at most", op);
    const mh::Tensor out = mh::detail::to_tensor(op, "vectors", vectors);
    const mh::Embedder& embedder = model->embedder.get(model->folder, model->compute);
    const mh::Shape wanted({static_cast<int64_t>(read.size()), embedder.width()});
    mh::check(out.dtype() == mh::DType::f32 && out.shape() == wanted, "{}: vectors is {} {}; expected f32 {}", op,
              mh::name(out.dtype()), mh::to_string(out.shape()), mh::to_string(wanted));
    const std::string prompt = o.prompt        ? o.prompt
                               : o.prompt_name ? embedder.prompt(o.prompt_name)
                                               : embedder.default_prompt();
    if (!read.empty()) out.copy_from(embedder(read, prompt).vectors);
  });
}

mh_status mh_embed_width(const mh_model* model, int64_t* width) {
  constexpr const char* op = "mh_embed_width";
  return mh::detail::guarded([&] {
    check_task(op, model, embeds);
    mh::check(width != nullptr, "{}: width is null; expected where to put it", op);
    *width = model->embedder.get(model->folder, model->compute).width();
  });
}

}  // extern "C"
