#pragma once

#include "core/capture/capture.h"
#include "core/policies/policy.h"
#include "core/policies/policy_outcome.h"
#include "tests/policies/naive_policies.h"

#include <memory>
#include <string>

namespace kvscope {

struct LayerShape {
    int queryHeads = 4, kvHeads = 2, tokens = 97, headDim = 8;
    int queries = 0; ///< captured: the last so many; 0: all
};

/// A layer twice: as the tensors that policies get and as the plain numbers that oracles get.
struct TestLayer {
    HostTensor keys, values, queries, preRopeKeys;
    naive_policies::Layer plain;
    bool recordSteps = false;

    /// Keys crowd around a direction of their head, as real ones do, with a few outliers and sinks of small norm.
    static TestLayer random(std::uint64_t seed, const LayerShape& shape);
    /// One KV head with one query head; rows as given, queries all zero.
    static TestLayer ofKeys(const std::vector<naive_policies::Vector>& keys);
    /// The tokens and queries before the cut of one layer of a capture.
    static TestLayer ofCapture(const CaptureReader& capture, LayerIndex layer, TokenIndex cut);
    /// Tensors after `plain` was changed by hand.
    void refresh();
};

/// Runs policies as typed on a test layer, on the CPU engine.
class PolicyBench {
public:
    explicit PolicyBench(int threads = 0);
    ~PolicyBench();
    PolicyOutcome run(const std::string& spec, const TestLayer& layer, const Checkpoint& checkpoint = {}) const;
    PolicyOutcome run(const Policy& policy, const ParameterValues& values, const Budget& budget, const TestLayer& layer,
                      const Checkpoint& checkpoint = {}) const;
    /// As run, with the policy's step log.
    PolicyOutcome runWithSteps(const std::string& spec, const TestLayer& layer) const;
    /// What a policy sees of a layer; every other layer has the same keys.
    PolicyInput inputOf(const TestLayer& layer, const Checkpoint& checkpoint) const;
    const Engine& engine() const { return *m_engine; }

private:
    std::unique_ptr<Engine> m_engine;
};

/// The oracle for the same text.
naive_policies::Result runNaive(const std::string& spec, const naive_policies::Layer& layer);

/// Empty when the engine's lists are the oracle's, else which head differs and how. A list whose decision lies inside
/// float rounding counts as equal.
std::string difference(const PolicyOutcome& outcome, const naive_policies::Result& expected);

/// The kept lists as text: "0-3 7 90-96".
std::string listText(const std::vector<TokenIndex>& kept);

} // namespace kvscope
