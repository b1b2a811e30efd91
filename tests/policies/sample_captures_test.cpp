// What must hold for every policy, variant and head, checked on real keys and queries.
#include "core/base/error.h"
#include "tests/policies/policy_bench.h"

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <set>

using namespace kvscope;

namespace {

struct Sample {
    const char* file;
    TokenIndex cut;
};

constexpr Sample kSamples[] = {{"needle-1k", 995}, {"story-2k", 1920}, {"records-2k", 1881}};

/// Variants that do not simply keep the best of a budget in every head, each with laws and tests of its own.
bool hasOtherLaws(const std::string& spec) {
    static const std::set<std::string> others = {
        "compactor:compactor_vllm",                              // chooses across heads and fills pages (C9)
        "leverage:sampling",                                     // draws with replacement (Theorem 1)
        "pyramidkv:original", "pyramidkv:original_layers", "pyramidkv:kvpress", // a budget per layer
        "uniform:sign_sort"};                                    // groups by sign (B13)
    return others.contains(spec);
}

std::vector<std::string> everyVariant() {
    std::vector<std::string> specs;
    for (const Policy* policy : allPolicies())
        for (const PolicyVariant& variant : policy->card().variants)
            if (policy->card().id != "imported" && policy->card().usesBudget && !policy->card().scoreLabel.starts_with("no score") && !hasOtherLaws(policy->card().id + ":" + variant.id))
                specs.push_back(policy->card().id + ":" + variant.id);
    return specs;
}

bool isNested(const PolicyOutcome& smaller, const PolicyOutcome& larger) {
    for (std::size_t h = 0; h < smaller.selection.heads.size(); ++h) {
        const auto& few = smaller.selection.heads[h].kept;
        const auto& many = larger.selection.heads[h].kept;
        if (!std::includes(many.begin(), many.end(), few.begin(), few.end()))
            return false;
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

    // K2 on real keys: where the two rankings differ, the scores are equal to rounding.
    void pairwiseIsNormalisedMean_data() { addLayers({kSamples[0]}); } // n^2 d work: the shortest one

    void pairwiseIsNormalisedMean() {
        const TestLayer layer = fetchLayer();
        const PolicyOutcome pairwise = m_bench.run("keydiff:pairwise@0.1", layer);
        const PolicyOutcome unit = m_bench.run("keydiff,anchor=normalised_mean@0.1", layer);
        const auto scores = m_bench.engine().download(unit.scores.total);
        for (std::size_t h = 0; h < pairwise.selection.heads.size(); ++h) {
            const float* row = scores.data.data() + static_cast<std::int64_t>(h) * scores.shape[1];
            const auto worst = [row](const HeadSelection& head) {
                float least = 2;
                for (const TokenIndex token : head.kept)
                    least = std::min(least, row[token]);
                return least;
            };
            QVERIFY(std::abs(worst(pairwise.selection.heads[h]) - worst(unit.selection.heads[h])) < 1e-6f);
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
        return openCapture(std::string(KVSCOPE_SOURCE_DIR) + "/sample_data/" + file + ".h5");
    }

    static TestLayer fetchLayer() {
        QFETCH(QString, file);
        QFETCH(int, cut);
        QFETCH(int, layer);
        return TestLayer::ofCapture(*open(qPrintable(file)), LayerIndex(layer), static_cast<TokenIndex>(cut));
    }

    void refusesForQueries(const std::string& spec, const TestLayer& layer) const {
        try {
            m_bench.run(spec + "@0.1", layer);
            QFAIL(spec.c_str());
        } catch (const Error& error) {
            QVERIFY2(std::string(error.what()).find("Capture the queries of all tokens") != std::string::npos, error.what());
        }
    }

    // Exactly the budget, ascending, inside the cut; nothing evicted scores above a kept free token.
    void checkChoice(const PolicyOutcome& outcome, const TestLayer& layer, const std::string& spec) const {
        const auto scores = m_bench.engine().download(outcome.scores.total);
        for (std::size_t h = 0; h < outcome.selection.heads.size(); ++h) {
            const HeadSelection& head = outcome.selection.heads[h];
            QVERIFY2(static_cast<std::int64_t>(head.kept.size()) == outcome.requested, spec.c_str());
            QVERIFY(std::adjacent_find(head.kept.begin(), head.kept.end(), std::greater_equal<>()) == head.kept.end());
            QVERIFY(head.kept.front() >= 0 && head.kept.back() < layer.plain.tokens());
            QVERIFY(std::includes(head.kept.begin(), head.kept.end(), head.protectedTokens.begin(),
                                  head.protectedTokens.end()));
            QVERIFY(head.margin >= 0);
            float worstKept = std::numeric_limits<float>::infinity(), bestEvicted = -worstKept;
            for (std::int64_t r = 0; r < scores.shape[1]; ++r) {
                const TokenIndex token =
                    outcome.positions.empty() ? TokenIndex(r) : outcome.positions[h][std::size_t(r)];
                const float score = scores.data[h * std::size_t(scores.shape[1]) + std::size_t(r)];
                if (!std::binary_search(head.kept.begin(), head.kept.end(), token))
                    bestEvicted = std::max(bestEvicted, score);
                else if (!std::binary_search(head.protectedTokens.begin(), head.protectedTokens.end(), token))
                    worstKept = std::min(worstKept, score);
            }
            QVERIFY2(worstKept >= bestEvicted, spec.c_str());
        }
    }

    PolicyBench m_bench;
};

QTEST_APPLESS_MAIN(SampleCapturesTest)
#include "sample_captures_test.moc"
