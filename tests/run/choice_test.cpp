// What a window may ask for in its own thread: the ranking of scores that are there, and nothing that takes longer.
#include "core/run/choice.h"
#include "core/run/stage_cache.h"
#include "tests/run/counting_engine.h"
#include "tests/support/random_capture.h"
#include "tests/support/run_request.h"
#include "tests/support/test_program.h"

#include <QtTest>

using namespace kvscope;

namespace {

using Capture = std::shared_ptr<const CaptureReader>;

LayerRunner newRunner() { return LayerRunner(std::make_shared<CountingEngine>()); }

RunRequest requestOf(const Capture& capture, const std::string& spec) {
    return runRequest(capture, spec, "last:40", "0.25");
}

} // namespace

class ChoiceTest : public QObject {
    Q_OBJECT

    LayerRunner m_runner = newRunner();

private slots:
    void knownScoresAreRankedAtOnce() {
        const Capture capture = makeRandomCapture(1, 120, 1, 4, 2, 8);
        for (const std::string policy : {"keydiff", "snapkv,window=8", "compactor:compactor_vllm"}) {
            QVERIFY(!chooseAtOnce(m_runner, requestOf(capture, policy + "@0.5")));
            (void)m_runner.run(requestOf(capture, policy + "@0.5"), {});
            const RunRequest next = requestOf(capture, policy + "@0.4");
            const auto chosen = chooseAtOnce(m_runner, next);
            QVERIFY2(chosen && !chosen->fidelity, policy.c_str());
            QVERIFY2(chosen->selection.sameLists(newRunner().run(next, {})->selection), policy.c_str());
        }
        QVERIFY(!chooseAtOnce(m_runner, requestOf(capture, "keydiff,prompt_block=32@0.4"))); // scores in each block
    }

    void rowsOfQueryHeadsCountAsWell() {
        const Capture capture = makeRandomCapture(2, 140'000, 1, 4, 1, 2);
        for (const auto& [policy, atOnce] :
             {std::pair{"snapkv,window=8", true}, {"snapkv,window=8,copies=query_head", false}}) {
            RunRequest request = requestOf(capture, policy);
            request.measure = false;
            (void)m_runner.run(request, {});
            request.budget = Budget::parse("0.2");
            QCOMPARE(chooseAtOnce(m_runner, request) != nullptr, atOnce);
        }
    }

    /// They would push out features and scores, and whoever asks holds the choice.
    void stepsOfADragAreNotCached() {
        const Capture capture = makeRandomCapture(5, 120, 1, 4, 2, 8);
        (void)m_runner.run(requestOf(capture, "keydiff@0.5"), {});
        const std::size_t before = m_runner.cache().bytes();
        for (const char* budget : {"0.4", "0.3", "0.4"}) {
            RunRequest request = requestOf(capture, "keydiff");
            request.budget = Budget::parse(budget);
            const auto chosen = chooseAtOnce(m_runner, request);
            QVERIFY(chosen && chosen->selection.sameLists(newRunner().run(request, {})->selection));
        }
        QCOMPARE(m_runner.cache().bytes(), before);
    }

    /// Freeing what is cached of it may take longer than a frame.
    void aClosedCaptureIsForgottenByALaterRun() {
        const Capture capture = makeRandomCapture(4, 120, 1, 4, 2, 8);
        const LayerRunner runner = newRunner();
        {
            const Capture closed = makeRandomCapture(3, 120, 1, 4, 2, 8);
            (void)runner.run(requestOf(closed, "keydiff"), {});
        }
        const std::size_t before = runner.cache().bytes();
        QVERIFY(!chooseAtOnce(runner, requestOf(capture, "keydiff")));
        QCOMPARE(runner.cache().bytes(), before);
        (void)runner.run(requestOf(capture, "keydiff"), {});
        QVERIFY(runner.cache().bytes() <= before);
    }
};

KVSCOPE_TEST(ChoiceTest)
#include "choice_test.moc"
