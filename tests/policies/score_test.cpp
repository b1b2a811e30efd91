// A formula as a policy: what is read, what is refused and where, the functions against hand numbers, and whole
// formulas on the sample against the scores of the policies that they name.
#include <QtTest>

#include "core/base/error.h"
#include "core/capture/open_capture.h"
#include "core/policies/score/score_expression.h"
#include "tests/policies/policy_bench.h"
#include "tests/support/error_message.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <cmath>
#include <numeric>

using namespace kvscope;

namespace {

QString refusalOf(const std::string& formula) {
    return errorText([&] { ScoreExpression::parse(formula); });
}

/// Two heads of three rows; the features are knorm and vnorm in the order of their appearance.
std::vector<double> valuesOf(const std::string& formula, const std::vector<double>& first,
                             const std::vector<double>& second = {}) {
    const ScoreExpression expression = ScoreExpression::parse(formula);
    std::vector<std::vector<double>> values = {first, second};
    values.resize(expression.features().size());
    const auto rowText = [](std::size_t head, std::size_t row) {
        return "head " + std::to_string(head) + ", row " + std::to_string(row);
    };
    return expression.evaluate(values, 2, 3, rowText);
}

void compare(const std::vector<double>& got, const std::vector<double>& expected) {
    QCOMPARE(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i)
        QVERIFY2(std::abs(got[i] - expected[i]) < 1e-12 * (1 + std::abs(expected[i])),
                 qPrintable(QString("%1: %2, not %3").arg(i).arg(got[i]).arg(expected[i])));
}

const std::vector<double> kA = {1, 2, 6, 5, 5, 5}, kB = {0.5, 4, 0, 2, 1, 8};

/// z of one head, from its definition.
std::vector<double> zOf(const std::vector<float>& x) {
    const double mean = std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
    double variance = 0;
    for (const float value : x) variance += (value - mean) * (value - mean) / static_cast<double>(x.size());
    std::vector<double> z;
    for (const float value : x) z.push_back((value - mean) / std::sqrt(variance));
    return z;
}

std::vector<float> headOf(const HostTensor& scores, std::int64_t head) {
    const auto from = scores.data.begin() + head * scores.shape[1];
    return {from, from + scores.shape[1]};
}

double normOf(const HostTensor& rows, std::int64_t head, std::int64_t row) {
    double sum = 0;
    for (std::int64_t c = 0; c < rows.shape[2]; ++c) {
        const double x = rows.data[static_cast<std::size_t>((head * rows.shape[1] + row) * rows.shape[2] + c)];
        sum += x * x;
    }
    return std::sqrt(sum);
}

} // namespace

class ScoreTest : public QObject {
    Q_OBJECT

    PolicyBench m_bench;
    const TestLayer& sample() const {
        static const TestLayer layer = TestLayer::ofCapture(
            *openCapture(kvscope::testing::sourceDir() + "/sample_data/needle-1k.h5"), LayerIndex(3), 995);
        return layer;
    }
    HostTensor totalOf(const std::string& spec, const TestLayer& layer) const {
        return m_bench.run(spec, layer).scores.total;
    }

private slots:
    void arithmeticOfHandNumbers() {
        compare(valuesOf("knorm + 2*vnorm - 1", kA, kB), {1, 9, 5, 8, 6, 20});
        compare(valuesOf("-knorm/2", kA), {-0.5, -1, -3, -2.5, -2.5, -2.5});
        compare(valuesOf("knorm - vnorm - 1", kA, kB), {-0.5, -3, 5, 2, 3, -4}); // from the left
        compare(valuesOf("12/knorm/2", kA), {6, 3, 1, 1.2, 1.2, 1.2});
        compare(valuesOf("2*(knorm + 1)*-1", kA), {-4, -6, -14, -12, -12, -12});
        compare(valuesOf("--knorm", kA), kA);
        compare(valuesOf(".5e1 * knorm", kA), {5, 10, 30, 25, 25, 25});
    }

    void functionsOfHandNumbers() {
        const double s = std::sqrt(14.0 / 3); // of 1, 2, 6 around 3
        compare(valuesOf("z(knorm)", kA), {-2 / s, -1 / s, 3 / s, 0, 0, 0});
        compare(valuesOf("rank(vnorm)", kB), {0.5, 1, 0, 0.5, 0, 1});
        compare(valuesOf("rank(knorm)", kA), {0, 0.5, 1, 0.5, 0.5, 0.5});
        compare(valuesOf("log(knorm)", kA), {0, std::log(2), std::log(6), std::log(5), std::log(5), std::log(5)});
        compare(valuesOf("exp(-knorm)", kA),
                {std::exp(-1), std::exp(-2), std::exp(-6), std::exp(-5), std::exp(-5), std::exp(-5)});
        compare(valuesOf("sqrt(abs(0 - knorm))", kA),
                {1, std::sqrt(2), std::sqrt(6), std::sqrt(5), std::sqrt(5), std::sqrt(5)});
        compare(valuesOf("min(knorm, vnorm, 3)", kA, kB), {0.5, 2, 0, 2, 1, 3});
        compare(valuesOf("max(knorm, vnorm)", kA, kB), {1, 4, 6, 5, 5, 8});
        compare(valuesOf("clip(knorm, 1.5, 5.5)", kA), {1.5, 2, 5.5, 5, 5, 5});
        compare(valuesOf("z(3) + 0*knorm", kA), {0, 0, 0, 0, 0, 0});
        compare(valuesOf("rank(position)*0+knorm", kB, kA), kA); // names keep their order
        // Constant up to float rounding is constant (C3); a step that a float can hold is not.
        compare(valuesOf("z(knorm)", {1, 1 + 0x1p-24, 1, 1, 1, 1.5}),
                {0, 0, 0, -1 / std::sqrt(2), -1 / std::sqrt(2), std::sqrt(2)});
        QVERIFY(valuesOf("z(knorm)", {1, 1 + 0x1p-20, 1, 5, 5, 5})[1] > 1);
    }

    void mistakesNameTheirPlace() {
        QCOMPARE(
            refusalOf("z(snapkv) + snapkw"),
            "in the score 'z(snapkv) + snapkw': there is no feature 'snapkw' (character 13). Did you mean 'snapkv'?");
        // A formula is computed before the budget is known, and two scores need it or are none.
        QVERIFY(refusalOf("1 + compactor:kvpress").contains("changes with the budget"));
        QVERIFY(refusalOf("1 + compactor:kvpress").contains("lambda_rule=fixed"));
        QCOMPARE(refusalOf("compactor:kvpress.z_attention + compactor:kvpress[lambda_rule=fixed,lambda=0.75]"),
                 refusalOf("snapkv"));
        QVERIFY(refusalOf("uniform:sign_sort").contains("gives tokens no score"));
        QVERIFY(refusalOf("rnk(snapkv)").contains("no function 'rnk' (character 1). Did you mean 'rank'?"));
        QVERIFY(refusalOf("snapkv +").contains("the formula ends where") &&
                refusalOf("snapkv +").contains("character 9"));
        QVERIFY(refusalOf("").contains("character 1"));
        QVERIFY(refusalOf("snapkv snapkv").contains("'s' does not belong here (character 8)"));
        QVERIFY(refusalOf("2*(snapkv").contains("not closed (character 3)"));
        QVERIFY(refusalOf("z(snapkv").contains("not closed (character 2)"));
        QVERIFY(refusalOf("z(snapkv, 1)").contains("z takes exactly 1, not 2 (character 1)"));
        QVERIFY(refusalOf("1 + max(snapkv)").contains("max takes at least 2, not 1 (character 5)"));
        QVERIFY(refusalOf("snapkv * $").contains("'$' begins neither a number nor a name (character 10)"));
        QVERIFY(refusalOf("snapkv + .").contains("no number (character 10)"));
        QVERIFY(refusalOf("snapkv[window=16").contains("bracket is not closed (character 7)"));
        QVERIFY(refusalOf("1 + snapkv[windw=16]").contains("Did you mean 'window'?"));
        QVERIFY(refusalOf("1 + snapkv[windw=16]").contains("character 5"));
        QVERIFY(refusalOf("snapkv:kvpres").contains("Did you mean 'kvpress'?"));
        QVERIFY(refusalOf("vnorm:paper").contains("has no variants"));
        QVERIFY(refusalOf("1 + 2").contains("names no feature"));
        QVERIFY(refusalOf("1 + snapkv:").contains("no variant stands behind the ':' (character 11)"));
        QVERIFY(refusalOf("snapkv:kvpress. + 1").contains("no part stands behind the '.' (character 15)"));
        for (const char* empty : {"snapkv[]", "snapkv[ ] + 1"})
            QVERIFY2(refusalOf(empty).contains("no parameters stand in the brackets (character 7)"), empty);
        QCOMPARE(refusalOf("log"),
                 "in the score 'log': log is a function (character 1). Write it with its argument, like log(snapkv)");
        QVERIFY(refusalOf("1 + clip").contains("clip is a function (character 5)") &&
                refusalOf("1 + clip").contains("with its arguments, like clip(snapkv, 0, 1)"));
        for (const char* without : {"exact", "balancekv", "subgen", "score", "imported"})
            QVERIFY2(refusalOf(without).contains("there is no feature"), without);
        QVERIFY(refusalOf(std::string(5000, '(') + "snapkv").contains("nested too deeply"));
        std::string longest = "snapkv";
        for (int i = 0; i < 1000; ++i) longest += "+1";
        (void)ScoreExpression::parse(longest);
        QVERIFY(refusalOf(longest + "+1").contains("At most 1000 operators are read"));
    }

    // A formula takes scores alone. What decides which tokens are kept, or when, belongs behind the whole formula.
    void settingsOfTheChoiceAreRefusedInBrackets() {
        for (const char* setting : {"prompt_block=32", "prompt_alignment=kvpress", "decode_tokens=4", "decode_block=2",
                                    "protect_first=8", "protect_last=0", "rounding=floor", "whole_layers=sliding"}) {
            const QString refusal = refusalOf("1 + snapkv[window=16," + std::string(setting) + "]");
            QVERIFY2(refusal.contains("has no effect inside a formula") && refusal.contains("character 5"),
                     qPrintable(refusal));
            QVERIFY2(refusal.contains("behind the formula: " + QString(setting)), qPrintable(refusal));
            QCOMPARE(errorText([&] { (void)PolicySpec::parse("score:1 + snapkv[window=16]," + std::string(setting)); }),
                     QString());
        }
        QCOMPARE(refusalOf("1 + snapkv:kvpress[window=16]"), QString()); // the variant rounds down
        for (const char* own : {"h2o[recent_share=0]", "keydiff[window_share=0.9]", "pyramidkv[beta=1]",
                                "key_norm[skip_layers=1]", "leverage[choice=sample]", "uniform[reweight=true]"}) {
            const QString refusal = refusalOf(own);
            QVERIFY2(refusal.contains("has no effect inside a formula") && refusal.contains("Leave it out"),
                     qPrintable(own + (": " + refusal)));
        }
    }

    void whatIsNotFiniteNamesItsPlaceAndToken() {
        const auto fail = [](const std::string& formula) { return errorText([&] { valuesOf(formula, kB, kA); }); };
        QVERIFY2(fail("1 + log(vnorm)").contains("'log(vnorm)' is -inf at head 0, row 2 (character 5)"),
                 qPrintable(fail("1 + log(vnorm)")));
        QVERIFY(fail("1/vnorm").contains("'1/vnorm' is inf"));
        QVERIFY(fail("sqrt(vnorm - 1)").contains("'sqrt(vnorm - 1)' is -nan") ||
                fail("sqrt(vnorm - 1)").contains("is nan"));
        QVERIFY(fail("exp(1000*vnorm)").contains("'exp(1000*vnorm)' is inf at head 0, row 1") ||
                fail("exp(1000*vnorm)").contains("is inf at head 0"));
    }

    void specsReadBack() {
        const std::string text = "score:z(snapkv[window=16,pool_width=7]) + 0.3*z(leverage)*vnorm,protect_last=8@0.25";
        const PolicySpec spec = PolicySpec::parse(text);
        QCOMPARE(spec.values.text("expression"),
                 std::string("z(snapkv[window=16,pool_width=7]) + 0.3*z(leverage)*vnorm"));
        QCOMPARE(spec.values.integer("protect_last"), 8);
        QCOMPARE(spec.text(), text);
        QVERIFY(PolicySpec::parse(spec.text()) == spec);
    }

    void needsAreThoseOfTheFormula() {
        const auto needs = [](const std::string& formula, Need need) {
            const auto all = policyById("score").needs(PolicySpec::parse("score:" + formula).values);
            return std::find(all.begin(), all.end(), need) != all.end();
        };
        QVERIFY(!needs("knorm", Need::Queries) && !needs("knorm", Need::PreRopeKeys) && !needs("knorm", Need::Values));
        QVERIFY(needs("knorm + snapkv", Need::Queries));
        QVERIFY(needs("leverage", Need::PreRopeKeys));
        QVERIFY(needs("vnorm", Need::Values));
    }

    // The formula of the help, by hand from the scores of the policies on the sample.
    void formulaOnTheSampleByHand() {
        const HostTensor got = totalOf("score:z(snapkv) + 0.3*z(leverage)*vnorm@0.25", sample());
        const HostTensor snapkv = totalOf("snapkv@0.25", sample()), leverage = totalOf("leverage@0.25", sample());
        for (const std::int64_t head : {0, 1}) {
            const auto a = zOf(headOf(snapkv, head)), b = zOf(headOf(leverage, head));
            for (std::int64_t row = 0; row < got.shape[1]; ++row) {
                const auto i = static_cast<std::size_t>(row);
                const double expected =
                    a[i] + 0.3 * b[i] * static_cast<double>(static_cast<float>(normOf(sample().values, head, row)));
                const double value = got.data[static_cast<std::size_t>(head * got.shape[1] + row)];
                QVERIFY2(
                    std::abs(value - expected) < 1e-6 * (1 + std::abs(expected)),
                    qPrintable(QString("head %1 token %2: %3, not %4").arg(head).arg(row).arg(value).arg(expected)));
            }
        }
    }

    // A formula that is one name is that policy, as long as it protects nothing of its own.
    void oneNameIsThatPolicy() {
        for (const char* id : {"keydiff", "key_norm", "leverage", "tova", "uniform", "h2o"}) {
            const PolicyOutcome own = m_bench.run(std::string("score:") + id + "@0.3", sample());
            const HostTensor expected = totalOf(std::string(id) + "@0.3", sample());
            QVERIFY2(own.scores.total.data == expected.data, id);
        }
        QVERIFY(m_bench.run("score:-knorm@0.2", sample())
                    .selection.sameLists(m_bench.run("key_norm@0.2", sample()).selection));
        QVERIFY(m_bench.run("score:snapkv,protect_last=32@0.2", sample())
                    .selection.sameLists(m_bench.run("snapkv@0.2", sample()).selection));
        QVERIFY(m_bench.run("score:position@0.2", sample()).selection.heads[0].kept.front() == 995 - 199);
    }

    // Blocks: H2O carries its sums from block to block, also as a name among others.
    void blocksCarryTheStateOfEachName() {
        const TestLayer layer = TestLayer::random(5, {});
        const std::string blocks = ",prompt_block=16@24t";
        const auto h2o = m_bench.run("h2o,recent_share=0" + blocks, layer);
        const auto own = m_bench.run("score:2*h2o" + blocks, layer);
        QVERIFY(own.selection.sameLists(h2o.selection));
        QVERIFY(own.simulated && own.steps.size() == h2o.steps.size());
        const auto two = m_bench.run("score:rank(keydiff)*0 + h2o" + blocks, layer);
        QVERIFY(two.selection.sameLists(h2o.selection));
    }

    void namedTermsAreShown() {
        const PolicyOutcome outcome = m_bench.run("score:compactor.attention + knorm@0.3", sample());
        QVERIFY(outcome.scores.parts.contains("compactor.attention") && outcome.scores.parts.contains("knorm"));
        const QString refused = errorText([&] { m_bench.run("score:compactor.attentoin@0.3", sample()); });
        QVERIFY2(refused.contains("compactor has no part 'attentoin' (character 1). It has attention"),
                 qPrintable(refused));
    }

    // What the named policies have to say is said, and axes carry the formula.
    void notesAndLabelAreThoseOfTheNames() {
        const TestLayer few = TestLayer::random(7, {.tokens = 97, .queries = 10});
        const auto own = m_bench.run("score:knorm + 2*snapkv[window=32]@0.3", few).notes;
        QVERIFY(!own.empty());
        QCOMPARE(own, m_bench.run("snapkv,window=32@0.3", few).notes);
        QVERIFY(m_bench.run("score:knorm@0.3", few).notes.empty());
        QCOMPARE(policyById("score").scoreLabel(PolicySpec::parse("score:z(knorm)").values),
                 std::string("score z(knorm)"));
    }

    void threadsDoNotMatter() {
        const PolicyBench one(1), seven(7);
        const std::string spec = "score:z(snapkv) + rank(keydiff)*log(max(vnorm, 1e-6))@0.2";
        const auto a = one.run(spec, sample()), b = seven.run(spec, sample());
        QVERIFY(a.selection.sameLists(b.selection));
        QVERIFY(a.scores.total.data == b.scores.total.data);
    }

    void tokensOfOneRow() {
        const TestLayer layer = TestLayer::random(6, {.tokens = 1});
        QCOMPARE(m_bench.run("score:z(keydiff) + rank(knorm)@1t", layer).selection.heads[1].kept.size(),
                 std::size_t{1});
    }
};

KVSCOPE_CORE_TEST(ScoreTest)
#include "score_test.moc"
