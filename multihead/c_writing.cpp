// The C ABI for models that write texts: continuations, translations, summaries.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "multihead/base/printable.h"
#include "multihead/c_boundary.h"
#include "multihead/c_model.h"
#include "multihead/c_models.h"
#include "multihead/tasks/results/result_json.h"

namespace {

using mh::HeadKind;
using mh::detail::array_of;
using mh::detail::check_task;
using mh::detail::give_result;
using mh::detail::given_options;
using mh::detail::Strings;
using mh::detail::texts_alone;

bool rewrites(const mh::FolderFacts& facts) { return facts.head == HeadKind::seq2seq_lm; }

bool writes(const mh::FolderFacts& facts) {
  if (facts.head == HeadKind::causal_lm) return facts.kind != "recommend";
  return rewrites(facts) && facts.layout == mh::FolderFacts::Layout::hugging_face;
}

// A field of mh_write_options that another call reads.
struct OtherField {
  const char* name;
  bool given;
};

mh_write_options write_options(const char* op, const mh_write_options* given) {
  const mh_write_options o = given_options(op, given);
  mh::check(o.reserved == 0, "{}: a reserved field of the options is {}; expected 0", op, o.reserved);
  mh::check(o.sentences >= -1 && o.sentences <= 1, "{}: sentences is {}; expected -1, 0 or 1", op, o.sentences);
  return o;
}

void refuse_other_fields(const char* op, std::initializer_list<OtherField> fields) {
  for (const OtherField& field : fields)
    mh::check(!field.given, "{}: {} is given, which another call reads; expected zeros there", op, field.name);
}

// How the folder wants it, with the caller's keys in their place.
mh::GenerationConfig settled(const char* op, mh::GenerationConfig how, const mh_write_options& o) {
  if (o.config) {
    try {
      how = mh::with_generation_keys(std::move(how), o.config, fmt::format("{}: config", op));
    } catch (const mh::Error& error) {  // what it says of a file is of an argument here
      mh::fail(mh::ErrorKind::invalid_argument, "{}", error.what());
    }
    if (!how.unread.empty()) mh::fail(mh::ErrorKind::unsupported, "{}", how.unread.front());
  }
  if (o.has_seed) how.sampling.seed = o.seed;
  return how;
}

std::string generated(const char* op, const mh_model& model, const Strings& prompts, const mh_write_options& o) {
  refuse_other_fields(op, {{"from", o.from != nullptr},
                           {"to", o.to != nullptr},
                           {"prefix", o.prefix != nullptr},
                           {"sentences", o.sentences != 0},
                           {"details", o.details != 0}});
  const mh::TextGenerator& generator = model.generator.get(model.folder, model.compute);
  mh::OnText on_text;
  if (o.on_text)
    on_text = [&o](size_t prompt, std::string_view text) {
      o.on_text(o.self, static_cast<int64_t>(prompt), std::string(text).c_str(), text.size());
    };
  const auto written = generator.write(prompts, settled(op, generator.defaults(), o), on_text);
  return array_of(written.size(), [&](size_t n) {
    std::string out;
    for (const mh::Continuation& each : written[n]) {
      if (!out.empty()) out += ',';
      out += mh::to_json(each, prompts[n], static_cast<int64_t>(n) + 1);
    }
    return out;
  });
}

std::string translated(const char* op, const mh_model& model, const Strings& texts, const mh_write_options& o) {
  refuse_other_fields(op, {{"on_text", o.on_text != nullptr}, {"self", o.self != nullptr}});
  const mh::Translator& translator = model.translator.get(model.folder, model.compute);
  mh::TextOptions options{.languages = {.from = o.from ? o.from : "", .to = o.to ? o.to : ""}};
  const mh::TextTask& task = translator.defaults(translator.task_of(options.languages));
  options.prefix = o.prefix ? o.prefix : task.prefix;
  if (o.sentences != 0) options.split = o.sentences > 0;
  const int64_t layers = translator.decoder_layers();
  mh::check(o.details == 0 || layers > 0, "{}: details are what a decoder looked at; {} was trained without attention",
            op, mh::printable_path(model.folder));
  const std::vector<mh::Translation> done = translator.write(texts, settled(op, task.how, o), options);
  return array_of(done.size(), [&](size_t n) {
    mh::CandidatePlace place{.line = static_cast<int64_t>(n) + 1, .rank = 0, .cut = done[n].cut};
    std::string out;
    for (const mh::Candidate& each : done[n].candidates) {
      ++place.rank;
      if (place.rank > 1) out += ',';
      out +=
          o.details ? mh::to_json(each, place, translator, std::max<int64_t>(0, layers - 2)) : mh::to_json(each, place);
    }
    return out;
  });
}

std::string summarised(const char* op, const mh_model& model, const Strings& texts, const mh_write_options& o) {
  refuse_other_fields(op, {{"on_text", o.on_text != nullptr},
                           {"self", o.self != nullptr},
                           {"from", o.from != nullptr},
                           {"to", o.to != nullptr},
                           {"sentences", o.sentences != 0},
                           {"details", o.details != 0}});
  const mh::Translator& translator = model.translator.get(model.folder, model.compute);
  const mh::TextTask& task = translator.defaults("summarization");  // as transformers calls it
  mh::GenerationConfig how = settled(op, task.how, o);
  how.search.n_best = how.sampling.samples = 1;
  const std::vector<mh::Translation> done =
      translator.write(texts, how, {.split = false, .prefix = o.prefix ? o.prefix : task.prefix});
  return array_of(done.size(), [&](size_t n) { return mh::summary_to_json(done[n], static_cast<int64_t>(n) + 1); });
}

}  // namespace

extern "C" {

mh_status mh_generate(const mh_model* model, const mh_texts* prompts, const mh_write_options* options,
                      mh_result** out) {
  constexpr const char* op = "mh_generate";
  return give_result(op, out, [&] {
    check_task(op, model, writes);
    return generated(op, *model, texts_alone(op, prompts), write_options(op, options));
  });
}

mh_status mh_translate(const mh_model* model, const mh_texts* texts, const mh_write_options* options, mh_result** out) {
  constexpr const char* op = "mh_translate";
  return give_result(op, out, [&] {
    check_task(op, model, rewrites);
    return translated(op, *model, texts_alone(op, texts), write_options(op, options));
  });
}

mh_status mh_summarise(const mh_model* model, const mh_texts* texts, const mh_write_options* options, mh_result** out) {
  constexpr const char* op = "mh_summarise";
  return give_result(op, out, [&] {
    check_task(op, model, rewrites);
    return summarised(op, *model, texts_alone(op, texts), write_options(op, options));
  });
}

}  // extern "C"
