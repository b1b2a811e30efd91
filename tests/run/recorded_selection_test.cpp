// A list out of results, and a list in the place of a policy: the same kept tokens, the same measures.
#include "core/engine/engine.h"
#include "core/lists/selection_formats.h"
#include "core/metrics/measure_values.h"
#include "core/metrics/measures.h"
#include "core/policies/policy.h"
#include "core/run/head_means.h"
#include "core/run/record_results.h"
#include "core/run/stored_rows.h"
#include "tests/support/error_message.h"
#include "tests/support/random_capture.h"
#include "tests/support/run_request.h"
#include "tests/support/test_program.h"

#include <QTemporaryDir>
#include <QtTest>

#include <cmath>
#include <set>

using namespace kvscope;

class RecordedSelectionTest : public QObject {
    Q_OBJECT

private:
    std::shared_ptr<const CaptureReader> m_capture = makeRandomCapture(1, 100, 3, 4, 2, 8);
    LayerRunner m_runner{makeCpuEngine()};

    std::vector<std::shared_ptr<const RunResult>> run(const std::string& spec, const std::vector<int>& layers) const {
        std::vector<std::shared_ptr<const RunResult>> results;
        for (const int layer : layers) {
            RunRequest request = runRequest(m_capture, spec, "segment:context", "0.2");
            request.layer = LayerIndex(layer);
            request.seed = 5;
            results.push_back(m_runner.run(request, {}));
        }
        return results;
    }

    RunRequest replay(const RecordedSelection& list, int layer, const std::string& cut = "segment:context") const {
        RunRequest request;
        request.capture = m_capture;
        request.layer = LayerIndex(layer);
        request.cut = Cut::resolve(cut, *m_capture);
        request.recorded = std::make_shared<const RecordedSelection>(list);
        return request;
    }

private slots:
    void describesTheRun() {
        const auto results = run("snapkv:kvpress,window=8,prompt_block=25", {2, 0});
        const RecordedSelection list = recordSelection(results, {{1}, true, "kvscope evict ..."});
        QCOMPARE(list.captureFile, m_capture->info().fileName);
        QCOMPARE(list.captureTokens, 100);
        QCOMPARE(list.cut, std::string("segment:context"));
        QCOMPARE(list.cutToken, 75);
        QCOMPARE(list.policy, std::string("snapkv"));
        QCOMPARE(list.variant, std::string("kvpress"));
        QCOMPARE(list.budgetRequested, std::string("0.2"));
        QCOMPARE(list.budgetTokens, 14); // kvpress rounds 75 (1 - 0.8) = 14.99... down
        QCOMPARE(list.budgetKept, 14.0);
        QCOMPARE(list.seed, 5u);
        QVERIFY(list.simulated);
        QCOMPARE(list.command, std::string("kvscope evict ..."));
        QCOMPARE(list.parameters.size(), policyById("snapkv").card().parameters->size()); // all, resolved
        QVERIFY(std::count(list.parameters.begin(), list.parameters.end(),
                           std::pair<std::string, std::string>("window", "8")));
        QCOMPARE(list.heads.size(), 2u);
        for (std::size_t i = 0; i < 2; ++i) { // sorted by layer
            QCOMPARE(list.heads[i].layer, i == 0 ? 0 : 2);
            QCOMPARE(list.heads[i].kvHead, 1);
            QVERIFY(list.heads[i].kept == results[1 - i]->selection.heads[1].kept);
            QCOMPARE(list.heads[i].scores.size(), 100u);
            QVERIFY(std::isnan(list.heads[i].scores[75]));
            QCOMPARE(list.heads[i].ranks.size(), list.heads[i].kept.size());
        }
        QVERIFY(recordSelection(results, {}).heads.size() == 4 && recordSelection(results, {}).heads[0].scores.empty());
        QVERIFY(errorMessage([&] {
                    recordSelection(results, {{2}, false, {}});
                }).find("KV heads 0 to 1") != std::string::npos);
    }

    void replaysThroughEveryForm_data() {
        QTest::addColumn<QString>("spec");
        QTest::addColumn<QString>("name");
        for (const char* spec : {"keydiff", "exact", "uniform", "key_norm,prompt_block=20"})
            for (const char* name : {"list.json", "list.csv", "list.h5"})
                QTest::addRow("%s as %s", spec, name) << spec << name;
    }

    void replaysThroughEveryForm() {
        QFETCH(QString, spec);
        QFETCH(QString, name);
        const auto results = run(spec.toStdString(), {0, 1});
        QTemporaryDir folder;
        const std::string path = folder.filePath(name).toStdString();
        writeSelection(path, recordSelection(results, {{}, true, {}}), m_capture->tokens());
        const RecordedSelection list = readSelection(path);
        for (int layer = 0; layer < 2; ++layer) {
            const auto original = results[static_cast<std::size_t>(layer)];
            const auto again = m_runner.run(replay(list, layer), {});
            QVERIFY(again->selection.sameLists(original->selection));
            QVERIFY(again->fidelity->meanOutputError == original->fidelity->meanOutputError);
            QVERIFY(again->fidelity->meanRetainedMass == original->fidelity->meanRetainedMass);
            QCOMPARE(again->requested, original->requested);
            QCOMPARE(again->simulated, original->simulated);
            for (std::size_t h = 0; h < 2; ++h)
                for (const TokenIndex token : original->selection.heads[h].kept) {
                    const std::size_t at = h * 75 + static_cast<std::size_t>(token);
                    QVERIFY(original->scores.empty() ? again->scores.empty()
                                                     : again->scores.data[at] == original->scores.data[at]);
                }
        }
    }

    // A capture that failed its comparison with the model marks every result and every list.
    void aFailedSelfCheckIsCarriedByEveryForm() {
        const auto failed = makeRandomCapture(1, 100, 1, 4, 2, 8);
        failed->captureInfo.checks = {{"loss", "failed", 2, 1e-3, "nat per token", 99, ""}};
        const std::string warning = failed->info().checkWarning();
        const auto result = m_runner.run(runRequest(failed, "keydiff@0.2", "75"), {});
        QVERIFY(std::count(result->notes.begin(), result->notes.end(), warning) == 1);
        QTemporaryDir folder;
        for (const char* name : {"list.json", "list.csv", "list.h5"}) {
            const std::string path = folder.filePath(name).toStdString();
            writeSelection(path, recordSelection(std::vector{result}, {}), failed->tokens());
            QCOMPARE(readSelection(path).captureWarning, warning);
            writeSelection(path, recordSelection(run("keydiff", {0}), {}), m_capture->tokens());
            QCOMPARE(readSelection(path).captureWarning, std::string());
        }
    }

    void weightsAreHonoured() {
        RecordedSelection list = recordSelection(run("keydiff", {0}), {});
        const auto plain = m_runner.run(replay(list, 0), {});
        for (RecordedHead& head : list.heads) head.numeratorWeights.assign(head.kept.size(), 3);
        const auto weighted = m_runner.run(replay(list, 0), {});
        QVERIFY(weighted->fidelity->meanOutputError != plain->fidelity->meanOutputError);
        QVERIFY(weighted->fidelity->meanRetainedMass == plain->fidelity->meanRetainedMass);
        QVERIFY(weighted->selection.heads[0].numeratorWeights == list.heads[0].numeratorWeights);
    }

    // Keys of all kept tokens, values of those that the numerator needs; what a policy states counts instead.
    void storedBytesFollowTheEstimator() {
        RunResult result = *run("keydiff", {0}).front();
        const CaptureInfo& info = m_capture->info();
        const auto row = static_cast<std::uint64_t>(info.headDim) * 4; // float32
        QCOMPARE(info.headDim, info.valueDim);
        QCOMPARE(storedBytes(result), 2 * 15 * 2 * row);
        HeadSelection& head = result.selection.heads[0];
        head.numeratorWeights = {0, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
        QCOMPARE(storedBytes(result), (15 + 12 + 30) * row);
        head.storedKeys = 14;
        head.storedValues = 9;
        QCOMPARE(storedBytes(result), (14 + 9 + 30) * row);
    }

    // The bytes of a head as that many tokens with a key and a value each; what it keeps stays what it keeps.
    void storedTokensFollowTheBytes() {
        RunResult result = *run("keydiff", {0}).front();
        HeadSelection& head = result.selection.heads[0];
        QCOMPARE(meanStoredTokens(result), 15.0);
        QVERIFY(!storedOtherwise(result, KvHeadIndex(0)));
        head.storedKeys = 40;
        head.storedValues = 9;
        const double bytes = 2.0 * result.request.capture->info().headDim * 4; // of a token: float32
        QCOMPARE(meanStoredTokens(result, KvHeadIndex(0)), 24.5);
        QCOMPARE(meanStoredTokens(result), (24.5 + 15) / 2);
        QCOMPARE(2 * meanStoredTokens(result) * bytes, static_cast<double>(storedBytes(result)));
        QCOMPARE(*storedOtherwise(result, KvHeadIndex(0)), 24.5);
        QVERIFY(!storedOtherwise(result, KvHeadIndex(1)));
        QCOMPARE(head.attendedTokens(), 15.0);
    }

    // What is kept, not what was asked for: heads of a joint choice differ, and a pyramid's layers do.
    void keptIsCountedNotAsked() {
        const auto joint = run("compactor:compactor_vllm,protect_first=2,protect_last=2,page=1", {0, 1});
        double kept = 0;
        std::set<std::size_t> counts;
        for (const auto& result : joint)
            for (const HeadSelection& head : result->selection.heads) {
                kept += static_cast<double>(head.kept.size()) / 4;
                counts.insert(head.kept.size());
            }
        QVERIFY(counts.size() > 1);
        const RecordedSelection list = recordSelection(joint, {});
        QCOMPARE(list.budgetKept, kept);
        QCOMPARE(list.budgetTokens, 15);
        QCOMPARE(
            recordSelection(joint, {{1}, false, {}}).budgetKept,
            static_cast<double>(joint[0]->selection.heads[1].kept.size() + joint[1]->selection.heads[1].kept.size()) /
                2);
        const auto pyramid = run("pyramidkv,window=2", {0});
        QVERIFY(pyramid.front()->selection.heads[0].kept.size() > 15);
        QCOMPARE(recordSelection(pyramid, {}).budgetKept,
                 static_cast<double>(pyramid.front()->selection.heads[0].kept.size()));
    }

    // A list of a policy whose estimator stores other rows than one key and value per kept token costs the same bytes.
    void storedRowsSurviveEveryForm_data() {
        QTest::addColumn<QString>("name");
        for (const char* name : {"list.json", "list.csv", "list.h5"}) QTest::addRow("%s", name) << name;
    }

    void storedRowsSurviveEveryForm() {
        QFETCH(QString, name);
        QTemporaryDir folder;
        const std::string path = folder.filePath(name).toStdString();
        for (const char* spec : {"subgen", "balancekv_stream,batch=16", "keydiff"}) {
            const auto results = run(spec, {0});
            writeSelection(path, recordSelection(results, {}), m_capture->tokens());
            QCOMPARE(storedBytes(*m_runner.run(replay(readSelection(path), 0), {})), storedBytes(*results.front()));
        }
    }

    void headsThatAreLeftOutHaveNoMeasure() {
        const auto results = run("keydiff", {0});
        const auto again = m_runner.run(replay(recordSelection(results, {{1}, false, {}}), 0), {});
        const Fidelity& fidelity = *again->fidelity;
        QVERIFY(std::isnan(fidelity.meanOutputError[0]) && std::isnan(fidelity.meanRetainedMass[1]));
        QCOMPARE(fidelity.meanOutputError[2], results[0]->fidelity->meanOutputError[2]);
        QVERIFY(std::isnan(fidelity.outputError.data[0]));
        QCOMPARE(again->notes, std::vector<std::string>({"the list leaves out KV heads 0 of this layer"}));
        QVERIFY(std::isnan(keptShareOf(*again, KvHeadIndex(0)))); // it is not known that nothing is kept
        QCOMPARE(keptShareOf(*again), keptShareOf(*results[0], KvHeadIndex(1)));
    }

    // The other measures too, whatever a number of theirs belongs to; measures of the layer do not read the list.
    void noMeasureSpeaksOfHeadsThatAreLeftOut() {
        const auto capture = makeRandomCapture(1, 100, 1, 4, 2, 8);
        capture->captureInfo.layers.front().hasOutputProjection = true;
        capture->tensors[{LayerIndex(0), TensorRole::OutputProjection}] =
            gaussianTensor(2, LayerIndex(0), TensorRole::OutputProjection, 20, 4, 8);
        RunRequest request = runRequest(capture, "keydiff@0.2", "75");
        const auto whole = m_runner.run(request, {});
        request.recorded =
            std::make_shared<const RecordedSelection>(recordSelection(std::vector{whole}, {{1}, true, {}}));
        const auto part = m_runner.run(request, {});
        for (const MeasureCard& card : allMeasures()) {
            if (card.need == MeasureNeed::PreRopeKeys) continue;
            const std::vector<std::string> ids = {card.id};
            const MeasureValues all = m_runner.measure(*whole, ids, {}).front(),
                                some = m_runner.measure(*part, ids, {}).front();
            QCOMPARE(all.perHead.size(), some.perHead.size());
            for (std::size_t i = 0; i < all.perHead.size(); ++i) {
                const bool missing =
                    card.subject == MeasureSubject::KeptTokens && (!card.isPerHead() || i < all.perHead.size() / 2);
                QVERIFY2(missing ? std::isnan(some.perHead[i]) : some.perHead[i] == all.perHead[i],
                         qPrintable(QString("%1 of head %2: %3").arg(card.id.c_str()).arg(i).arg(some.perHead[i])));
                const auto width = all.perQuery.empty() ? 0 : std::size_t(all.perQuery.shape[1]);
                for (std::size_t j = i * width; missing && j < (i + 1) * width; ++j)
                    QVERIFY2(std::isnan(some.perQuery.data[j]), card.id.c_str());
            }
        }
    }

    // Whoever measures the list has exact arithmetic, no quality for a budget and a checked capture.
    void marksOfTheListReachItsResult() {
        RecordedSelection list = recordSelection(run("keydiff", {0}), {});
        QVERIFY(m_runner.run(replay(list, 0), {})->notes.empty());
        list.arithmetic = "fast float, outside the index contract";
        list.budgetOrigin = "retention 0.2 for tau = 0.9, by proxy: k = -5";
        list.random = "uniforms are read from drawn.h5";
        list.captureWarning = "the capture failed its self-check";
        QCOMPARE(m_runner.run(replay(list, 0), {})->notes,
                 std::vector<std::string>({"the list was chosen with fast float, outside the index contract",
                                           "budget of the list: retention 0.2 for tau = 0.9, by proxy: k = -5",
                                           "when the list was made: uniforms are read from drawn.h5",
                                           "when the list was made: the capture failed its self-check"}));
    }

    // Another tool writes scores of its kept tokens and need not know how many tokens the capture has.
    void scoresWithoutTheNumberOfTokens() {
        const std::string head = "# format: kvscope-selection\n# cut: 75\nlayer,kv_head,position,score\n";
        const RecordedSelection list = parseSelectionCsv(head + "0,0,3,0.5\n0,0,40,0.25\n0,1,7,1\n", "list.csv");
        const auto result = m_runner.run(replay(list, 0, "75"), {});
        QCOMPARE(result->scores.shape, (Shape{2, 75}));
        QCOMPARE(result->scores.data[3], 0.5F);
        QCOMPARE(result->scores.data[40], 0.25F);
        QCOMPARE(result->scores.data[75 + 7], 1.0F);
        QVERIFY(std::isnan(result->scores.data[41]) && std::isnan(result->scores.data[74]));
        QVERIFY(std::isnan(result->scores.data[75 + 8]));
    }

    void misfitsAreRefused() {
        const RecordedSelection list = recordSelection(run("keydiff", {0, 1}), {});
        const std::string layer = errorMessage([&] { m_runner.run(replay(list, 2), {}); });
        QVERIFY2(layer.find("It has layers 0, 1") != std::string::npos, layer.c_str());
        const std::string cut = errorMessage([&] { m_runner.run(replay(list, 0, "80"), {}); });
        QVERIFY2(cut.find("Set the cut to 75") != std::string::npos, cut.c_str());
        RecordedSelection other = list;
        other.captureTokens = 99;
        QVERIFY(errorMessage([&] { m_runner.run(replay(other, 0), {}); }).find("from 99 tokens") != std::string::npos);
    }
};

KVSCOPE_TEST(RecordedSelectionTest)
#include "recorded_selection_test.moc"
