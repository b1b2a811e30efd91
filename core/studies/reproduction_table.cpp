// Which tables and figures of the papers can be made from captures: the rows of reproductions.json. A further one is a
// row there; what a row leaves out has the default of its field in Reproduction.
#include "core/base/nearest_name.h"
#include "core/studies/reproduction.h"

#include <nlohmann/json.hpp>

#include <cassert>
#include <map>

namespace kvscope {

namespace {

const std::map<std::string, ReproductionAxis> kAxes = {{"retention", ReproductionAxis::Retention},
                                                       {"layer", ReproductionAxis::Layer},
                                                       {"tokens", ReproductionAxis::Tokens},
                                                       {"parameter", ReproductionAxis::Parameter},
                                                       {"memory", ReproductionAxis::Memory}};
const std::map<std::string, ReproductionMethod> kMethods = {{"sweep", ReproductionMethod::Sweep},
                                                            {"power_law", ReproductionMethod::PowerLaw},
                                                            {"kept_shares", ReproductionMethod::KeptShares},
                                                            {"lengths", ReproductionMethod::Lengths}};

Reproduction readRow(const nlohmann::json& row) {
    Reproduction made;
    std::size_t taken = 0;
    const auto take = [&](const char* key, auto& field) {
        if (const auto at = row.find(key); at != row.end()) at->get_to(field), ++taken;
    };
    std::string axis = "retention", method = "sweep";
    take("id", made.id);
    take("item", made.item);
    take("paper_data", made.paperData);
    take("elsewhere", made.elsewhere);
    take("caveat", made.caveat);
    take("policies", made.policies);
    take("budgets", made.budgets);
    take("varied", made.varied.id);
    take("values", made.varied.values);
    take("reference", made.reference);
    take("measures", made.measures);
    take("method", method);
    take("axis", axis);
    take("cut", made.cut);
    take("seeds", made.seeds);
    take("over_heads", made.overHeads);
    take("over", made.over);
    take("show_deviation", made.showDeviation);
    take("all_queries", made.allQueries);
    take("exact_first", made.exactFirst);
    take("powers", made.powers);
    assert(taken == row.size()); // else a key is misspelt
    made.axis = kAxes.at(axis);
    made.method = kMethods.at(method);
    return made;
}

} // namespace

const std::vector<Reproduction>& allReproductions() {
    static const std::vector<Reproduction> rows = [] {
        std::vector<Reproduction> all;
        for (const nlohmann::json& row : nlohmann::json::parse(reproductionText("reproductions")))
            all.push_back(readRow(row));
        return all;
    }();
    return rows;
}

const Reproduction& reproductionById(std::string_view id) {
    return requireNamed(allReproductions(), &Reproduction::id, id, "nothing to reproduce is called");
}

} // namespace kvscope
