// Which options wait for others: every row names what there is, and what is called idle really changes nothing that is
// drawn or said, on the sample, in the whole picture.
#include "app/export/scene_export.h"
#include "app/text/qt_text_service.h"
#include "core/base/error.h"
#include "tests/support/test_program.h"
#include "tests/views/view_fixture.h"
#include "views/common/view_options.h"

#include <QtTest>

#include <algorithm>
#include <map>

using namespace kvscope;
using namespace kvscope::view_fixture;

namespace {

const ParameterSpec* specOf(const View& view, const std::string& id) {
    for (const ParameterSpec& spec : *view.card().options)
        if (spec.id == id) return &spec;
    return nullptr;
}

bool takes(const View& view, const std::string& id, const std::string& value) {
    try {
        ParameterValues(view.card().options).setText(id, value);
        return true;
    } catch (const Error&) {
        return false;
    }
}

/// Another value than it has.
void change(const ParameterSpec& spec, ParameterValues& options) {
    const std::string before = options.text(spec.id);
    switch (spec.kind) {
    case ParameterKind::Choice:
        options.set(spec.id, options.choice(spec.id) == spec.choices.front().id ? spec.max : spec.min);
        break;
    case ParameterKind::Flag: options.set(spec.id, options.flag(spec.id) ? 0 : 1); break;
    case ParameterKind::Text: options.setText(spec.id, spec.id == "range" ? "0.1..0.2" : "/nowhere.csv"); break;
    case ParameterKind::Integer:
    case ParameterKind::Real: options.set(spec.id, options.real(spec.id) == spec.max ? spec.min : spec.max); break;
    }
    QVERIFY(options.text(spec.id) != before);
}

/// Sets `options` so that no term of the need holds.
void breakNeed(const View& view, const OptionNeed& need, ParameterValues& options) {
    for (const OptionIs& term : need.anyOf) {
        const auto isOne = [&](const std::string& value) {
            return std::find(term.values.begin(), term.values.end(), value) != term.values.end();
        };
        if (term.values.empty() || !isOne(options.text(term.id))) continue; // at the default, or already another
        const ParameterSpec& spec = *specOf(view, term.id);
        if (spec.kind == ParameterKind::Text)
            options.setText(term.id, "window");
        else if (spec.kind == ParameterKind::Flag)
            change(spec, options);
        else
            for (const ParameterChoice& choice : spec.choices)
                if (!isOne(choice.id)) options.setText(term.id, choice.id); // the last of them stays
    }
}

/// A policy whose results the view shows.
std::vector<std::string> policiesFor(const View& view) {
    static const std::map<std::string, std::string> own = {{"walk", "balancekv_stream,batch=64"},
                                                           {"merge_tree", "balancekv_stream,batch=64"},
                                                           {"clustering", "subgen@0.25"},
                                                           {"curves", "snapkv@0.25"}};
    const auto found = own.find(view.card().id);
    return {found == own.end() ? "keydiff@0.25" : found->second};
}

} // namespace

class OptionNeedsTest : public QObject {
    Q_OBJECT

    std::unique_ptr<QtTextService> m_service;

    QImage pictureOf(const View& view, const ParameterValues& options, std::string& said) const {
        const ViewInput input = inputFor(view, policiesFor(view), options);
        said = view.finding(input, options);
        return renderScene(view.buildScene(input, options, viewport(700, 500, *m_service)), 1);
    }

private slots:
    void initTestCase() { m_service = std::make_unique<QtTextService>(); }

    void everyRowNamesOptionsAndValuesThatThereAre() {
        int rows = 0;
        for (const View* view : allViews())
            for (const OptionNeed& need : view->card().needs) {
                const std::string where = view->card().id + ": " + need.id;
                QVERIFY2(specOf(*view, need.id), where.c_str());
                QVERIFY2(!need.anyOf.empty(), where.c_str());
                for (const OptionIs& term : need.anyOf) {
                    QVERIFY2(term.id != need.id && specOf(*view, term.id), where.c_str());
                    for (const std::string& value : term.values)
                        QVERIFY2(takes(*view, term.id, value), (where + " while " + term.id + "=" + value).c_str());
                }
                ++rows;
            }
        QVERIFY2(rows >= 30, qPrintable(QString::number(rows)));
    }

    void everyOptionCanBeMadeToMatterAndToWait() {
        for (const View* view : allViews())
            for (const OptionNeed& need : view->card().needs) {
                const std::string where = view->card().id + ": " + need.id;
                ParameterValues options(view->card().options);
                breakNeed(*view, need, options);
                QVERIFY2(whyIdle(*view, options, need.id).starts_with("Matters only while "), where.c_str());
                ParameterValues met(
                    view->card().options); // the first term of each of its rows, and what those wait for
                for (int depth = 0; depth < 3 && !whyIdle(*view, met, need.id).empty(); ++depth)
                    for (const OptionNeed& row : view->card().needs)
                        if (row.id == need.id && !row.anyOf.front().values.empty())
                            met.setText(row.anyOf.front().id, row.anyOf.front().values.front());
                        else if (row.id == need.id)
                            met.setText(row.anyOf.front().id, "920,615");
                QVERIFY2(whyIdle(*view, met, need.id).empty(), (where + ": " + whyIdle(*view, met, need.id)).c_str());
            }
    }

    void whatIsIdleChangesNothing() {
        for (const View* view : allViews())
            for (const OptionNeed& need : view->card().needs) {
                const std::string where = view->card().id + ": " + need.id;
                ParameterValues options(view->card().options);
                breakNeed(*view, need, options);
                if (options.has("iterations")) options.set("iterations", 50); // t-SNE need not be good here
                ParameterValues other = options;
                change(*specOf(*view, need.id), other);
                if (need.id == "iterations") options.set("iterations", 60);
                std::string said, saidOther;
                const QImage before = pictureOf(*view, options, said), after = pictureOf(*view, other, saidOther);
                QVERIFY2(before == after, where.c_str());
                QVERIFY2(said == saidOther, (where + ": " + said + " / " + saidOther).c_str());
            }
    }

    void theReasonIsToldInTheWordsOfTheMenu() {
        const View& map = viewById("attention_map");
        ParameterValues options(map.card().options);
        QCOMPARE(whyIdle(map, options, "chunk"), std::string("Matters only while Map is Chunks, or Minus is Chunks"));
        options.setText("minus", "chunks");
        QCOMPARE(whyIdle(map, options, "chunk"), std::string());
        QCOMPARE(whyIdle(map, options, "floor"),
                 std::string("Matters only while Minus is Nothing")); // of the scale, for which it waits
        options.setText("minus", "nothing");
        QCOMPARE(whyIdle(map, options, "floor"), std::string());
        options.setText("scale", "rank");
        QCOMPARE(whyIdle(map, options, "floor"), std::string("Matters only while Scale is Logarithmic"));
        QCOMPARE(whyIdle(map, options, "around"), std::string("Matters only while Cell is set"));
        QCOMPARE(whyIdle(map, options, "map"), std::string());
        ParameterValues curves(viewById("curves").card().options);
        curves.setText("vary", "window");
        ParameterValues projection(viewById("key_projection").card().options);
        projection.setText("retained_only", "true");
        QCOMPARE(whyIdle(viewById("key_projection"), projection, "crowd"),
                 std::string("Matters only while Kept tokens only is off"));
        QCOMPARE(whyIdle(viewById("curves"), curves, "against"),
                 std::string("Matters only while Vary is empty or budget"));
    }
};

KVSCOPE_OFFSCREEN_TEST(OptionNeedsTest)
#include "option_needs_test.moc"
