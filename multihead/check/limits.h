// How fast this machine can go at most: the reference loops a benchmark sets its figures against.
#pragma once

#include <cstdint>
#include <vector>

#include "multihead/tensor/tensor.h"

namespace mh {

// Seconds for timing work on threads() threads: the calling thread's CPU time for one thread, so that a preempted trial
// is not a slow one; wall time for several.
double work_seconds();

// One turn of about a millisecond of f32 multiply-adds of the rung in use, on all threads; the operations done.
double run_multiply_adds();

// Whether the rung in use multiplies bf16 by pairs.
bool has_pair_products();
// One turn of products of bf16 pairs on all threads; the operations done. Throws: unsupported without them.
double run_pair_products();

// Whether the rung in use multiplies tiles.
bool has_tiles();
// One turn of bf16 tile products on all threads; the operations done. Throws: unsupported without tiles.
double run_tile_products();

// Tile units have a fast and a slow state and change between them every 0.5 - 300 ms (7 and 22-25 ns a product with its
// loads, Sapphire Rapids under a hypervisor); a figure that mixes both says nothing.
enum class TileState { fast, slow, mixed };
// Throws: unsupported without tiles.
TileState probe_tiles();

// Reads the memory of contiguous tensors once, on all threads; the bytes read.
double run_plain_read(const std::vector<Tensor>& tensors);

// Medians over a number of turns, at threads() threads.
struct Limits {
  int threads = 1;
  double multiply_adds = 0;  // f32, operations per second
  double pair_products = 0;  // bf16 in matrix products, operations per second; 0 where they are widened
  double tile_products = 0;  // bf16, operations per second; 0 without tiles
  double read_l2 = 0;        // bytes per second
  double read_l3 = 0;
  double read_dram = 0;
};
// Takes about a second; the DRAM figure reads 256 MiB.
Limits measure_limits();

}  // namespace mh
