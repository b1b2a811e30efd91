// A policy as typed: what is read, the shortest text that reads back, and every sentence of refusal.
#include "core/base/error.h"
#include "core/policies/policy.h"
#include "core/policies/policy_spec.h"
#include "tests/support/error_message.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <cmath>
#include <random>

using namespace kvscope;

namespace {

// A random value inside the parameter's range, on its grid.
double randomValue(const ParameterSpec& row, std::mt19937_64& random) {
    const double unit = std::generate_canonical<double, 53>(random);
    if (row.kind == ParameterKind::Real) return row.min + unit * (row.max - row.min);
    const double step = std::max(1.0, row.step);
    return row.min + step * std::floor(unit * (std::floor((row.max - row.min) / step) + 0.999));
}

// Everything that the grammar itself uses may stand in a text.
std::string randomText(std::mt19937_64& random) {
    constexpr std::string_view letters = "ab.h5:/,@\"\\ =()";
    std::string text;
    for (std::size_t length = random() % 12; length > 0; --length) text += letters[random() % letters.size()];
    return text;
}

QString everyId() {
    QStringList ids;
    for (const Policy* policy : allPolicies()) ids << QString::fromStdString(policy->card().id);
    return ids.join(", ");
}

PolicySpec randomSpec(std::mt19937_64& random) {
    static const std::vector<std::string> formulas = {"knorm", "clip(z(snapkv), -1, 2) + 0.3*vnorm",
                                                      "snapkv:kvpress[window=16,pool_width=7]/max(1, position)"};
    const PolicyCard& card = allPolicies()[random() % allPolicies().size()]->card();
    PolicySpec spec;
    spec.policy = card.id;
    spec.variant = card.variants[random() % card.variants.size()].id;
    spec.values = variantValues(card, spec.variant);
    for (const ParameterSpec& row : *card.parameters)
        if (row.kind == ParameterKind::Text) // one that is checked takes formulas only
            spec.values.setText(row.id, row.check ? formulas[random() % formulas.size()] : randomText(random));
        else if (random() % 3 == 0)
            spec.values.set(row.id, randomValue(row, random));
    if (random() % 2)
        spec.budget = Budget{Budget::Unit::Tokens, static_cast<double>(1 + random() % 5000)};
    else if (random() % 2)
        spec.budget = Budget{Budget::Unit::Fraction, 1 - std::generate_canonical<double, 53>(random)};
    return spec;
}

} // namespace

class PolicySpecTest : public QObject {
    Q_OBJECT

private slots:
    void readsTheGrammar() {
        const PolicySpec spec = PolicySpec::parse("keydiff:kvpress,prompt_block=128,metric=dot@2048t");
        QCOMPARE(spec.policy, std::string("keydiff"));
        QCOMPARE(spec.variant, std::string("kvpress"));
        QCOMPARE(spec.values.choice("anchor"), std::string("normalised_mean")); // from the variant
        QCOMPARE(spec.values.choice("rounding"), std::string("floor"));
        QCOMPARE(spec.values.choice("metric"), std::string("dot"));
        QCOMPARE(spec.values.integer("prompt_block"), std::int64_t{128});
        QVERIFY(spec.budget == (Budget{Budget::Unit::Tokens, 2048}));
        const PolicySpec formula = PolicySpec::parse("score,expression=max(vnorm, knorm),protect_first=2@0.1");
        QCOMPARE(formula.values.text("expression"), std::string("max(vnorm, knorm)"));
        QCOMPARE(formula.values.integer("protect_first"), std::int64_t{2});
        const PolicySpec plain = PolicySpec::parse("keydiff");
        QCOMPARE(plain.variant, std::string("paper"));
        QVERIFY(!plain.budget);
        for (const ParameterSpec& row : plain.values.table()) QVERIFY(plain.values.isDefault(row.id));
    }

    void anExplicitParameterBeatsTheVariant() {
        const PolicySpec spec = PolicySpec::parse("keydiff:kvpress,anchor=mean");
        QCOMPARE(spec.values.choice("anchor"), std::string("mean"));
        QCOMPARE(spec.text(), std::string("keydiff:kvpress,anchor=mean"));
    }

    void printsTheShortestForm() {
        QCOMPARE(PolicySpec::parse("keydiff:paper,anchor=mean,metric=cosine@0.25").text(), std::string("keydiff@0.25"));
        QCOMPARE(PolicySpec::parse("snapkv:keydiff,pool_width=7").text(), std::string("snapkv:keydiff"));
        QCOMPARE(PolicySpec::parse("snapkv,pool_width=7").text(), std::string("snapkv,pool_width=7"));
    }

    void refuses_data() {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("message");
        QTest::newRow("policy") << "keydif@0.1"
                                << "unknown policy 'keydif'. Did you mean 'keydiff'?";
        QTest::newRow("no policy") << ""
                                   << "unknown policy ''. Known: " + everyId();
        QTest::newRow("variant") << "keydiff:kvpres"
                                 << "unknown variant 'kvpres' of keydiff. Did you mean 'kvpress'?";
        QTest::newRow("empty variant")
            << "keydiff:,anchor=mean"
            << "'keydiff:,anchor=mean' names no variant after the colon (keydiff). Leave the colon out";
        QTest::newRow("parameter") << "keydiff,anchr=mean"
                                   << "unknown parameter 'anchr' of keydiff. Did you mean 'anchor'?";
        QTest::newRow("value")
            << "keydiff,anchor=mode"
            << "'mode' is not a value of anchor (parameter anchor). Known: mean, normalised_mean, median, "
               "pairwise";
        QTest::newRow("range")
            << "keydiff,window_share=0.95"
            << "'0.95' is not a value of window_share (parameter window_share). Give a number from 0 to 0.9";
        QTest::newRow("no value")
            << "keydiff,anchor"
            << "'anchor' is not parameter=value (keydiff). Write, for example, keydiff,anchor=...";
        QTest::newRow("trailing comma")
            << "keydiff,"
            << "'' is not parameter=value (keydiff). Write, for example, keydiff,anchor=...";
        QTest::newRow("blocks mean nothing") << "exact,prompt_block=128"
                                             << "exact cannot run in blocks: it evicts nothing, so its blocks change "
                                                "nothing (parameter prompt_block). Leave it out";
        QTest::newRow("exact has no parameter") << "exact,rounding=ceil"
                                                << "unknown parameter 'rounding' of exact. There is none";
        QTest::newRow("budget") << "keydiff@2048"
                                << "budget '2048' is not a fraction from above 0 to 1 (budget). For tokens write 2048t";
        QTest::newRow("empty budget") << "keydiff@"
                                      << "budget '' is not a number (budget). Give the fraction kept (0.25), tokens "
                                         "(2048t) or a quality (tau=0.95)";
        QTest::newRow("two budgets") << "keydiff@0.1@0.2"
                                     << "budget '0.1@0.2' is not a number (budget). Give the fraction kept (0.25), "
                                        "tokens (2048t) or a quality (tau=0.95)";
    }

    void refuses() {
        QFETCH(QString, text);
        QFETCH(QString, message);
        QCOMPARE(errorText([&] { (void)PolicySpec::parse(text.toStdString()); }), message);
    }

    void textReadsBackIdentically() {
        const unsigned seed = 5;
        qInfo("seed %u", seed);
        std::mt19937_64 random(seed);
        for (int i = 0; i < 3000; ++i) {
            const PolicySpec spec = randomSpec(random);
            const PolicySpec read = PolicySpec::parse(spec.text());
            QVERIFY2(read == spec, spec.text().c_str());
            QCOMPARE(read.text(), spec.text());
        }
    }
};

KVSCOPE_TEST(PolicySpecTest)
#include "policy_spec_test.moc"
