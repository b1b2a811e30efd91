// SubGen's practical variant (section 3.2): the most recent tokens, and greedy k-center over the other keys. Each
// centre is the key farthest from the earlier centres.
#include "core/base/json/json_text.h"
#include "core/engine/clusters.h"
#include "core/engine/engine.h"
#include "core/parameters/parameter_rows.h"
#include "core/policies/citations.h"
#include "core/policies/common_parameters.h"
#include "core/policies/policy.h"
#include "core/policies/subgen/subgen_log.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>

namespace kvscope {

namespace {

using Runs = std::vector<GreedyCenters>;

ParameterTable ownParameters() {
    return {tokensRow("recent", "Recent tokens", "r", {0, 1 << 20, 32}, Stage::Features,
                      "The most recent tokens, kept for good, inside the budget; the centres are chosen among the "
                      "rest. The paper does not give it.",
                      "SubGen section 3.2: r and k only as their sum"),
            choiceRow("first_centre", "First centre",
                      {{"first_token", "First token", "row 0"},
                       {"farthest_from_mean", "Farthest from the mean", "argmax ‖k_i − μ‖"},
                       {"seeded", "Random", "one uniform per KV head"}},
                      Stage::Features, "Where the farthest-first walk begins; the paper does not say.",
                      "SubGen section 3.2 leaves it open")};
}

PolicyCard makeCard() {
    return {.id = "subgen_kcenter",
            .name = "SubGen k-center",
            .summary =
                "Keeps the most recent tokens and greedy k-center representatives of the other keys; no weights.",
            .paper = citation("SubGen", "section 3.2; greedy k-center: Gonzalez 1985"),
            .needs = {Need::Keys},
            .variants =
                {{"paper", "Paper", "first centre: token 0", {}},
                 {"far_start",
                  "Far start",
                  "first centre: farthest from the mean key",
                  {{"first_centre", "farthest_from_mean"}}},
                 {"random_start", "Random start", "first centre drawn with the seed", {{"first_centre", "seeded"}}}},
            .parameters =
                withCommonParameters(ownParameters(), CommonParameters::Rounding | CommonParameters::BlockProcessing,
                                     {"recent", "first_centre"}),
            .family = PolicyFamily::Centres,
            .usesSeed = true,
            .scoreLabel = "no score: farthest-first order"};
}

std::vector<TokenIndex> firstCentres(const PolicyInput& input, const Tensor& rest, const std::string& rule) {
    const std::int64_t heads = rest.size(0), rows = rest.size(1);
    std::vector<TokenIndex> first(static_cast<std::size_t>(heads), 0);
    if (rule == "seeded")
        for (std::int64_t h = 0; h < heads; ++h)
            first[h] = static_cast<TokenIndex>(input.random->uniform(input.randomKey(h)) * static_cast<double>(rows));
    if (rule != "farthest_from_mean") return first;
    const Checkpoint quiet = input.checkpoint.silent();
    const HostTensor mean = input.engine.anchor(rest, AnchorKind::Mean, quiet);
    const HostTensor distances = input.engine.similarity(rest, mean, SimilarityMetric::Euclidean, quiet);
    for (std::int64_t h = 0; h < heads; ++h) {
        const auto begin = distances.data.begin() + h * rows;
        first[h] = static_cast<TokenIndex>(std::max_element(begin, begin + rows) - begin);
    }
    return first;
}

bool reaches(const GreedyCenters& run, std::int64_t count) {
    return static_cast<std::int64_t>(run.order.size()) >= count || (!run.radius.empty() && run.radius.back() == 0);
}

/// A greedy run for `request.count` centres, continued from an earlier run on the same keys if there is one.
std::shared_ptr<const Runs> walk(const PolicyInput& input, const Tensor& rest, CentersRequest request) {
    const auto start = [&] {
        return std::make_shared<const Runs>(input.engine.greedyCenters(rest, request, input.checkpoint));
    };
    if (!input.memo || request.compareAll) return start();
    const std::lock_guard lock(input.memo->mutex);
    if (const auto known = std::static_pointer_cast<const Runs>(input.memo->work)) {
        if (std::ranges::all_of(*known, [&](const auto& run) { return reaches(run, request.count); })) return known;
        request.known = *known;
    }
    const auto runs = start();
    input.memo->work = runs;
    return runs;
}

/// The first `centres` of the run and the recent rows; if the run ended early, the latest of the other rows fill the
/// count (S10).
TopKHead chosenRows(const GreedyCenters& run, std::int64_t rows, std::int64_t centres, std::int64_t recent) {
    TopKHead head;
    head.margin = std::numeric_limits<float>::infinity();
    std::vector<bool> kept(static_cast<std::size_t>(rows), false);
    const auto picked = std::min(centres, static_cast<std::int64_t>(run.order.size()));
    for (std::int64_t i = 0; i < picked; ++i) {
        kept[run.order[i]] = true;
        if (i > 0) head.margin = std::min(head.margin, static_cast<float>(run.closest[i - 1]));
    }
    std::fill(kept.end() - recent, kept.end(), true);
    std::int64_t missing = centres - picked;
    for (std::int64_t row = rows - recent - 1; missing > 0 && row >= 0; --row)
        if (!kept[row]) {
            kept[row] = true;
            --missing;
        }
    for (std::int64_t row = 0; row < rows; ++row)
        if (kept[row]) head.kept.push_back(static_cast<TokenIndex>(row));
    return head;
}

std::shared_ptr<const StepLog> logOf(const PolicyInput& input, const Runs& runs, std::int64_t centres,
                                     std::int64_t recent) {
    auto log = std::make_shared<KCenterLog>();
    for (std::size_t h = 0; h < runs.size(); ++h) {
        const GreedyCenters& run = runs[h];
        KCenterLog::Head head;
        head.recent = recent;
        const std::size_t count = std::min(run.order.size(), static_cast<std::size_t>(centres));
        for (std::size_t i = 0; i < count; ++i)
            head.order.push_back(input.tokenAt(static_cast<std::int64_t>(h), run.order[i]));
        head.radius.assign(run.radius.begin(), run.radius.begin() + static_cast<std::ptrdiff_t>(count));
        head.cellSize.assign(count, 0);
        for (const std::int32_t centre : run.centre) ++head.cellSize[centre];
        log->heads.push_back(std::move(head));
    }
    return log;
}

class SubgenKCenter : public Policy {
public:
    SubgenKCenter() : Policy(makeCard()) {}

    Protection protection(const ParameterValues& values, std::int64_t) const override {
        return {0, values.integer("recent")};
    }

    RowSelection select(const PolicyInput& input, const Scores&, const ParameterValues& values,
                        std::int64_t count) const override {
        const std::int64_t rows = input.rowCount();
        RowSelection selection;
        selection.protectedLast = protection(values, count).within(count, rows).last;
        const std::int64_t recent = selection.protectedLast, centres = std::min(count, rows) - recent;
        Runs none(static_cast<std::size_t>(input.keys.size(0)));
        std::shared_ptr<const Runs> runs(&none, [](const Runs*) {});
        if (centres > 0) {
            const Tensor rest = input.engine.rows(input.keys, 0, rows - recent);
            CentersRequest request;
            request.count = centres;
            request.first = firstCentres(input, rest, values.choice("first_centre"));
            request.compareAll = input.recordSteps;
            runs = walk(input, rest, std::move(request));
        }
        for (const GreedyCenters& run : *runs) selection.heads.push_back(chosenRows(run, rows, centres, recent));
        if (input.recordSteps) selection.steps = logOf(input, *runs, centres, recent);
        return selection;
    }
};

} // namespace

std::string KCenterLog::json() const {
    nlohmann::ordered_json all = {{"policy", "subgen_kcenter"}, {"heads", nlohmann::ordered_json::array()}};
    for (const Head& head : heads)
        all["heads"].push_back(
            {{"recent", head.recent}, {"order", head.order}, {"radius", head.radius}, {"cell_size", head.cellSize}});
    return jsonLine(all); // null for numbers that are not finite
}

const Policy& subgenKCenterPolicy() { return onlyPolicy<SubgenKCenter>(); }

} // namespace kvscope
