// The kept lists of the naive oracles, written down, on random heads and on the sample captures. A list that changes
// here is a result that changes for everybody who cites one.
#include "core/capture/open_capture.h"
#include "tests/policies/policy_bench.h"
#include "tests/support/golden.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QtTest>

using namespace kvscope;

namespace {

struct Source {
    std::string name;
    TestLayer layer;
    std::vector<std::string> specs;
};

const std::vector<std::string> kKeyOnly = {
    "keydiff",
    "keydiff:kvpress",
    "keydiff:pairwise",
    "keydiff:sliding_window",
    "keydiff,anchor=median",
    "keydiff,metric=dot",
    "keydiff,metric=euclidean",
    "streaming_llm",
    "key_norm",
    "uniform",
};
const std::vector<std::string> kWithQueries = {
    "snapkv", "snapkv:kvpress", "snapkv:keydiff", "snapkv:kvcache_factory,copies=kv_head", "snapkv:minference",
    "tova",   "tova:kvpress",   "tova:keydiff"};
const std::vector<std::string> kBlocks = {
    "keydiff,prompt_block=23", "keydiff:kvpress,prompt_block=23", "tova,prompt_block=40,decode_tokens=30",
    "snapkv:kvcache_factory,copies=kv_head,prompt_block=23", "key_norm,protect_first=3,protect_last=2,rounding=round"};

std::vector<std::string> join(const std::vector<std::vector<std::string>>& lists) {
    std::vector<std::string> all;
    for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
    return all;
}

Source sampleSource(const std::string& file, int layer, TokenIndex cut, std::vector<std::string> specs) {
    const auto capture = openCapture(kvscope::testing::sourceDir() + "/sample_data/" + file + ".h5");
    return {file + ", layer " + std::to_string(layer) + ", cut " + std::to_string(cut),
            TestLayer::ofCapture(*capture, LayerIndex(layer), cut), std::move(specs)};
}

std::vector<std::string> linesOf(const Source& source, const std::string& spec, const Selection& selection) {
    std::vector<std::string> lines;
    for (std::size_t h = 0; h < selection.heads.size(); ++h)
        lines.push_back(source.name + " | " + spec + " | KV head " + std::to_string(h) + " | " +
                        listText(selection.heads[h].kept));
    for (const HeadSelection& head : selection.heads)
        for (const QueryHeadSet& own : head.queryHeads)
            lines.push_back(source.name + " | " + spec + " | query head " + std::to_string(own.queryHead) + " | " +
                            listText(own.kept));
    return lines;
}

Selection selectionOf(const naive_policies::Result& result, const std::vector<int>& gqaGroupOf) {
    Selection selection;
    for (const auto& kept : result.kept) selection.heads.push_back({{kept.begin(), kept.end()}, {}, {}, {}, 0});
    for (std::size_t q = 0; q < result.queryHeads.size(); ++q)
        selection.heads[static_cast<std::size_t>(gqaGroupOf[q])].queryHeads.push_back(
            {static_cast<std::int32_t>(q), {result.queryHeads[q].begin(), result.queryHeads[q].end()}, 0});
    return selection;
}

} // namespace

class GoldenListsTest : public QObject {
    Q_OBJECT

private slots:
    void randomHeads() {
        check("policies_random.txt",
              {{"random 97", TestLayer::random(2024, {6, 2, 97, 8}), join({kKeyOnly, kWithQueries, kBlocks})},
               {"random 61", TestLayer::random(2025, {3, 3, 61, 5}), join({kKeyOnly, kWithQueries})}},
              "@0.2");
    }

    // Real keys; the budget is small, so that a line can be read.
    void needle() {
        check("policies_needle.txt",
              {sampleSource("needle-1k", 0, 995, kKeyOnly),
               sampleSource("needle-1k", 2, 995, join({kKeyOnly, kWithQueries})),
               sampleSource("needle-1k", 2, 995,
                            {"keydiff,prompt_block=128", "keydiff:kvpress,prompt_block=128", "tova,prompt_block=128"})},
              "@0.05");
    }

    // Only the last 256 queries were captured; 128 of them lie before the cut.
    void lastQueriesOnly() {
        check("policies_last_queries.txt",
              {sampleSource("story-2k", 3, 1920, join({{"keydiff", "key_norm"}, kWithQueries})),
               sampleSource("records-2k", 1, 1881, join({{"keydiff", "key_norm"}, kWithQueries}))},
              "@0.03");
    }

    // Sums over all queries before the cut, block by block in some; layers of a pyramid with their own budgets.
    void accumulatedAttention() {
        const std::vector<std::string> h2o = {"h2o", "h2o:keydiff", "h2o:kvpress", "h2o:kvcache_factory"};
        check("policies_h2o.txt",
              {{"random 97", TestLayer::random(2024, {6, 2, 97, 8}), join({h2o, {"h2o:keydiff,prompt_block=23"}})},
               sampleSource("needle-1k", 2, 995, h2o)},
              "@0.05");
    }

    void pyramid() {
        const std::vector<std::string> specs = {"pyramidkv", "pyramidkv:original_layers",
                                                "pyramidkv:kvpress,window=6,beta=5", "pyramidkv:kvpress"};
        std::vector<Source> sources;
        for (const int layer : {0, 3, 5}) sources.push_back(sampleSource("needle-1k", layer, 995, specs));
        check("policies_pyramidkv.txt", sources, "@0.04");
    }

private:
    // The oracle's lists are what the file holds, and the engine's lists are the oracle's, to the last token.
    void check(const std::string& file, const std::vector<Source>& sources, const std::string& budget) {
        std::vector<std::string> expected = {"# source | policy at " + budget.substr(1) +
                                             " kept | head | kept tokens (0-based)"};
        std::vector<std::string> actual = expected;
        for (const Source& source : sources) {
            for (const std::string& spec : source.specs) {
                const auto oracle =
                    linesOf(source, spec,
                            selectionOf(runNaive(spec + budget, source.layer.plain), source.layer.plain.gqaGroupOf));
                const auto engine = linesOf(source, spec, m_bench.run(spec + budget, source.layer).selection);
                expected.insert(expected.end(), oracle.begin(), oracle.end());
                actual.insert(actual.end(), engine.begin(), engine.end());
            }
        }
        const std::string oracleDiffers = golden::compare(file, expected);
        QVERIFY2(oracleDiffers.empty(), ("the oracle: " + oracleDiffers).c_str());
        for (std::size_t i = 0; i < expected.size(); ++i)
            QCOMPARE(QString::fromStdString(actual[i]), QString::fromStdString(expected[i]));
    }

    PolicyBench m_bench;
};

KVSCOPE_TEST(GoldenListsTest)
#include "golden_lists_test.moc"
