"""The random numbers of multihead/base/random.h, in numpy: the same seed gives the same order of batches."""
import numpy as np

MASK = np.uint64(0xFFFFFFFF)
SHIFT = np.uint64(32)


def philox4x32(counter, key, rounds=10):
    """counter: four arrays of words below 2^32 held as uint64; key: two numbers. Returns four such arrays."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(rounds):
        a = np.uint64(0xD2511F53) * c0
        b = np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = (b >> SHIFT) ^ c1 ^ np.uint64(k0), b & MASK, (a >> SHIFT) ^ c3 ^ np.uint64(k1), a & MASK
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0, c1, c2, c3


class Random:
    """mh::Random: one word after the other of Philox4x32-10 with key = seed and counter = (group, stream)."""

    def __init__(self, seed, stream=0):
        self.seed, self.stream, self.next_word = seed, stream, 0

    def words(self, count):
        first = self.next_word // 4
        last = (self.next_word + count + 3) // 4
        group = np.arange(first, last, dtype=np.uint64)
        halves = [np.full_like(group, half) for half in (self.stream & 0xFFFFFFFF, self.stream >> 32)]
        words = philox4x32((group & MASK, group >> SHIFT, *halves), (self.seed & 0xFFFFFFFF, self.seed >> 32))
        begin = self.next_word - 4 * first
        self.next_word += count
        return np.stack(words, axis=1).ravel()[begin:begin + count]

    def below(self, limits):
        """One number from 0 to n - 1 for each n of `limits` (n < 2^32): the high half of (two words) · n."""
        limits = np.asarray(limits, dtype=np.uint64)
        words = self.words(2 * len(limits))
        high, low = words[0::2], words[1::2]
        return ((high * limits + ((low * limits) >> SHIFT)) >> SHIFT).astype(np.int64)

    def shuffle(self, items):
        """Fisher and Yates from the end: swaps item i with item below(i + 1) for i = n - 1 … 1. Returns a list."""
        items = list(items)
        draws = self.below(np.arange(len(items), 1, -1, dtype=np.uint64)).tolist() if len(items) > 1 else []
        for i, j in zip(range(len(items) - 1, 0, -1), draws):
            items[i], items[j] = items[j], items[i]
        return items
