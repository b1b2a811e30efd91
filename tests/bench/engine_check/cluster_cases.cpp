// Cases of farthest-first centres and one-pass clusters, small ones with their oracle and one of the speed target.
#include "tests/bench/engine_check/engine_case.h"
#include "tests/support/naive/naive_clusters.h"

#include <algorithm>

namespace kvscope::check {

namespace {

constexpr double kSquareRoots = 0x1p-24 * 1.01; // distances in double, rounded to float here

CentersRequest requestOf(const naive::Block& keys, std::int64_t count) {
    CentersRequest request;
    request.count = count;
    request.first.assign(static_cast<std::size_t>(keys.heads), 0);
    return request;
}

/// Picks, then radii, of all heads.
Outcome outcomeOf(const std::vector<GreedyCenters>& runs) {
    Outcome out;
    for (const GreedyCenters& run : runs) {
        out.numbers.insert(out.numbers.end(), run.order.begin(), run.order.end());
        for (std::size_t i = 0; i < run.radius.size(); ++i) out.numbers.push_back(static_cast<float>(run.radius[i]));
        for (std::size_t i = 0; i + 1 < run.closest.size(); ++i)
            out.margin = std::min(out.margin, static_cast<float>(run.closest[i]));
    }
    return out;
}

EngineCase centresCase(const std::string& name, std::int64_t heads, std::int64_t n, std::int64_t d, std::int64_t count,
                       bool withOracle, RowType type) {
    const naive::Block keys = storedAs(type.stored, randomBlock(61, heads, n, d, 1, 0.25));
    EngineCase result{"greedyCenters/" + name + type.suffix,
                      3.0 * double(heads * n * d * count),
                      4.0 * double(heads * n * d),
                      kSquareRoots,
                      [keys, count](const Engine& e) {
                          return [&e, t = uploadRows(e, keys), request = requestOf(keys, count)] {
                              return outcomeOf(e.greedyCenters(t, request, {}));
                          };
                      },
                      {}};
    if (withOracle)
        result.naive = [keys, count] {
            naive::Numbers numbers;
            for (std::int64_t h = 0; h < keys.heads; ++h) {
                const naive::Centers run = naive::greedyCenters(keys, h, count, 0);
                numbers.insert(numbers.end(), run.order.begin(), run.order.end());
                numbers.insert(numbers.end(), run.radius.begin(), run.radius.end());
            }
            return numbers;
        };
    return result;
}

EngineCase clustersCase(const std::string& name, std::int64_t n, std::int64_t d, double radius, RowType type) {
    const naive::Block keys = storedAs(type.stored, randomBlock(62, 2, n, d, 1, 0.25));
    return {"streamClusters/" + name + type.suffix,
            3.0 * double(n * n * d),
            4.0 * double(2 * n * d),
            kSquareRoots,
            [keys, radius](const Engine& e) {
                return [&e, t = uploadRows(e, keys), radii = std::vector<double>{radius, 2 * radius}, n = keys.rows] {
                    Outcome out;
                    for (const StreamClusters& head : e.streamClusters(t, radii, n, {})) {
                        out.numbers.insert(out.numbers.end(), head.cluster.begin(), head.cluster.end());
                        out.numbers.insert(out.numbers.end(), head.distances.begin(), head.distances.end());
                        out.margin = std::min(out.margin, static_cast<float>(head.margin));
                    }
                    return out;
                };
            },
            [keys, radius] {
                naive::Numbers numbers;
                for (std::int64_t h = 0; h < 2; ++h) {
                    const naive::Clusters head = naive::streamClusters(keys, h, h == 0 ? radius : 2 * radius);
                    numbers.insert(numbers.end(), head.cluster.begin(), head.cluster.end());
                    numbers.insert(numbers.end(), head.distances.begin(), head.distances.end());
                }
                return numbers;
            }};
}

} // namespace

std::vector<EngineCase> clusterCases() {
    std::vector<EngineCase> cases;
    for (const RowType type : kRowTypes)
        cases.insert(cases.end(),
                     {centresCase("1x1x1", 1, 1, 1, 1, true, type), centresCase("3x257x33", 3, 257, 33, 60, true, type),
                      centresCase("2x64x128-all", 2, 64, 128, 64, true, type),
                      centresCase("speed-1x16384x128-k1024", 1, 16384, 128, 1024, false, type),
                      clustersCase("2x301x16", 301, 16, 3, type), clustersCase("2x100x130-many", 100, 130, 0.5, type)});
    return cases;
}

} // namespace kvscope::check
