// Why kept, why evicted: rank, margin and flip budget against what select really does at every budget.
#include "core/engine/engine.h"
#include "core/run/run.h"
#include "core/run/token_decision.h"
#include "tests/support/random_capture.h"
#include "tests/support/run_request.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <algorithm>
#include <cmath>

using namespace kvscope;

namespace {

constexpr TokenIndex kCut = 60;

RunRequest requestOf(const std::shared_ptr<const CaptureReader>& capture, const std::string& spec,
                     std::int64_t budget) {
    RunRequest request = runRequest(capture, spec, std::to_string(kCut), std::to_string(budget) + "t");
    request.measure = false;
    return request;
}

bool keeps(const RunResult& result, std::size_t head, TokenIndex token) {
    const auto& kept = result.selection.heads[head].kept;
    return std::binary_search(kept.begin(), kept.end(), token);
}

/// Rounded keys, so that many scores tie.
std::shared_ptr<MemoryCapture> tiedCapture() {
    const auto capture = makeRandomCapture(4, 80, 5, 4, 2, 2);
    for (auto& [place, tensor] : capture->tensors)
        for (float& x : tensor.data) x = std::round(x);
    return capture;
}

} // namespace

class TokenDecisionTest : public QObject {
    Q_OBJECT

private slots:
    void againstEveryBudget_data() {
        QTest::addColumn<QString>("spec");
        QTest::addColumn<bool>("tied");
        for (const char* spec :
             {"key_norm", "keydiff", "keydiff,window_share=0.37", "keydiff,window_share=0.9,protect_first=3",
              "snapkv,window=8", "snapkv,window=8,protect_first=5,protect_last=11", "snapkv,window=64", "streaming_llm",
              "tova:kvpress", "h2o", "pyramidkv,window=8", "uniform,protect_first=2,protect_last=2",
              "compactor,pool_width=1", "leverage:exact", "score:vnorm-knorm"})
            for (const bool tied : {false, true}) QTest::addRow("%s%s", spec, tied ? ", ties" : "") << spec << tied;
    }

    void againstEveryBudget() {
        QFETCH(QString, spec);
        QFETCH(bool, tied);
        const std::shared_ptr<const CaptureReader> capture =
            tied ? tiedCapture() : makeRandomCapture(3, 80, 5, 4, 2, 8);
        const LayerRunner runner(makeCpuEngine(1));
        std::vector<std::shared_ptr<const RunResult>> byBudget = {nullptr};
        for (std::int64_t budget = 1; budget <= kCut; ++budget)
            byBudget.push_back(runner.run(requestOf(capture, spec.toStdString(), budget), {}));
        for (std::size_t head = 0; head < 2; ++head)
            for (TokenIndex token = 0; token < kCut; ++token) {
                std::int64_t smallest = 1;
                while (!keeps(*byBudget[static_cast<std::size_t>(smallest)], head, token)) ++smallest;
                for (const std::int64_t budget : {1, 7, 20, 59, 60}) {
                    const RunResult& result = *byBudget[static_cast<std::size_t>(budget)];
                    const TokenDecision decision =
                        tokenDecisionOf(result, KvHeadIndex(static_cast<std::int64_t>(head)), token);
                    QCOMPARE(decision.kept, keeps(result, head, token));
                    QVERIFY2(decision.flipBudget == smallest, qPrintable(QString("head %1 token %2: %3, not %4")
                                                                             .arg(head)
                                                                             .arg(token)
                                                                             .arg(decision.flipBudget)
                                                                             .arg(smallest)));
                }
            }
    }

    // Where the budget has a part in the score, heads are chosen together or chance decides, no budget is named.
    void noFlipBudgetWhereScoresDoNotTellIt_data() {
        QTest::addColumn<QString>("spec");
        QTest::addColumn<QString>("why");
        QTest::newRow("score of the budget") << "compactor:kvpress,protect_first=1,protect_last=1"
                                             << "changes with the budget";
        QTest::newRow("joint") << "compactor:compactor_vllm,page=1,protect_first=1,protect_last=1"
                               << "over all KV heads";
        QTest::newRow("joint, pages") << "compactor:compactor_vllm,page=16,protect_first=1,protect_last=1"
                                      << "over all KV heads";
        QTest::newRow("drawn") << "leverage:sampling"
                               << "drawn";
        QTest::newRow("coins") << "uniform:sign_sort"
                               << "no score";
    }

    void noFlipBudgetWhereScoresDoNotTellIt() {
        QFETCH(QString, spec);
        QFETCH(QString, why);
        const LayerRunner runner(makeCpuEngine(1));
        const auto result = runner.run(requestOf(makeRandomCapture(3, 80, 5, 4, 2, 8), spec.toStdString(), 20), {});
        QVERIFY2(QString::fromStdString(whyNoFlipBudget(*result)).contains(why), whyNoFlipBudget(*result).c_str());
        for (const std::int64_t head : {0, 1})
            for (TokenIndex token = 0; token < kCut; ++token) {
                const TokenDecision decision = tokenDecisionOf(*result, KvHeadIndex(head), token);
                QCOMPARE(decision.flipBudget, 0);
                QVERIFY(std::isnan(decision.margin) || decision.kept == (decision.margin > 0)); // nothing false
                QCOMPARE(std::isnan(decision.margin), spec.contains("sampling") || spec.contains("sign_sort") ||
                                                          (spec.contains("page=16") && !decision.isProtected));
            }
        const auto plain = runner.run(requestOf(makeRandomCapture(3, 80, 5, 4, 2, 8), "keydiff", 20), {});
        QCOMPARE(whyNoFlipBudget(*plain), std::string());
    }

    void ranksAreAPermutationInScoreOrder() {
        const LayerRunner runner(makeCpuEngine(1));
        const auto result = runner.run(requestOf(tiedCapture(), "keydiff", 15), {});
        std::vector<TokenDecision> byRank(kCut);
        for (TokenIndex token = 0; token < kCut; ++token) {
            const TokenDecision decision = tokenDecisionOf(*result, KvHeadIndex(1), token);
            QVERIFY(!byRank[static_cast<std::size_t>(decision.rank)].scored);
            byRank[static_cast<std::size_t>(decision.rank)] = decision;
        }
        for (std::size_t rank = 0; rank < byRank.size(); ++rank) {
            QCOMPARE(byRank[rank].kept, rank < 15); // no protection: the best 15 are kept
            QVERIFY(rank == 0 || byRank[rank - 1].score >= byRank[rank].score);
        }
    }

    void marginsOfTheLastInAndTheFirstOut() {
        const LayerRunner runner(makeCpuEngine(1));
        const auto capture = makeRandomCapture(3, 80, 5, 4, 2, 8);
        const auto result = runner.run(requestOf(capture, "key_norm,protect_last=5", 20), {});
        const float* scores = result->scores.data.data();
        double worstKept = INFINITY, bestEvicted = -INFINITY;
        for (TokenIndex t = 0; t < kCut - 5; ++t)
            (keeps(*result, 0, t) ? worstKept : bestEvicted) = keeps(*result, 0, t)
                                                                   ? std::min<double>(worstKept, scores[t])
                                                                   : std::max<double>(bestEvicted, scores[t]);
        for (TokenIndex t = 0; t < kCut; ++t) {
            const TokenDecision decision = tokenDecisionOf(*result, KvHeadIndex(0), t);
            QCOMPARE(decision.isProtected, t >= kCut - 5);
            if (decision.isProtected)
                QVERIFY(std::isinf(decision.margin) && decision.margin > 0);
            else
                QCOMPARE(decision.margin, scores[t] - (decision.kept ? bestEvicted : worstKept));
            QVERIFY(decision.kept == (decision.margin > 0));
        }
        QCOMPARE(static_cast<float>(worstKept - bestEvicted), result->selection.heads[0].margin);
    }

    void fullProtectionLeavesNoPlace() {
        const LayerRunner runner(makeCpuEngine(1));
        const auto result = runner.run(requestOf(tiedCapture(), "snapkv,window=8", 8), {});
        QVERIFY(std::isinf(tokenDecisionOf(*result, KvHeadIndex(0), 0).margin));
        QVERIFY(tokenDecisionOf(*result, KvHeadIndex(0), 0).margin < 0);
    }

    void partsAreTheTermsOfTheScore() {
        const LayerRunner runner(makeCpuEngine(1));
        const auto result = runner.run(requestOf(tiedCapture(), "keydiff", 8), {});
        const TokenDecision decision = tokenDecisionOf(*result, KvHeadIndex(1), 7);
        QCOMPARE(decision.parts.size(), 1u);
        QCOMPARE(decision.parts[0].first, std::string("similarity"));
        QCOMPARE(decision.parts[0].second, -decision.score);
    }

    void whatIsUnknownSaysSo() {
        const LayerRunner runner(makeCpuEngine(1));
        const auto exact = runner.run(requestOf(tiedCapture(), "exact", 8), {});
        const TokenDecision unscored = tokenDecisionOf(*exact, KvHeadIndex(0), 3);
        QVERIFY(unscored.kept && !unscored.scored && std::isnan(unscored.score) && unscored.flipBudget == 0);
        const auto blocks = runner.run(requestOf(tiedCapture(), "key_norm,prompt_block=10", 8), {});
        bool sawGone = false, sawScored = false;
        for (TokenIndex t = 0; t < kCut; ++t) {
            const TokenDecision decision = tokenDecisionOf(*blocks, KvHeadIndex(0), t);
            QCOMPARE(decision.flipBudget, 0);
            sawGone = sawGone || !decision.scored;
            sawScored = sawScored || decision.scored;
            QVERIFY(decision.scored || (!decision.kept && std::isnan(decision.margin)));
            QVERIFY(!decision.scored || decision.rank < 18);
        }
        QVERIFY(sawGone && sawScored);
    }
};

KVSCOPE_TEST(TokenDecisionTest)
#include "token_decision_test.moc"
