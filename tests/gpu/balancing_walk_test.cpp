// The walk kernels. Exact against the CPU engine: the same signs, sums, diagonals and margins to the last bit, for
// walks shorter and longer than a panel, with every part of the formula switched on and off, ends by FAIL and refusals
// of NaN. Fast against the kernel matrix of the oracle: sums as good as
// floats can be, and the signs that follow from them.
#include "core/base/error.h"
#include "core/engine/engine.h"
#include "gpu/kernels/balancing_walk.h"
#include "gpu/kernels/walk_steps.h"
#include "tests/gpu/kernel_data.h"
#include "tests/support/naive/naive_engine.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <limits>
#include <numeric>
#include <optional>

using namespace kvscope;
using namespace kvscope::gpu;

namespace {

/// The lists of all walks side by side, as the kernel takes them.
struct Flat {
    std::vector<std::int64_t> offsets{0}, steps;
    std::vector<WalkRule> rules;
    std::vector<std::int32_t> rows, endings;
    std::vector<double> uniforms, weights, products, diagonal, margins, scratch;
    std::vector<std::uint8_t> silent;
    std::vector<std::int8_t> signs;

    explicit Flat(const std::vector<BalancingWalk>& walks) {
        for (const BalancingWalk& w : walks) {
            rules.push_back({w.head, w.meanOver, w.gamma, w.logScale, w.logShift, w.valueScale, w.valueConstant,
                             w.failAbove, w.firstIsPlus ? 1 : 0});
            rows.insert(rows.end(), w.rows.begin(), w.rows.end());
            uniforms.insert(uniforms.end(), w.uniforms.begin(), w.uniforms.end());
            for (std::size_t i = 0; i < w.rows.size(); ++i) {
                weights.push_back(w.weights.empty() ? 1 : w.weights[i]);
                silent.push_back(w.silent.empty() ? 0 : static_cast<std::uint8_t>(w.silent[i]));
            }
            offsets.push_back(static_cast<std::int64_t>(rows.size()));
        }
        steps.assign(walks.size(), -1);
        endings.assign(walks.size(), -1);
        margins.assign(walks.size(), -1);
        signs.assign(rows.size(), 99);
        for (auto* list : {&products, &diagonal, &scratch}) list->assign(rows.size(), -99);
    }
};

void runOnDevice(const TestRows& keys, const TestRows* values, const float* centres, Flat& flat,
                 KernelArithmetic arithmetic = KernelArithmetic::Exact, std::int64_t firstStep = 0,
                 std::int64_t endStep = INT64_MAX) {
    balancingWalks({.keys = keys.device(),
                    .values = values ? values->device() : DeviceRows{},
                    .centres = centres,
                    .walks = static_cast<std::int64_t>(flat.rules.size()),
                    .entries = static_cast<std::int64_t>(flat.rows.size()),
                    .offsets = flat.offsets.data(),
                    .rules = flat.rules.data(),
                    .rows = flat.rows.data(),
                    .uniforms = flat.uniforms.data(),
                    .weights = flat.weights.data(),
                    .silent = flat.silent.data(),
                    .signs = flat.signs.data(),
                    .products = flat.products.data(),
                    .diagonal = flat.diagonal.data(),
                    .steps = flat.steps.data(),
                    .endings = flat.endings.data(),
                    .margins = flat.margins.data(),
                    .scratch = flat.scratch.data(),
                    .firstStep = firstStep,
                    .endStep = endStep,
                    .arithmetic = arithmetic},
                   nullptr);
}

/// An entry in the arithmetic of Number.
template <class Number>
double entryOf(const WalkRule& rule, Number keys, Number values, const WalkTerm& row, const WalkTerm& lane) {
    return walkEntry(WalkFactors<Number>(rule), keys, values, RowFactors<Number>(row), RowFactors<Number>(lane));
}

class BalancingWalkTest : public QObject {
    Q_OBJECT

private slots:
    // The example of policies: all keys 0, all values 1, c R^2 = 4: after two plus signs p = 1/2 - 2/8 = 1/4.
    void stepsByHand() {
        WalkRule rule;
        rule.gamma = 1.0 / 8;
        QCOMPARE(entryOf<double>(rule, 0, 1, {0, 1}, {0, 1}), 1.0);
        QCOMPARE(walkStep(rule, 2, 2, 1, 0.2, false).sign, 1.0);
        QCOMPARE(walkStep(rule, 2, 2, 1, 0.25, false).sign, -1.0);
        QCOMPARE(walkStep(rule, 2, 2, 1, 0.75, false).margin, 0.5);
        QCOMPARE(walkStep(rule, 2, 2, 1, 0.2, true).sign, 0.0);
        rule.firstIsPlus = 1;
        QCOMPARE(walkStep(rule, 0, 0, 1, 0.9, false).sign, 1.0);
        rule.failAbove = 1.5;
        QVERIFY(walkStep(rule, 2, -2, 1, 0.2, false).ending == WalkEnding::Failed);
        QVERIFY(walkStep(rule, 2, 1.5, 1, 0.2, false).ending == WalkEnding::Complete);
        QVERIFY(walkStep(rule, 2, __builtin_nan(""), 1, 0.2, false).ending == WalkEnding::NotFinite);
        QVERIFY(walkStep(rule, 2, 1, __builtin_inf(), 0.2, false).ending == WalkEnding::NotFinite);
        rule.logScale = 1;
        QCOMPARE(entryOf<double>(rule, 800, 1, {0, 1}, {0, 1}), portableExp(500)); // larger exponents count as 500
    }

    void fastEntries() {
        std::mt19937 random(9);
        std::uniform_real_distribution<double> number(-40, 40);
        WalkRule rule;
        rule.logScale = 0.25;
        rule.valueScale = 0.5;
        rule.valueConstant = 0.75;
        for (int i = 0; i < 1000; ++i) {
            rule.logShift = number(random);
            const float keys = float(number(random)), values = float(std::abs(number(random)));
            const WalkTerm row{number(random), 2}, lane{number(random), 0.5};
            const double exact = entryOf<double>(rule, keys, values, row, lane);
            QVERIFY(std::abs(entryOf<float>(rule, keys, values, row, lane) - exact) <= 1e-5 * exact);
        }
        rule = {}; // far away from what a float's exponential can say
        for (const float keys : {-700.0F, -200.0F, -81.0F, 81.0F, 200.0F, 499.0F, 501.0F, 1e30F}) {
            const double exact = entryOf<double>(rule, keys, 2, {0, 1}, {0, 1});
            QVERIFY(std::abs(entryOf<float>(rule, keys, 2, {0, 1}, {0, 1}) - exact) <= 1e-12 * exact);
        }
        QVERIFY(!isFiniteNumber(entryOf<float>(rule, __builtin_nanf(""), 1, {0, 1}, {0, 1})));
        QVERIFY(!isFiniteNumber(entryOf<float>(rule, 1, __builtin_inff(), {0, 1}, {0, 1})));
    }

    void signsOfTheCpuEngine_data() {
        QTest::addColumn<int>("type");
        QTest::addColumn<int>("width");
        QTest::addColumn<bool>("withValues");
        QTest::addColumn<bool>("withCentres");
        QTest::newRow("keys and values") << 0 << 40 << true << false;
        QTest::newRow("centres given") << 0 << 33 << true << true;
        QTest::newRow("no values") << 1 << 64 << false << false;
        QTest::newRow("half precision, narrow") << 2 << 3 << true << true;
    }

    void signsOfTheCpuEngine() {
        QFETCH(int, type);
        QFETCH(int, width);
        QFETCH(bool, withValues);
        QFETCH(bool, withCentres);
        const TestRows keys(21, static_cast<ElementType>(type), 3, 300, width, 11, 1.5, 0.3);
        const TestRows values(22, static_cast<ElementType>(type), 3, 300, width / 2 + 1);
        const TestRows centres(23, ElementType::Float32, 1, 3, width);
        const std::vector<BalancingWalk> walks = variedWalks(24, width);
        BalancingWalks input{upload(keys), withValues ? upload(values) : Tensor{}, {}, walks};
        if (withCentres) input.centres = {{3, width}, centres.wide()};
        const auto expected = m_engine->balancingWalks(input, {});
        inEveryOrder([&] {
            Flat flat(walks);
            runOnDevice(keys, withValues ? &values : nullptr, withCentres ? centres.wide().data() : nullptr, flat);
            compare(flat, expected);
        });
    }

    void fastWalksFollowTheirSums_data() {
        QTest::addColumn<int>("type");
        QTest::addColumn<int>("valueType");
        QTest::addColumn<int>("width");
        QTest::addColumn<bool>("withValues");
        QTest::addColumn<bool>("withCentres");
        QTest::newRow("floats") << 0 << 0 << 40 << true << false;
        QTest::newRow("tensor cores, bfloat16") << 1 << 1 << 136 << true << false;
        QTest::newRow("tensor cores, half, odd width, centres") << 2 << 2 << 33 << true << true;
        QTest::newRow("no values") << 1 << 1 << 64 << false << true;
        QTest::newRow("keys and values of different types") << 1 << 0 << 24 << true << false;
        QTest::newRow("wider than the block has threads") << 0 << 0 << 300 << true << false;
    }

    void fastWalksFollowTheirSums() {
        QFETCH(int, type);
        QFETCH(int, valueType);
        QFETCH(int, width);
        QFETCH(bool, withValues);
        QFETCH(bool, withCentres);
        const TestRows keys(31, static_cast<ElementType>(type), 3, 300, width, 11, 0.6, 0.2);
        const TestRows values(32, static_cast<ElementType>(valueType), 3, 300, width / 2 + 1, 5);
        const TestRows centres(33, ElementType::Float32, 1, 3, width);
        const auto blockOf = [](const TestRows& rows) {
            const DeviceRows device = rows.device();
            return naive::Block{device.heads, device.rows, device.width, rows.wide()};
        };
        naive::Balancing data{blockOf(keys), {}, {}};
        if (withValues) data.values = blockOf(values);
        if (withCentres) data.centres = {3, 1, width, centres.wide()};
        const std::vector<BalancingWalk> walks = variedWalks(24, width);
        std::optional<Flat> first;
        inEveryOrder([&] {
            Flat flat(walks);
            runOnDevice(keys, withValues ? &values : nullptr, withCentres ? centres.wide().data() : nullptr, flat,
                        KernelArithmetic::Fast);
            for (std::size_t w = 0; w < walks.size() && !QTest::currentTestFailed(); ++w)
                follows(flat, w, walks[w], data);
            if (first) QVERIFY(first->signs == flat.signs && sameBits(first->products, flat.products));
            first = std::move(flat);
        });
    }

    /// A long walk in several launches: as if it were one.
    void launchesThatFollowEachOther() {
        const TestRows keys(41, ElementType::BFloat16, 3, 300, 20, 0, 0.6, 0.2);
        const std::vector<BalancingWalk> walks = variedWalks(25, 20);
        for (const KernelArithmetic arithmetic : {KernelArithmetic::Exact, KernelArithmetic::Fast}) {
            Flat whole(walks), parts(walks);
            runOnDevice(keys, &keys, nullptr, whole, arithmetic);
            for (const auto& [first, end] : {std::pair{0, 64}, {64, 192}, {192, 1000}})
                runOnDevice(keys, &keys, nullptr, parts, arithmetic, first, end);
            QVERIFY(std::count(whole.endings.begin(), whole.endings.end(), int(WalkEnding::Failed)) > 0);
            QVERIFY(parts.signs == whole.signs && parts.steps == whole.steps && parts.endings == whole.endings);
            QVERIFY(sameBits(parts.products, whole.products) && sameBits(parts.diagonal, whole.diagonal));
            QVERIFY(sameBits(parts.margins, whole.margins));
        }
    }

    void refusesWhatIsNotFinite() {
        TestRows keys(5, ElementType::Float32, 1, 100, 8);
        keys.set(0, 70, 2, std::numeric_limits<float>::infinity());
        BalancingWalk walk;
        walk.rows.resize(100);
        std::iota(walk.rows.begin(), walk.rows.end(), 0);
        walk.uniforms.assign(100, 0.5);
        walk.gamma = 4;
        QVERIFY_THROWS_EXCEPTION(Error, m_engine->balancingWalks({upload(keys), upload(keys), {}, {walk}}, {}));
        Flat flat({walk});
        runOnDevice(keys, &keys, nullptr, flat);
        QCOMPARE(flat.endings[0], static_cast<std::int32_t>(WalkEnding::NotFinite));
        QCOMPARE(flat.steps[0], std::int64_t{70});
        QCOMPARE(flat.signs[70], std::int8_t{99}); // nothing is written behind the end
        Flat fast({walk});
        runOnDevice(keys, &keys, nullptr, fast, KernelArithmetic::Fast);
        QCOMPARE(fast.endings[0], static_cast<std::int32_t>(WalkEnding::NotFinite));
        QCOMPARE(fast.steps[0], std::int64_t{70});
        QCOMPARE(fast.signs[70], std::int8_t{99});
    }

private:
    /// Walks of many lengths, an empty one too, each with other switches.
    static std::vector<BalancingWalk> variedWalks(unsigned seed, int width) {
        std::mt19937 random(seed);
        std::uniform_real_distribution<double> uniform;
        std::vector<BalancingWalk> walks;
        for (const std::int64_t count : {1, 31, 32, 33, 64, 96, 97, 200, 0, 300}) {
            BalancingWalk walk;
            walk.head = static_cast<std::int64_t>(walks.size() % 3);
            std::vector<TokenIndex> all(300);
            std::iota(all.begin(), all.end(), 0);
            std::shuffle(all.begin(), all.end(), random);
            walk.rows.assign(all.begin(), all.begin() + count);
            for (std::int64_t i = 0; i < count; ++i) walk.uniforms.push_back(uniform(random));
            const auto kind = walks.size();
            for (std::int64_t i = 0; kind % 2 == 1 && i < count; ++i) {
                walk.weights.push_back(1 << random() % 3);
                walk.silent.push_back(random() % 5 == 0);
            }
            walk.meanOver = kind % 3 == 0 ? count + 5 : 0;
            walk.gamma = kind % 4 == 0 ? 0 : 0.02;
            walk.logScale = 1 / std::sqrt(double(width));
            walk.logShift = 0.5;
            walk.valueScale = 0.75;
            walk.valueConstant = kind % 2 ? 0.025 : 1;
            walk.firstIsPlus = kind % 3 == 1;
            if (kind == 7) walk.failAbove = 6;
            walks.push_back(walk);
        }
        return walks;
    }

    /// Every sum is that of the oracle's kernel over the walk's own signs, and every sign the one that its sum demands.
    static void follows(const Flat& flat, std::size_t w, const BalancingWalk& walk, const naive::Balancing& data) {
        const naive::Numbers kernel = naive::balancingKernel(data, walk);
        const std::size_t m = walk.rows.size();
        const auto begin = static_cast<std::size_t>(flat.offsets[w]);
        const auto steps = static_cast<std::size_t>(flat.steps[w]);
        double margin = std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < m; ++i) {
            double y = 0, parts = kernel[i * m + i];
            for (std::size_t j = 0; j < i; ++j) {
                y += kernel[i * m + j] * double(flat.signs[begin + j]);
                parts += std::abs(kernel[i * m + j]);
            }
            if (i == steps) { // ended early: by FAIL, where the sum was too large
                QCOMPARE(flat.endings[w], static_cast<std::int32_t>(WalkEnding::Failed));
                QVERIFY(std::abs(y) > walk.failAbove - 2e-5 * parts);
                break;
            }
            const double got = flat.products[begin + i];
            QVERIFY2(std::abs(got - y) <= 2e-5 * parts,
                     qPrintable(QString("row %1: %2, not %3").arg(i).arg(got).arg(y)));
            QVERIFY(std::abs(flat.diagonal[begin + i] - kernel[i * m + i]) <= 2e-5 * std::abs(kernel[i * m + i]));
            const WalkStep step =
                walkStep(flat.rules[w], std::int64_t(i), got, 1, walk.uniforms[i], flat.silent[begin + i] != 0);
            QCOMPARE(double(flat.signs[begin + i]), step.sign);
            margin = std::min(margin, step.margin);
        }
        QCOMPARE(flat.margins[w], margin);
        QCOMPARE(flat.endings[w] == static_cast<std::int32_t>(WalkEnding::Complete), steps == m);
    }

    static void compare(const Flat& flat, const std::vector<BalancingSteps>& expected) {
        for (std::size_t w = 0; w < expected.size(); ++w) {
            const BalancingSteps& steps = expected[w];
            const auto begin = flat.offsets[w], end = begin + static_cast<std::int64_t>(steps.signs.size());
            const auto part = [&](const auto& list) {
                return std::decay_t<decltype(list)>(list.begin() + begin, list.begin() + end);
            };
            QCOMPARE(flat.steps[w], end - begin);
            QCOMPARE(flat.endings[w] == static_cast<std::int32_t>(WalkEnding::Failed), steps.failedAt >= 0);
            QVERIFY(part(flat.signs) == steps.signs);
            QVERIFY(sameBits(part(flat.products), steps.products));
            QVERIFY(sameBits(part(flat.diagonal), steps.diagonal));
            QCOMPARE(flat.margins[w], steps.margin);
        }
    }

    Tensor upload(const TestRows& rows) const {
        const DeviceRows device = rows.device();
        return m_engine->upload({{device.heads, device.rows, device.width}, rows.wide()});
    }

    std::unique_ptr<Engine> m_engine = makeCpuEngine(1);
};

} // namespace

KVSCOPE_TEST(BalancingWalkTest)
#include "balancing_walk_test.moc"
