// What each setting of each policy invalidates: no stage is taken from the cache of a run with another setting.
#include "core/engine/engine.h"
#include "core/policies/policy.h"
#include "core/run/run.h"
#include "tests/support/error_message.h"
#include "tests/support/random_capture.h"
#include "tests/support/run_request.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <algorithm>
#include <bit>

using namespace kvscope;

namespace {

RunRequest requestOf(const std::shared_ptr<const CaptureReader>& capture, const std::string& spec) {
    return runRequest(capture, spec, "80", "0.25");
}

} // namespace

class StageSettingsTest : public QObject {
    Q_OBJECT

private slots:
    /// A stage's cache knows every setting that the stage reads: a run after that of another setting, of which it takes
    /// what it can, equals the run alone.
    void noSettingTakesTheResultOfAnother() {
        const std::shared_ptr<const CaptureReader> capture = makeRandomCapture(3, 120, 1, 4, 2, 8);
        const auto outcome = [](const LayerRunner& runner, const RunRequest& request) {
            std::shared_ptr<const RunResult> result;
            const QString error = errorText([&] { result = runner.run(request, {}); });
            return std::pair(result, error);
        };
        int compared = 0;
        for (const Policy* policy : allPolicies())
            for (const ParameterSpec& row : *policy->card().parameters) {
                std::vector<std::string> values = {"true", "false"};
                if (row.kind == ParameterKind::Choice) {
                    values.clear();
                    for (const ParameterChoice& choice : row.choices) values.push_back(choice.id);
                } else if (row.kind != ParameterKind::Flag)
                    continue;
                const LayerRunner shared(makeCpuEngine(1));
                for (const std::string& value : values) {
                    const std::string spec = policy->card().id + "," + row.id + "=" + value;
                    RunRequest request;
                    if (!errorText([&] { request = requestOf(capture, spec); }).isEmpty()) continue;
                    const auto [after, error] = outcome(shared, request);
                    const auto [alone, errorAlone] = outcome(LayerRunner(makeCpuEngine(1)), request);
                    QCOMPARE(error, errorAlone);
                    if (!after) continue;
                    ++compared;
                    QVERIFY2(after->selection.sameLists(alone->selection), spec.c_str());
                    const auto bits = [](float x) { return std::bit_cast<std::uint32_t>(x); }; // NaN equals itself
                    const auto sameNumbers = [&](const HostTensor& a, const HostTensor& b) {
                        return a.shape == b.shape && std::ranges::equal(a.data, b.data, {}, bits, bits);
                    };
                    QVERIFY2(sameNumbers(after->scores, alone->scores), spec.c_str());
                    QVERIFY2(sameNumbers(after->queryHeadScores, alone->queryHeadScores), spec.c_str());
                }
            }
        QVERIFY(compared > 100);
    }
};

KVSCOPE_TEST(StageSettingsTest)
#include "stage_settings_test.moc"
