// Blocked BalanceKV a second time, with the zero-padded blocks that the authors' code really has.
#include "tests/policies/naive_balance.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace naive_policies {

namespace {

using namespace kvscope;

struct Slot {
    int token = -1; // -1: padding
    double weight = 1, mass = 1;
    bool guarded = false;
};

struct Head {
    const TestLayer& layer;
    const ParameterValues& values;
    int head;

    double key(int token, int c) const { return number(layer.keys, token, c); }
    double value(int token, int c) const { return number(layer.values, token, c); }
    int tokens() const { return int(layer.keys.shape[1]); }
    int width() const { return int(layer.keys.shape[2]); }

    double number(const HostTensor& t, int token, int c) const {
        return token < 0 ? 0 : double{t.data[std::size_t((head * int(t.shape[1]) + token) * int(t.shape[2]) + c)]};
    }
};

std::vector<double> shiftOf(const Head& h, const std::vector<Slot>& block) {
    std::vector<double> shift(std::size_t(h.width()), 0.0);
    const std::string kind = h.values.choice("shift");
    const int sink = int(h.values.integer("sink")), end = h.tokens() - int(h.values.integer("recent"));
    for (int c = 0; c < h.width(); ++c) {
        double& x = shift[std::size_t(c)];
        if (kind == "block_mean") {
            for (const Slot& slot : block) x += h.key(slot.token, c) / double(block.size());
        } else if (kind == "middle_mean") {
            for (int i = sink; i < end; ++i) x += h.key(i, c);
            x = double{float(x / (end - sink))}; // tensors between primitives are float
        }
    }
    return shift;
}

double kernel(const Head& h, const std::vector<double>& shift, const Slot& a, const Slot& b) {
    double logit = 0, product = 0;
    const bool weighted = h.values.choice("halving") == "weighted";
    for (int c = 0; c < h.width(); ++c) {
        logit += (h.key(a.token, c) - shift[std::size_t(c)]) * (h.key(b.token, c) - shift[std::size_t(c)]);
        product += (weighted ? a.weight : 1) * h.value(a.token, c) * (weighted ? b.weight : 1) * h.value(b.token, c);
    }
    return std::exp(h.values.real("temp") * logit * h.layer.plain.scaling - h.values.real("beta")) *
           (product + 1e-8 + h.values.real("value_constant"));
}

std::vector<int> walk(const Head& h, const std::vector<Slot>& block, int round, int firstPlace) {
    const std::vector<double> shift = shiftOf(h, block);
    std::vector<int> signs(block.size(), 0);
    for (std::size_t i = 0; i < block.size(); ++i) {
        double y = 0;
        for (std::size_t j = 0; j < i; ++j) y += block[j].guarded ? 0 : kernel(h, shift, block[i], block[j]) * signs[j];
        RandomKey key;
        key.seed = h.layer.plain.seed;
        key.layer = std::uint32_t(h.layer.plain.layer);
        key.kvHead = std::uint32_t(h.head);
        key.round = std::uint32_t(round);
        key.token = std::uint32_t(firstPlace + int(i));
        signs[i] = i == 0 ? 1 : uniformAt(key) < 0.5 - h.values.real("gamma") * y ? 1 : -1;
    }
    for (std::size_t i = 0; i < block.size(); ++i) signs[i] = block[i].guarded ? 0 : signs[i];
    return signs;
}

std::vector<int> signsOfRound(const Head& h, std::vector<Slot> slots, int round) {
    const int n = int(slots.size()), block = int(h.values.integer("block"));
    while (int(slots.size()) % block != 0) slots.push_back({});
    std::vector<int> signs;
    for (int begin = 0; begin < int(slots.size()); begin += block) {
        const std::vector<int> part = walk(h, {slots.begin() + begin, slots.begin() + begin + block}, round, begin);
        signs.insert(signs.end(), part.begin(), part.end());
    }
    signs.resize(std::size_t(n));
    return signs;
}

/// Weight per slot; those that are dropped first have the smallest.
std::vector<double> ranks(const std::vector<int>& signs, const std::string& halving, bool guarded) {
    const int n = int(signs.size()), half = n / 2;
    std::vector<double> rank;
    if (guarded) {
        for (const int s : signs) rank.push_back(s == 0 ? 3 : s > 0 ? 2 : 0);
    } else if (halving == "weighted") {
        std::map<int, int> place; // sign -> where its count first is half
        for (const int sign : {-1, 1})
            for (int i = 0, count = 0; i < n && !place.count(sign); ++i) {
                count += signs[std::size_t(i)] == sign;
                if (count == half) place[sign] = i;
            }
        const int c = std::max(place[-1], place[1]);
        for (int i = 0; i < n; ++i) rank.push_back(i > c ? 1 : signs[std::size_t(i)] == signs[std::size_t(c)] ? -2 : 2);
    } else {
        const int plus = int(std::count(signs.begin(), signs.end(), 1));
        const int wanted = halving == "unweighted" || 2 * plus > n ? -1 : 1;
        for (const int s : signs) rank.push_back(s == wanted ? 1 : 0);
    }
    return rank;
}

std::vector<Slot> halfOf(const std::vector<Slot>& slots, const std::vector<int>& signs, const std::string& halving,
                         bool guarded) {
    const std::vector<double> rank = ranks(signs, halving, guarded);
    std::vector<Slot> kept;
    for (const double level : {3.0, 2.0, 1.0, 0.0, -2.0})
        for (std::size_t i = 0; i < slots.size(); ++i)
            if (rank[i] == level && kept.size() < slots.size() / 2) {
                Slot slot = slots[i];
                slot.weight *= guarded ? (level == 3 ? 1 : level) : halving == "weighted" ? level : 2;
                slot.mass *= 2;
                kept.push_back(slot);
            }
    return kept;
}

std::vector<bool> needles(const Head& h, int sink, int end) {
    const int block = int(h.values.integer("block")), n = end - sink, reach = int(h.values.integer("needle_dilation"));
    double squares = 0;
    for (int i = sink; i < end; ++i)
        for (int c = 0; c < h.width(); ++c) squares += h.key(i, c) * h.key(i, c) / n;
    std::vector<bool> raw, dilated;
    for (int i = 0; i < n; ++i) {
        double rho = 0;
        for (int j = i / block * block; j < std::min(n, (i / block + 1) * block); ++j)
            for (int c = 0; c < h.width(); ++c) rho += h.key(sink + i, c) * h.key(sink + j, c) / block;
        raw.push_back(!(rho + 1e-8 > h.values.real("needle_threshold") * squares));
    }
    for (int i = 0; i < n; ++i) {
        bool near = false;
        for (int j = std::max(0, i - reach); j <= std::min(n - 1, i + reach); ++j) near = near || raw[std::size_t(j)];
        dilated.push_back(near);
    }
    return dilated;
}

BalancedHead finished(const Head& h, const std::vector<Slot>& slots, int sink, int end) {
    std::map<int, std::pair<double, double>> weights;
    for (int i = 0; i < h.tokens(); ++i)
        if (i < sink || i >= end) weights[i] = {1, 1};
    for (const Slot& slot : slots)
        weights[slot.token] = {slot.weight, h.values.flag("same_weights") ? slot.weight : slot.mass};
    BalancedHead out;
    for (const auto& [token, pair] : weights) {
        out.kept.push_back(token);
        out.numerator.push_back(float(pair.first));
        out.denominator.push_back(float(pair.second));
    }
    return out;
}

} // namespace

std::vector<BalancedHead> balanceRounds(const kvscope::ParameterValues& values, const kvscope::TestLayer& layer) {
    const int tokens = int(layer.keys.shape[1]), heads = int(layer.keys.shape[0]);
    const int sink = int(values.integer("sink")), end = tokens - int(values.integer("recent"));
    const std::string needle = values.choice("needle");
    const bool guards = needle == "own_layer" ||
                        (needle == "detection_layer" && layer.plain.layer >= values.integer("detection_layer"));
    std::vector<std::vector<Slot>> slots(std::size_t(heads), std::vector<Slot>{});
    for (int h = 0; h < heads; ++h) {
        const std::vector<bool> mask =
            guards ? needles({layer, values, h}, sink, end) : std::vector<bool>(std::size_t(end - sink));
        for (int i = sink; i < end; ++i) slots[std::size_t(h)].push_back({i, 1, 1, mask[std::size_t(i - sink)]});
    }
    for (int round = 0; round < values.integer("rounds"); ++round) {
        bool any = false; // one protected token of one head switches all heads
        for (const auto& head : slots)
            any = any || std::any_of(head.begin(), head.end(), [](const Slot& s) { return s.guarded; });
        for (int h = 0; h < heads; ++h) {
            auto& head = slots[std::size_t(h)];
            head = halfOf(head, signsOfRound({layer, values, h}, head, round), values.choice("halving"), any);
        }
    }
    std::vector<BalancedHead> out;
    for (int h = 0; h < heads; ++h) out.push_back(finished({layer, values, h}, slots[std::size_t(h)], sink, end));
    return out;
}

} // namespace naive_policies
