// What a call says when it refuses.
#pragma once

#include <string>

#include "multihead/base/error.h"

namespace mh {

struct Refusal {
  std::string sentence = "no refusal";
  ErrorKind kind = ErrorKind::internal;

  bool says(const std::string& part) const { return sentence.find(part) != std::string::npos; }
};

template <class Body>
Refusal refusal_of(Body body) {
  try {
    body();
  } catch (const Error& error) {
    return {error.what(), error.kind()};
  }
  return {};
}

}  // namespace mh
