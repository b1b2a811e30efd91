// Keeps every token: the reference of every measure, with error 0 and retained mass 1.
#include "core/policies/citations.h"
#include "core/policies/policy.h"

#include <limits>
#include <numeric>

namespace kvscope {

namespace {

PolicyCard makeCard() {
    return {.id = "exact",
            .name = "Exact",
            .summary = "Keeps every token: the uncompressed cache.",
            .paper = citation("Vaswani", "Eq. 1"),
            .variants = {{"all", "Everything", "no parameter, no budget", {}}},
            .parameters = std::make_shared<const ParameterTable>(),
            .usesBudget = false,
            .blockRefusal = "it evicts nothing, so its blocks change nothing",
            .scoreLabel = "no score"};
}

class Exact : public Policy {
public:
    Exact() : Policy(makeCard()) {}

    RowSelection select(const PolicyInput& input, const Scores&, const ParameterValues&, std::int64_t) const override {
        TopKHead everything;
        everything.kept.resize(static_cast<std::size_t>(input.rowCount()));
        std::iota(everything.kept.begin(), everything.kept.end(), 0);
        everything.margin = std::numeric_limits<float>::infinity();
        return {std::vector<TopKHead>(static_cast<std::size_t>(input.keys.size(0)), everything), 0, 0};
    }
};

} // namespace

const Policy& exactPolicy() { return onlyPolicy<Exact>(); }

} // namespace kvscope
