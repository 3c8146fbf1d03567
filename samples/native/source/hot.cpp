// The C++ half of the native sample: three phases of equal wall time.
// Built with line tables, so inlined functions are known: see ../NOTES.md.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#define NOINLINE __attribute__((noinline))

namespace hot {

volatile uint64_t sink;

// Inlined into its callers.
static inline uint64_t mix(uint64_t x) {
  for (int i = 0; i < 4; i++) {
    x ^= x >> 31;
    x *= 0x9e3779b97f4a7c15u;
  }
  return x;
}

template <class T>
struct Tree {
  T value;
  std::unique_ptr<Tree> left, right;

  NOINLINE T sum() const {
    T total = mix(value);
    if (left) total += left->sum();
    if (right) total += right->sum();
    return total;
  }
};

NOINLINE std::unique_ptr<Tree<uint64_t>> grow(int depth, uint64_t seed) {
  if (depth == 0) return nullptr;
  auto tree = std::make_unique<Tree<uint64_t>>();
  tree->value = mix(seed);
  tree->left = grow(depth - 1, seed * 2);
  tree->right = grow(depth - 1, seed * 2 + 1);
  return tree;
}

NOINLINE void thrower(int depth) {
  if (depth == 0) throw std::runtime_error("as planned");
  thrower(depth - 1);
  sink = sink + depth;
}

NOINLINE void catcher() {
  try {
    thrower(6);
  } catch (const std::exception &e) {
    sink = sink + e.what()[0];
  }
}

NOINLINE void sorter(std::vector<uint32_t> &numbers, const std::function<bool(uint32_t, uint32_t)> &less) {
  for (size_t i = 0; i < numbers.size(); i++) numbers[i] = static_cast<uint32_t>(mix(i));
  std::sort(numbers.begin(), numbers.end(), less);
}

template <class F>
NOINLINE void phase(int milliseconds, F work) {
  auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(milliseconds);
  while (std::chrono::steady_clock::now() < end) work();
}

}  // namespace hot

int main(int argc, char **argv) {
  int limit = argc > 1 ? std::atoi(argv[1]) : 200;
  auto tree = hot::grow(10, 1);
  hot::phase(limit, [&] { hot::sink = tree->sum(); });
  hot::phase(limit, [] { hot::catcher(); });
  std::vector<uint32_t> numbers(2048);
  hot::phase(limit, [&] { hot::sorter(numbers, [](uint32_t a, uint32_t b) { return (a ^ 0x5555) < (b ^ 0x5555); }); });
}
