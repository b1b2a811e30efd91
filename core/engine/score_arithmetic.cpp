// Score tables are small: plain loops over heads and columns, sums in double, one rounding at the end.
#include "core/engine/score_arithmetic.h"

#include "core/base/error.h"
#include "core/base/parallel.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string>

namespace kvscope {

namespace {

/// Larger of the two; NaN wins, so that it is refused where a choice is made.
double larger(double a, double b) { return a >= b || a != a ? a : b; }

double pooledAt(const float* scores, std::int64_t n, std::int64_t i, PoolKind kind, std::int64_t width) {
    const std::int64_t begin = std::max<std::int64_t>(0, i - width / 2), end = std::min(n, i + width / 2 + 1);
    if (kind == PoolKind::Max) {
        double most = -std::numeric_limits<double>::infinity();
        for (std::int64_t j = begin; j < end; ++j) most = larger(most, double{scores[j]});
        return most;
    }
    double sum = 0;
    for (std::int64_t j = begin; j < end; ++j) sum += double{scores[j]};
    return sum / static_cast<double>(width); // also at the borders: average pooling with zero padding
}

template <class Formula> HostTensor entryByEntry(HostTensor a, const HostTensor& b, const Formula& formula) {
    assert(a.shape == b.shape);
    std::ranges::transform(a.data, b.data, a.data.begin(),
                           [&](float x, float y) { return static_cast<float>(formula(double{x}, double{y})); });
    return a;
}

/// Scores of some heads over rows [begin, end).
struct Patch {
    std::int64_t firstHead, endHead, begin, end;

    template <class Visit> void each(std::int64_t n, const Visit& visit) const {
        for (std::int64_t h = firstHead; h < endHead; ++h)
            for (std::int64_t i = begin; i < end; ++i) visit(static_cast<std::size_t>(h * n + i));
    }
    double count() const { return static_cast<double>((endHead - firstHead) * (end - begin)); }
};

void standardisePatch(std::vector<float>& scores, std::int64_t n, const Patch& patch, const Standardisation& how) {
    constexpr double kRounding = 0x1.0p-22; // four times that of a float
    double sum = 0, squares = 0, largest = 0;
    patch.each(n, [&](std::size_t i) {
        sum += double{scores[i]};
        largest = std::max(largest, std::abs(double{scores[i]}));
    });
    const double mean = sum / patch.count();
    patch.each(n, [&](std::size_t i) { squares += (double{scores[i]} - mean) * (double{scores[i]} - mean); });
    const double divisor = patch.count() - (how.sample ? 1 : 0);
    const double deviation = divisor > 0 ? std::sqrt(squares / divisor) : 0;
    // Scores that differ by their rounding only are constant: dividing by such a deviation would show noise (C3). NaN
    // is not constant; it stays, to be refused where a choice is made.
    const bool constant = deviation <= kRounding * largest;
    const double unit = std::max(deviation, how.floor);
    patch.each(
        n, [&](std::size_t i) { scores[i] = constant ? 0.0F : static_cast<float>((double{scores[i]} - mean) / unit); });
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct ScoreRange {
    float low = -kInfinity, high = kInfinity;
};

/// Maps a float to an integer that sorts in the same order (-0 before 0), and back.
std::int32_t turned(std::int32_t bits) { return bits ^ ((bits >> 31) & 0x7FFFFFFF); }
std::int32_t keyOf(float score) { return turned(std::bit_cast<std::int32_t>(score)); }
float scoreOf(std::int32_t key) { return std::bit_cast<float>(turned(key)); }

/// The place-th largest key, 1 <= place <= all. Counting needs no branch: a few passes over few keys take less time
/// than sorting them. Every other pass interpolates between the counts at both ends; the others bisect.
std::int32_t keyAt(std::span<const std::int32_t> keys, std::int64_t place) {
    std::int32_t low = *std::ranges::min_element(keys), high = *std::ranges::max_element(keys);
    std::int64_t below = std::ssize(keys), above = 0; // keys from `low` on, and those beyond `high`
    for (bool interpolates = true; low < high; interpolates = !interpolates) {
        const double part =
            interpolates ? (static_cast<double>(place - above) - 0.5) / static_cast<double>(below - above) : 0.5;
        const auto middle = static_cast<std::int32_t>(
            high - static_cast<std::int64_t>(part * static_cast<double>(std::int64_t{high} - low)));
        std::int32_t count = 0;
        for (const std::int32_t key : keys) count += key >= middle ? 1 : 0;
        if (count >= place)
            low = middle, below = count;
        else
            high = middle - 1, above = count;
        if (count != place) continue;
        std::int32_t least = std::numeric_limits<std::int32_t>::max();
        for (const std::int32_t key : keys) least = std::min(least, key >= middle ? key : least);
        return least;
    }
    return low;
}

/// The range in which the worst of the `count` best scores probably lies, from a sample of the rows.
ScoreRange likelyEnd(std::span<const float> scores, std::int64_t count) {
    constexpr std::int64_t kSample = 2048;
    const std::int64_t stride = std::max<std::int64_t>(1, std::ssize(scores) / kSample);
    std::vector<std::int32_t> sample;
    for (std::int64_t i = 0; i < std::ssize(scores); i += stride) sample.push_back(keyOf(scores[i]));
    const double share = static_cast<double>(count) / static_cast<double>(scores.size()); // of a binomial distribution
    const double deviation = std::sqrt(static_cast<double>(sample.size()) * share * (1 - share));
    const auto slack = static_cast<std::int64_t>(4 * deviation) + 8;
    const auto take = [&](std::int64_t place, float& score) {
        if (place >= 0 && place < std::ssize(sample)) score = scoreOf(keyAt(sample, place + 1));
    };
    ScoreRange range;
    take(count / stride - slack, range.high);
    take(count / stride + slack, range.low);
    return range;
}

/// The rows kept have larger scores than this one, or are among the first `ties` rows of this score.
struct WorstKept {
    float score = -kInfinity;
    std::int64_t ties = 0;
    float bestEvicted = std::numeric_limits<float>::quiet_NaN(); ///< NaN: nothing is evicted

    bool isTied() const { return score == bestEvicted; }
};

/// Bit i: whether `holds` is true of score i of 64. Bytes come first, because compilers vectorise that loop.
template <class Holds> std::uint64_t bitsOf(const float* scores, const Holds& holds) {
    std::array<std::uint8_t, 64> bytes;
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = holds(scores[i]) ? 1 : 0;
    std::uint64_t bits = 0;
    for (std::size_t eighth = 0; eighth < 8; ++eighth) {
        std::uint64_t eight = 0;
        std::memcpy(&eight, bytes.data() + 8 * eighth, 8);
        bits |= (eight * 0x0102040810204080 >> 56) << (8 * eighth); // the lowest bits of eight bytes, side by side
    }
    return bits;
}

/// The keys of the scores in the range, a small part of all.
std::vector<std::int32_t> keysIn(std::span<const float> scores, const ScoreRange& range) {
    const auto isNear = [range](float score) {
        return (static_cast<int>(score >= range.low) & static_cast<int>(score <= range.high)) != 0;
    };
    std::vector<std::int32_t> keys;
    std::size_t i = 0;
    for (; i + 64 <= scores.size(); i += 64)
        for (std::uint64_t bits = bitsOf(scores.data() + i, isNear); bits != 0; bits &= bits - 1)
            keys.push_back(keyOf(scores[i + static_cast<std::size_t>(std::countr_zero(bits))]));
    for (; i < scores.size(); ++i)
        if (isNear(scores[i])) keys.push_back(keyOf(scores[i]));
    return keys;
}

std::int64_t countAbove(std::span<const float> scores, float bound) {
    std::int32_t count = 0; // without a branch
    for (const float score : scores) count += score > bound ? 1 : 0;
    return count;
}

/// The worst of the `count` best scores, 1 <= count < all. Only scores near it are compared with each other.
WorstKept worstOf(std::span<const float> scores, std::int64_t count) {
    for (ScoreRange range = likelyEnd(scores, count);; range = {}) {
        const std::vector<std::int32_t> near = keysIn(scores, range);
        const std::int64_t kept = count - countAbove(scores, range.high);
        if (kept < 1 || kept >= std::ssize(near)) continue; // the sample misled: take all scores
        const std::int32_t key = keyAt(near, kept);
        const float worst = scoreOf(key);
        std::int32_t above = 0, least = 0, next = std::numeric_limits<std::int32_t>::min();
        for (const std::int32_t other : near) { // without a branch
            above += scoreOf(other) > worst ? 1 : 0;
            least += other >= key ? 1 : 0;
            next = std::max(next, other < key ? other : next);
        }
        return {worst, kept - above, least > kept ? worst : scoreOf(next)};
    }
}

/// The shortest prefix of `scores` that holds `count` rows of this score; returns its length.
std::size_t endOfTies(std::span<const float> scores, float score, std::int64_t count) {
    std::size_t end = 0;
    for (; count > 0; ++end) count -= scores[end] == score ? 1 : 0;
    return end;
}

/// Writes the rows for which `holds` is true, in order. Returns their end.
template <class Holds>
TokenIndex* writeRows(std::span<const float> scores, TokenIndex first, const Holds& holds, TokenIndex* next) {
    std::size_t i = 0;
    for (; i + 64 <= scores.size(); i += 64)
        for (std::uint64_t bits = bitsOf(scores.data() + i, holds); bits != 0; bits &= bits - 1)
            *next++ = first + static_cast<TokenIndex>(i) + static_cast<TokenIndex>(std::countr_zero(bits));
    for (; i < scores.size(); ++i)
        if (holds(scores[i])) *next++ = first + static_cast<TokenIndex>(i);
    return next;
}

/// Writes the kept rows in order. Returns their end.
TokenIndex* writeKept(std::span<const float> scores, TokenIndex first, const WorstKept& worst, TokenIndex* next) {
    const auto isKept = [score = worst.score](float other) { return other >= score; };
    const auto isBetter = [score = worst.score](float other) { return other > score; };
    if (!worst.isTied()) return writeRows(scores, first, isKept, next);
    const std::size_t end = endOfTies(scores, worst.score, worst.ties);
    next = writeRows(scores.first(end), first, isKept, next);
    return writeRows(scores.subspan(end), first + static_cast<TokenIndex>(end), isBetter, next);
}

bool hasNaN(std::span<const float> scores) {
    std::int32_t found = 0;
    for (const float score : scores) found += std::isnan(score) ? 1 : 0; // without a branch, to the end
    return found > 0;
}

void refuseNaN(std::span<const float> scores, std::int64_t head) {
    const auto row = std::ranges::find_if(scores, [](float score) { return std::isnan(score); }) - scores.begin();
    throw Error(
        {"the score of token " + std::to_string(row) + " in head " + std::to_string(head) + " is not a number (NaN)",
         "scores", "look for NaN or infinity in the capture's keys and queries"});
}

/// `first` and `last` fit into the count.
TopKHead bestRows(std::span<const float> scores, std::int64_t count, std::int64_t first, std::int64_t last) {
    const std::int64_t m = std::ssize(scores), free = count - first - last;
    const auto open = scores.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(m - last - first));
    const bool isDecided = free > 0 && free < std::ssize(open);
    const WorstKept worst = isDecided ? worstOf(open, free) : WorstKept{};
    TopKHead head;
    head.kept.resize(static_cast<std::size_t>(count) + 1);
    TokenIndex* next = head.kept.data();
    for (std::int64_t i = 0; i < first; ++i) *next++ = static_cast<TokenIndex>(i);
    if (free > 0) next = writeKept(open, static_cast<TokenIndex>(first), worst, next);
    for (std::int64_t i = m - last; i < m; ++i) *next++ = static_cast<TokenIndex>(i);
    head.kept.pop_back();
    head.margin = !isDecided       ? kInfinity
                  : worst.isTied() ? 0 // also between equal infinities
                                   : worst.score - worst.bestEvicted;
    return head;
}

} // namespace

HostTensor pool(const HostTensor& scores, PoolKind kind, std::int64_t width) {
    assert(width % 2 == 1);
    const std::int64_t heads = scores.shape[0], n = scores.shape[1];
    HostTensor out{scores.shape, std::vector<float>(scores.data.size())};
    for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t i = 0; i < n; ++i)
            out.data[h * n + i] = static_cast<float>(pooledAt(scores.data.data() + h * n, n, i, kind, width));
    return out;
}

HostTensor reduceGroups(const HostTensor& scores, std::span<const std::int32_t> gqaGroupOf, std::int64_t numKvHeads,
                        GroupRule rule) {
    assert(std::ssize(gqaGroupOf) == scores.shape[0]);
    const auto n = static_cast<std::size_t>(scores.shape[1]);
    HostTensor out{{numKvHeads, scores.shape[1]}, {}};
    for (std::int64_t kvHead = 0; kvHead < numKvHeads; ++kvHead) {
        std::vector<double> reduced(n, rule == GroupRule::Max ? -std::numeric_limits<double>::infinity() : 0);
        double members = 0;
        for (std::size_t h = 0; h < gqaGroupOf.size(); ++h) {
            if (gqaGroupOf[h] != kvHead) continue;
            ++members;
            const float* row = scores.data.data() + h * n;
            for (std::size_t i = 0; i < n; ++i)
                reduced[i] = rule == GroupRule::Max ? larger(reduced[i], double{row[i]}) : reduced[i] + double{row[i]};
        }
        assert(members > 0);
        for (const double x : reduced)
            out.data.push_back(static_cast<float>(rule == GroupRule::Mean ? x / members : x));
    }
    return out;
}

HostTensor scale(HostTensor scores, double factor) {
    for (float& x : scores.data) x = static_cast<float>(factor * double{x}) + 0.0F; // never -0, which reads as a sign
    return scores;
}

HostTensor standardise(HostTensor scores, const Standardisation& how) {
    const std::int64_t heads = scores.shape[0], n = scores.shape[1];
    const std::int64_t step = how.chunk > 0 ? how.chunk : std::max<std::int64_t>(1, n);
    for (std::int64_t h = 0; h < heads; h += how.jointly ? heads : 1)
        for (std::int64_t begin = 0; begin < n; begin += step)
            standardisePatch(scores.data, n, {h, how.jointly ? heads : h + 1, begin, std::min(n, begin + step)}, how);
    return scores;
}

HostTensor blend(HostTensor a, const HostTensor& b, double weight) {
    return entryByEntry(std::move(a), b, [weight](double x, double y) { return x + weight * y; });
}

HostTensor multiply(HostTensor a, const HostTensor& b) {
    return entryByEntry(std::move(a), b, [](double x, double y) { return x * y; });
}

HostTensor columnRange(const HostTensor& scores, std::int64_t begin, std::int64_t end) {
    assert(0 <= begin && begin <= end && end <= scores.shape[1]);
    HostTensor out{{scores.shape[0], end - begin}, {}};
    for (std::int64_t h = 0; h < scores.shape[0]; ++h) {
        const auto row = scores.data.begin() + h * scores.shape[1];
        out.data.insert(out.data.end(), row + begin, row + end);
    }
    return out;
}

HostTensor gatherColumns(const HostTensor& scores, const std::vector<std::vector<TokenIndex>>& columns) {
    assert(std::ssize(columns) == scores.shape[0]);
    HostTensor out{{scores.shape[0], columns.empty() ? 0 : std::ssize(columns.front())}, {}};
    for (std::size_t h = 0; h < columns.size(); ++h)
        for (const TokenIndex column : columns[h])
            out.data.push_back(
                scores.data[h * static_cast<std::size_t>(scores.shape[1]) + static_cast<std::size_t>(column)]);
    return out;
}

HostTensor padColumns(const HostTensor& scores, std::int64_t begin, std::int64_t count, float value) {
    const std::int64_t heads = scores.shape[0], n = scores.shape[1];
    assert(begin + n <= count);
    HostTensor out = HostTensor::filled({heads, count}, value);
    for (std::int64_t h = 0; h < heads; ++h)
        std::copy_n(scores.data.begin() + h * n, n, out.data.begin() + h * count + begin);
    return out;
}

HostTensor repeatHead(const HostTensor& scores, std::int64_t heads) {
    assert(scores.shape[0] == 1);
    HostTensor out{{heads, scores.shape[1]}, {}};
    for (std::int64_t h = 0; h < heads; ++h) out.data.insert(out.data.end(), scores.data.begin(), scores.data.end());
    return out;
}

std::vector<TopKHead> topK(const HostTensor& scores, std::span<const std::int64_t> counts, std::int64_t protectFirst,
                           std::int64_t protectLast) {
    const std::int64_t heads = scores.shape[0], m = scores.shape[1];
    assert(std::ssize(counts) == heads);
    const auto rowsOf = [&](std::int64_t h) {
        return std::span(scores.data).subspan(static_cast<std::size_t>(h * m), static_cast<std::size_t>(m));
    };
    std::vector<TopKHead> result(static_cast<std::size_t>(heads));
    std::vector<char> isRefused(result.size()); // the first head is named, whichever thread comes first
    forEachPiece(heads, [&](std::int64_t h) {
        isRefused[h] = hasNaN(rowsOf(h));
        if (isRefused[h]) return;
        const std::int64_t count = counts[h];
        assert(0 <= count && count <= m);
        const std::int64_t first = std::min({protectFirst, m, count});
        const std::int64_t last = std::min({protectLast, m - first, count - first});
        result[h] = bestRows(rowsOf(h), count, first, last);
    });
    if (const auto head = std::ranges::find(isRefused, 1) - isRefused.begin(); head < heads)
        refuseNaN(rowsOf(head), head);
    return result;
}

} // namespace kvscope
