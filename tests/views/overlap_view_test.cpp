// Overlap in docks of every shape: texts stay apart, numbers inside their cells, bars long enough to compare, names
// where there is room.
#include "tests/support/scene_checks.h"
#include "tests/support/scene_text.h"
#include "tests/support/test_program.h"
#include "tests/views/view_test.h"
#include "views/common/view_facts.h"
#include "views/scene/axes.h"
#include "views/view.h"

#include <algorithm>
#include <cmath>

using namespace kvscope;
using namespace kvscope::view_fixture;

namespace {

const std::vector<std::string> kThree = {"keydiff@0.25", "snapkv@0.25", "streaming_llm@0.25"};
const std::vector<std::string> kSix = {"keydiff@0.25", "snapkv@0.25", "streaming_llm@0.25",
                                       "tova@0.25",    "h2o@0.25",    "key_norm@0.25"};

} // namespace

class OverlapViewTest : public ViewTest {
    Q_OBJECT

    const ParameterValues m_options{m_view.card().options};

    /// Cells with the numbers in them: none wider than its cell.
    void numbersAreInTheirCells(const Scene& scene) {
        for (const Drawable& item : scene.items) {
            const auto* text = std::get_if<TextItem>(&item);
            if (!text || text->style.face != FontFace::Monospace || text->text.find('.') == std::string::npos) continue;
            const Box box = textBounds(*text, m_text);
            const bool inside = std::any_of(scene.items.begin(), scene.items.end(), [&](const Drawable& other) {
                const auto* cell = std::get_if<RectangleItem>(&other);
                return cell && cell->pick.kind == PickId::Kind::Cell && cell->box.contains(text->position) &&
                       box.x >= cell->box.x && box.right() <= cell->box.right();
            });
            QVERIFY2(inside, text->text.c_str());
        }
    }

public:
    OverlapViewTest() : ViewTest(viewById("overlap")) {}

private slots:
    void nothingOverlapsOrIsClipped_data() {
        QTest::addColumn<QSize>("size");
        QTest::addColumn<bool>("six");
        for (const QSize size : {QSize(940, 126), QSize(490, 150), QSize(345, 130), QSize(246, 176), QSize(300, 280),
                                 QSize(220, 160), QSize(930, 410), QSize(258, 170)})
            for (const bool six : {false, true})
                QTest::newRow(
                    qPrintable(QString("%1x%2 %3").arg(size.width()).arg(size.height()).arg(six ? "six" : "three")))
                    << size << six;
    }
    void nothingOverlapsOrIsClipped() {
        QFETCH(QSize, size);
        QFETCH(bool, six);
        const ViewInput input = needleInput(six ? kSix : kThree);
        for (const bool forExport : {false, true}) {
            Viewport frame = viewport(size.width(), size.height(), m_text);
            frame.forExport = forExport;
            const Scene scene = m_view.buildScene(input, m_options, frame);
            QCOMPARE(scene_checks::misplacedTexts(scene, m_text), QStringList());
            numbersAreInTheirCells(scene);
        }
    }

    // Three panes in a narrow dock: all six numbers, and the bars below them, not beside them with a pixel or two each.
    void narrowDocksStackMatrixAndBars_data() {
        QTest::addColumn<QSize>("size");
        QTest::newRow("246x176") << QSize(246, 176);
        QTest::newRow("258x170") << QSize(258, 170);
    }
    void narrowDocksStackMatrixAndBars() {
        QFETCH(QSize, size);
        const Scene scene = build(needleInput(kThree), m_options, size.width(), size.height());
        int numbers = 0;
        double matrixEnd = 0, longest = 0, firstBar = 1e9;
        for (const Drawable& item : scene.items) {
            const auto* text = std::get_if<TextItem>(&item);
            numbers += text && text->style.face == FontFace::Monospace && text->text.find('.') != std::string::npos;
            const auto* box = std::get_if<RectangleItem>(&item);
            if (box && box->pick.kind == PickId::Kind::Cell)
                matrixEnd = std::max(matrixEnd, box->box.bottom());
            else if (box && box->fill == themeOf(ThemeId::Light).text3)
                longest = std::max(longest, box->box.width), firstBar = std::min(firstBar, box->box.y);
        }
        QCOMPARE(numbers, 6);
        QVERIFY2(longest > 60 && firstBar > matrixEnd,
                 qPrintable(QString("%1 from %2, matrix to %3").arg(longest).arg(firstBar).arg(matrixEnd)));
        QVERIFY(scene_checks::hasText(scene, "none") && scene_checks::hasText(scene, "Panes that keep a token") &&
                scene_checks::hasText(scene, "Jaccard overlap of kept lists"));
    }

    // "KeyDiff and KeyDiff agree most" names no pair of three.
    void panesOfOnePolicyAreNamedByTheirLetters() {
        const std::string same =
            m_view.finding(needleInput({"keydiff@0.25", "keydiff:kvpress@0.25", "snapkv@0.25"}), m_options);
        QVERIFY2(same.starts_with("A KeyDiff and B KeyDiff agree most"), same.c_str());
        const std::string other = m_view.finding(needleInput({"keydiff@0.25", "snapkv@0.25"}), m_options);
        QVERIFY2(other.starts_with("KeyDiff and SnapKV agree most"), other.c_str());
    }

    // Many panes: the matrix takes the room of the bars before it loses its numbers.
    void sixPanesKeepTheirNumbers() {
        for (const QSize size : {QSize(345, 130), QSize(246, 176), QSize(940, 126)}) {
            const Scene scene = build(needleInput(kSix), m_options, size.width(), size.height());
            const std::vector<std::string> texts = scene_checks::textsOf(scene);
            const auto numbers =
                std::count_if(texts.begin(), texts.end(), [](const std::string& t) { return t.starts_with("0."); });
            QCOMPARE(numbers, 30);
        }
    }

    // Letters are told apart by colour alone unless names stand below, which needs a row or the room under the bars.
    void namesStandWhereThereIsRoom() {
        for (const QSize size : {QSize(493, 210), QSize(1134, 207), QSize(930, 410), QSize(300, 300)}) {
            const Scene scene = build(needleInput(kThree), m_options, size.width(), size.height());
            QVERIFY2(scene_checks::hasText(scene, "KeyDiff, paper") &&
                         scene_checks::hasText(scene, "StreamingLLM, gaps"),
                     qPrintable(QString("%1x%2").arg(size.width()).arg(size.height())));
        }
    }

    void barsCountTheTokensOfEachNumberOfPanes() {
        const ViewInput input = needleInput(kThree);
        std::vector<std::int64_t> counts(input.panes.size() + 1, 0);
        for (TokenIndex token = 0; token < input.cut.token; ++token)
            ++counts[static_cast<std::size_t>(std::ranges::count_if(input.panes, [&](const PaneData& pane) {
                return std::ranges::binary_search(keptTokens(input, pane), token);
            }))];
        const Scene scene = m_view.buildScene(input, m_options, viewport(940, 300, m_text));
        for (const std::int64_t count : counts)
            QVERIFY2(scene_checks::hasText(scene, formatCount(count)), formatCount(count).c_str());
        const std::string none = formatCount(counts.front()) + " by none", finding = m_view.finding(input, m_options);
        QVERIFY2(finding.find(none) != std::string::npos, finding.c_str());
    }

    void theTableHasTheOverlapOfEveryPair() {
        const ViewInput input = needleInput({"keydiff@0.1", "snapkv@0.2", "streaming_llm@0.2"});
        const ViewTable table = m_view.table(input, m_options);
        QCOMPARE(table.rowCount, std::int64_t{3});
        for (std::size_t row = 0; row < 3; ++row)
            for (std::size_t column = 0; column < 3; ++column) {
                const auto &a = keptTokens(input, input.panes[row]), &b = keptTokens(input, input.panes[column]);
                const auto common = std::ranges::count_if(a, [&](TokenIndex t) { return std::ranges::count(b, t); });
                const double overlap = double(common) / double(std::ssize(a) + std::ssize(b) - common);
                QVERIFY(std::abs(std::stod(table.cell(std::int64_t(row), int(column) + 1)) - overlap) < 1e-6);
            }
    }

    void aLowPictureOfThreePanesIsLegible() {
        const Scene scene = build(needleInput(kThree), m_options, 700, 90);
        QCOMPARE(scene_checks::misplacedTexts(scene, m_text), QStringList());
    }

    void onePaneAsksForASecond() {
        const auto texts = scene_checks::textsOf(build(needleInput({"keydiff@0.1"}), m_options, 700, 200));
        QVERIFY2(texts.front().find("second pane") != std::string::npos, texts.front().c_str());
    }
};

KVSCOPE_OFFSCREEN_TEST(OverlapViewTest)
#include "overlap_view_test.moc"
