// The index contract between engines: every policy and variant keeps the same tokens on LibTorch as on the CPU engine,
// on the sample captures and on random heads. The margins say how close the closest decisions were. Where there is a
// GPU, KVSCOPE_TEST_ENGINE=cuda compares the engine on it instead.
#include "core/base/error.h"
#include "core/capture/capture.h"
#include "core/capture/open_capture.h"
#include "core/metrics/fidelity.h"
#include "core/policies/policy.h"
#include "core/run/run.h"
#include "gpu/engine_factory.h"
#include "tests/parity/torch_offer.h"
#include "tests/support/error_message.h"
#include "tests/support/larger_error.h"
#include "tests/support/memory_synthetic.h"
#include "tests/support/random_capture.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

using namespace kvscope;

namespace {

using Capture = std::shared_ptr<const CaptureReader>;

/// ID:VARIANT of every policy that needs no file or formula of its own.
std::vector<std::string> everyVariant() {
    std::vector<std::string> specs;
    for (const Policy* policy : allPolicies())
        for (const PolicyVariant& variant : policy->card().variants)
            if (policy->card().id != "imported" && policy->card().id != "score") // a formula of the others' features
                specs.push_back(policy->card().id + ":" + variant.id);
    return specs;
}

struct Ran {
    std::shared_ptr<const RunResult> result;
    std::string refusal; ///< what the policy said instead
};

Ran ran(const LayerRunner& runner, const RunRequest& request) {
    try {
        return {runner.run(request, {}), {}};
    } catch (const Error& error) {
        return {nullptr, error.what()};
    }
}

bool sameWeights(const std::vector<float>& a, const std::vector<float>& b) {
    return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](float x, float y) {
               return std::abs(x - y) <= 1e-6F * (std::abs(x) + std::abs(y));
           });
}

/// Empty when both kept the same, else where they differ and how close the decision was.
std::string difference(const Selection& cpu, const Selection& torch) {
    if (cpu.heads.size() != torch.heads.size()) return "different numbers of heads";
    for (std::size_t h = 0; h < cpu.heads.size(); ++h) {
        const HeadSelection &a = cpu.heads[h], &b = torch.heads[h];
        std::vector<TokenIndex> only;
        std::set_symmetric_difference(a.kept.begin(), a.kept.end(), b.kept.begin(), b.kept.end(),
                                      std::back_inserter(only));
        const std::string where = "KV head " + std::to_string(h);
        if (!only.empty())
            return where + ": " + std::to_string(only.size()) + " tokens differ, the first is " +
                   std::to_string(only.front()) + ", margin " + std::to_string(a.margin);
        if (!sameWeights(a.numeratorWeights, b.numeratorWeights) ||
            !sameWeights(a.denominatorWeights, b.denominatorWeights))
            return where + ": the weights differ";
    }
    return {};
}

/// Largest difference of two scores of the same token, relative to the largest score.
double scoreError(const HostTensor& a, const HostTensor& b) {
    if (a.data.size() != b.data.size()) return std::numeric_limits<double>::infinity();
    double scale = 1e-30, worst = 0;
    for (std::size_t i = 0; i < a.data.size(); ++i) {
        const double x = a.data[i], y = b.data[i];
        if (std::isfinite(x)) scale = std::max(scale, std::abs(x));
        if (x != y && !(std::isnan(x) && std::isnan(y))) worst = testing::larger(worst, std::abs(x - y));
    }
    return worst / scale;
}

struct Tally {
    int lists = 0, refusals = 0;
    double error = 0;
    float margin = std::numeric_limits<float>::infinity();
    std::string closest;
};

} // namespace

class ListsTest : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        if (const QString why = testing::whyNoTorch(); !why.isEmpty()) QSKIP(qPrintable(why));
        m_cpu = std::make_unique<LayerRunner>(std::shared_ptr<const Engine>(makeEngine({"cpu"})));
        const std::string name = qEnvironmentVariable("KVSCOPE_TEST_ENGINE", "torch").toStdString();
        m_torch = std::make_unique<LayerRunner>(
            std::shared_ptr<const Engine>(makeEngine({name, 0, Arithmetic::Exact, 0, true})));
        QCOMPARE(m_torch->engine().name(), name);
        if (!qEnvironmentVariableIsEmpty("KVSCOPE_ENGINE_MODULE")) // else this would be lists_test once more
            QVERIFY2(m_torch->engine().state().device.find("emulated kernels") != std::string::npos,
                     m_torch->engine().state().device.c_str());
    }

    void samplesKeepTheSameTokens_data() {
        QTest::addColumn<QString>("file");
        QTest::addColumn<int>("layer");
        QTest::newRow("needle") << "needle-1k.h5" << 3;
        QTest::newRow("fewshot") << "fewshot-1k.h5" << 0;
    }

    void samplesKeepTheSameTokens() {
        QFETCH(QString, file);
        QFETCH(int, layer);
        const Capture capture = openCapture(kvscope::testing::sourceDir() + "/sample_data/" + file.toStdString());
        const auto& layers = capture->info().layers;
        compare(capture, layers[std::min(layers.size() - 1, static_cast<std::size_t>(layer))].layer, {"0.2"});
    }

    void randomHeadsKeepTheSameTokens_data() {
        QTest::addColumn<quint64>("seed");
        QTest::addColumn<int>("stored");
        QTest::newRow("float32, seed 11") << quint64{11} << static_cast<int>(StoredType::Float32);
        QTest::newRow("bfloat16, seed 12") << quint64{12} << static_cast<int>(StoredType::Bfloat16);
        QTest::newRow("float16, seed 13") << quint64{13} << static_cast<int>(StoredType::Float16);
    }

    void randomHeadsKeepTheSameTokens() {
        QFETCH(quint64, seed);
        QFETCH(int, stored);
        const auto capture = makeRandomCapture(seed, 300, 1, 6, 3, 40);
        for (auto& [place, tensor] : capture->tensors)
            tensor = storable(std::move(tensor), static_cast<StoredType>(stored));
        compare(capture, LayerIndex(0), {"0.25"});
    }

    /// Crowded keys with sinks and a needle, in 16 bits: many scores are close.
    void syntheticHeadsKeepTheSameTokens() {
        compare(makeSyntheticCapture({.tokens = 600, .layers = 1, .seed = 5, .collinearity = 0.9}), LayerIndex(0),
                {"0.2"});
    }

    /// Equal keys have equal scores: the earlier ones are kept on both engines.
    void tiesGoToTheEarlierToken() {
        const auto capture = makeRandomCapture(3, 300, 1, 2, 1, 16);
        for (auto& [place, tensor] : capture->tensors)
            for (std::int64_t row = 1; row < tensor.shape[1]; ++row)
                if (row % 50 != 0)
                    for (std::int64_t h = 0; h < tensor.shape[0]; ++h) {
                        const auto at = tensor.data.begin() + (h * tensor.shape[1] + row) * tensor.shape[2];
                        std::copy(at - tensor.shape[2], at, at);
                    }
        compare(capture, LayerIndex(0), {"0.3"});
    }

    /// Measures are sums of what was kept: equal lists, equal fidelity up to rounding.
    void fidelityAgrees() {
        const Capture capture = openCapture(kvscope::testing::sourceDir() + "/sample_data/needle-1k.h5");
        RunRequest request = requestOf(capture, capture->info().layers.front().layer, "snapkv", "0.2");
        request.measure = true;
        const auto cpu = m_cpu->run(request, {}), torch = m_torch->run(request, {});
        QVERIFY(cpu->fidelity && torch->fidelity);
        const auto& a = cpu->fidelity->meanOutputError;
        const auto& b = torch->fidelity->meanOutputError;
        QCOMPARE(a.size(), b.size());
        for (std::size_t h = 0; h < a.size(); ++h)
            QVERIFY2(std::abs(a[h] - b[h]) <= 1e-6 * std::abs(a[h]), qPrintable(QString::number(a[h] - b[h])));
    }

    void anUnknownEngineNamesThoseThereAre() {
        const QString refused = errorText([] { makeEngine({"abacus"}); });
        for (const char* name : {"abacus", "cpu", "torch", "cuda"})
            QVERIFY2(refused.contains(name), qPrintable(refused));
    }

private:
    static RunRequest requestOf(const Capture& capture, LayerIndex layer, const std::string& spec,
                                const std::string& budget) {
        RunRequest request;
        request.capture = capture;
        request.layer = layer;
        request.policy = PolicySpec::parse(spec);
        if (policyById(request.policy.policy).card().usesBudget) request.budget = Budget::parse(budget);
        request.cut = Cut::resolve("default", *capture);
        request.seed = 4;
        request.measure = false;
        return request;
    }

    void compare(const Capture& capture, LayerIndex layer, const std::vector<std::string>& budgets) {
        Tally tally;
        for (const std::string& spec : everyVariant())
            for (const std::string& budget : budgets)
                compareOne(requestOf(capture, layer, spec, budget), spec + "@" + budget, tally);
        qInfo("%d lists equal, %d refusals equal, largest score error %.1e, smallest margin %.1e (%s)", tally.lists,
              tally.refusals, tally.error, static_cast<double>(tally.margin), tally.closest.c_str());
        QVERIFY2(tally.lists > 40, "hardly any list was compared");
    }

    void compareOne(const RunRequest& request, const std::string& spec, Tally& tally) {
        const Ran cpu = ran(*m_cpu, request), torch = ran(*m_torch, request);
        QCOMPARE(torch.refusal, cpu.refusal);
        tally.refusals += cpu.result ? 0 : 1;
        if (!cpu.result) return;
        const std::string why = difference(cpu.result->selection, torch.result->selection);
        QVERIFY2(why.empty(), (spec + ": " + why).c_str());
        const double error = scoreError(cpu.result->scores, torch.result->scores);
        QVERIFY2(error <= 1e-6, (spec + ": a score differs by " + std::to_string(error)).c_str());
        tally.error = std::max(tally.error, error);
        for (std::size_t h = 0; h < cpu.result->selection.heads.size(); ++h) {
            const float margin = cpu.result->selection.heads[h].margin;
            ++tally.lists;
            if (margin > 0 && margin < tally.margin) {
                tally.margin = margin;
                tally.closest = spec;
            }
        }
    }

    std::unique_ptr<LayerRunner> m_cpu, m_torch;
};

KVSCOPE_TEST(ListsTest)
#include "lists_test.moc"
