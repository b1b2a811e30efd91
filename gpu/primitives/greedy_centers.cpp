// Farthest-first centres; a known run is continued.
#include "gpu/kernels/greedy_centers.h"
#include "core/base/error.h"
#include "gpu/primitives/long_work.h"
#include "gpu/primitives/primitives.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <string>

namespace kvscope::gpu {

namespace {

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

/// One list of all heads, each padded to `stride` numbers.
template <class T>
std::vector<T> joined(const std::vector<GreedyCenters>& runs, std::int64_t stride,
                      std::vector<T> GreedyCenters::*list) {
    std::vector<T> all(runs.size() * static_cast<std::size_t>(stride));
    for (std::size_t h = 0; h < runs.size(); ++h)
        std::ranges::copy(runs[h].*list, all.begin() + static_cast<std::ptrdiff_t>(h) * stride);
    return all;
}

/// The run's state as parts of `parts`: what is known of it, or room.
void describeRun(CentersCall& call, CallMemory& parts, const CentersRequest& request) {
    const std::int64_t count = request.count, n = call.keys.rows;
    const auto heads = static_cast<std::size_t>(call.keys.heads), rows = heads * static_cast<std::size_t>(n),
               places = heads * static_cast<std::size_t>(count);
    parts.list(call.first, request.first);
    parts.changed(call.found, std::vector<std::int32_t>(heads, call.known));
    if (call.known == 0) {
        parts.result(call.order, places);
        parts.result(call.radius, places);
        parts.result(call.closest, places);
        parts.result(call.distances, rows);
        parts.result(call.centre, rows);
        return;
    }
    const auto& runs = request.known;
    parts.changed(call.order, joined(runs, count, &GreedyCenters::order));
    parts.changed(call.radius, joined(runs, count, &GreedyCenters::radius));
    parts.changed(call.closest, joined(runs, count, &GreedyCenters::closest));
    parts.changed(call.distances, joined(runs, n, &GreedyCenters::distances));
    parts.changed(call.centre, joined(runs, n, &GreedyCenters::centre));
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

std::vector<GreedyCenters> readRuns(const CallMemory& parts, const CentersCall& call) {
    const DeviceRows& keys = call.keys;
    const std::int64_t count = call.stride;
    const auto heads = static_cast<std::size_t>(keys.heads), rows = heads * static_cast<std::size_t>(keys.rows),
               places = heads * static_cast<std::size_t>(count);
    const auto found = parts.read(call.found, heads), order = parts.read(call.order, places),
               centre = parts.read(call.centre, rows);
    const auto radius = parts.read(call.radius, places), closest = parts.read(call.closest, places),
               distances = parts.read(call.distances, rows);
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
    CallMemory parts(memory);
    CentersCall call;
    call.keys = keys;
    call.known = known;
    call.stride = static_cast<std::int32_t>(request.count);
    describeRun(call, parts, request);
    unsigned char* scratch;
    parts.scratch(scratch, centersScratchBytes(keys));
    parts.place();
    call.scratch = scratch;
    const double perPick = 3.0 * static_cast<double>(keys.heads * keys.rows * keys.width);
    LongWork work(memory, checkpoint, perPick * static_cast<double>(request.count - known));
    work.each(request.count - known, perPick, [&](std::int64_t begin, std::int64_t end, const StopWord& stop) {
        call.known = static_cast<std::int32_t>(known + begin);
        call.count = static_cast<std::int32_t>(known + end);
        call.stop = stop;
        greedyCenters(call, memory.stream());
    });
    work.wait();
    parts.fetch();
    return readRuns(parts, call);
}

} // namespace kvscope::gpu
