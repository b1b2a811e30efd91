// Findings beside a step player: a view that does not follow the steps says that it shows their end.
#include "tests/app/classroom.h"
#include "tests/support/test_program.h"

#include <QSettings>

using namespace kvscope;
using kvscope::testing::Classroom;

class StepFindingsTest : public QObject {
    Q_OBJECT

private slots:
    void init() { QSettings().clear(); }

    // The profile shows what is kept in the end, also while the steps beside it are at their beginning.
    void whatDoesNotFollowTheStepsSaysSo() {
        constexpr int kBlocks = 7;
        const QString words = "After the last step: ";
        Classroom open;
        open.openLesson(kBlocks);
        open.dock("token_profile")->present();
        QTRY_VERIFY(open.steps().steps() > 0);
        const auto saysEnd = [&](const char* dock) {
            open.settle();
            return open.dock(dock)->titleBarWidget()->findChild<QLabel*>("viewFinding")->toolTip().startsWith(words);
        };
        QVERIFY(saysEnd("token_profile") && !saysEnd("block_timeline"));
        open.bench.setCursor(std::nullopt);
        QVERIFY(!saysEnd("token_profile"));
        open.bench.setCursor(128);
        QVERIFY(saysEnd("token_profile"));
    }
};

KVSCOPE_WINDOW_TEST(StepFindingsTest)
#include "step_findings_test.moc"
