// Numbers that are typed into the texts of lessons: each stands in a sentence that is computed here from the lesson's
// own run, and a number that no sentence accounts for fails.
#include <QTest>

#include "core/base/number_text.h"
#include "core/calibration/calibration.h"
#include "core/policies/balance/balance_log.h"
#include "core/policies/compactor/compactor_log.h"
#include "core/policies/subgen/subgen_log.h"
#include "tests/app/told_lesson.h"
#include "tests/support/test_program.h"
#include "views/merge_tree/merge_tree_data.h"
#include "views/merge_tree/tree_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <regex>
#include <set>

using namespace kvscope;
using namespace kvscope::testing;

namespace {

std::string cursorOf(const Session& setting) { return count(setting.look.cursor.value()); }

std::shared_ptr<const MergeTreeData> treeOf(Told& told) {
    const View& view = viewById("merge_tree");
    told.bench->showView(view);
    told.executor.runAll();
    return std::dynamic_pointer_cast<const MergeTreeData>(told.bench->viewInput(view).data.value);
}

} // namespace

class LessonNumbersTest : public QObject {
    Q_OBJECT

private slots:
    void cache() {
        Told told("cache");
        const CaptureInfo& info = told.bench->capture()->info();
        told.says("Row j reads the keys 0 to j, and the last query all " + count(told.tokens()) + " of them.");
        told.says("The first " + told.rangeOf(1, false) + " tokens");
        told.says("Query head " + count(told.stop(2).queryHead.value));
        told.says("KV head " + count(told.stop(3).kvHead.value));
        told.says("B: a policy keeps " + count(told.kept(1).size()) + " of " + count(told.cut()) + " columns.");
        told.says("The cache holds " + count(told.tokens()) + " tokens.");
        told.says(fmt::format("of {} numbers, 2 bytes each, {} KV heads, {} layers are", info.headDim, info.numKvHeads,
                              info.numLayers));
        told.says("for the " + count(told.tokens()) + ".");
        QVERIFY2(told.left().isEmpty(), qPrintable(told.left()));
    }

    void sinks() {
        Told told("sinks");
        const auto streak = [&](std::size_t pane) { // tokens from 0 on that are kept, and those up to the cut
            const auto& kept = told.kept(pane);
            std::size_t first = 0;
            while (first < kept.size() && kept[first] == static_cast<TokenIndex>(first)) ++first;
            if (kept.back() + 1 != told.cut()) return std::pair<std::size_t, std::size_t>(first, 0);
            return std::pair(first, kept.size() - first);
        };
        const auto [sinks, recent] = streak(0);
        told.says(fmt::format("A: {} sinks and the {} most recent tokens.", sinks, recent));
        const auto [none, all] = streak(1);
        told.says(fmt::format("B: {} sinks, {} recent tokens.", word(none), all));
        told.says("The first " + told.rangeOf(2, false) + " keys");
        const std::string head =
            fmt::format("ayer {}, KV head {}", told.stop(3).layer.value, told.stop(3).kvHead.value);
        told.says("L" + head + ": question and answer");
        told.says("In l" + head + ", it does.");
        told.says(fmt::format("layer {}, KV head {}?", told.lesson.asked.layer.value, told.lesson.asked.kvHead.value));
        told.says("The first " + word(sinks) + " tokens receive");
        told.says("the map says of key 0");
        const auto readers = std::ranges::count(told.bench->capture()->info().layers[0].gqaGroupOf, 0);
        told.says("the " + word(static_cast<std::size_t>(readers)) + " query heads that read this KV head");
        told.says("Of the needle's " + told.needle() + " tokens");
        told.says("There at " + percent(told.stop(4).budget.value));
        told.show(told.stop(4)); // "reach back to the needle"
        QCOMPARE(count(told.quantity("kept_selected")), told.needle());
        QVERIFY2(told.left().isEmpty(), qPrintable(told.left()));
    }

    void attention() {
        Told told("attention");
        told.says("what its " + count(told.lesson.start.panes[0].policy.values.integer("window")) + " queries read");
        told.says("The last " + told.rangeOf(4, true) + " queries");
        told.says("Of the needle's " + told.needle() + " tokens the " + word(told.lesson.start.panes.size()) + " keep");
        told.defines({"All three trust"});
        QVERIFY2(told.left().isEmpty(), qPrintable(told.left()));
    }

    void cut() {
        Told told("cut");
        const std::int64_t before = told.cut();
        told.says("The last " + told.rangeOf(1, true) + " queries");
        told.show(told.stop(3));
        told.says(count(told.cut() - before) + " queries more in its sums");
        QVERIFY(std::abs(told.cut() - 1000) < 50);
        told.says("the question is lost among a thousand queries");
        told.says("of the needle's " + told.needle() + " tokens");
        QVERIFY2(told.left().isEmpty(), qPrintable(told.left()));
    }

    void keydiff() {
        Told told("keydiff");
        told.says("Half the budget, KeyDiff at " + percent(told.stop(3).budget.value));
        QCOMPARE(told.stop(3).budget.value, told.lesson.start.budget.value / 2);
        told.says("Back to " + percent(told.stop(4).budget.value));
        told.says("It keeps " + percent(told.lesson.asked.budget.value) + " of the tokens");
        QVERIFY2(told.left().isEmpty(), qPrintable(told.left()));
    }

    void premise() {
        Told told("premise");
        told.says(fmt::format("an equal share would be {:.1f} %", 100.0 / static_cast<double>(told.tokens())));
        told.says("in layer 2 some means do oppose");
        double least = 1;
        for (int head = 0; head < 8; ++head) {
            told.bench->change(
                [&](Session& s) {
                    s.layer = LayerIndex(2);
                    chooseQueryHead(s, QueryHeadIndex(head), *told.bench->capture());
                },
                "Head");
            told.executor.runAll();
            least = std::min(least, told.quantity("cosine_of_means"));
        }
        QVERIFY2(least < -0.2, qPrintable(QString::number(least))); // as the choices say it
        QVERIFY2(told.left().isEmpty(), qPrintable(told.left()));
    }

    void blocks() {
        Told told("blocks");
        const auto result = told.result(0);
        const auto goneAt = [&](const Session& stop) {
            for (const BlockStep& step : result->steps)
                if (step.end == *stop.look.cursor) return step.evicted[told.head()].size();
            return std::size_t{0};
        };
        const auto block = told.lesson.start.panes[0].policy.values.integer("prompt_block");
        QCOMPARE(result->steps.front().end, *told.stop(0).look.cursor);
        told.says(cursorOf(told.stop(0)) + " tokens: for the first time the cache holds more than its " +
                  count(result->requested) + " places. Only " + word(goneAt(told.stop(0))) + " leave.");
        told.says(fmt::format("{} tokens: from now on each block of {} pushes {} tokens out.", cursorOf(told.stop(1)),
                              block, goneAt(told.stop(1))));
        told.says(cursorOf(told.stop(2)) + " tokens: the block with the needle was read.");
        const auto& needle = told.lesson.start.selected;
        QVERIFY(needle.back() < *told.stop(2).look.cursor && needle.front() >= *told.stop(2).look.cursor - block);
        told.says(
            fmt::format("Smaller blocks: {} tokens.", told.stop(3).panes[0].policy.values.integer("prompt_block")));
        told.says(fmt::format("Back to KeyDiff in blocks of {}.", block));
        QVERIFY(told.quantity("same_block_evictions", 0) > 0.5); // "With KeyDiff, more than half"
        told.says(fmt::format("about a third, {} of {}.", block, block + result->requested));
        QVERIFY2(told.left().isEmpty(), qPrintable(told.left()));
    }

    void leverage() {
        Told told("leverage");
        const auto draws = told.log<LeverageLog>(0)->draws[told.head()];
        const std::set<std::int64_t> drawn(draws.begin(), draws.end());
        told.says(fmt::format("Pane A draws {} times from {} rows.", draws.size(), told.cut()));
        QVERIFY(drawn.size() < draws.size()); // "some are drawn twice"
        told.says("The " + count(draws.size()) + " best rows");
        QVERIFY(told.quantity("demanded_rows") > static_cast<double>(told.tokens())); // "more than there are tokens"
        QCOMPARE(percent(told.stop(2).budget.value), std::string("75 %"));            // "Three quarters"
        told.show(told.stop(2));
        QVERIFY(std::ssize(told.kept(0)) < told.result(0)->requested); // "A still misses rows"
        QVERIFY(lessonQuantityById("drawn_distortion").help.ends_with("mean over ten seeds"));
        told.says("in the mean of ten seeds");
        told.defines({"Three quarters", "Theorem 1 is about", "l near 1", "within 1 ± ε", "ε = 0.5 and δ = 0.01",
                      "(constant 1)", "can never exceed 1", "and 1 means"});
        QVERIFY2(told.left().isEmpty(), qPrintable(told.left()));
    }

    void compactor() {
        Told told("compactor");
        const auto lambda = [&](std::size_t stop) {
            const Session& at = told.stop(stop);
            return shortest(at.panes[static_cast<std::size_t>(at.activePane)].policy.values.real("lambda"));
        };
        told.says("A Compactor with λ = " + lambda(0) + ".");
        told.says("B attention alone, λ = " + lambda(1) + ":");
        told.says("Keep " + percent(told.stop(3).budget.value));
        told.says("Back to " + percent(told.stop(4).budget.value));
        QVERIFY(lessonQuantityById("needed_retention")
                    .help.ends_with("steps of 5 %, from which on the error is at most 0.1"));
        told.defines({"at most 0.1 (in steps of 5 %)"});
        QVERIFY2(told.left().isEmpty(), qPrintable(told.left()));
    }

    void calibration() {
        Told told("calibration");
        std::set<std::string> stories, copies, all;
        const std::string table = sourceDir() + "/sample_data/case_study/calibration.csv";
        for (const CalibrationTriple& triple : readTriplesCsv(table, "compactor", "paper").triples) {
            all.insert(triple.context);
            if (triple.context.starts_with("story")) stories.insert(triple.context);
            if (triple.context.starts_with("copy")) copies.insert(triple.context);
        }
        told.says(word(all.size()) + " contexts, narratives");
        told.says(capital(word(stories.size())) + " narratives and " + word(copies.size()) + " copies");
        told.defines({"τ = 0.95", "(eʳᵏ − 1)/(eᵏ − 1)"});
        QVERIFY2(told.left().isEmpty(), qPrintable(told.left()));
    }

    void subgen() {
        Told told("subgen");
        told.says(cursorOf(told.stop(0)) + " tokens in:");
        told.says(cursorOf(told.stop(1)) + " tokens in, about half of the stream");
        QVERIFY(std::abs(double(*told.stop(1).look.cursor) / double(told.cut()) - 0.5) < 0.02);
        told.says("the second half of the " + count(told.cut()) + " tokens");
        told.says("with δ = " + shortest(told.stop(2).panes[0].policy.values.real("delta")) + " a few clusters cover");
        told.show(told.stop(2));
        QVERIFY2(told.quantity("cluster_count") < 10, qPrintable(QString::number(told.quantity("cluster_count"))));
        told.defines({"lie 2δ apart"});
        QVERIFY2(told.left().isEmpty(), qPrintable(told.left()));
    }

    void price() {
        Told told("price");
        const double delta = told.log<SubgenLog>(0)->heads[told.head()].delta;
        const double half = told.log<SubgenLog>(1)->heads[told.head()].delta;
        told.says(
            fmt::format("A: the δ of the variant, {:.1f}; a twentieth of the keys' distances lie below it.", delta));
        told.says(fmt::format("Above {:.1f} the solid curve stands at {} clusters.", delta,
                              told.quantity("cluster_count", 0)));
        told.says(fmt::format("B: half of it, {:.1f}. There the solid curve stands at {}:", half,
                              told.quantity("cluster_count", 1)));
        QVERIFY(std::abs(2 * half / delta - 1) < 0.01);
        const HostTensor keys = told.bench->capture()->read(told.bench->session().layer, TensorRole::Keys, {});
        std::int64_t below = 0, pairs = 0;
        const std::int64_t d = keys.shape[2];
        const float* rows = keys.data.data() + static_cast<std::int64_t>(told.head()) * keys.shape[1] * d;
        for (std::int64_t i = 0; i < told.cut(); ++i)
            for (std::int64_t j = 0; j < i; ++j, ++pairs) {
                double square = 0;
                for (std::int64_t c = 0; c < d; ++c) square += std::pow(double{rows[i * d + c]} - rows[j * d + c], 2);
                below += std::sqrt(square) < delta ? 1 : 0;
            }
        QVERIFY2(std::abs(double(below) / double(pairs) - 0.05) < 0.005, qPrintable(QString::number(below)));
        told.says("The exact cache holds " + count(told.cut()) + ".");
        QCOMPARE(told.lesson.choices[0].below, static_cast<double>(told.cut()));
        told.says("here SubGen runs with t = " +
                  count(told.lesson.start.panes[0].policy.values.integer("cluster_slots")) + " samples");
        QVERIFY(lessonQuantityById("least_subgen_memory").help.ends_with("at the best of nine radii"));
        told.says("the best of nine radii from 0 to 2δ");
        told.says("The smallest memory of the nine is at δ = 0, where every key is a cluster of its own");
        const auto n = static_cast<double>(told.cut()); // m = n clusters of e^0 ln n / ε² samples, and d / ε² pairs
        QVERIFY(std::abs(told.quantity("least_subgen_memory") - (n * std::log(n) + double(d)) / 0.25) < 1);
        told.defines({"Theorem 1 bounds", "ε = 0.5, all constants 1"});
        QVERIFY2(told.left().isEmpty(), qPrintable(told.left()));
    }

    void walk() {
        Told told("walk");
        const auto stepOf = [&](std::size_t pane) {
            for (const BalanceWalkLog& walk : told.log<BalanceLog>(pane)->walks)
                if (walk.kvHead == static_cast<std::int64_t>(told.head()) && walk.level == 1 && walk.tree == 0)
                    return walk;
            return BalanceWalkLog{};
        };
        const auto most = [](const BalanceWalkLog& walk) { // chance of a sign
            return std::ranges::max(walk.probabilities, {}, [](double p) { return std::abs(p - 0.5); });
        };
        const double c = 1 / (2 * stepOf(0).walk.gamma), unit = 1 / (2 * stepOf(1).walk.gamma);
        told.says(
            fmt::format("A: the paper's c, {:.0f}. The line of the lean lies on 0: every sign is a fair coin.", c));
        told.says(fmt::format("B: c = {}, steps {:.0f} times as large.", unit, c / unit));
        told.says("here the line still lies on 0, fair coins again");
        for (const std::size_t pane : {0, 1})
            QVERIFY2(std::abs(most(stepOf(pane)) - 0.5) < 0.005, qPrintable(QString::number(most(stepOf(pane)))));
        told.says(fmt::format("C: γ = {}.", stepOf(2).walk.gamma));
        told.says(fmt::format("D: γ = {}, and the logits divided by ten", stepOf(3).walk.gamma));
        told.says(fmt::format("the authors' γ = {} without restraint", stepOf(2).walk.gamma));
        const auto temperature = [&](std::size_t pane) {
            return told.lesson.start.panes[pane].policy.values.real("temp");
        };
        QCOMPARE(temperature(2) / temperature(3), 10.0);
        told.says("Divided by ten, the logits");
        told.says("of the " + word(told.lesson.start.panes.size()) + " walks");
        told.says("of the " + word(told.lesson.start.panes.size()) + ". Their squared discrepancies");
        QVERIFY(lessonQuantityById("panes_below_coins").help.find("below 95 %") != std::string::npos);
        told.defines({"½ − y/(2cR²)", "c = 30 ln(m/δ)", "at least 5 % below"});
        QVERIFY2(told.left().isEmpty(), qPrintable(told.left()));
    }

    void halving() {
        Told told("halving");
        told.show(told.stop(0));
        const auto data = treeOf(told);
        const BalanceTree& tree = *data->shown();
        const auto batch = static_cast<std::size_t>(tree.batch);
        told.says(fmt::format("A, {} tokens in: the first {} values of this octave are halved", cursorOf(told.stop(0)),
                              batch));
        QVERIFY(tree.rows.at(batch - 1) < *told.stop(0).look.cursor);
        told.says(fmt::format("for one query, {}.", data->query));
        told.says(fmt::format("For query {} the first halving of the values changes the sum by {}.", data->query,
                              percent(data->numbersOf(1, 0).discrepancy)));
        told.says(fmt::format("One walk over {} tokens", batch));
        told.says(fmt::format("A query that reads one token of the {}", batch));
        told.says(fmt::format("more than the {} tokens of a walk can give", batch));
        QVERIFY(told.quantity("discrepancy_bound") > static_cast<double>(batch));
        QVERIFY(lessonQuantityById("discrepancy_bound").help.ends_with("with the constant 30"));
        told.defines(
            {"Theorem 3.3", "1 − δ", "|q|²/(2√d)", "r²/(2√d)", "change its sum by 100 %", "30 for its constant"});
        QVERIFY2(told.left().isEmpty(), qPrintable(told.left()));
    }

    void quotient() {
        Told told("quotient");
        const auto data = treeOf(told);
        const BalanceTree& tree = *data->shown();
        const auto sets = [&](std::size_t index) {
            return TreeState(tree, told.stop(index).look.cursor.value_or(static_cast<TokenIndex>(told.cut())));
        };
        told.says(fmt::format("{} pairs: the first batch is full.", sets(0).seen()));
        QVERIFY(sets(0).batches() == 1 && std::abs(2.0 * sets(0).sets()[1].size() / tree.batch - 1) < 0.2);
        told.says(fmt::format("{} pairs: a second set reaches C¹, and both are balanced into C². Two is 10 in binary.",
                              sets(1).seen()));
        QVERIFY(sets(1).batches() == 2 && sets(1).sets()[1].empty() && !sets(1).sets()[2].empty());
        told.defines({"weight 2; two sets", "weight 4, and", "enters C¹ with weight 2.", "Theorem 3.1"});
        const auto batches = [&](std::size_t index) {
            const auto count = static_cast<std::uint64_t>(sets(index).batches());
            return fmt::format("{} pairs, {} batches: {} is {:b} in binary", sets(index).seen(), count, count, count);
        };
        told.says(batches(2) + ", so C¹, C² and C⁴ hold a set and C³ is empty.");
        told.says(batches(3) + ", and every level holds a set.");
        for (std::size_t level = 1; level <= 4; ++level) {
            QCOMPARE(sets(2).sets()[level].empty(), level == 3);
            QVERIFY(!sets(3).sets()[level].empty());
        }
        QVERIFY2(told.left().isEmpty(), qPrintable(told.left()));
    }

    // What the model writes is checked where it can be run (lessons_test); here, that these are codes of the prompt.
    void answer() {
        Told told("answer");
        const auto at = [&](std::size_t index) { return "At " + percent(told.stop(index).budget.value); };
        const auto codeIn = [&](const Session& setting) {
            std::smatch code;
            const std::string text = told.textOf(setting);
            return std::regex_search(text, code, std::regex("[0-9]+")) ? code.str() : text;
        };
        const std::string garden = codeIn(told.lesson.start);
        told.says("asks for the code of the garden: " + garden + ".");
        told.says(at(0) + " all panes write " + garden + ".");
        told.says(at(1) + ": which panes");
        told.says(at(2) + " C writes " + codeIn(told.stop(2)) + ", a code in its window.");
        told.says(at(3) + ", with the model started");
        told.says("from 100 % in steps of 10 %: to which budget does the model still write " + garden);
        QVERIFY2(told.left().isEmpty(), qPrintable(told.left()));
    }

    void everyLessonIsRead() {
        for (const LessonFile& file : lessonsIn(lessonFolder())) {
            const std::string name = std::filesystem::path(file.path).stem().string();
            QVERIFY2(metaObject()->indexOfSlot((name + "()").c_str()) >= 0, name.c_str());
        }
    }
};

KVSCOPE_CORE_TEST(LessonNumbersTest)
#include "lesson_numbers_test.moc"
