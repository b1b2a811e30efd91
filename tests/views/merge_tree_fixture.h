#pragma once

#include "tests/views/view_test.h"
#include "views/merge_tree/merge_tree_data.h"
#include "views/merge_tree/tree_layout.h"
#include "views/view.h"

#include <memory>
#include <numeric>

namespace kvscope::view_fixture {

/// Halvings in which every second pair stays: signs - + - + ...
inline BalanceNode halved(std::vector<TokenIndex> input) {
    BalanceNode node{std::move(input), {}, {}};
    for (std::size_t i = 0; i < node.input.size(); ++i) {
        node.signs.push_back(i % 2 == 0 ? -1 : 1);
        if (i % 2 == 1) node.output.push_back(node.input[i]);
    }
    return node;
}

/// 18 tokens, t = 4, T = 3: the counter of Algorithm 3.
inline BalanceTree handTree() {
    BalanceTree tree;
    tree.batch = 4;
    tree.rows.resize(18);
    std::iota(tree.rows.begin(), tree.rows.end(), TokenIndex{0});
    tree.nodes.resize(3);
    for (TokenIndex b = 0; b < 4; ++b) tree.nodes[0].push_back(halved({4 * b, 4 * b + 1, 4 * b + 2, 4 * b + 3}));
    for (std::size_t level = 1; level < 3; ++level)
        for (std::size_t place = 0; place + 1 < tree.nodes[level - 1].size(); place += 2) {
            std::vector<TokenIndex> input = tree.nodes[level - 1][place].output;
            const auto& right = tree.nodes[level - 1][place + 1].output;
            input.insert(input.end(), right.begin(), right.end());
            tree.nodes[level].push_back(halved(input));
        }
    return tree;
}

inline ViewInput handInput(std::optional<TokenIndex> cursor) {
    auto stream = std::make_shared<BalanceStream>();
    stream->tokens = 18;
    stream->settings.batch = 4;
    stream->settings.levels = 3;
    stream->trees = {handTree()};
    stream->norms = {std::vector<float>(18, 1.0F)};
    auto data = std::make_shared<MergeTreeData>();
    data->source = "A  hand";
    data->stream = stream;
    data->tree = 0;
    data->query = 17;
    for (const auto& level : stream->trees[0].nodes) {
        data->nodes.emplace_back();
        for (std::size_t place = 0; place < level.size(); ++place)
            data->nodes.back().push_back({0.1 * double(data->nodes.size()) + 0.01 * double(place), 0.5, 0});
    }
    ViewInput input;
    input.capture = needleCapture();
    input.cut = Cut::resolve("default", *input.capture);
    input.cursor = cursor;
    input.data.value = data;
    return input;
}

inline ViewInput sampleInput(const std::vector<std::string>& specs,
                             const std::vector<std::pair<std::string, std::string>>& set = {}) {
    return inputFor(viewById("merge_tree"), specs, optionsOf(viewById("merge_tree"), set));
}

inline const RectangleItem* boxOf(const Scene& scene, std::int64_t level, std::int64_t place) {
    const RectangleItem* found = nullptr;
    for (const Drawable& item : scene.items)
        if (const auto* box = std::get_if<RectangleItem>(&item);
            box && box->pick == PickId{PickId::Kind::Node, nodeId(level, place)})
            found = box;
    return found;
}

} // namespace kvscope::view_fixture
