// The answers of a live context beside its panes, stepped through by hand, with a worker that has no model: its losses
// are checksums of the kept lists that arrive.
#include "app/live/live_context.h"
#include "app/study/answer_attention.h"
#include "app/study/loss_curves.h"
#include "app/study/session_file.h"
#include "core/metrics/fidelity.h"
#include "core/run/head_means.h"
#include "tests/app/live_bench.h"
#include "tests/support/test_program.h"
#include "views/common/view_facts.h"
#include "views/curves/curves_painter.h"
#include "views/view.h"

#include <QtTest>

using namespace kvscope;
using kvscope::testing::LiveBench;

class LiveAnswersTest : public QObject {
    Q_OBJECT

private slots:
    void nothingIsAskedWhileNobodyWantsIt() {
        LiveBench live;
        QVERIFY(live.jobs.live());
        QCOMPARE(live.jobs.rows().size(), std::size_t{3});
        QVERIFY(!live.row(0).live.expected && live.row(0).isOutdated && !live.jobs.isRunning());
        live.jobs.setWanted(true, false);
        live.jobs.setWanted(false, false); // before the round has begun
        live.executor.settle();
        QVERIFY(!live.row(0).live.expected && !live.jobs.isRunning());
    }

    void rowsAreThoseOfThePanes() {
        LiveBench live;
        live.jobs.setWanted(true, false);
        QVERIFY(live.jobs.isRunning());
        live.executor.settle();
        QVERIFY(live.areCurrent() && !live.jobs.isRunning() && live.jobs.error().empty());
        QCOMPARE(live.nll(0), 0.5);
        for (const std::size_t pane : {0u, 1u}) QCOMPARE(live.nll(pane + 1), live.lossOf(pane));
        QVERIFY(live.nll(1) != live.nll(2));
        QCOMPARE(live.row(0).live.kept, 61.0);
        QCOMPARE(live.row(1).live.kept, 20.0);
        QCOMPARE(live.row(2).live.greedy->pieces, (std::vector<std::string>{"forty", " two"}));
        QCOMPARE(live.jobs.answerTokens().front(), 75);
        QCOMPARE(live.jobs.answerTokens().size(), std::size_t{8});
    }

    void aBudgetStepKeepsTheOldNumbersUntilTheNewOnesAreThere() {
        LiveBench live;
        live.jobs.setWanted(true, false);
        live.executor.settle();
        const double before = live.nll(1);
        live.change([](Session& session) {
            linkPanes(session, false);
            session.activePane = 0;
            setBudget(session, {Budget::Unit::Tokens, 9});
        });
        QVERIFY(live.row(1).isOutdated && live.row(1).isTextOutdated);
        QVERIFY(!live.row(0).isOutdated && !live.row(2).isOutdated); // they are not asked for again
        QCOMPARE(live.nll(1), before);
        live.executor.settle();
        QVERIFY(live.areCurrent());
        QCOMPARE(live.row(1).live.kept, 9.0);
        QCOMPARE(live.nll(1), live.lossOf(0));
        QVERIFY(live.nll(1) != before);
    }

    void aRowMovesWithItsPane() {
        LiveBench live;
        live.jobs.setWanted(true, false);
        live.executor.settle();
        const double second = live.nll(2);
        live.change([](Session& session) { session.panes.erase(session.panes.begin()); });
        QVERIFY(!live.row(1).isOutdated && !live.row(1).isTextOutdated && !live.jobs.isRunning());
        QCOMPARE(live.nll(1), second);
        live.change([](Session& session) { session.panes.push_back({specOfVariant("keydiff", {}), {}, {}}); });
        live.change([](Session& session) { std::swap(session.panes[0], session.panes[1]); }); // while it is asked
        QVERIFY(!live.row(2).isOutdated);
        live.executor.settle();
        QVERIFY(live.areCurrent());
        QCOMPARE(live.nll(2), second);
        QCOMPARE(live.nll(1), live.lossOf(0));
    }

    void lossesComeBeforeTheTexts() {
        LiveBench live;
        live.jobs.setWanted(true, false);
        bool isBetween = false;
        connect(&live.jobs, &LiveAnswerJobs::changed, this, [&] {
            const auto& row = live.row(1);
            isBetween = isBetween || (row.live.expected && !row.isOutdated && row.isTextOutdated);
        });
        live.executor.settle();
        QVERIFY(isBetween && live.areCurrent());
    }

    void aDragShowsWhatItPassesAndEndsWithTheNewest() {
        LiveBench live;
        live.jobs.setWanted(true, false);
        live.executor.settle();
        live.setTokens(30);
        while (live.executor.runTask()) { // the round of 30 has run and has not told it
        }
        live.setTokens(31);
        QVERIFY(live.jobs.isRunning());
        live.executor.runAll();
        QVERIFY(live.areCurrent());
        QCOMPARE(live.row(1).live.kept, 31.0);
        QCOMPARE(live.nll(1), live.lossOf(0));
    }

    void aRoundIsStoppedOnceTheSessionRests() {
        LiveBench live;
        live.jobs.setWanted(true, false);
        live.executor.settle();
        live.setTokens(30); // nothing runs it
        live.setTokens(31);
        double passed = 0;
        connect(&live.jobs, &LiveAnswerJobs::changed, this, [&] {
            if (live.row(1).live.kept == 30) passed = 30;
        });
        live.executor.passPauses();
        live.executor.settle();
        QCOMPARE(passed, 0.0);
        QVERIFY(live.areCurrent());
        QCOMPARE(live.row(1).live.kept, 31.0);
    }

    /// Panes that choose tokens at another cut than the model's have no answers: one sentence says so, and a reload has
    /// the context read there.
    void anotherCutIsSaidOnceAndReadByAReload() {
        LiveBench live;
        live.jobs.setWanted(true, true);
        live.executor.settle();
        live.change([](Session& session) { session.cut = "50"; });
        live.executor.settle();
        QVERIFY2(QByteArray::fromStdString(live.jobs.error())
                     .contains("the model read the context with its cut at 61, and these tokens are chosen at 50"),
                 live.jobs.error().c_str());
        QVERIFY(live.jobs.isCutOther() && !live.jobs.isRunning());
        for (const auto& row : live.jobs.rows()) QVERIFY2(row.error.empty(), row.error.c_str());
        QVERIFY(!live.row(0).isOutdated && live.nll(0) == 0.5 && live.row(1).isOutdated && live.row(2).isOutdated);
        live.change([](Session& session) { session.cut = "61"; });
        live.executor.settle();
        QVERIFY(live.jobs.error().empty() && live.areCurrent());

        live.change([](Session& session) { session.cut = "50"; });
        live.executor.settle();
        const std::vector<SessionPane> panes = live.bench->session().panes;
        live.bench->reload();
        live.executor.settle();
        QVERIFY(live.jobs.error().empty() && live.areCurrent());
        QCOMPARE(live.bench->live()->cut(), 50);
        QVERIFY(live.bench->session().cut == "50" && live.bench->session().panes == panes);
        QVERIFY(live.nll(1) == live.lossOf(0) && live.nll(2) == live.lossOf(1));
    }

    /// The cut may have moved since the worker read the context: what the panes show counts.
    void aSavedSessionIsReadWithTheCutThatItShows() {
        LiveBench live;
        live.jobs.setWanted(true, false);
        live.executor.settle();
        const std::vector<double> before = {live.nll(0), live.nll(1), live.nll(2)};
        Session saved = live.bench->session();
        QCOMPARE(saved.cut, std::string("default"));
        live::LiveDescription description = live::descriptionOf(saved.live.text());
        description.cut = "question";
        saved.live = SharedText(live::textOf(description));
        const std::string path = live.fake.path().toStdString() + "/moved.kvscope";
        writeSession(path, saved);
        live.bench->closeCapture();
        live.executor.settle();
        live.bench->openSession(readSession(path), path);
        live.executor.settle();
        QVERIFY2(live.jobs.error().empty(), live.jobs.error().c_str());
        for (std::size_t i = 0; i < before.size(); ++i) {
            QVERIFY2(live.row(i).error.empty(), live.row(i).error.c_str());
            QCOMPARE(live.nll(i), before[i]);
        }
        QVERIFY(live.areCurrent() && live.bench->session().cut == "default");
        QCOMPARE(live.bench->live()->cut(), 61);

        // None is no cut to read a context with, and a session without a cut of its own has the context's.
        saved.cut = "none";
        writeSession(path, saved);
        QCOMPARE(live::descriptionOf(readSession(path).live.text()).cut, std::string("question"));
        QFile file(QString::fromStdString(path));
        QVERIFY(file.open(QIODevice::ReadWrite));
        const QByteArray text = file.readAll().replace("\"cut\": \"none\",\n", "");
        file.resize(0);
        file.seek(0);
        file.write(text);
        file.close();
        QCOMPARE(readSession(path).cut, std::string("segment:question"));
        QCOMPARE(live::descriptionOf(readSession(path).live.text()).cut, std::string("question"));
    }

    /// A context that is opened once more has the cut that it is opened with.
    void theSameContextOpenedAgainHasItsOwnCut() {
        LiveBench live;
        live.jobs.setWanted(true, false);
        live.change([](Session& session) { session.cut = "50"; });
        live.bench->openLive(live::descriptionOf(live.bench->session().live.text()));
        live.executor.settle();
        QVERIFY(live.jobs.error().empty() && live.areCurrent());
        QCOMPARE(live.bench->session().cut, std::string("default"));
    }

    /// What the model cannot answer behind one list is that list's alone, of rows and of curves.
    void aRowThatTheModelCannotAnswerFailsAlone() {
        LiveBench live(true, "overflows");
        live.change([](Session& session) { setBudget(session, {Budget::Unit::Fraction, 0.25}); });
        live.jobs.setWanted(true, true);
        live.executor.settle();
        QVERIFY2(live.jobs.error().empty(), live.jobs.error().c_str());
        QVERIFY(live.areCurrent() && !live.jobs.isRunning());
        QCOMPARE(live.row(2).error, std::string("the loss is NaN or infinite. Load it in bf16"));
        QVERIFY(!live.row(2).live.expected && !live.row(2).live.greedy && live.row(2).live.sent);
        QVERIFY(live.row(1).error.empty() && live.nll(1) == live.lossOf(0) && live.nll(0) == 0.5);
        QCOMPARE(live.row(1).live.greedy->text, std::string("forty two"));
        const auto& curves = live.jobs.curves();
        QCOMPARE(curves[0].rows.size(), std::size_t{11});
        QVERIFY(curves[0].error.empty() && curves[0].rows.at(0.25).expected->nll == live.nll(1));
        QCOMPARE(curves[1].rows.size(), std::size_t{11}); // each was asked once
        for (const auto& [budget, row] : curves[1].rows) QVERIFY(!row.expected && !row.error.empty());
    }

    /// The model keeps positions: its loss would be that of the variant that keeps them.
    void reassignedPositionsAreRefused() {
        LiveBench live;
        live.change([](Session& session) { session.panes[0].policy = PolicySpec::parse("streaming_llm:paper"); });
        live.jobs.setWanted(true, false);
        live.executor.settle();
        QVERIFY2(live.row(1).error.find("re-assigns positions") != std::string::npos, live.row(1).error.c_str());
        QVERIFY(!live.row(1).live.sent && live.row(2).error.empty());
    }

    /// As measure and sweep count them: what is drawn twice is stored twice.
    void bytesAreThoseOfWhatIsStored() {
        LiveBench live;
        live.change([](Session& session) { session.panes[0].policy = PolicySpec::parse("subgen"); });
        live.jobs.setWanted(true, false);
        live.executor.settle();
        const LiveRow& row = live.row(1).live;
        const CaptureInfo& info = live.bench->capture()->info();
        const double perToken = 4.0 * (info.headDim + info.valueDim) * info.numKvHeads * double(info.layers.size());
        QVERIFY(row.stored > row.kept + 1);
        QVERIFY(row.sent && std::abs(row.sent->bytes - row.stored * perToken) < 1);
    }

    void aDeadWorkerIsSaidAndAskedOnce() {
        LiveBench live;
        live.jobs.setWanted(true, false);
        live.executor.settle();
        live.fake.kill();
        live.jobs.setWriting({.mostTokens = 3}); // asks for all rows
        live.executor.settle();
        QVERIFY2(QByteArray::fromStdString(live.jobs.error() + live.row(1).error).contains("was killed by signal 9"),
                 live.jobs.error().c_str());
        QVERIFY(!live.jobs.isRunning());
        QCOMPARE(live.nll(0), 0.5); // what was there stays
    }

    void aDeadWorkerLeavesWhatIsThere() {
        LiveBench live;
        live.change([](Session& session) { setBudget(session, {Budget::Unit::Fraction, 0.25}); });
        live.jobs.setWanted(true, true);
        live.executor.settle();
        const double before = live.nll(1);
        live.fake.kill();
        live.setTokens(9);
        live.executor.settle();
        QVERIFY2(live.jobs.error().find("was killed by signal 9") != std::string::npos, live.jobs.error().c_str());
        for (const std::size_t row : {0u, 1u, 2u}) QCOMPARE(live.row(row).error, std::string());
        QVERIFY(live.nll(1) == before && live.row(1).isOutdated && !live.row(0).isOutdated);
        QCOMPARE(live.row(1).live.greedy->text, std::string("forty two"));
        QVERIFY(live.jobs.curves()[0].error.empty() && live.jobs.curves()[0].rows.size() == 11);
    }

    void curvesAreThoseOfTheRows() {
        LiveBench live;
        live.change([](Session& session) { setBudget(session, {Budget::Unit::Fraction, 0.25}); });
        live.jobs.setWanted(true, true);
        live.executor.settle();
        QCOMPARE(live.jobs.curves().size(), std::size_t{2});
        for (const std::size_t pane : {0u, 1u}) {
            const auto& curve = live.jobs.curves()[pane];
            QVERIFY2(curve.error.empty(), curve.error.c_str());
            QCOMPARE(curve.rows.size(), std::size_t{11});
            QCOMPARE(curve.rows.at(0.25).expected->nll, live.nll(pane + 1));
            QCOMPARE(curve.rows.at(0.5).kept, 31.0);
        }
        live.jobs.setWanted(true, false);
        QVERIFY(live.jobs.curves().empty());
    }

    /// PyramidKV keeps more in the lower layer, which is the one that the panes show.
    void theBudgetInACurveIsThatOfAllLayers() {
        LiveBench live;
        live.change([](Session& session) {
            session.panes = {{specOfVariant("pyramidkv", {}), {}, {}}};
            session.layer = LayerIndex(0);
            setBudget(session, {Budget::Unit::Fraction, 0.5});
        });
        live.jobs.setWanted(true, true);
        live.executor.settle();
        const LiveRow& row = live.row(1).live;
        const LossSeries series{policyIdentityOf(row.pane->run), {&row}};
        const auto data = lossCurves(std::span(&series, 1), nullptr, 61, row.kept / 61);
        const ViewInput input = live.bench->viewInput();
        const auto place = presentPlace(*data, input, ParameterValues(viewById("curves").card().options));
        QVERIFY(place);
        QCOMPARE(place->value, 100 * row.kept / 61);
        QVERIFY(std::abs(place->value - 100 * keptShareOf(*input.panes.at(0).result, input.kvHead)) > 5);
        QCOMPARE(place->value, 100 * data->curves.at(0).points.at(0).retention);
    }

    void withoutAnAnswerThereAreTextsAndNoCurves() {
        LiveBench live(false);
        live.jobs.setWanted(true, true);
        live.executor.settle();
        QVERIFY(live.areCurrent() && live.jobs.curves().empty() && live.jobs.answerTokens().empty());
        QVERIFY(!live.row(1).live.expected && live.row(1).live.greedy->text == "forty two");
    }

    void aFileHasNoModel() {
        LiveBench live;
        live.jobs.setWanted(true, true);
        live.executor.settle();
        live.bench->openCapture(testing::kSample);
        live.executor.settle();
        QVERIFY(!live.jobs.live() && live.jobs.rows().empty() && live.jobs.curves().empty());
        QVERIFY(!live.fake.isAlive());
    }

    /// It takes its time: the thread of the window does not wait for it.
    void theWorkerOfAClosedContextIsEndedByAJob() {
        LiveBench live;
        live.jobs.setWanted(true, false);
        live.executor.settle();
        live.bench->closeCapture();
        QVERIFY(!live.bench->live() && !live.jobs.live());
        QVERIFY(live.fake.isAlive());
        live.executor.settle();
        QVERIFY(!live.fake.isAlive());
    }

    void whatIsWrittenGoesOnWhenAnotherCaptureIsOpen() {
        LiveBench live;
        int written = 0, finished = 0;
        Scheduler::Job job;
        job.work = [&](const Checkpoint& checkpoint, const auto& post) {
            checkpoint.stopPoint();
            post([&] { ++written; });
        };
        job.finished = [&] { ++finished; };
        live.bench->writers().submit("write a file", std::move(job));
        live.bench->closeCapture();
        live.executor.settle();
        QCOMPARE(written, 1);
        QCOMPARE(finished, 1);
    }

    void aContextThatHasNoRoomBesideTheOpenOneSaysSo() {
        LiveBench live;
        live::LiveDescription description = live::descriptionOf(live.bench->session().live.text());
        description.command = live.fake.command("refuses");
        QSignalSpy failed(live.bench.get(), &Workbench::failed);
        live.bench->openLive(description);
        live.executor.settle();
        QCOMPARE(failed.takeFirst().front().toString(),
                 QString("needs 14.2 GiB, 11.8 GiB are free. Choose bf16, or close the live context that is open"));
        live.bench->closeCapture();
        live.bench->openLive(description);
        live.executor.settle();
        QCOMPARE(failed.takeFirst().front().toString(), QString("needs 14.2 GiB, 11.8 GiB are free. Choose bf16"));
    }

    /// Attention on evicted tokens against the measure of fidelity, which other code computes: the rest of the mass.
    void evictedAttentionIsWhatFidelityDoesNotRetain() {
        LiveBench live;
        const PaneRequest pane = live.bench->request()->panes[0];
        const auto found =
            answerAttention(live.bench->runner(), live.bench->capture(), *live.bench->cut(), pane, 76, {});
        QCOMPARE(found.heads.size(), std::size_t{2 * 4});
        double sum = 0;
        for (const AnswerAttention::Head& head : found.heads) {
            RunRequest request = pane.run;
            request.layer = head.layer;
            const auto result = live.bench->runner().run(request, {});
            const HostTensor& mass = result->fidelity->retainedMass; // [Hq, w]
            const auto at = head.head.value * mass.shape[1] + 76 - result->fidelity->firstQuery;
            QVERIFY(std::abs(1 - head.evicted - mass.data[static_cast<std::size_t>(at)]) < 1e-5);
            QVERIFY(head.evicted > 0.05);
            QVERIFY(std::ranges::is_sorted(head.largest, std::greater<>(), &AnswerAttention::Token::weight));
            const auto& kept = result->selection.heads[static_cast<std::size_t>(head.head.value / 2)].kept;
            for (const AnswerAttention::Token& token : head.largest)
                QCOMPARE(token.keptIn, std::ranges::binary_search(kept, token.token) ? 1.0 : 0.0);
            sum += head.evicted;
        }
        QVERIFY(std::abs(found.mean.evicted - sum / 8) < 1e-9);
        QCOMPARE(
            answerAttention(live.bench->runner(), live.bench->capture(), *live.bench->cut(), {}, 76, {}).mean.evicted,
            0.0);
    }
};

KVSCOPE_CORE_TEST(LiveAnswersTest)
#include "live_answers_test.moc"
