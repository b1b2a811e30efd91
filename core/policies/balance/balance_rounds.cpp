// Blocked BalanceKV: every round lays out the surviving tokens in blocks, gives each block its signs by a balancing
// walk, and keeps half of the tokens. The last round may halve only a part, so that any budget is met.
#include "core/policies/balance/balance_rounds.h"

#include "core/engine/engine.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <set>

namespace kvscope {

namespace {

constexpr std::uint32_t kSubsetSlot = 1U << 16; // RandomKey::slot of the draw of a partial round's subset

std::vector<std::size_t> everyPlace(std::size_t count) {
    std::vector<std::size_t> places(count);
    std::iota(places.begin(), places.end(), std::size_t{0});
    return places;
}

/// The first floor(n/2) by descending weight; equal weights keep their order. At most three weights differ.
Half bestHalf(const std::vector<double>& weights) {
    const std::set<double, std::greater<>> different(weights.begin(), weights.end());
    Half half;
    for (const double weight : different)
        for (std::size_t place = 0; place < weights.size() && half.places.size() < weights.size() / 2; ++place)
            if (weights[place] == weight) half.places.push_back(place);
    for (const std::size_t place : half.places) half.weights.push_back(weights[place]);
    return half;
}

/// The place where the count of `sign` first equals `wanted`; 0 when it never does.
std::size_t whereCountIs(std::span<const std::int8_t> signs, std::int8_t sign, std::size_t wanted) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < signs.size(); ++i) {
        count += signs[i] == sign ? 1U : 0U;
        if (count == wanted) return i;
    }
    return 0;
}

// Up to c, tokens with the sign at c are evicted and the others get weight 2; after c all tokens get weight 1 (B7).
Half halveWeighted(std::span<const std::int8_t> signs) {
    const std::size_t n = signs.size();
    if (n < 2) return {};
    const std::size_t c = std::max(whereCountIs(signs, -1, n / 2), whereCountIs(signs, 1, n / 2));
    std::vector<double> weights(n, 1.0);
    for (std::size_t i = 0; i <= c; ++i) weights[i] = signs[i] == signs[c] ? -2 : 2;
    return bestHalf(weights);
}

/// Keeps the tokens of `sign` in order, topped up by the earliest others or truncated at the end; each has weight 2.
Half halveBySign(std::span<const std::int8_t> signs, std::int8_t sign) {
    std::vector<double> first(signs.size());
    std::ranges::transform(signs, first.begin(), [sign](std::int8_t s) { return s == sign ? 1.0 : 0.0; });
    Half half = bestHalf(first);
    half.weights.assign(half.places.size(), 2.0);
    return half;
}

std::int8_t smallerSign(std::span<const std::int8_t> signs) {
    const auto plus = std::ranges::count(signs, std::int8_t{1});
    return 2 * plus <= static_cast<std::ptrdiff_t>(signs.size()) ? 1 : -1; // ties: +1
}

class Rounds {
public:
    Rounds(const PolicyInput& input, const RoundSettings& settings, const Protection& protection, BalanceLog* log)
        : m_input(input), m_settings(settings), m_heads(static_cast<std::size_t>(input.keys.size(0))), m_log(log),
          m_walks(input, input.keys, input.values, centres(protection), log) {}

    void start(const Protection& protection, const std::vector<std::vector<char>>& guarded) {
        for (std::size_t h = 0; h < m_heads.size(); ++h)
            for (std::int64_t r = protection.first; r < m_input.rowCount() - protection.last; ++r) {
                const auto middle = static_cast<std::size_t>(r - protection.first);
                m_heads[h].push_back({static_cast<TokenIndex>(r), 1, 1, !guarded.empty() && guarded[h][middle] != 0});
            }
        writeSets(0);
    }

    std::int64_t left() const { return static_cast<std::int64_t>(m_heads.front().size()); }

    void halveAll(const Checkpoint& checkpoint) {
        std::vector<std::vector<std::size_t>> all;
        for (const Survivors& head : m_heads) all.push_back(everyPlace(head.size()));
        halvePlaces(all, checkpoint);
    }

    /// Halves a subset of twice as many tokens as must be evicted; the other tokens stay as they are.
    void halveUntil(std::int64_t target, const Checkpoint& checkpoint) {
        const auto size = static_cast<std::size_t>(2 * (left() - target));
        std::vector<std::vector<std::size_t>> subsets;
        for (std::size_t h = 0; h < m_heads.size(); ++h) subsets.push_back(subsetOf(h, size));
        halvePlaces(subsets, checkpoint);
    }

    std::vector<Survivors>& survivors() { return m_heads; }
    const BalanceWalks& walks() const { return m_walks; }

private:
    HostTensor centres(const Protection& protection) const {
        const std::int64_t end = m_input.rowCount() - protection.last;
        if (m_settings.shift != KeyShift::MiddleMean || end <= protection.first) return {};
        return m_input.engine.anchor(m_input.engine.rows(m_input.keys, protection.first, end), AnchorKind::Mean,
                                     m_input.checkpoint.silent());
    }

    std::vector<std::size_t> subsetOf(std::size_t head, std::size_t size) const {
        const Survivors& all = m_heads[head];
        std::vector<double> draw(all.size());
        RandomKey key = m_input.randomKey(static_cast<std::int64_t>(head));
        key.round = m_round;
        key.slot = kSubsetSlot;
        for (std::size_t i = 0; i < all.size(); ++i) {
            key.token = static_cast<std::uint32_t>(i);
            draw[i] = m_settings.subset == PartialSubset::Random     ? m_input.random->uniform(key)
                      : m_settings.subset == PartialSubset::Earliest ? all[i].row
                                                                     : -all[i].row;
        }
        std::vector<std::size_t> places = everyPlace(all.size());
        std::ranges::stable_sort(places, [&](std::size_t a, std::size_t b) {
            return all[a].guarded != all[b].guarded ? all[b].guarded : draw[a] < draw[b]; // protected tokens last
        });
        places.resize(size);
        std::ranges::sort(places);
        return places;
    }

    void halvePlaces(const std::vector<std::vector<std::size_t>>& places, const Checkpoint& checkpoint) {
        std::vector<PlannedWalk> plans;
        bool anyGuarded = false;
        for (std::size_t h = 0; h < m_heads.size(); ++h) {
            for (const std::size_t place : places[h]) anyGuarded = anyGuarded || m_heads[h][place].guarded;
            planHead(h, places[h], plans);
        }
        const auto signs = m_walks.run(plans, checkpoint);
        std::size_t plan = 0;
        for (std::size_t h = 0; h < m_heads.size(); ++h) {
            std::vector<std::int8_t> flat;
            for (; plan < plans.size() && plans[plan].walk.head == static_cast<std::int64_t>(h); ++plan)
                flat.insert(flat.end(), signs[plan].begin(), signs[plan].end());
            keep(m_heads[h], places[h], anyGuarded ? halveGuarded(flat) : halve(flat, m_settings.halving));
        }
        ++m_round;
        writeSets(m_round);
    }

    void planHead(std::size_t h, const std::vector<std::size_t>& places, std::vector<PlannedWalk>& plans) const {
        const auto block = static_cast<std::size_t>(m_settings.block);
        for (std::size_t begin = 0; begin < places.size(); begin += block) {
            PlannedWalk plan = emptyPlan(static_cast<std::int64_t>(h), static_cast<std::int64_t>(begin / block));
            for (std::size_t i = begin; i < std::min(places.size(), begin + block); ++i) {
                const Survivor& survivor = m_heads[h][places[i]];
                plan.walk.rows.push_back(survivor.row);
                plan.walk.weights.push_back(m_settings.halving == Halving::Weighted ? survivor.weight : 1);
                plan.walk.silent.push_back(survivor.guarded ? 1 : 0);
                plan.places.push_back(static_cast<std::uint32_t>(i));
            }
            plans.push_back(std::move(plan));
        }
    }

    PlannedWalk emptyPlan(std::int64_t head, std::int64_t block) const {
        PlannedWalk plan;
        plan.round = m_round;
        plan.level = m_round + 1;
        plan.place = block;
        plan.walk.head = head;
        plan.walk.meanOver =
            m_settings.shift == KeyShift::BlockMean ? m_settings.block : 0; // zero padding included (B9)
        plan.walk.gamma = m_settings.gamma;
        plan.walk.logScale = m_settings.temperature * m_input.attention.scaling;
        plan.walk.logShift = m_settings.beta;
        plan.walk.valueConstant = 1e-8 + m_settings.valueConstant;
        plan.walk.firstIsPlus = true;
        if (m_settings.failOnOverflow && m_settings.gamma > 0) plan.walk.failAbove = 0.5 / m_settings.gamma;
        return plan;
    }

    /// Orders the survivors: the kept half of `places` in its new order, then the tokens outside of the subset.
    void keep(Survivors& head, const std::vector<std::size_t>& places, const Half& half) const {
        Survivors next;
        for (std::size_t i = 0; i < half.places.size(); ++i) {
            Survivor survivor = head[places[half.places[i]]];
            survivor.weight *= half.weights[i];
            survivor.mass *= 2;
            next.push_back(survivor);
        }
        std::vector<char> took(head.size(), 0);
        for (const std::size_t place : places) took[place] = 1;
        for (std::size_t i = 0; i < head.size(); ++i)
            if (took[i] == 0) next.push_back(head[i]);
        head = std::move(next);
    }

    void writeSets(std::uint32_t round) const {
        if (!m_log) return;
        for (std::size_t h = 0; h < m_heads.size(); ++h) {
            BalanceSetLog set;
            set.kvHead = static_cast<std::int64_t>(h);
            set.level = round;
            for (const Survivor& survivor : m_heads[h]) {
                set.tokens.push_back(m_input.tokenAt(set.kvHead, survivor.row));
                set.weights.push_back(survivor.weight);
            }
            m_log->sets.push_back(std::move(set));
        }
    }

    const PolicyInput& m_input;
    const RoundSettings& m_settings;
    std::vector<Survivors> m_heads;
    BalanceLog* m_log;
    BalanceWalks m_walks;
    std::uint32_t m_round = 0;
};

TopKHead chosenRows(const Protection& protection, std::int64_t rows, const Survivors& survivors, RowWeights& weights,
                    bool sameWeights) {
    TopKHead head;
    const auto add = [&](TokenIndex row, double numerator, double denominator) {
        head.kept.push_back(row);
        weights.numerator.push_back(static_cast<float>(numerator));
        weights.denominator.push_back(static_cast<float>(denominator));
    };
    for (std::int64_t r = 0; r < protection.first; ++r) add(static_cast<TokenIndex>(r), 1, 1);
    for (const Survivor& survivor : survivors)
        add(survivor.row, survivor.weight, sameWeights ? survivor.weight : survivor.mass);
    for (std::int64_t r = rows - protection.last; r < rows; ++r) add(static_cast<TokenIndex>(r), 1, 1);
    return head;
}

} // namespace

Half halve(std::span<const std::int8_t> signs, Halving halving) {
    if (halving == Halving::Weighted) return halveWeighted(signs);
    return halveBySign(signs, halving == Halving::Unweighted ? std::int8_t{-1} : smallerSign(signs));
}

Half halveGuarded(std::span<const std::int8_t> signs) {
    std::vector<double> order(signs.size());
    std::ranges::transform(signs, order.begin(), [](std::int8_t s) { return s == 0 ? 3.0 : s + 1.0; });
    Half half = bestHalf(order);
    std::ranges::replace(half.weights, 3.0, 1.0);
    return half;
}

std::vector<Survivors> balanceInRounds(const PolicyInput& input, const RoundSettings& settings,
                                       const Protection& protection, std::int64_t target,
                                       std::optional<std::int64_t> rounds,
                                       const std::vector<std::vector<char>>& guarded, BalanceLog* log,
                                       RowSelection& selection) {
    Rounds state(input, settings, protection, log);
    state.start(protection, guarded);
    const bool nothing = !rounds && target <= 0 && state.left() > 0; // no walk is needed
    std::int64_t full = rounds.value_or(0);
    if (!rounds && !nothing)
        for (std::int64_t n = state.left(); n > target && n / 2 >= target && n > 0; n /= 2) ++full;
    for (std::int64_t round = 0; round < full; ++round) // each round takes half of the work of the one before
        state.halveAll(input.checkpoint.part(1 - std::pow(0.5, double(round)), 1 - std::pow(0.5, double(round) + 1)));
    if (nothing)
        selection.notes.emplace_back(kNothingBalanced);
    else if (!rounds && state.left() > target)
        state.halveUntil(target, input.checkpoint.silent());
    for (std::size_t h = 0; h < state.survivors().size(); ++h)
        selection.heads.push_back({{}, static_cast<float>(state.walks().margin(static_cast<std::int64_t>(h)))});
    if (state.walks().repeats() > 0) selection.notes.push_back(repeatedText(state.walks().repeats()));
    return nothing ? std::vector<Survivors>(state.survivors().size()) : std::move(state.survivors());
}

void finishSelection(const PolicyInput& input, const RoundSettings& settings, const Protection& protection,
                     const std::vector<Survivors>& survivors, RowSelection& selection) {
    selection.protectedFirst = protection.first;
    selection.protectedLast = protection.last;
    for (std::size_t h = 0; h < survivors.size(); ++h) {
        Survivors ascending = survivors[h];
        std::ranges::sort(ascending, {}, &Survivor::row);
        RowWeights weights;
        const float margin = selection.heads[h].margin;
        selection.heads[h] = chosenRows(protection, input.rowCount(), ascending, weights, settings.sameWeights);
        selection.heads[h].margin = margin;
        if (std::ranges::find(weights.numerator, 0.0F) != weights.numerator.end()) // weight 0 still fills a slot (B18)
            weights.storedKeys = weights.storedValues = std::ssize(selection.heads[h].kept);
        selection.weights.push_back(std::move(weights));
    }
}

} // namespace kvscope
