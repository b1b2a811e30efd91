// Runs a policy and its oracle on the same numbers.
#include "tests/policies/policy_bench.h"

#include "core/engine/engine.h"
#include "core/policies/policy_run.h"
#include "core/policies/policy_spec.h"

#include <cmath>
#include <random>

namespace kvscope {

namespace {

constexpr double kRoundingNoise =
    2e-6; // relative; some ten float epsilons, since scores pass through several roundings

float asFloat(double x) { return static_cast<float>(x); }

HostTensor tensorOf(const naive_policies::PerHead<std::vector<naive_policies::Vector>>& heads) {
    if (heads.empty() || heads.front().empty()) return {};
    HostTensor tensor{{static_cast<std::int64_t>(heads.size()), static_cast<std::int64_t>(heads.front().size()),
                       static_cast<std::int64_t>(heads.front().front().size())},
                      {}};
    for (const auto& head : heads)
        for (const naive_policies::Vector& row : head)
            for (const double x : row) tensor.data.push_back(asFloat(x));
    return tensor;
}

// The first `rows` rows of each head of [H, n, d].
naive_policies::PerHead<std::vector<naive_policies::Vector>> rowsOf(const HostTensor& tensor, std::int64_t rows) {
    naive_policies::PerHead<std::vector<naive_policies::Vector>> heads;
    for (std::int64_t h = 0; h < tensor.shape[0]; ++h) {
        auto& head = heads.emplace_back();
        for (std::int64_t i = 0; i < rows; ++i) {
            const auto row = tensor.data.begin() + (h * tensor.shape[1] + i) * tensor.shape[2];
            head.emplace_back(row, row + tensor.shape[2]);
        }
    }
    return heads;
}

AttentionRule ruleOf(const naive_policies::Layer& plain) {
    AttentionRule rule;
    rule.scaling = plain.scaling;
    rule.softcap = plain.softcap;
    rule.slidingWindow = plain.slidingWindow;
    rule.gqaGroupOf.assign(plain.gqaGroupOf.begin(), plain.gqaGroupOf.end());
    return rule;
}

naive_policies::Options optionsOf(const ParameterValues& values) {
    naive_policies::Options options;
    for (const ParameterSpec& row : values.table()) options[row.id] = values.text(row.id);
    return options;
}

} // namespace

TestLayer TestLayer::random(std::uint64_t seed, const LayerShape& shape) {
    std::mt19937_64 bits(seed);
    std::normal_distribution<double> normal;
    const auto vectorOf = [&](double spread, const naive_policies::Vector& centre) {
        naive_policies::Vector v = centre;
        for (double& x : v) x = asFloat(x + spread * normal(bits));
        return v;
    };
    const naive_policies::Vector origin(static_cast<std::size_t>(shape.headDim), 0.0);
    TestLayer layer;
    layer.plain.layer = 3;
    layer.plain.scaling = asFloat(1 / std::sqrt(double(shape.headDim)));
    for (int h = 0; h < shape.kvHeads; ++h) {
        const naive_policies::Vector centre = vectorOf(1.5, origin);
        auto& head = layer.plain.keys.emplace_back();
        for (int i = 0; i < shape.tokens; ++i)
            head.push_back(i < 2 ? vectorOf(0.3, origin) : vectorOf(i % 17 == 5 ? 3 : 0.8, centre));
    }
    const int queries = shape.queries == 0 ? shape.tokens : shape.queries;
    layer.plain.firstQuery = shape.tokens - queries;
    for (int q = 0; q < shape.queryHeads; ++q) {
        layer.plain.gqaGroupOf.push_back(q * shape.kvHeads / shape.queryHeads);
        auto& head = layer.plain.queries.emplace_back();
        for (int r = 0; r < queries; ++r) head.push_back(vectorOf(1.2, origin));
    }
    layer.refresh();
    return layer;
}

TestLayer TestLayer::ofKeys(const std::vector<naive_policies::Vector>& keys) {
    TestLayer layer;
    layer.plain.keys = {keys};
    layer.plain.queries = {
        std::vector<naive_policies::Vector>(keys.size(), naive_policies::Vector(keys.front().size(), 0.0))};
    layer.plain.gqaGroupOf = {0};
    layer.refresh();
    return layer;
}

TestLayer TestLayer::ofCapture(const CaptureReader& capture, LayerIndex layer, TokenIndex cut) {
    const LayerInfo& info = capture.info().layerInfo(layer);
    TestLayer result;
    result.plain.keys = rowsOf(capture.read(layer, TensorRole::Keys, {}), cut);
    result.plain.preRope = rowsOf(capture.read(layer, TensorRole::KeysPreRope, {}), cut);
    result.plain.firstQuery = static_cast<int>(capture.info().numTokens - info.queryCount);
    result.plain.queries = rowsOf(capture.read(layer, TensorRole::Queries, {}), cut - result.plain.firstQuery);
    result.plain.gqaGroupOf.assign(info.gqaGroupOf.begin(), info.gqaGroupOf.end());
    result.plain.scaling = info.scaling;
    result.plain.softcap = info.softcap;
    result.plain.slidingWindow = static_cast<int>(info.slidingWindow);
    result.plain.layer = layer.value;
    result.plain.numLayers = capture.info().numLayers;
    result.refresh();
    result.values = tensorOf(rowsOf(capture.read(layer, TensorRole::Values, {}), cut));
    return result;
}

void TestLayer::refresh() {
    keys = tensorOf(plain.keys);
    values = keys;
    preRopeKeys = plain.preRope.empty() ? keys : tensorOf(plain.preRope);
    queries = tensorOf(plain.queries);
}

PolicyBench::PolicyBench(int threads) : m_engine(makeCpuEngine(threads)) {}
PolicyBench::~PolicyBench() = default;

PolicyOutcome PolicyBench::run(const std::string& spec, const TestLayer& layer, const Checkpoint& checkpoint) const {
    const PolicySpec parsed = PolicySpec::parse(spec);
    return run(policyById(parsed.policy), parsed.values, parsed.budget.value_or(Budget{}), layer, checkpoint);
}

PolicyOutcome PolicyBench::run(const Policy& policy, const ParameterValues& values, const Budget& budget,
                               const TestLayer& layer, const Checkpoint& checkpoint) const {
    return runPolicy(policy, values, budget, inputOf(layer, checkpoint));
}

PolicyOutcome PolicyBench::runWithSteps(const std::string& spec, const TestLayer& layer) const {
    const PolicySpec parsed = PolicySpec::parse(spec);
    const Checkpoint checkpoint;
    PolicyInput input = inputOf(layer, checkpoint);
    input.recordSteps = true;
    return runPolicy(policyById(parsed.policy), parsed.values, parsed.budget.value_or(Budget{}), input);
}

PolicyInput PolicyBench::inputOf(const TestLayer& layer, const Checkpoint& checkpoint) const {
    PolicyInput input{.engine = *m_engine,
                      .keys = m_engine->upload(layer.keys),
                      .values = m_engine->upload(layer.values),
                      .queries = layer.queries.empty() ? Tensor() : m_engine->upload(layer.queries),
                      .firstQuery = layer.plain.firstQuery,
                      .end = layer.plain.tokens(),
                      .positions = {},
                      .carried = {},
                      .attention = ruleOf(layer.plain),
                      .layer = LayerIndex(layer.plain.layer),
                      .numLayers = layer.plain.numLayers,
                      .seed = layer.plain.seed,
                      .checkpoint = checkpoint,
                      .preRopeKeys = m_engine->upload(layer.preRopeKeys),
                      .recordSteps = layer.recordSteps};
    input.keysOfLayer = [keys = input.keys](LayerIndex) { return keys; };
    return input;
}

naive_policies::Result runNaive(const std::string& spec, const naive_policies::Layer& layer) {
    const PolicySpec parsed = PolicySpec::parse(spec);
    return naive_policies::run(parsed.policy, optionsOf(parsed.values), layer, parsed.budget.value_or(Budget{}).text());
}

std::string differenceOfQueryHeads(const Selection& selection, const naive_policies::Result& expected) {
    std::size_t found = 0;
    for (const HeadSelection& head : selection.heads)
        for (const QueryHeadSet& own : head.queryHeads) {
            ++found;
            const auto& wanted = expected.queryHeads[static_cast<std::size_t>(own.queryHead)];
            const std::vector<TokenIndex> kept(wanted.begin(), wanted.end());
            if (own.kept.size() != kept.size() || (own.kept != kept && expected.closest > kRoundingNoise))
                return "query head " + std::to_string(own.queryHead) + " keeps " + listText(own.kept) +
                       ", the oracle keeps " + listText(kept);
        }
    return found == expected.queryHeads.size() ? "" : "the number of sets of query heads differs";
}

std::string difference(const PolicyOutcome& outcome, const naive_policies::Result& expected) {
    if (outcome.selection.heads.size() != expected.kept.size()) return "the number of heads differs";
    if (const std::string wrong = differenceOfQueryHeads(outcome.selection, expected); !wrong.empty()) return wrong;
    for (std::size_t h = 0; h < expected.kept.size(); ++h) {
        const std::vector<TokenIndex> kept(expected.kept[h].begin(), expected.kept[h].end());
        if (outcome.selection.heads[h].kept != kept && expected.closest > kRoundingNoise)
            return "KV head " + std::to_string(h) + " keeps " + listText(outcome.selection.heads[h].kept) +
                   ", the oracle keeps " + listText(kept);
        if (outcome.selection.heads[h].kept.size() != kept.size() && expected.queryHeads.empty())
            return "KV head " + std::to_string(h) + " keeps a wrong number of tokens";
    }
    return {};
}

std::string listText(const std::vector<TokenIndex>& kept) {
    std::string text;
    for (std::size_t i = 0; i < kept.size();) {
        std::size_t last = i;
        while (last + 1 < kept.size() && kept[last + 1] == kept[last] + 1) ++last;
        if (!text.empty()) text += ' ';
        text += std::to_string(kept[i]);
        if (last > i) text.append(1, last == i + 1 ? ' ' : '-').append(std::to_string(kept[last]));
        i = last + 1;
    }
    return text;
}

} // namespace kvscope
