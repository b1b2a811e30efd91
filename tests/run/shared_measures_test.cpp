// What no selection changes is computed once for all selections of a layer, and measures are the same as without.
#include "core/metrics/measure_values.h"
#include "core/run/run.h"
#include "tests/run/counting_engine.h"
#include "tests/support/random_capture.h"
#include "tests/support/run_request.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <utility>

using namespace kvscope;

namespace {

RunRequest requestOf(const std::shared_ptr<const CaptureReader>& capture, const std::string& spec,
                     const std::string& cut = "80") {
    return runRequest(capture, spec, cut);
}

using Fixture = CountedRuns;

} // namespace

class SharedMeasuresTest : public QObject {
    Q_OBJECT

private slots:
    // A sweep over budgets asks for the same measures of one layer again and again.
    void whatNoSelectionChangesIsComputedOnce() {
        const std::vector<std::string> ids = {"eps_op",
                                              "eps_f",
                                              "entropy",
                                              "effective_tokens",
                                              "sink_mass",
                                              "largest_loss",
                                              "key_norm",
                                              "value_norm",
                                              "query_norm",
                                              "score_correlation",
                                              "output_error_frobenius",
                                              "numerator_error"};
        const std::vector<std::string> primitives = {"attentionColumnSums", "attentionMap", "prefixOperatorNorms",
                                                     "rowNorms", "exact attention"};
        const auto capture = makeRandomCapture(1, 120, 2, 4, 2, 8);
        const Fixture shared;
        std::vector<int> once;
        int kept = 0;
        for (const char* spec : {"keydiff@0.25", "keydiff@0.5", "keydiff@0.75", "keydiff@0.25"}) {
            const auto result = shared.run(requestOf(capture, spec));
            const auto values = shared.runner.measure(*result, ids, {});
            const Fixture alone;
            const auto anew = alone.runner.measure(*alone.run(requestOf(capture, spec)), ids, {});
            for (std::size_t i = 0; i < ids.size(); ++i) {
                QVERIFY2(values[i].id == ids[i] && values[i].perHead == anew[i].perHead, ids[i].c_str());
                QVERIFY2(values[i].perQuery.data == anew[i].perQuery.data, ids[i].c_str());
            }
            std::vector<int> counts;
            for (const std::string& primitive : primitives) counts.push_back(shared.engine->count(primitive));
            if (once.empty()) once = counts;
            QCOMPARE(counts, once);
            // Of the fidelity, unless it is known, and of the measures.
            const int before = std::exchange(kept, shared.engine->count("kept attention"));
            QVERIFY2(kept - before <= 3, qPrintable(QString::number(kept - before)));
        }
        const auto later = shared.run(requestOf(capture, "keydiff@0.25", "81")); // other queries
        const Fixture alone;
        const auto anew = alone.runner.measure(*alone.run(requestOf(capture, "keydiff@0.25", "81")), ids, {});
        const auto values = shared.runner.measure(*later, ids, {});
        for (std::size_t i = 0; i < ids.size(); ++i) QVERIFY2(values[i].perHead == anew[i].perHead, ids[i].c_str());
    }
};

KVSCOPE_TEST(SharedMeasuresTest)
#include "shared_measures_test.moc"
