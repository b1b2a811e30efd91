// What must hold for every policy, variant and head, checked on real keys and queries.
#include "core/base/error.h"
#include "core/capture/open_capture.h"
#include "tests/policies/policy_bench.h"
#include "tests/support/error_message.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <span>
#include <utility>

using namespace kvscope;

namespace {

struct Sample {
    const char* file;
    TokenIndex cut;
};

constexpr Sample kSamples[] = {{"needle-1k", 995}, {"story-2k", 1920}, {"records-2k", 1881}};

/// Variants that do not simply keep the best of a budget in every head; their laws have tests of their own below.
bool hasOtherLaws(const std::string& spec) {
    static const std::set<std::string> others = {
        "compactor:compactor_vllm", // chooses across heads and fills pages (C9)
        "leverage:sampling",        // draws with replacement (Theorem 1)
        "pyramidkv:original",       "pyramidkv:original_layers", "pyramidkv:kvpress", // a budget per layer
        "uniform:sign_sort",                                                          // groups by sign (B13)
        "key_norm:two_layers",      "key_norm:above_2048"}; // leave layers or short caches alone
    return others.contains(spec);
}

std::vector<std::string> everyVariant() {
    std::vector<std::string> specs;
    for (const Policy* policy : allPolicies())
        for (const PolicyVariant& variant : policy->card().variants)
            if (policy->card().id != "imported" && policy->card().usesBudget &&
                !policy->card().scoreLabel.starts_with("no score") &&
                !hasOtherLaws(policy->card().id + ":" + variant.id))
                specs.push_back(policy->card().colonParameter.empty() ? policy->card().id + ":" + variant.id
                                                                      : policy->card().id);
    return specs;
}

/// Ascending, without duplicates, before the cut, protected tokens among them.
void checkLists(const PolicyOutcome& outcome, int tokens, const std::string& spec) {
    for (const HeadSelection& head : outcome.selection.heads) {
        const auto& kept = head.kept;
        QVERIFY2(std::adjacent_find(kept.begin(), kept.end(), std::greater_equal<>()) == kept.end(), spec.c_str());
        QVERIFY2(kept.empty() || (kept.front() >= 0 && kept.back() < tokens), spec.c_str());
        QVERIFY2(std::includes(kept.begin(), kept.end(), head.protectedTokens.begin(), head.protectedTokens.end()),
                 spec.c_str());
        QVERIFY2(head.margin >= 0, spec.c_str());
    }
}

bool isNested(const PolicyOutcome& smaller, const PolicyOutcome& larger) {
    for (std::size_t h = 0; h < smaller.selection.heads.size(); ++h) {
        const auto& few = smaller.selection.heads[h].kept;
        const auto& many = larger.selection.heads[h].kept;
        if (!std::includes(many.begin(), many.end(), few.begin(), few.end())) return false;
    }
    return true;
}

} // namespace

class SampleCapturesTest : public QObject {
    Q_OBJECT

private slots:
    void everyLayer_data() { addLayers({std::begin(kSamples), std::end(kSamples)}); }

    void everyLayer() {
        const TestLayer layer = fetchLayer();
        for (const std::string& spec : everyVariant()) {
            if (spec == "keydiff:pairwise" && layer.plain.tokens() > 1000)
                continue; // n^2 d work; the shorter sample is enough
            if (spec.starts_with("compactor:") && layer.plain.firstQuery > 0) {
                refusesForQueries(spec, layer); // it scores every token by its own chunk's queries
                continue;
            }
            const PolicyOutcome tenth = m_bench.run(spec + "@0.1", layer);
            checkChoice(tenth, layer, spec);
            if (spec != "keydiff:sliding_window") // its window grows with the budget, so others may leave
                QVERIFY2(isNested(tenth, m_bench.run(spec + "@0.3", layer)), spec.c_str());
        }
    }

    // C9: one ranking over the heads, protected tokens first, and every head filled up to whole pages of 128.
    void jointChoiceKeepsTheBestOfAllHeads_data() { addLayers({kSamples[0]}); }

    void jointChoiceKeepsTheBestOfAllHeads() {
        const TestLayer layer = fetchLayer();
        const std::string spec = "compactor:compactor_vllm@0.3";
        const PolicyOutcome outcome = m_bench.run(spec, layer);
        checkLists(outcome, layer.plain.tokens(), spec);
        checkBestKept(outcome, spec);
        const HostTensor scores = outcome.scores.total;
        const std::int64_t heads = scores.shape[0], n = scores.shape[1];
        const std::int64_t entries = std::llrint(0.3 * static_cast<double>((n - 80) * heads));
        std::vector<float> free; // of the tokens that no place protects
        for (std::int64_t h = 0; h < heads; ++h)
            free.insert(free.end(), scores.data.begin() + h * n + 16, scores.data.begin() + (h + 1) * n - 64);
        std::sort(free.begin(), free.end(), std::greater<>());
        const float lowest = free[static_cast<std::size_t>(entries - 80 * heads - 1)];
        for (std::int64_t h = 0; h < heads; ++h) {
            const auto& kept = outcome.selection.heads[static_cast<std::size_t>(h)].kept;
            QCOMPARE(kept.size() % 128, std::size_t{0});
            for (std::int64_t i = 16; i < n - 64; ++i)
                QVERIFY(scores.data[static_cast<std::size_t>(h * n + i)] <= lowest ||
                        std::binary_search(kept.begin(), kept.end(), static_cast<TokenIndex>(i)));
        }
    }

    // Theorem 1: a row drawn m times of k weighs m / (k p), so the weights times the chances add up to 1.
    void drawnRowsWeighWhatTheirChancesSay_data() { everyLayer_data(); }

    void drawnRowsWeighWhatTheirChancesSay() {
        const TestLayer layer = fetchLayer();
        const std::string spec = "leverage:sampling@0.2";
        const PolicyOutcome outcome = m_bench.run(spec, layer);
        checkLists(outcome, layer.plain.tokens(), spec);
        const HostTensor scores = outcome.scores.total;
        const std::int64_t n = scores.shape[1];
        for (std::size_t h = 0; h < outcome.selection.heads.size(); ++h) {
            const HeadSelection& head = outcome.selection.heads[h];
            const float* leverage = scores.data.data() + static_cast<std::int64_t>(h) * n;
            const double sum = std::accumulate(leverage, leverage + n, 0.0);
            double share = 0;
            for (std::size_t i = 0; i < head.kept.size(); ++i) {
                const double drawn = double{head.numeratorWeights[i]} * leverage[head.kept[i]] / sum;
                const double times = drawn * static_cast<double>(outcome.requested);
                QVERIFY(times > 0.999 && std::abs(times - std::round(times)) < 1e-3);
                share += drawn;
            }
            QVERIFY2(std::abs(share - 1) < 1e-4, qPrintable(QString::number(share)));
            QVERIFY(static_cast<std::int64_t>(head.kept.size()) <= outcome.requested);
        }
    }

    void everyLayerOfPyramidKvKeepsItsBest_data() { everyLayer_data(); }

    void everyLayerOfPyramidKvKeepsItsBest() {
        const TestLayer layer = fetchLayer();
        std::int64_t original = 0;
        for (const char* variant : {"original", "original_layers", "kvpress"}) {
            const std::string spec = "pyramidkv:" + std::string(variant) + "@0.4";
            const PolicyOutcome outcome = m_bench.run(spec, layer);
            checkLists(outcome, layer.plain.tokens(), spec);
            checkBestKept(outcome, spec);
            for (const HeadSelection& head : outcome.selection.heads)
                QCOMPARE(head.kept.size(), outcome.selection.heads.front().kept.size());
            const auto own = static_cast<std::int64_t>(outcome.selection.heads.front().kept.size());
            if (std::string(variant) == "kvpress") // L5: below 20 windows of capacity all layers keep the same
                QCOMPARE(own, outcome.requested);
            else if (std::string(variant) ==
                     "original") // layers of the first half keep more than the mean, the others less
                QVERIFY2((own > outcome.requested) == (2 * layer.plain.layer < layer.plain.numLayers - 1),
                         spec.c_str());
            else // a slope over L layers falls less steeply than one over L - 1
                QVERIFY2(own > original, spec.c_str());
            original = std::string(variant) == "original" ? own : original;
        }
    }

    // B13: the first token of each block gets +1 without a draw, which never survives a full round of whole blocks.
    void signSortLosesBlockLeaders_data() { addLayers({kSamples[1]}); } // 15 blocks of 128

    void signSortLosesBlockLeaders() {
        const TestLayer layer = fetchLayer();
        const std::string spec = "uniform:sign_sort@0.5";
        const PolicyOutcome outcome = m_bench.run(spec, layer);
        checkLists(outcome, layer.plain.tokens(), spec);
        for (const HeadSelection& head : outcome.selection.heads) {
            QCOMPARE(static_cast<std::int64_t>(head.kept.size()), outcome.requested);
            for (TokenIndex leader = 128; leader < layer.plain.tokens(); leader += 128)
                QVERIFY2(!std::binary_search(head.kept.begin(), head.kept.end(), leader),
                         qPrintable(QString::number(leader)));
        }
    }

    void everyLayerInBlocks_data() { everyLayer_data(); }

    void everyLayerInBlocks() {
        const TestLayer layer = fetchLayer();
        for (const char* spec :
             {"keydiff,prompt_block=128", "keydiff:kvpress,prompt_block=128", "key_norm,prompt_block=100"}) {
            const PolicyOutcome outcome = m_bench.run(std::string(spec) + "@0.2", layer);
            QVERIFY(outcome.simulated && !outcome.steps.empty());
            checkChoice(outcome, layer, spec);
        }
    }

private:
    // Every second layer: enough kinds of heads, half the time.
    static void addLayers(const std::vector<Sample>& samples) {
        QTest::addColumn<QString>("file");
        QTest::addColumn<int>("cut");
        QTest::addColumn<int>("layer");
        for (const Sample& sample : samples) {
            const auto capture = open(sample.file);
            for (const LayerInfo& info : capture->info().layers)
                if (info.layer.value % 2 == 1)
                    QTest::addRow("%s layer %d", sample.file, info.layer.value)
                        << QString(sample.file) << int(sample.cut) << int(info.layer.value);
        }
    }

    static std::shared_ptr<const CaptureReader> open(const char* file) {
        return openCapture(kvscope::testing::sourceDir() + "/sample_data/" + file + ".h5");
    }

    static TestLayer fetchLayer() {
        QFETCH(QString, file);
        QFETCH(int, cut);
        QFETCH(int, layer);
        return TestLayer::ofCapture(*open(qPrintable(file)), LayerIndex(layer), static_cast<TokenIndex>(cut));
    }

    void refusesForQueries(const std::string& spec, const TestLayer& layer) const {
        const QString refused = errorText([&] { m_bench.run(spec + "@0.1", layer); });
        QVERIFY2(refused.contains("Capture the queries of all tokens"), qPrintable(refused));
    }

    // Exactly the budget, ascending, inside the cut; nothing evicted scores above a kept free token. Where query heads
    // keep sets of their own this holds for each of them, by its own scores.
    void checkChoice(const PolicyOutcome& outcome, const TestLayer& layer, const std::string& spec) const {
        for (const HeadSelection& head : outcome.selection.heads) {
            QVERIFY2(!head.queryHeads.empty() || std::cmp_equal(head.kept.size(), outcome.requested), spec.c_str());
            for (const QueryHeadSet& set : head.queryHeads)
                QVERIFY2(std::cmp_equal(set.kept.size(), outcome.requested), spec.c_str());
        }
        checkLists(outcome, layer.plain.tokens(), spec);
        checkBestKept(outcome, spec);
    }

    void checkBestKept(const PolicyOutcome& outcome, const std::string& spec) const {
        const bool own = outcome.selection.perQueryHead();
        const HostTensor scores = (own ? outcome.scores.perQueryHead : outcome.scores.total);
        for (std::size_t h = 0; h < outcome.selection.heads.size(); ++h) {
            const HeadSelection& head = outcome.selection.heads[h];
            const auto positions = outcome.positions.empty() ? nullptr : &outcome.positions[h];
            if (!own) checkBestOf(head.kept, head, positions, rowOf(scores, h), spec);
            for (const QueryHeadSet& set : head.queryHeads)
                checkBestOf(set.kept, head, positions, rowOf(scores, std::size_t(set.queryHead)), spec);
        }
    }

    static std::span<const float> rowOf(const HostTensor& scores, std::size_t row) {
        const auto width = std::size_t(scores.shape[1]);
        return std::span(scores.data).subspan(row * width, width);
    }

    static void checkBestOf(const std::vector<TokenIndex>& kept, const HeadSelection& head,
                            const std::vector<TokenIndex>* positions, std::span<const float> scores,
                            const std::string& spec) {
        float worstKept = std::numeric_limits<float>::infinity(), bestEvicted = -worstKept;
        for (std::size_t r = 0; r < scores.size(); ++r) {
            const TokenIndex token = positions ? (*positions)[r] : TokenIndex(r);
            if (!std::binary_search(kept.begin(), kept.end(), token))
                bestEvicted = std::max(bestEvicted, scores[r]);
            else if (!std::binary_search(head.protectedTokens.begin(), head.protectedTokens.end(), token))
                worstKept = std::min(worstKept, scores[r]);
        }
        QVERIFY2(worstKept >= bestEvicted, spec.c_str());
    }

    PolicyBench m_bench;
};

KVSCOPE_TEST(SampleCapturesTest)
#include "sample_captures_test.moc"
