// Every family, one line each.
#pragma once

#include <vector>

#include "multihead/models/pretrained/families.h"

namespace mh::detail {

extern const Family kBert, kRoberta, kXlmRoberta, kCamembert, kDistilbert, kMpnet, kElectra, kAlbert, kModernbert,
    kDeberta, kVit, kDeit, kClip;
extern const Family kGpt2, kLlama, kQwen2, kQwen3, kGptNeox;               // decoders
extern const Family kT5, kMt5, kBart, kMbart, kMarian, kPegasus, kM2m100;  // encoder-decoders

inline std::vector<const Family*> family_list() {
  return {
      &kBert,     //
      &kRoberta,  //
      &kXlmRoberta, &kCamembert, &kDistilbert, &kMpnet, &kElectra, &kAlbert,  &kModernbert, &kDeberta,
      &kVit,        &kDeit,      &kClip,       &kGpt2,  &kLlama,   &kQwen2,   &kQwen3,      &kGptNeox,
      &kT5,         &kMt5,       &kBart,       &kMbart, &kMarian,  &kPegasus, &kM2m100,
  };
}

}  // namespace mh::detail
