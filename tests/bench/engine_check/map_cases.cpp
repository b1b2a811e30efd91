// Cases of the attention map: masks, groups, zoom with and without known row sums, sampling.
#include "tests/bench/engine_check/engine_case.h"

#include <cmath>

namespace kvscope::check {

namespace {

// A weight with a known row sum is e^(logit - sum), and the sum was rounded to float: its absolute error, half a unit
// in the last place of numbers below 64, is the relative error of the weight.
constexpr double kKnownSum = 0x1.0p-18;

naive::Map mapOf(std::int64_t w, std::int64_t n, std::int64_t d) {
    naive::Map map{randomBlock(61, 6, w, d), randomBlock(62, 3, n, d), {}};
    AttentionMapInput& in = map.input;
    in.firstQuery = TokenIndex(n - w);
    in.rule.scaling = 0.4;
    in.rule.gqaGroupOf = {2, 0, 1, 0, 2, 1};
    in.queryHeads = {4};
    in.rowBegin = n - w;
    in.rowEnd = in.keyEnd = n;
    in.height = 11;
    in.width = 17;
    return map;
}

/// More heads of one KV head than a block of lanes or a tile of a kernel holds (multi-query attention).
naive::Map manyHeads(std::int32_t heads, GroupRule rule) {
    naive::Map map{randomBlock(63, heads, 40, 12), randomBlock(64, 1, 45, 12), {}};
    AttentionMapInput& in = map.input;
    in.firstQuery = 5;
    in.rule.scaling = 0.4;
    in.combine = rule;
    for (std::int32_t head = 0; head < heads; ++head) {
        in.rule.gqaGroupOf.push_back(0);
        in.queryHeads.push_back(heads - 1 - head);
    }
    in.rowBegin = 5;
    in.rowEnd = in.keyEnd = 45;
    in.height = 7;
    in.width = 9;
    return map;
}

AttentionMapInput uploaded(const Engine& engine, const naive::Map& map) {
    AttentionMapInput in = map.input;
    in.queries = uploadRows(engine, map.queries);
    in.keys = uploadRows(engine, map.keys);
    return in;
}

std::vector<float> numbersOf(const AttentionMap& map) {
    std::vector<float> numbers;
    for (const float cell : map.cells.data) numbers.push_back(std::isnan(cell) ? -1 : cell);
    numbers.insert(numbers.end(), map.columnSums.data.begin(), map.columnSums.data.end());
    for (const float sum : map.rowLogSumExps.data) numbers.push_back(std::isnan(sum) ? 0 : sum);
    return numbers;
}

EngineCase mapCase(const std::string& name, const naive::Map& map, bool known = false) {
    const AttentionMapInput& in = map.input;
    const double logits = double((in.rowEnd - in.rowBegin) * map.keys.rows) * double(in.queryHeads.size());
    return {"attentionMap/" + name,
            2 * logits * double(map.keys.width),
            4 * double(map.queries.numbers.size() + map.keys.numbers.size()),
            known ? kKnownSum : kOneRounding,
            [map, known](const Engine& e) {
                AttentionMapInput now = uploaded(e, map);
                if (known) { // of all rows, from a look at the whole map
                    AttentionMapInput whole = now;
                    whole.rowBegin = whole.firstQuery;
                    whole.rowEnd = whole.firstQuery + map.queries.rows;
                    whole.rowsPerPixel = 0;
                    now.rowLogSumExps = e.attentionMap(whole, {}).rowLogSumExps;
                }
                return [&e, now] { return Outcome{numbersOf(e.attentionMap(now, {}))}; };
            },
            [map] { return naive::attentionMap(map); },
            in.value == MapValue::Logit ? kFastNearZero : fastAttentionError(map.queries, map.keys, in.rule)};
}

void addMapCase(std::vector<EngineCase>& cases, const std::string& name, const naive::Map& floats, bool known = false) {
    for (const auto& [stored, suffix] : kRowTypes) {
        naive::Map map = floats;
        map.queries = storedAs(stored, map.queries);
        map.keys = storedAs(stored, map.keys);
        cases.push_back(mapCase(name + suffix, map, known));
    }
}

/// With so many rows, blocks of them share widened keys. In a chunk their keys begin at one token and end at different
/// ones.
void addLong(std::vector<EngineCase>& cases) {
    naive::Map many = mapOf(4200, 4200, 3);
    many.input.mask = MapMask::Chunks;
    many.input.chunk = 300;
    many.input.rule.slidingWindow = 150;
    addMapCase(cases, "long-chunks-sliding", many);
}

void addZooms(std::vector<EngineCase>& cases) {
    naive::Map zoomed = mapOf(90, 120, 12);
    zoomed.input.rowBegin = 30;
    zoomed.input.rowEnd = 120;
    zoomed.input.keyBegin = 25;
    zoomed.input.keyEnd = 66;
    addMapCase(cases, "zoomed", zoomed);
    addMapCase(cases, "zoomed-known-sums", zoomed, true);
    zoomed.input.rule.slidingWindow = 20; // the lower rows see nothing of the rectangle
    addMapCase(cases, "zoomed-sliding", zoomed);
    naive::Map sampled = mapOf(120, 120, 12);
    sampled.input.rowsPerPixel = 2;
    addMapCase(cases, "sampled", sampled);
    naive::Map cellByCell = mapOf(9, 40, 8);
    cellByCell.input.height = 9;
    cellByCell.input.width = 40;
    addMapCase(cases, "one-cell-per-pixel", cellByCell);
}

} // namespace

std::vector<EngineCase> mapCases() {
    std::vector<EngineCase> cases;
    const naive::Map causal = mapOf(131, 131, 20);
    addMapCase(cases, "causal", causal);
    naive::Map group = mapOf(70, 100, 20);
    group.input.queryHeads = {1, 3};
    addMapCase(cases, "group-mean", group);
    group.input.combine = GroupRule::Max;
    addMapCase(cases, "group-max", group);
    for (const GroupRule rule : {GroupRule::Mean, GroupRule::Max})
        addMapCase(cases, rule == GroupRule::Mean ? "fifty-heads-mean" : "fifty-heads-max", manyHeads(50, rule));
    naive::Map all = mapOf(60, 90, 16);
    all.input.mask = MapMask::All;
    addMapCase(cases, "non-causal", all);
    naive::Map chunks = mapOf(100, 100, 16);
    chunks.input.mask = MapMask::Chunks;
    chunks.input.chunk = 24; // the last one is short
    addMapCase(cases, "chunks", chunks);
    chunks.input.queryHeads = {2, 5};
    addMapCase(cases, "chunks-group", chunks);
    chunks.input.rule.slidingWindow = 7; // shorter than the chunk: a band along the diagonal, cut at chunks
    addMapCase(cases, "chunks-sliding", chunks);
    chunks.input.keyBegin = 10;
    chunks.input.keyEnd = 50;
    addMapCase(cases, "chunks-sliding-known-sums", chunks, true);
    chunks.input.value = MapValue::Logit;
    addMapCase(cases, "chunks-sliding-logits", chunks);
    all.input.rule.slidingWindow = 11;
    addMapCase(cases, "non-causal-sliding", all);
    naive::Map logits = mapOf(80, 80, 16);
    logits.input.value = MapValue::Logit;
    logits.input.rule.softcap = 6;
    addMapCase(cases, "logits-softcap", logits);
    for (const std::vector<std::int32_t>& heads : std::vector<std::vector<std::int32_t>>{{3}, {1, 3}}) {
        naive::Map sinks = mapOf(70, 100, 20);
        sinks.input.queryHeads = heads;
        for (int h = 0; h < 6; ++h) sinks.input.rule.sinks.push_back(3.0F - float(h));
        addMapCase(cases, heads.size() == 1 ? "sinks" : "sinks-group", sinks);
        addMapCase(cases, heads.size() == 1 ? "sinks-known-sums" : "sinks-group-known-sums", sinks, true);
    }
    naive::Map one = mapOf(1, 1, 4);
    one.input.height = one.input.width = 1;
    addMapCase(cases, "one-token", one);
    addZooms(cases);
    addLong(cases);
    return cases;
}

} // namespace kvscope::check
