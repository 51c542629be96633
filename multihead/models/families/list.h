// Every family, one line each.
#pragma once

#include <vector>

#include "multihead/models/families.h"

namespace mh::detail {

extern const Family kBert, kRoberta, kXlmRoberta, kCamembert, kDistilbert, kMpnet, kElectra, kAlbert, kModernbert,
    kDeberta, kVit, kDeit, kClip;

inline std::vector<const Family*> family_list() {
  return {
      &kBert,     //
      &kRoberta,  //
      &kXlmRoberta,
      &kCamembert,
      &kDistilbert,
      &kMpnet,
      &kElectra,
      &kAlbert,
      &kModernbert,
      &kDeberta,
      &kVit,
      &kDeit,
      &kClip,
  };
}

}  // namespace mh::detail
