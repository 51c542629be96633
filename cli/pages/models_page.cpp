// Walks the families: what loads, as which class of transformers, and what runs it.
#include "cli/pages/models_page.h"

#include <fmt/format.h>

#include <string_view>

#include "multihead/models/pretrained/families.h"
#include "multihead/models/pretrained/folder_facts.h"

namespace mh::cli {
namespace {

constexpr std::string_view kBefore = R"(# Pretrained models

Folders of these families load as Hugging Face writes them: `config.json`, and the weights in `model.safetensors` or its shards.
`mh::Pretrained` in C++ and `multihead.load` in Python give the outputs by the names `transformers` uses, train them further,
and write them back; the verb named here runs the folder on text or pictures ([encoders.md](encoders.md),
[classification.md](classification.md), [seq2seq.md](seq2seq.md), [images.md](images.md)). The config's `architectures` says which class a folder is; where it
does not, the tensors in the file do. Anything else is refused by name.

This page is made from the tables in `multihead/models/families/`: `multihead reference models > docs/models.md`.

| `model_type` | class | gives | verb |
|---|---|---|---|
)";

std::string verb_of(const Family& family, const HeadClass& head) {
  const FolderFacts facts{.layout = FolderFacts::Layout::hugging_face,
                          .kind = std::string(family.type),
                          .model_class = std::string(head.name),
                          .head = head.kind};
  return facts.verb().empty() ? "–" : fmt::format("`{}`", facts.verb());
}

}  // namespace

std::string models_page() {
  std::string out(kBefore);
  for (const Family* family : families())
    for (const HeadClass& head : family->classes)
      out +=
          fmt::format("| {} | `{}` | {} | {} |\n", family->type, head.name, name_of(head.kind), verb_of(*family, head));
  return out;
}

}  // namespace mh::cli
