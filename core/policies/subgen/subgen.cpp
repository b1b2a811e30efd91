// SubGen (Algorithm 1). Keys form clusters of radius delta, each with a few uniform samples of its members for the
// denominator; a second reservoir samples pairs by their squared value norm for the numerator.
#include "core/base/json/json_text.h"
#include "core/engine/engine.h"
#include "core/parameters/parameter_rows.h"
#include "core/policies/citations.h"
#include "core/policies/subgen/subgen_log.h"

#include "core/policies/common_parameters.h"
#include "core/policies/policy.h"
#include "core/policies/subgen/subgen_radius.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvscope {

namespace {

enum Round : std::uint32_t { ClusterSlots = 0, ValueSlots = 1 };

ParameterTable ownParameters() {
    return {
        choiceRow("delta_rule", "Radius from",
                  {{"quantile", "Quantile of distances", "a quantile of the pairwise distances"},
                   {"given", "Given radius", "delta as typed"},
                   {"budget", "Searched for the budget",
                    "the smallest delta found whose storage fits the budget; not in the paper"}},
                  Stage::Features,
                  "How the cluster radius is found; the paper gives no default. Without a search the budget is not "
                  "used and the realised storage is reported.",
                  "SubGen Algorithm 1; quantile and search: this program's", "δ"),
        realRow("delta_quantile", "Quantile", "", {0, 1, 0.05, 0.01}, Stage::Features,
                "Share of the pairwise distances (of up to 512 evenly spaced keys of the head) that lie below delta.",
                "this program's: a slider that means the same for every model"),
        realRow("delta", "Given radius", "δ", {0, 1000, 10}, Stage::Features,
                "Radius of a cluster, in the units of the keys. The theorem's clusterability uses the same letter for "
                "the diameter (S3).",
                "SubGen Algorithm 1; no published value"),
        integerRow("cluster_slots", "Samples per cluster", "t", "slots", {1, 256, 4}, Stage::Select,
                   "Uniform samples, with replacement, that every cluster keeps for the denominator.",
                   "SubGen Theorem 1: Ω(ε⁻² e^(2δr) ln n); no published value"),
        integerRow("value_slots", "Value reservoir", "s", "slots", {1, 4096, 256}, Stage::Select,
                   "Pairs sampled with probability ‖v‖²/μ, with replacement, for the numerator. Below some tens z can "
                   "point anywhere (S6).",
                   "SubGen Theorem 1: Ω(ε⁻² d) (an overview sentence says d ln n, S1); no published value")};
}

PolicyCard makeCard() {
    return {
        .id = "subgen",
        .name = "SubGen",
        .summary =
            "Streaming clusters with uniform samples for the denominator, a norm-weighted reservoir for the numerator.",
        .paper = citation("SubGen", "Algorithm 1, Theorem 1"),
        .needs = {Need::Keys, Need::Values},
        .variants = {{"paper", "Paper", "radius as a quantile of pairwise distances", {}},
                     {"given", "Given radius", "radius as typed", {{"delta_rule", "given"}}},
                     {"searched", "Searched", "radius searched for the budget", {{"delta_rule", "budget"}}}},
        .parameters = withCommonParameters(ownParameters(), CommonParameters::Rounding,
                                           {"delta_rule", "delta_quantile", "cluster_slots", "value_slots"}),
        .family = PolicyFamily::Clusters,
        .usesSeed = true,
        .blockRefusal = "it is a stream already and takes the tokens one by one",
        .scoreLabel = "no score: reservoirs"};
}

/// Uniforms of one head's reservoirs, and the smallest distance of any flip from the other outcome.
struct Flips {
    const PolicyInput& input;
    RandomKey key;
    float margin = std::numeric_limits<float>::infinity();

    TokenIndex tokenOf(TokenIndex row) const { return input.tokenAt(key.kvHead, row); }

    bool accepts(TokenIndex row, std::int64_t slot, double probability) {
        key.token = static_cast<std::uint32_t>(tokenOf(row));
        key.slot = static_cast<std::uint32_t>(slot);
        const double u = input.random->uniform(key);
        if (probability > 0 && probability < 1)
            margin = std::min(margin, static_cast<float>(std::abs(u - probability)));
        return u < probability;
    }
};

/// The rows that a slot sees in time order, and the probability of each when it arrived.
struct Candidates {
    std::vector<TokenIndex> rows;
    std::vector<double> probability;

    void add(TokenIndex row, double chance) {
        rows.push_back(row);
        probability.push_back(chance);
    }
};

/// The row that a slot holds at the end: the last one that it accepted. Searching from the end saves the earlier flips.
/// -1: none accepted.
TokenIndex lastAccepted(Flips& flips, const Candidates& candidates, std::int64_t slot) {
    for (std::size_t i = candidates.rows.size(); i-- > 0;)
        if (flips.accepts(candidates.rows[i], slot, candidates.probability[i])) return candidates.rows[i];
    return -1;
}

/// The two reservoirs of one head, as rows.
struct Reservoirs {
    std::vector<Candidates> clusters;                  ///< [m] members
    Candidates values;                                 ///< all rows
    std::vector<std::vector<TokenIndex>> clusterSlots; ///< [m][t]
    std::vector<TokenIndex> valueSlots;                ///< [s]
    std::vector<double> squares;                       ///< [n] ‖v‖²
    double mu = 0;
};

/// All tokens that a slot accepted, in time order.
std::vector<TokenIndex> allAccepted(Flips& flips, const Candidates& candidates, std::int64_t slot) {
    std::vector<TokenIndex> accepted;
    for (std::size_t i = 0; i < candidates.rows.size(); ++i)
        if (flips.accepts(candidates.rows[i], slot, candidates.probability[i]))
            accepted.push_back(flips.tokenOf(candidates.rows[i]));
    return accepted;
}

void sampleClusters(Flips& flips, const StreamClusters& clusters, std::int64_t t, Reservoirs& out) {
    flips.key.round = ClusterSlots;
    out.clusters.resize(clusters.representatives.size());
    for (std::size_t row = 0; row < clusters.cluster.size(); ++row) {
        Candidates& members = out.clusters[clusters.cluster[row]]; // 1/n_c, and 1 for the row that opens the cluster
        members.add(static_cast<TokenIndex>(row), 1.0 / static_cast<double>(members.rows.size() + 1));
    }
    for (const Candidates& members : out.clusters) {
        std::vector<TokenIndex>& slots = out.clusterSlots.emplace_back();
        for (std::int64_t slot = 0; slot < t; ++slot) slots.push_back(lastAccepted(flips, members, slot));
    }
}

void sampleValues(Flips& flips, const float* norms, std::int64_t s, Reservoirs& out) {
    flips.key.round = ValueSlots;
    for (TokenIndex row = 0; row < flips.input.rowCount(); ++row) {
        const double square = double{norms[row]} * double{norms[row]};
        out.squares.push_back(square);
        out.mu += square;
        out.values.add(row, square > 0 ? square / out.mu : 0); // 0/0 is 0 (S5)
    }
    for (std::int64_t slot = 0; slot < s; ++slot) {
        if (slot % 32 == 0) flips.input.checkpoint.stopPoint();
        out.valueSlots.push_back(lastAccepted(flips, out.values, slot));
    }
}

/// Weights per row: mu/(s ‖v‖²) for each value slot, n_c/t for each cluster slot; repeated draws add up.
void addHead(const Reservoirs& reservoirs, float margin, RowSelection& selection) {
    const std::size_t n = reservoirs.squares.size();
    std::vector<double> numerator(n, 0), denominator(n, 0);
    std::int64_t pairs = 0, keys = 0;
    for (const TokenIndex row : reservoirs.valueSlots)
        if (row >= 0) {
            numerator[row] +=
                reservoirs.mu / (static_cast<double>(reservoirs.valueSlots.size()) * reservoirs.squares[row]);
            ++pairs;
        }
    for (std::size_t c = 0; c < reservoirs.clusters.size(); ++c) {
        const std::vector<TokenIndex>& slots = reservoirs.clusterSlots[c];
        for (const TokenIndex row : slots)
            denominator[row] +=
                static_cast<double>(reservoirs.clusters[c].rows.size()) / static_cast<double>(slots.size());
        keys += static_cast<std::int64_t>(slots.size()) + 1; // plus the representative
    }
    TopKHead head;
    RowWeights weights;
    head.margin = margin;
    weights.storedKeys = keys + pairs;
    weights.storedValues = pairs;
    for (std::size_t row = 0; row < n; ++row)
        if (numerator[row] > 0 || denominator[row] > 0) {
            head.kept.push_back(static_cast<TokenIndex>(row));
            weights.numerator.push_back(static_cast<float>(numerator[row]));
            weights.denominator.push_back(static_cast<float>(denominator[row]));
        }
    selection.heads.push_back(std::move(head));
    selection.weights.push_back(std::move(weights));
}

SubgenLog::Head logHead(const PolicyInput& input, std::int64_t head, double delta, const StreamClusters& clusters,
                        const Reservoirs& reservoirs) {
    const auto token = [&](TokenIndex row) { return row < 0 ? row : input.tokenAt(head, row); };
    SubgenLog::Head log;
    log.delta = delta;
    log.mu = reservoirs.mu;
    log.cluster = clusters.cluster;
    log.radii.assign(clusters.representatives.size(), 0);
    for (std::size_t row = 0; row < clusters.cluster.size(); ++row) {
        double& radius = log.radii[clusters.cluster[row]];
        radius = std::max(radius, clusters.distances[row]);
        log.valueProbability.push_back(reservoirs.mu > 0 ? reservoirs.squares[row] / reservoirs.mu : 0);
    }
    log.distances = clusters.distances;
    for (std::size_t c = 0; c < clusters.representatives.size(); ++c) {
        log.representatives.push_back(token(clusters.representatives[c]));
        log.counts.push_back(std::ssize(reservoirs.clusters[c].rows));
        log.clusterSlots.push_back(reservoirs.clusterSlots[c]);
        std::ranges::transform(log.clusterSlots.back(), log.clusterSlots.back().begin(), token);
    }
    for (const TokenIndex row : reservoirs.valueSlots) log.valueSlots.push_back(token(row));
    return log;
}

/// Repeats the same flips from the start of the stream, so that the log knows the contents of every slot at any time.
void addHistory(Flips flips, const Reservoirs& reservoirs, SubgenLog::Head& log) {
    flips.key.round = ClusterSlots;
    for (std::size_t c = 0; c < reservoirs.clusters.size(); ++c) {
        log.clusterHistory.emplace_back();
        for (std::int64_t slot = 0; slot < std::ssize(reservoirs.clusterSlots[c]); ++slot)
            log.clusterHistory.back().push_back(allAccepted(flips, reservoirs.clusters[c], slot));
    }
    flips.key.round = ValueSlots;
    for (std::int64_t slot = 0; slot < std::ssize(reservoirs.valueSlots); ++slot) {
        flips.input.checkpoint.stopPoint();
        log.valueHistory.push_back(allAccepted(flips, reservoirs.values, slot));
    }
}

class Subgen : public Policy {
public:
    Subgen() : Policy(makeCard()) {}

    Features features(const PolicyInput& input, const ParameterValues&) const override {
        return {{"value_norms", input.engine.rowNorms(input.values, input.checkpoint)}};
    }

    // There is no score; the norms are passed on to the reservoir.
    Scores combine(const PolicyInput&, const Features& features, const ParameterValues&) const override {
        return {{}, {{"value_norm", features.at("value_norms")}}};
    }

    RowSelection select(const PolicyInput& input, const Scores& scores, const ParameterValues& values,
                        std::int64_t count) const override {
        const std::int64_t t = values.integer("cluster_slots"), s = values.integer("value_slots");
        const SubgenClusters found = clusterKeys(input, values, count);
        const HostTensor& norms = scores.parts.at("value_norm");
        RowSelection selection;
        auto log = std::make_shared<SubgenLog>();
        std::int64_t most = 0, least = std::numeric_limits<std::int64_t>::max();
        for (std::int64_t h = 0; h < input.keys.size(0); ++h) {
            input.checkpoint.stopPoint();
            const StreamClusters& clusters = found.heads[h];
            Flips flips{input, input.randomKey(h)};
            Reservoirs reservoirs;
            sampleClusters(flips, clusters, t, reservoirs);
            sampleValues(flips, norms.data.data() + h * input.rowCount(), s, reservoirs);
            addHead(reservoirs, std::min(flips.margin, static_cast<float>(clusters.margin)), selection);
            most = std::max(most, static_cast<std::int64_t>(clusters.representatives.size()));
            least = std::min(least, static_cast<std::int64_t>(clusters.representatives.size()));
            if (input.recordSteps) {
                log->heads.push_back(logHead(input, h, found.radii[h], clusters, reservoirs));
                addHistory(flips, reservoirs, log->heads.back());
            }
        }
        if (input.recordSteps) selection.steps = std::move(log);
        selection.notes = storageNotes(input, selection, values, least, most, count);
        return selection;
    }

private:
    static std::vector<std::string> storageNotes(const PolicyInput& input, const RowSelection& selection,
                                                 const ParameterValues& values, std::int64_t least, std::int64_t most,
                                                 std::int64_t count) {
        const auto d = static_cast<double>(input.keys.size(2)), dv = static_cast<double>(input.values.size(2));
        double numbers = 0;
        for (const RowWeights& head : selection.weights)
            numbers += static_cast<double>(head.storedKeys) * d + static_cast<double>(head.storedValues) * dv;
        const double stored = numbers / (d + dv) / static_cast<double>(selection.weights.size());
        const bool searched = values.choice("delta_rule") == "budget";
        const std::string range = least == most ? std::to_string(least) : fmt::format("{} to {}", least, most);
        const std::string clusters = range + (most == 1 ? " cluster" : " clusters");
        return {fmt::format("SubGen has {} a head and stores what {:.1f} tokens take{}", clusters, stored,
                            searched ? fmt::format("; the radius was searched for a budget of {} tokens", count)
                                     : "; the radius decides that, not the budget")};
    }
};

} // namespace

std::string SubgenLog::json() const {
    nlohmann::ordered_json all = {{"policy", "subgen"}, {"heads", nlohmann::ordered_json::array()}};
    for (const Head& head : heads)
        all["heads"].push_back({{"delta", head.delta},
                                {"mu", head.mu},
                                {"representatives", head.representatives},
                                {"counts", head.counts},
                                {"radii", head.radii},
                                {"cluster", head.cluster},
                                {"cluster_slots", head.clusterSlots},
                                {"value_slots", head.valueSlots},
                                {"value_probability", head.valueProbability}});
    return jsonLine(all); // null for numbers that are not finite
}

const Policy& subgenPolicy() { return onlyPolicy<Subgen>(); }

} // namespace kvscope
