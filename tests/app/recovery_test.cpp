// What a window showed is kept in a file while it is open, and offered when it did not end by being closed.
#include <QtTest>

#include "app/study/session_file.h"
#include "app/window/actions/recovery.h"
#include "tests/app/window_fixture.h"
#include "tests/support/test_program.h"

#include <QDir>
#include <QFile>
#include <QPushButton>
#include <QSettings>
#include <QTemporaryDir>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace kvscope;
using kvscope::testing::OpenWindow;

namespace {

QStringList filesIn(const QTemporaryDir& folder) { return QDir(folder.path()).entryList(QDir::Files, QDir::Name); }

/// A process number that no process has.
const QString kGone = "999999999";

/// What a window on layer 3 leaves that crashes.
void leaveSession(const OpenWindow& open, const QTemporaryDir& folder, const QString& process = kGone) {
    Session session = open.bench.session();
    session.layer = LayerIndex(3);
    writeSession(folder.filePath("session-" + process + ".kvscope").toStdString(), session);
    QFile stack(folder.filePath("stack-" + process + ".txt"));
    QVERIFY(stack.open(QIODevice::WriteOnly) && stack.write("kvscope crashed, signal 11\n") > 0);
}

} // namespace

class RecoveryTest : public QObject {
    Q_OBJECT

private slots:
    void init() {
        QSettings().clear();
        QSettings().setValue("tourTaken", true);
    }

    void whatIsShownIsKeptUntilTheWindowIsClosed() {
        const QTemporaryDir folder;
        OpenWindow open;
        {
            const Recovery recovery(open.bench, open.window.notices(), folder.filePath("state/kvscope"));
            open.bench.change([](Session& s) { s.layer = LayerIndex(4); }, "Layer");
            open.settle();
            const QString name = QString("session-%1.kvscope").arg(QCoreApplication::applicationPid());
            const QString path = folder.filePath("state/kvscope/" + name);
            QVERIFY(QFile::exists(path));
            const Session kept = readSession(path.toStdString());
            QCOMPARE(kept.layer, LayerIndex(4));
            QCOMPARE(kept.capturePath, open.bench.session().capturePath);
            open.bench.closeCapture();
            open.settle();
            QVERIFY(!QFile::exists(path)); // nothing is shown
            open.bench.undo();
            open.settle();
            QVERIFY(QFile::exists(path));
        }
        QVERIFY(QDir(folder.filePath("state/kvscope")).isEmpty());
    }

    void aLostSessionIsOfferedAndRestored() {
        const QTemporaryDir folder;
        OpenWindow open;
        leaveSession(open, folder);
        {
            Recovery recovery(open.bench, open.window.notices(), folder.path());
            recovery.offer();
            const QString said = open.window.notices().messages().join('\n');
            QVERIFY2(said.contains("ended without being closed") && said.contains("of needle-1k.h5") &&
                         said.contains("stack-" + kGone),
                     qPrintable(said));
            open.arrange();
            QVERIFY(open.noticeButton("Restore"));
            QTest::mouseClick(open.noticeButton("Restore"), Qt::LeftButton);
            QVERIFY(open.until([&] { return open.bench.session().layer == LayerIndex(3); }));
            QCOMPARE(open.bench.history().file(), std::string()); // Save asks for a name
            open.settle();
        }
        QCOMPARE(filesIn(folder), QStringList()); // a window was closed that had offered it
    }

    /// In a container without an init process the number stays taken.
    void aProcessThatEndedUnnoticedIsGone() {
        const QTemporaryDir folder;
        OpenWindow open;
        const pid_t ended = ::fork();
        if (ended == 0) {
            ::prctl(PR_SET_NAME, "kvscope");
            ::_exit(1);
        }
        siginfo_t how;
        QCOMPARE(::waitid(P_PID, static_cast<id_t>(ended), &how, WEXITED | WNOWAIT), 0);
        leaveSession(open, folder, QString::number(ended));
        Recovery recovery(open.bench, open.window.notices(), folder.path());
        recovery.offer();
        QVERIFY(open.window.notices().messages().join('\n').contains("ended without being closed"));
        QCOMPARE(::waitpid(ended, nullptr, 0), ended);
    }

    void aSessionThatCannotBeRestoredIsKept() {
        const QTemporaryDir folder;
        OpenWindow open;
        Session session = open.bench.session();
        session.capturePath = folder.filePath("away/needle-1k.h5").toStdString();
        writeSession(folder.filePath("session-" + kGone + ".kvscope").toStdString(), session);
        {
            Recovery recovery(open.bench, open.window.notices(), folder.path());
            recovery.offer();
            open.arrange();
            QTest::mouseClick(open.noticeButton("Restore"), Qt::LeftButton);
            open.settle();
            QVERIFY2(open.window.notices().messages().join('\n').contains("the session is kept"), "the remedy");
            QVERIFY(open.noticeButton("Restore")); // still offered
        }
        QVERIFY(filesIn(folder).contains("session-" + kGone + ".kvscope"));
    }

    void anOfferThatNobodyAnsweredStands() {
        const QTemporaryDir folder;
        OpenWindow open;
        leaveSession(open, folder);
        const auto windowThat = [&](bool declines) {
            Recovery recovery(open.bench, open.window.notices(), folder.path());
            recovery.offer();
            if (declines) open.window.notices().dismiss("recovery"); // by its cross
        };
        windowThat(false);
        QCOMPARE(filesIn(folder).size(), 2);
        windowThat(true);
        QCOMPARE(filesIn(folder), QStringList());
    }

    /// They stand until they are answered or closed, so they may lie over nothing: neither panes nor docks.
    void offersAndErrorsHaveAPlaceOfTheirOwn() {
        for (const QSize size : {QSize(1280, 720), QSize(1440, 900)}) {
            const QTemporaryDir folder;
            OpenWindow open(size);
            leaveSession(open, folder);
            const QRect before = open.window.canvases()->geometry();
            NoticeStrip& notices = open.window.notices();
            Recovery recovery(open.bench, notices, folder.path());
            const auto covered = [&](const QRect& place) {
                QStringList names;
                for (const QWidget* panel : open.window.findChildren<QWidget*>(Qt::FindDirectChildrenOnly))
                    if (panel->isVisible() && panel != &notices && panel != open.window.menuWidget() &&
                        panel->geometry().intersects(place))
                        names << panel->objectName() + panel->metaObject()->className();
                return names.join(' ');
            };
            notices.show("error", NoticeStrip::Tone::Error, "there is no such file");
            open.arrange();
            QCOMPARE(covered(notices.geometry()), QString());
            notices.dismiss("error");
            open.arrange();
            QCOMPARE(open.window.canvases()->geometry(), before);
            notices.show("error", NoticeStrip::Tone::Error, "there is no such file");
            recovery.offer();
            open.arrange();
            QCOMPARE(covered(notices.geometry()), QString());
            notices.show("written", NoticeStrip::Tone::Success, "Written: a.svg"); // not among them
            open.bench.change([](Session& s) { s.look.theme = ThemeChoice::Dark; }, "Theme");
            open.arrange();
            int bottom = 0;
            for (const char* id : {"error", "recovery"}) { // from the top
                const QFrame* row = notices.findChild<QFrame*>(id);
                QVERIFY(row->height() >= row->heightForWidth(row->width()) && row->y() >= bottom);
                QCOMPARE(covered(row->geometry().translated(notices.pos())), QString());
                bottom = row->geometry().bottom();
            }
            QVERIFY(!notices.passing()->geometry().intersects(notices.geometry()));
        }
    }

    void nothingIsOfferedWhereNothingWasLost() {
        const QTemporaryDir folder;
        OpenWindow open;
        Recovery recovery(open.bench, open.window.notices(), folder.path());
        open.settle();
        recovery.offer(); // its own file lies there
        QCOMPARE(open.window.notices().messages(), QStringList());
    }
};

KVSCOPE_WINDOW_TEST(RecoveryTest)
#include "recovery_test.moc"
