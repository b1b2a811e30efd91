// A network drive that does not answer: the window goes on painting, what waits for the disk says so, and nothing is
// lost when nobody wants to wait any longer.
#include <QtTest>

#include "app/study/session_file.h"
#include "tests/app/answer_file_dialog.h"
#include "tests/app/window_fixture.h"
#include "tests/support/test_program.h"

#include <QDir>
#include <QFile>
#include <QMessageBox>
#include <QProgressDialog>
#include <QPushButton>
#include <QSettings>
#include <QTemporaryDir>
#include <QTimer>

#include <condition_variable>
#include <mutex>

#include <sys/syscall.h>
#include <unistd.h>

using namespace kvscope;
using kvscope::testing::answerFileDialog;
using kvscope::testing::OpenWindow;

namespace {

/// The folder on the disk that does not answer; empty: all disks do.
struct SilentDisk {
    std::mutex mutex;
    std::condition_variable answers;
    std::string folder;
};
SilentDisk& silentDisk() {
    static auto& one = *new SilentDisk; // a thread that nobody waits for may still use it
    return one;
}

void setSilent(const QString& folder) {
    {
        const std::lock_guard lock(silentDisk().mutex);
        silentDisk().folder = folder.toStdString();
    }
    silentDisk().answers.notify_all();
}

} // namespace

/// In place of the C library's, for the whole program.
extern "C" int fsync(int file) {
    char path[4096] = {};
    const std::string link = "/proc/self/fd/" + std::to_string(file);
    static_cast<void>(!::readlink(link.c_str(), path, sizeof path - 1));
    {
        std::unique_lock lock(silentDisk().mutex);
        silentDisk().answers.wait(lock, [&] {
            const std::string& silent = silentDisk().folder;
            return silent.empty() || !std::string_view(path).starts_with(silent);
        });
    }
    return static_cast<int>(::syscall(SYS_fsync, file));
}

class SilentDiskTest : public QObject {
    Q_OBJECT

    /// A window on a session of its own with a change that is not saved, on a disk that does not answer.
    struct Unsaved : OpenWindow {
        QTemporaryDir disk;
        QString path = disk.filePath("work.kvscope");

        Unsaved() {
            Session session = bench.session();
            session.layer = LayerIndex(2);
            writeSession(path.toStdString(), session);
            window.openPath(path);
            QVERIFY(until([this] { return bench.session().layer == LayerIndex(2) && bench.history().isSaved(); }));
            bench.change([](Session& s) { s.layer = LayerIndex(4); }, "Layer");
            settle();
            setSilent(disk.path());
        }
        ~Unsaved() { setSilent({}); }
        LayerIndex stored() const { return readSession(path.toStdString()).layer; }
        QStringList files() const { return QDir(disk.path()).entryList(QDir::Files | QDir::Hidden, QDir::Name); }
        int frames() const {
            int sum = 0;
            for (const CanvasWidget* canvas : window.findChildren<CanvasWidget*>()) sum += canvas->framesDrawn();
            return sum;
        }
        QString said() { return window.notices().messages().join(" | "); }
    };

    /// Calls `act` again and again while the dialog of a disk that does not answer is shown, until it returns true.
    static void whileWaiting(std::function<bool(QProgressDialog&)> act) {
        auto* timer = new QTimer(qApp);
        connect(timer, &QTimer::timeout, qApp, [timer, act = std::move(act)] {
            auto* dialog = qobject_cast<QProgressDialog*>(QApplication::activeModalWidget());
            if (dialog && dialog->isVisible() && act(*dialog)) timer->deleteLater();
        });
        timer->start(20);
    }
    static bool stopWaiting(QProgressDialog& dialog) {
        QTest::mouseClick(dialog.findChild<QPushButton*>(), Qt::LeftButton);
        return true;
    }

private slots:
    void initTestCase() { QCoreApplication::setAttribute(Qt::AA_DontUseNativeDialogs); }
    void init() {
        QSettings().clear();
        QSettings().setValue("tourTaken", true);
    }

    void theWindowPaintsUntilTheDiskAnswers() {
        Unsaved open;
        int before = -1;
        bool named = false;
        whileWaiting([&](QProgressDialog& dialog) {
            named = dialog.labelText().contains("work.kvscope");
            if (before < 0) {
                before = open.frames();
                for (CanvasWidget* canvas : open.window.findChildren<CanvasWidget*>()) canvas->update();
            }
            if (open.frames() == before) return false;
            QTest::qVerify(open.stored() == LayerIndex(2), "the old file", "while the disk is silent", __FILE__,
                           __LINE__);
            setSilent({});
            return true;
        });
        QTest::keyClick(&open.window, Qt::Key_S, Qt::ControlModifier);
        QVERIFY(before >= 0 && named);
        QCOMPARE(open.stored(), LayerIndex(4));
        QVERIFY(open.bench.history().isSaved() && !QApplication::activeModalWidget());
        QCOMPARE(open.files(), QStringList{"work.kvscope"});
    }

    void whoStopsWaitingLosesNothing() {
        Unsaved open;
        whileWaiting(stopWaiting);
        QTest::keyClick(&open.window, Qt::Key_S, Qt::ControlModifier);
        QVERIFY2(open.said().contains("did not answer") && open.said().contains("work.kvscope"),
                 qPrintable(open.said()));
        QVERIFY(!open.bench.history().isSaved());
        QCOMPARE(open.stored(), LayerIndex(2));
        setSilent({});
        QTRY_COMPARE(open.stored(), LayerIndex(4)); // written later, whole
        QTRY_COMPARE(open.files(), QStringList{"work.kvscope"});
        open.bench.change([](Session& s) { s.layer = LayerIndex(1); }, "Layer");
        QTest::keyClick(&open.window, Qt::Key_S, Qt::ControlModifier);
        QCOMPARE(open.stored(), LayerIndex(1));
    }

    void theWindowStaysOpenWhenItCannotSave() {
        Unsaved open;
        auto* timer = new QTimer(qApp);
        connect(timer, &QTimer::timeout, qApp, [timer] {
            const auto* box = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
            if (!box) return;
            timer->deleteLater();
            QTest::mouseClick(box->button(QMessageBox::Save), Qt::LeftButton);
        });
        timer->start(20);
        whileWaiting(stopWaiting);
        QVERIFY(!open.window.close());
        QVERIFY(open.window.isVisible() && open.said().contains("did not answer"));
    }

    void aScreenshotWaitsTheSameWay() {
        Unsaved open;
        const QString picture = open.disk.filePath("window.png");
        answerFileDialog(picture);
        whileWaiting(stopWaiting);
        QTest::keyClick(&open.window, Qt::Key_F12);
        QVERIFY2(open.said().contains("did not answer"), qPrintable(open.said()));
        QVERIFY(!QFile::exists(picture));
        setSilent({});
        QTRY_VERIFY(QFile::exists(picture));
        QVERIFY(!QImage(picture).isNull());
    }
};

KVSCOPE_WINDOW_TEST(SilentDiskTest)
#include "silent_disk_test.moc"
