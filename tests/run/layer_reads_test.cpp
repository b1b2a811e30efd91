// Which queries a run reads: as few as the policy and the measures need, with the results of a capture that is read
// whole.
#include "core/engine/engine.h"
#include "core/lists/recorded_list.h"
#include "core/metrics/measure_values.h"
#include "core/policies/policy.h"
#include "core/policies/policy_run.h"
#include "core/run/attention_rule.h"
#include "core/run/layer_reads.h"
#include "core/run/run_grid.h"
#include "tests/support/forwarding_capture.h"
#include "tests/support/random_capture.h"
#include "tests/support/run_request.h"
#include "tests/support/same_bits.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <atomic>

using namespace kvscope;

namespace {

constexpr int kTokens = 120, kQueryHeads = 4, kKvHeads = 2, kDim = 8;

using Capture = std::shared_ptr<const CaptureReader>;

/// A random capture that holds the last `queries` queries.
Capture captureWith(std::int64_t queries, int layers) {
    auto capture = makeRandomCapture(5, kTokens, layers, kQueryHeads, kKvHeads, kDim);
    for (LayerInfo& layer : capture->captureInfo.layers) {
        HostTensor last = capture->readQueries(layer.layer, kTokens - queries, kTokens, {});
        capture->tensors[{layer.layer, TensorRole::Queries}] = std::move(last);
        layer.queryCount = queries;
    }
    return capture;
}

/// Such a capture, whose queries are read in parts, as a file's are.
class PartlyRead final : public kvscope::testing::ForwardingCapture {
public:
    explicit PartlyRead(Capture capture) : ForwardingCapture(capture), m_capture(std::move(capture)) {}

    HostTensor read(LayerIndex layer, TensorRole role, const Checkpoint& checkpoint) const override {
        if (role == TensorRole::Queries) ++wholeQueries;
        return ForwardingCapture::read(layer, role, checkpoint);
    }
    bool readsQueriesInParts() const override { return true; }
    HostTensor readQueries(LayerIndex layer, std::int64_t begin, std::int64_t end,
                           const Checkpoint& checkpoint) const override {
        queryRows += end - begin;
        return m_capture->readQueries(layer, begin, end, checkpoint);
    }

    mutable std::atomic<int> wholeQueries{0};
    mutable std::atomic<std::int64_t> queryRows{0}; ///< read in parts

private:
    Capture m_capture;
};

RunRequest requestOf(Capture capture, const std::string& policy, const std::string& cut, bool measure = true) {
    RunRequest request = runRequest(std::move(capture), policy, cut, "0.25");
    request.measure = measure;
    return request;
}

std::vector<std::string> everyVariant() {
    std::vector<std::string> specs;
    for (const Policy* policy : allPolicies())
        if (policy->card().id != "imported" && policy->card().id != "score")
            for (const PolicyVariant& variant : policy->card().variants)
                specs.push_back(policy->card().id + ":" + variant.id);
    for (const char* spec : {"snapkv,prompt_block=32", "tova,prompt_block=16", "score:z(snapkv) + z(tova) * knorm",
                             "score:z(h2o) + z(snapkv)", "score:vnorm"})
        specs.emplace_back(spec);
    return specs;
}

/// The result, or the sentence that says why there is none.
std::pair<std::shared_ptr<const RunResult>, std::string> resultOf(const RunRequest& request) {
    try {
        return {LayerRunner(makeCpuEngine(1)).run(request, {}), {}};
    } catch (const Error& error) {
        return {nullptr, error.what()};
    }
}

/// The policy by itself, which is given all queries that were captured before the cut.
Selection selectionOfAllQueries(const RunRequest& request) {
    const auto engine = makeCpuEngine(1);
    const CaptureInfo& info = request.capture->info();
    const LayerInfo& layer = info.layerInfo(request.layer);
    const std::int64_t end = request.cut.token, first = info.numTokens - layer.queryCount;
    const auto upTo = [&](TensorRole role, std::int64_t rows) {
        return engine->rows(engine->upload(request.capture->read(request.layer, role, {})), 0, rows);
    };
    const Checkpoint checkpoint;
    const PolicyInput input{.engine = *engine,
                            .keys = upTo(TensorRole::Keys, end),
                            .values = upTo(TensorRole::Values, end),
                            .queries = first < end ? upTo(TensorRole::Queries, end - first) : Tensor(),
                            .firstQuery = static_cast<TokenIndex>(first),
                            .end = request.cut.token,
                            .positions = {},
                            .carried = {},
                            .attention = attentionRuleOf(layer),
                            .layer = request.layer,
                            .numLayers = info.numLayers,
                            .seed = request.seed,
                            .checkpoint = checkpoint,
                            .preRopeKeys = upTo(TensorRole::KeysPreRope, end),
                            .keysOfLayer = [&](LayerIndex) { return upTo(TensorRole::Keys, end); }};
    return runPolicy(policyById(request.policy.policy), request.policy.values, request.budget, input).selection;
}

} // namespace

class LayerReadsTest : public QObject {
    Q_OBJECT

private slots:
    void theResultsAreThoseOfAllQueries_data() {
        QTest::addColumn<QString>("policy");
        for (const std::string& spec : everyVariant()) QTest::newRow(spec.c_str()) << QString::fromStdString(spec);
    }

    void theResultsAreThoseOfAllQueries() {
        QFETCH(QString, policy);
        for (const std::int64_t queries : {std::int64_t{kTokens}, std::int64_t{45}, std::int64_t{5}})
            for (const char* cut : {"80", "110", "none"}) {
                const Capture capture = captureWith(queries, 1), inParts = std::make_shared<PartlyRead>(capture);
                const auto [parts, refused] = resultOf(requestOf(inParts, policy.toStdString(), cut));
                const auto [whole, reason] = resultOf(requestOf(capture, policy.toStdString(), cut));
                QCOMPARE(refused, reason);
                if (!whole) continue;
                QVERIFY(parts->selection.sameLists(whole->selection));
                QVERIFY(parts->selection.sameLists(selectionOfAllQueries(whole->request)));
                QVERIFY(sameBits(parts->scores.data, whole->scores.data));
                QCOMPARE(parts->notes, whole->notes);
                QCOMPARE(!parts->fidelity, !whole->fidelity);
                if (!whole->fidelity) continue;
                QVERIFY(sameBits(parts->fidelity->outputError.data, whole->fidelity->outputError.data));
                QVERIFY(sameBits(parts->fidelity->retainedMass.data, whole->fidelity->retainedMass.data));
            }
    }

    void onlyTheQueriesInUseAreRead_data() {
        QTest::addColumn<QString>("policy");
        QTest::addColumn<bool>("measured");
        QTest::addColumn<int>("parts"); // rows; 20 of 120 lie after the cut
        QTest::addColumn<int>("whole");
        QTest::newRow("a window") << "snapkv,window=8" << false << 8 << 0;
        QTest::newRow("a window, measured") << "snapkv,window=8" << true << 8 + 20 << 0;
        QTest::newRow("PyramidKV") << "pyramidkv,window=8" << false << 8 << 0;
        QTest::newRow("the last query, measured") << "tova" << true << 1 + 20 << 0;
        QTest::newRow("a formula of both") << "score:z(snapkv) + z(tova)" << false << 32 << 0;
        QTest::newRow("blocks have windows everywhere") << "snapkv,window=8,prompt_block=32" << true << 0 << 1;
        QTest::newRow("more than half") << "snapkv,window=64" << true << 0 << 1;
        QTest::newRow("all") << "h2o" << true << 0 << 1;
        QTest::newRow("none, measured") << "keydiff" << true << 20 << 0;
        QTest::newRow("none") << "keydiff" << false << 0 << 0;
    }

    void onlyTheQueriesInUseAreRead() {
        QFETCH(QString, policy);
        QFETCH(bool, measured);
        QFETCH(int, parts);
        QFETCH(int, whole);
        const auto capture = std::make_shared<const PartlyRead>(captureWith(kTokens, 2));
        std::vector<GridPoint> points(2, {requestOf(capture, policy.toStdString(), "100", measured)});
        points[1].run.layer = LayerIndex(1); // read ahead, and used as it is
        runGrid(LayerRunner(makeCpuEngine(1)), points, {}, {[](std::size_t, const auto&, const Checkpoint&) {}});
        QCOMPARE(capture->queryRows.load(), std::int64_t{2} * parts);
        QCOMPARE(capture->wholeQueries.load(), 2 * whole);
    }

    void whatALayerLacksIsNamed() {
        const auto capture = makeRandomCapture(1, 20, 1, 4, 2, 8);
        LayerInfo layer = capture->info().layers.front();
        const auto missing = [&](const char* policy) {
            return QString::fromStdString(missingInput(PolicySpec::parse(policy), *capture, layer));
        };
        for (const char* policy : {"keydiff", "snapkv", "compactor"}) QCOMPARE(missing(policy), QString());
        layer.hasRope = true; // neither frequencies nor keys before the rotation
        layer.hasKeysPreRope = false;
        QCOMPARE(missing("compactor"), QString("keys before RoPE"));
        QCOMPARE(missing("snapkv"), QString());
        layer.queryCount = 0;
        QCOMPARE(missing("snapkv"), QString("queries"));
        QCOMPARE(missing("keydiff"), QString());
    }

    // Whoever made a list, its measures read keys, values and the queries after the cut.
    void aRecordedListNeedsNoPolicy() {
        RunRequest request = requestOf(captureWith(kTokens, 1), "h2o", "100");
        request.policy.policy = "of another program";
        request.recorded = std::make_shared<const RecordedSelection>();
        const std::vector<LayerRead> reads = {
            {TensorRole::Keys, 0, kTokens}, {TensorRole::Values, 0, kTokens}, {TensorRole::Queries, 100, kTokens}};
        QVERIFY(readsOf(request) == reads);
    }

    // Where all queries are there already, nothing is read again; and measures of all queries get all.
    void allQueriesServeTheirParts() {
        const auto capture = std::make_shared<const PartlyRead>(captureWith(kTokens, 1));
        const LayerRunner runner(makeCpuEngine(1));
        const auto result = runner.run(requestOf(capture, "snapkv,window=8", "100"), {});
        QCOMPARE(capture->queryRows.load(), std::int64_t{28});
        const std::vector<std::string> ids = {"query_norm"};
        QCOMPARE(runner.measure(*result, ids, {}).front().perVector.shape[1], std::int64_t{kTokens});
        runner.run(requestOf(capture, "snapkv,window=16", "90"), {});
        QCOMPARE(capture->queryRows.load(), std::int64_t{28});
        QCOMPARE(capture->wholeQueries.load(), 1);
    }
};

KVSCOPE_CORE_TEST(LayerReadsTest)
#include "layer_reads_test.moc"
