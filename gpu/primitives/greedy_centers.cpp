// Farthest-first centres in slices of picks; a known run is continued.
#include "gpu/kernels/greedy_centers.h"
#include "core/base/error.h"
#include "gpu/primitives/primitives.h"
#include "gpu/primitives/slices.h"

#include <cassert>
#include <cmath>
#include <string>

namespace kvscope::gpu {

namespace {

/// The run's state on the device.
struct RunLists {
    DeviceList<std::int32_t> first, order, centre, found;
    DeviceList<double> radius, closest, distances;
    std::shared_ptr<void> scratch;
};

/// Centres that every head has already compared all rows with; 0 when the runs cannot be continued together.
std::int32_t knownPicks(const CentersRequest& request, std::int64_t heads) {
    if (static_cast<std::int64_t>(request.known.size()) != heads) return 0;
    const auto picks = static_cast<std::int32_t>(request.known.front().order.size());
    for (const GreedyCenters& run : request.known) {
        if (static_cast<std::int32_t>(run.order.size()) != picks || run.radius.size() != run.order.size()) return 0;
        for (const std::int32_t compared : run.compared)
            if (compared != picks) return 0;
    }
    return picks <= request.count ? picks : 0;
}

/// Lists of all heads, each padded to `stride` numbers.
template <class T, class Of>
std::vector<T> joined(const std::vector<GreedyCenters>& runs, std::int64_t stride, const Of& of) {
    std::vector<T> all(runs.size() * static_cast<std::size_t>(stride));
    for (std::size_t h = 0; h < runs.size(); ++h)
        std::copy(of(runs[h]).begin(), of(runs[h]).end(), all.begin() + static_cast<std::ptrdiff_t>(h) * stride);
    return all;
}

RunLists listsFor(const DeviceMemory& memory, const DeviceRows& keys, const CentersRequest& request,
                  std::int32_t known) {
    const auto places = static_cast<std::size_t>(keys.heads * request.count);
    const auto rows = static_cast<std::size_t>(keys.heads * keys.rows), heads = static_cast<std::size_t>(keys.heads);
    RunLists lists;
    lists.first = {memory, request.first};
    lists.found = {memory, std::vector<std::int32_t>(heads, known)};
    lists.scratch = memory.allocate(centersScratchBytes(keys));
    if (known == 0) {
        lists.order = {memory, places};
        lists.radius = {memory, places};
        lists.closest = {memory, places};
        lists.distances = {memory, rows};
        lists.centre = {memory, rows};
        return lists;
    }
    const auto& runs = request.known;
    lists.order = {memory, joined<std::int32_t>(
                               runs, request.count, [](const auto& r) -> auto& { return r.order; })};
    lists.radius = {memory, joined<double>(
                                runs, request.count, [](const auto& r) -> auto& { return r.radius; })};
    lists.closest = {memory, joined<double>(
                                 runs, request.count, [](const auto& r) -> auto& { return r.closest; })};
    lists.distances = {memory, joined<double>(
                                   runs, keys.rows, [](const auto& r) -> auto& { return r.distances; })};
    lists.centre = {memory, joined<std::int32_t>(
                                runs, keys.rows, [](const auto& r) -> auto& { return r.centre; })};
    return lists;
}

void refuseInfinite(const std::vector<double>& distances, std::int64_t rows) {
    for (std::size_t i = 0; i < distances.size(); ++i)
        if (!std::isfinite(distances[i]))
            throw Error({"key " + std::to_string(static_cast<std::int64_t>(i) % rows) +
                             " has no finite distance to another key",
                         "keys", "Look for NaN or infinity in the capture's keys"});
}

template <class T> std::vector<T> part(const std::vector<T>& all, std::int64_t begin, std::int64_t count) {
    return {all.begin() + begin, all.begin() + begin + count};
}

std::vector<GreedyCenters> readRuns(const DeviceMemory& memory, const DeviceRows& keys, std::int64_t count,
                                    const RunLists& lists) {
    const auto found = lists.found.read(memory), order = lists.order.read(memory), centre = lists.centre.read(memory);
    const auto radius = lists.radius.read(memory), closest = lists.closest.read(memory);
    const auto distances = lists.distances.read(memory);
    refuseInfinite(distances, keys.rows);
    std::vector<GreedyCenters> runs;
    for (std::int64_t h = 0; h < keys.heads; ++h) {
        const std::int64_t picks = found[static_cast<std::size_t>(h)];
        runs.push_back(
            {part(order, h * count, picks), part(radius, h * count, picks), part(closest, h * count, picks),
             part(distances, h * keys.rows, keys.rows), part(centre, h * keys.rows, keys.rows),
             std::vector<std::int32_t>(static_cast<std::size_t>(keys.rows), static_cast<std::int32_t>(picks))});
    }
    return runs;
}

} // namespace

std::vector<GreedyCenters> greedyCenters(const DeviceMemory& memory, const DeviceRows& keys,
                                         const CentersRequest& request, const Checkpoint& checkpoint) {
    assert(static_cast<std::int64_t>(request.first.size()) == keys.heads && 1 <= request.count);
    const std::int32_t known = knownPicks(request, keys.heads);
    if (known == request.count) return request.known;
    const RunLists lists = listsFor(memory, keys, request, known);
    Slices slices(memory, checkpoint, static_cast<double>(request.count - known));
    slices.each(request.count - known, 1, 64, [&](std::int64_t begin, std::int64_t end) {
        greedyCenters({.keys = keys,
                       .count = static_cast<std::int32_t>(known + end),
                       .stride = static_cast<std::int32_t>(request.count),
                       .known = static_cast<std::int32_t>(known + begin),
                       .first = lists.first.data(),
                       .order = lists.order.data(),
                       .radius = lists.radius.data(),
                       .closest = lists.closest.data(),
                       .distances = lists.distances.data(),
                       .centre = lists.centre.data(),
                       .found = lists.found.data(),
                       .scratch = lists.scratch.get()},
                      memory.stream());
    });
    return readRuns(memory, keys, request.count, lists);
}

} // namespace kvscope::gpu
