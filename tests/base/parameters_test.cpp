// Parameter values: what is refused, with which words, and that texts read back identically.
#include "core/base/error.h"
#include "core/parameters/parameters.h"
#include "tests/support/error_message.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <cmath>
#include <functional>
#include <limits>
#include <random>

using namespace kvscope;

namespace {

ParameterSpec row(const std::string& id, ParameterKind kind, double min, double max, double start, Stage stage) {
    ParameterSpec spec;
    spec.id = id;
    spec.kind = kind;
    spec.min = min;
    spec.max = max;
    spec.defaultValue = start;
    spec.stage = stage;
    return spec;
}

std::shared_ptr<const ParameterTable> sampleTable() {
    ParameterTable table = {row("lambda", ParameterKind::Real, 0, 3, 0.3, Stage::Combine),
                            row("window", ParameterKind::Integer, 1, 1024, 32, Stage::Features),
                            row("pool_width", ParameterKind::Integer, 1, 63, 5, Stage::Combine),
                            row("anchor", ParameterKind::Choice, 0, 2, 0, Stage::Features),
                            row("fair", ParameterKind::Flag, 0, 1, 1, Stage::Select)};
    table[2].step = 2;
    table[3].choices = {{"mean", "Mean", ""}, {"median", "Median", ""}, {"pairwise", "Pairwise", ""}};
    return std::make_shared<const ParameterTable>(table);
}

} // namespace

class ParametersTest : public QObject {
    Q_OBJECT

private slots:
    void startsAtTheDefaults() {
        const ParameterValues values(sampleTable());
        QCOMPARE(values.real("lambda"), 0.3);
        QCOMPARE(values.integer("window"), std::int64_t{32});
        QCOMPARE(values.choice("anchor"), std::string("mean"));
        QVERIFY(values.flag("fair"));
        for (const ParameterSpec& spec : values.table()) QVERIFY(values.isDefault(spec.id));
    }

    void textsAreKeptAsTyped() {
        ParameterTable table = {row("file", ParameterKind::Text, 0, 1, 0, Stage::Features),
                                row("width", ParameterKind::Integer, 1, 9, 3, Stage::Select)};
        table[0].defaultText = "none";
        table[0].check = [](std::string_view text) {
            if (text.empty()) throw Error({"an empty text", {}, {}, {}});
        };
        ParameterValues values(std::make_shared<const ParameterTable>(table));
        QVERIFY(values.isDefault("file"));
        values.setText("file", "a, \"b\".h5:/x");
        QCOMPARE(values.text("file"), std::string("a, \"b\".h5:/x"));
        QVERIFY(!values.isDefault("file"));
        QCOMPARE(values.key(Stage::Features), std::string("file=\"a, \\\"b\\\".h5:/x\""));
        QVERIFY(errorText([&] { values.setText("file", ""); }).contains("an empty text"));
        QVERIFY(errorText([&] { values.setText("file", "a\nb"); }).contains("control character"));
        QCOMPARE(values.text("file"), std::string("a, \"b\".h5:/x")); // a refused text changes nothing
        values.reset("file");
        QVERIFY(values.isDefault("file"));
    }

    void holdsNothingWithoutATable() {
        const ParameterValues values;
        QVERIFY(values.table().empty());
        QVERIFY(!values.has("lambda"));
        QCOMPARE(values.key(Stage::Select), std::string());
        QVERIFY(errorText([&] { (void)values.real("lambda"); }).contains("There is none"));
    }

    void readsText() {
        ParameterValues values(sampleTable());
        values.setText("lambda", "0.25");
        values.setText("window", "64");
        values.setText("anchor", "pairwise");
        values.setText("fair", "false");
        QCOMPARE(values.real("lambda"), 0.25);
        QCOMPARE(values.integer("window"), std::int64_t{64});
        QCOMPARE(values.choice("anchor"), std::string("pairwise"));
        QVERIFY(!values.flag("fair"));
        QVERIFY(!values.isDefault("anchor"));
        values.setText("fair", "on");
        QVERIFY(values.flag("fair"));
    }

    void refuses_data() {
        QTest::addColumn<QString>("id");
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("message");
        QTest::newRow("unknown name") << "anchr"
                                      << "mean"
                                      << "unknown parameter 'anchr'. Did you mean 'anchor'?";
        QTest::newRow("nothing near")
            << "temperature"
            << "1"
            << "unknown parameter 'temperature'. Known: lambda, window, pool_width, anchor, fair";
        QTest::newRow("too large") << "lambda"
                                   << "3.5"
                                   << "'3.5' is not a value of lambda (parameter lambda). Give a number from 0 to 3";
        QTest::newRow("too small")
            << "window"
            << "0"
            << "'0' is not a value of window (parameter window). Give a whole number from 1 to 1024";
        QTest::newRow("not whole")
            << "window"
            << "1.5"
            << "'1.5' is not a value of window (parameter window). Give a whole number from 1 to 1024";
        QTest::newRow("even width")
            << "pool_width"
            << "4"
            << "'4' is not a value of pool_width (parameter pool_width). Give a whole number from 1 "
               "to 63 in steps of 2";
        QTest::newRow("not a number")
            << "lambda"
            << "much"
            << "'much' is not a value of lambda (parameter lambda). Give a number from 0 to 3";
        QTest::newRow("trailing") << "lambda"
                                  << "1x"
                                  << "'1x' is not a value of lambda (parameter lambda). Give a number from 0 to 3";
        QTest::newRow("empty") << "lambda"
                               << ""
                               << "'' is not a value of lambda (parameter lambda). Give a number from 0 to 3";
        QTest::newRow("nan") << "lambda"
                             << "nan"
                             << "'nan' is not a value of lambda (parameter lambda). Give a number from 0 to 3";
        QTest::newRow("choice") << "anchor"
                                << "medain"
                                << "'medain' is not a value of anchor (parameter anchor). Did you mean 'median'?";
        QTest::newRow("far choice")
            << "anchor"
            << "k-means"
            << "'k-means' is not a value of anchor (parameter anchor). Known: mean, median, pairwise";
        QTest::newRow("flag") << "fair"
                              << "maybe"
                              << "'maybe' is not a value of fair (parameter fair). Give true or false";
    }

    void refuses() {
        QFETCH(QString, id);
        QFETCH(QString, text);
        QFETCH(QString, message);
        ParameterValues values(sampleTable());
        const ParameterValues before = values;
        QCOMPARE(errorText([&] { values.setText(id.toStdString(), text.toStdString()); }), message);
        QVERIFY(values == before);
    }

    void refusesNumbersLikeTexts() {
        ParameterValues values(sampleTable());
        QVERIFY(errorText([&] { values.set("lambda", std::nan("")); }).startsWith("'not a number'"));
        QVERIFY(errorText([&] { values.set("window", 2.5); }).contains("whole number"));
        QVERIFY(errorText([&] { values.set("anchor", 3); }).contains("Known: mean"));
        QVERIFY(errorText([&] { values.set("pool_width", 6); }).contains("steps of 2"));
        values.set("lambda", std::numeric_limits<double>::denorm_min());
        QVERIFY(values.real("lambda") > 0);
    }

    void negativeZeroIsZero() {
        ParameterValues values(sampleTable());
        values.set("lambda", -0.0);
        QCOMPARE(values.text("lambda"), std::string("0"));
        values.setText("lambda", "-0");
        QCOMPARE(values.text("lambda"), std::string("0"));
    }

    void textReadsBackIdentically() {
        const unsigned seed = 7;
        qInfo("seed %u", seed);
        std::mt19937_64 random(seed);
        ParameterValues values(sampleTable());
        for (int i = 0; i < 2000; ++i) {
            const double unit = std::generate_canonical<double, 53>(random);
            values.set("lambda", i % 3 == 0 ? std::pow(unit, 40) * 3 : unit * 3);
            values.set("window", 1 + std::floor(unit * 1023));
            values.set("anchor", std::floor(unit * 2.99));
            values.set("fair", i % 2);
            ParameterValues read(values);
            for (const ParameterSpec& spec : values.table()) {
                read.set(spec.id, spec.defaultValue);
                read.setText(spec.id, values.text(spec.id));
            }
            QVERIFY2(read == values, qPrintable(QString::fromStdString(values.key(Stage::Select))));
        }
    }

    void wholeNumbersArePlainDigits() {
        auto table = std::make_shared<ParameterTable>();
        table->push_back(row("tokens", ParameterKind::Integer, 0, 1e6, 100000, Stage::Select));
        QCOMPARE(ParameterValues(table).text("tokens"), std::string("100000"));
    }

    // A cache key of a stage must change with what the stage depends on and with nothing else.
    void keyHoldsWhatTheStageDependsOn() {
        ParameterValues values(sampleTable());
        QCOMPARE(values.key(Stage::Features), std::string("window=32,anchor=mean"));
        QCOMPARE(values.key(Stage::Combine), std::string("lambda=0.3,window=32,pool_width=5,anchor=mean"));
        QCOMPARE(values.key(Stage::Select), std::string("lambda=0.3,window=32,pool_width=5,anchor=mean,fair=true"));
        const std::string before = values.key(Stage::Combine);
        values.set("fair", 0);
        QCOMPARE(values.key(Stage::Combine), before);
        values.set("lambda", 0.31);
        QVERIFY(values.key(Stage::Combine) != before);
        QCOMPARE(values.key(Stage::Features), std::string("window=32,anchor=mean"));
    }

    void comparesByValueAndTable() {
        const auto table = sampleTable();
        ParameterValues a(table), b(table);
        QVERIFY(a == b);
        b.set("lambda", 1);
        QVERIFY(!(a == b));
        QVERIFY(!(ParameterValues(sampleTable()) == a));
    }
};

KVSCOPE_TEST(ParametersTest)
#include "parameters_test.moc"
