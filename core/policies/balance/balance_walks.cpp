// Draws the uniforms of BalanceKV's walks, runs the walks on the engine, repeats those that FAIL, and writes the step
// log.
#include "core/policies/balance/balance_walks.h"

#include "core/base/error.h"
#include "core/engine/engine.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace kvscope {

namespace {

constexpr std::int64_t kMostRepeats = 8;

[[noreturn]] void refuse(const PolicyInput& input, std::size_t walks) {
    throw Error({std::to_string(walks) + (walks == 1 ? " balancing walk FAILs" : " balancing walks FAIL") +
                     " again and again: |y| exceeds the limit at which p leaves [0, 1]",
                 "layer " + std::to_string(input.layer.value),
                 "Choose a larger c (or a smaller gamma), or on_overflow=clip"});
}

} // namespace

BalanceWalks::BalanceWalks(const PolicyInput& input, Tensor keys, Tensor values, HostTensor centres, BalanceLog* log)
    : m_input(input), m_batch{std::move(keys), std::move(values), std::move(centres), {}}, m_log(log),
      m_margins(static_cast<std::size_t>(input.keys.size(0)), std::numeric_limits<double>::infinity()) {
    m_batch.signsOnly = !m_log;
    if (m_log) m_log->centres = m_batch.centres;
}

std::vector<double> BalanceWalks::uniformsOf(const PlannedWalk& plan, std::int64_t repeat) const {
    RandomKey key = m_input.randomKey(plan.walk.head);
    key.round = plan.round;
    key.slot = plan.slot + 256 * static_cast<std::uint32_t>(repeat);
    std::vector<double> uniforms;
    uniforms.reserve(plan.places.size());
    for (const std::uint32_t place : plan.places) {
        key.token = place;
        uniforms.push_back(m_input.random->uniform(key));
    }
    return uniforms;
}

// gamma = 0: every p is 1/2, so no kernel is needed.
std::vector<std::int8_t> BalanceWalks::coins(const PlannedWalk& plan) {
    const std::vector<double> uniforms = uniformsOf(plan, 0);
    std::vector<std::int8_t> signs;
    double& margin = m_margins[plan.walk.head];
    for (std::size_t i = 0; i < uniforms.size(); ++i) {
        const bool silent = !plan.walk.silent.empty() && plan.walk.silent[i] != 0;
        const bool forced = i == 0 && plan.walk.firstIsPlus;
        signs.push_back(silent ? 0 : forced || uniforms[i] < 0.5 ? 1 : -1);
        if (!silent && !forced) margin = std::min(margin, std::abs(uniforms[i] - 0.5));
    }
    return signs;
}

std::vector<std::vector<std::int8_t>> BalanceWalks::run(const std::vector<PlannedWalk>& plans,
                                                        const Checkpoint& checkpoint) {
    std::vector<std::vector<std::int8_t>> signs(plans.size());
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < plans.size(); ++i) {
        assert(plans[i].places.size() == plans[i].walk.rows.size());
        if (plans[i].walk.gamma == 0 && !m_log)
            signs[i] = coins(plans[i]);
        else
            open.push_back(i);
    }
    for (std::int64_t repeat = 0; !open.empty(); ++repeat) {
        if (repeat > kMostRepeats) refuse(m_input, open.size());
        m_batch.walks.clear();
        for (const std::size_t i : open) {
            m_batch.walks.push_back(plans[i].walk);
            m_batch.walks.back().uniforms = uniformsOf(plans[i], repeat);
        }
        const std::vector<BalancingSteps> steps = m_input.engine.balancingWalks(m_batch, checkpoint);
        std::vector<std::size_t> failed;
        for (std::size_t w = 0; w < open.size(); ++w) {
            const std::size_t i = open[w];
            if (steps[w].failedAt >= 0) {
                failed.push_back(i);
                continue;
            }
            double& margin = m_margins[plans[i].walk.head];
            margin = std::min(margin, steps[w].margin);
            signs[i] = steps[w].signs;
            write(plans[i], m_batch.walks[w], steps[w], repeat);
        }
        m_repeats += static_cast<std::int64_t>(failed.size());
        open = std::move(failed);
    }
    return signs;
}

void BalanceWalks::write(const PlannedWalk& plan, const BalancingWalk& walk, const BalancingSteps& steps,
                         std::int64_t repeat) {
    if (!m_log) return;
    BalanceWalkLog log;
    log.kvHead = walk.head;
    log.level = plan.level;
    log.place = plan.place;
    log.tree = plan.tree;
    log.bucket = plan.bucket;
    log.repeats = repeat;
    log.walk = walk;
    log.products = steps.products;
    log.signs = steps.signs;
    double quadratic = 0, fair = 0;
    std::int64_t imbalance = 0;
    for (std::size_t i = 0; i < steps.signs.size(); ++i) {
        const double sign = steps.signs[i];
        log.tokens.push_back(m_input.tokenAt(walk.head, walk.rows[i]));
        log.probabilities.push_back(0.5 - walk.gamma * steps.products[i]);
        quadratic += 2 * sign * steps.products[i] + sign * sign * steps.diagonal[i];
        fair += sign * sign * steps.diagonal[i];
        imbalance += steps.signs[i];
        log.quadratic.push_back(quadratic);
        log.fairCoins.push_back(fair);
        log.imbalance.push_back(imbalance);
    }
    m_log->walks.push_back(std::move(log));
}

std::string repeatedText(std::int64_t repeats) {
    return repeats == 1 ? "a walk failed once and was repeated"
                        : std::to_string(repeats) + " times a walk failed and was repeated";
}

} // namespace kvscope
