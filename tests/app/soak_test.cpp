// A working day in one window, by real events: open, drag, switch, export, save, cancel, undo. Afterwards the process
// has the handles, the threads and the memory that it had, and a step of the budget costs what it cost. Part of the
// long tests: KVSCOPE_SOAK_MINUTES (30 there) says how long.
#include <QtTest>

#include "app/window/actions/window_actions.h"
#include "app/window/panels/budget_bar.h"
#include "app/window/widgets/value_slider.h"
#include "app/workbench/second_workbench.h"
#include "core/run/stage_cache.h"
#include "tests/app/answer_file_dialog.h"
#include "tests/app/window_fixture.h"
#include "tests/support/source_dir.h"
#include "tests/support/test_program.h"

#include <QAction>
#include <QDialogButtonBox>
#include <QDir>
#include <QFile>
#include <QPushButton>
#include <QSettings>
#include <QTemporaryDir>
#include <QTimer>

#include <algorithm>
#include <ctime>
#include <random>

#include <malloc.h>
#include <unistd.h>

using namespace kvscope;
using kvscope::testing::answerFileDialog;
using kvscope::testing::OpenWindow;

namespace {

const QString kFolder = QString::fromStdString(kvscope::testing::sourceDir());

constexpr qsizetype kSlack = 2; ///< handles and threads that the desktop's libraries open and close by themselves

/// What must not grow.
struct Vitals {
    double mebibytes = 0;          ///< resident, less `cachedMebibytes`
    double cachedMebibytes = 0;    ///< held by the stages' cache, which small samples do not fill in a day
    double allocatedMebibytes = 0; ///< of the heap, less `cachedMebibytes`
    qsizetype files = 0, threads = 0, maps = 0;
    double stepMs = 0; ///< processor time of one step of the budget, the median of some

    QString text() const {
        return QString("%1 MiB (%2 allocated) beside %3 cached, %4 files, %5 threads, %6 maps, %7 ms a step")
            .arg(mebibytes, 0, 'f', 1)
            .arg(allocatedMebibytes, 0, 'f', 1)
            .arg(cachedMebibytes, 0, 'f', 1)
            .arg(files)
            .arg(threads)
            .arg(maps)
            .arg(stepMs, 0, 'f', 1);
    }
};

QByteArray contentOf(const char* path) {
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

double processorMs() {
    timespec now{};
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

qsizetype entriesOf(const char* folder) { return QDir(folder).entryList(QDir::AllEntries | QDir::System).size(); }

template <class Number> Number medianOf(std::vector<Number> numbers) {
    std::ranges::nth_element(numbers, numbers.begin() + std::ssize(numbers) / 2);
    return numbers[numbers.size() / 2];
}

class Day : public OpenWindow {
public:
    explicit Day(unsigned seed) : m_random(seed) {}

    /// `whole`: with what takes a minute.
    void round(bool whole) {
        openAnother("sample_data/story-2k.h5");
        switchAround();
        drag();
        openAnother("resources/lessons/blocks.kvscope");
        press(Qt::Key_PageDown);
        press(Qt::Key_PageUp);
        openAnother("sample_data/needle-1k.h5");
        drag();
        exportFigure();
        if (whole) exportReport(false);
        exportReport(true);
        save();
        compare();
        for (int i = 0; i < 12; ++i) press(Qt::Key_Z, Qt::ControlModifier);
        for (int i = 0; i < 6; ++i) press(Qt::Key_Y, Qt::ControlModifier);
        openAnother("sample_data/needle-1k.h5");
        window.actions()->byName("afresh")->trigger();
        press(Qt::Key_1, Qt::ControlModifier);
    }
    Vitals vitals() {
        Vitals now;
        std::vector<double> steps;
        for (int i = 0; i < 11; ++i) {
            const double before = processorMs();
            press(i % 2 == 0 ? Qt::Key_Right : Qt::Key_Left, Qt::NoModifier, slider());
            steps.push_back(processorMs() - before);
        }
        now.stepMs = medianOf(steps);
        ::malloc_trim(0);
        now.cachedMebibytes = static_cast<double>(bench.runner().cache().bytes()) / (1 << 20);
        now.mebibytes = contentOf("/proc/self/statm").split(' ').value(1).toDouble() *
                            static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20) -
                        now.cachedMebibytes;
        const struct mallinfo2 heap = ::mallinfo2();
        now.allocatedMebibytes = static_cast<double>(heap.uordblks + heap.hblkhd) / (1 << 20) - now.cachedMebibytes;
        now.files = entriesOf("/proc/self/fd");
        now.threads = entriesOf("/proc/self/task");
        now.maps = contentOf("/proc/self/maps").count('\n');
        return now;
    }

private:
    ValueSlider* slider() const { return window.findChild<BudgetBar*>()->slider(); }
    int draw(int below) { return static_cast<int>(m_random() % static_cast<unsigned>(below)); }

    void activate() { // a dialog took the keyboard
        window.activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(&window));
    }
    void press(Qt::Key key, Qt::KeyboardModifiers modifiers = {}, QWidget* on = nullptr) {
        activate();
        QTest::keyClick(on ? on : &window, key, modifiers);
        settle();
    }
    void openAnother(const char* path) {
        window.openPath(kFolder + "/" + path);
        settle();
        QVERIFY2(bench.capture() && bench.opening().name.empty(), path);
    }
    void switchAround() {
        for (const Qt::Key layout : {Qt::Key_3, Qt::Key_4, Qt::Key_2, Qt::Key_1}) {
            press(layout, Qt::ControlModifier);
            press(draw(2) == 0 ? Qt::Key_BracketRight : Qt::Key_BracketLeft);
        }
        press(draw(2) == 0 ? Qt::Key_BraceRight : Qt::Key_BraceLeft);
        press(Qt::Key_N);
        press(Qt::Key_M);
        press(Qt::Key_M);
        for (const char* theme : {"themeDark", "themeLight"}) {
            window.actions()->byName(theme)->trigger();
            settle();
        }
        press(Qt::Key_Escape);
    }
    /// Along the slider, in movements that come faster than their results.
    void drag() {
        ValueSlider* bar = slider();
        const int y = bar->height() / 2, from = bar->width() / 4;
        QTest::mousePress(bar, Qt::LeftButton, {}, {from, y});
        for (int i = 0; i < 20; ++i) {
            QTest::mouseMove(bar, {from + draw(bar->width() / 2), y});
            QCoreApplication::processEvents();
        }
        QTest::mouseRelease(bar, Qt::LeftButton, {}, {from + 5 * draw(10), y});
        settle();
    }
    void exportFigure() {
        const QString path = m_folder.filePath("figure.svg");
        QFile::remove(path);
        QTimer::singleShot(0, qApp, [path] {
            auto* dialog = qobject_cast<QDialog*>(QApplication::activeModalWidget());
            QVERIFY(dialog);
            answerFileDialog(path);
            QTest::mouseClick(dialog->findChild<QDialogButtonBox*>()->button(QDialogButtonBox::Save), Qt::LeftButton);
        });
        activate();
        QTest::keyClick(&window, Qt::Key_E, Qt::ControlModifier);
        settle();
        QVERIFY(QFile::exists(path));
    }
    void exportReport(bool cancelled) {
        const QString path = m_folder.filePath("report.html");
        QFile::remove(path);
        activate();
        answerFileDialog(path);
        window.actions()->byName("report")->trigger();
        if (QPushButton* cancel = cancelled ? noticeButton("Cancel") : nullptr)
            QTest::mouseClick(cancel, Qt::LeftButton);
        settle();
        while (!cancelled && !QFile::exists(path) && jobs->pending > 0) settle(); // on a busy machine
        QCOMPARE(QFile::exists(path), !cancelled);
    }
    void save() {
        const QString path = m_folder.filePath("day.kvscope");
        QFile::remove(path);
        answerFileDialog(path);
        activate();
        QTest::keyClick(&window, Qt::Key_S, Qt::ControlModifier | Qt::ShiftModifier);
        QVERIFY2(QFile::exists(path), qPrintable(window.notices().messages().join(" | ")));
        press(Qt::Key_BracketRight);
        press(Qt::Key_S, Qt::ControlModifier);
        QVERIFY2(bench.history().isSaved(), qPrintable(window.notices().messages().join(" | ")));
    }
    void compare() {
        bench.second().compareWith((kFolder + "/sample_data/story-2k.h5").toStdString());
        settle();
        press(Qt::Key_2, Qt::ControlModifier);
        drag();
        bench.second().stopComparing();
        settle();
    }

    QTemporaryDir m_folder;
    std::mt19937 m_random;
};

} // namespace

class SoakTest : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() {
        QCoreApplication::setAttribute(Qt::AA_DontUseNativeDialogs);
        QSettings().setValue("tourTaken", true);
    }

    void anotherThemeLeavesNothingOfTheOldOneBehind() {
        OpenWindow open;
        std::vector<qsizetype> objects;
        for (int i = 0; i < 4; ++i)
            for (const ThemeChoice choice : {ThemeChoice::Light, ThemeChoice::Dark}) {
                open.bench.change([&](Session& s) { s.look.theme = choice; }, "Theme");
                open.settle();
                if (choice == ThemeChoice::Dark) objects.push_back(open.window.findChildren<QObject*>().size());
            }
        QCOMPARE(objects.back(), objects[1]);
    }

    void aDayInTheWindowLeavesNothingBehind() {
        if (!qEnvironmentVariableIsSet("KVSCOPE_SOAK_MINUTES")) QSKIP("takes minutes: resources/dev/test.sh long");
        const double minutes = qEnvironmentVariable("KVSCOPE_SOAK_MINUTES").toDouble();
        bool seeded = false;
        const int given = qEnvironmentVariableIntValue("KVSCOPE_SEED", &seeded);
        const unsigned seed = seeded ? static_cast<unsigned>(given) : 1;
        qInfo("seed %u", seed);
        Day day(seed);
        const QDeadlineTimer end(static_cast<qint64>(60e3 * minutes));
        std::vector<Vitals> all;
        while (all.size() < 2 || !end.hasExpired()) {
            day.round(minutes > 0);
            if (QTest::currentTestFailed()) return;
            all.push_back(day.vitals());
            qInfo("round %zu: %s", all.size(), qPrintable(all.back().text()));
        }
        // The first quarter starts threads, as many as ever waited for each other, and fills caches.
        const auto part = [&]<class Number>(std::size_t from, std::size_t to, Number Vitals::*number) {
            std::vector<Number> numbers;
            for (std::size_t i = all.size() * from / 4; i < all.size() * to / 4; ++i) numbers.push_back(all[i].*number);
            return medianOf(numbers);
        };
        for (const auto& [name, number] : {std::pair("files", &Vitals::files), std::pair("threads", &Vitals::threads)})
            QVERIFY2(part(3, 4, number) <= part(1, 2, number) + kSlack, name);
        if (minutes <= 0) return;
        for (const auto& [name, number, share] :
             {std::tuple("memory", &Vitals::mebibytes, 1.05), std::tuple("latency", &Vitals::stepMs, 1.25)}) {
            const double early = part(1, 2, number), late = part(3, 4, number);
            qInfo("%s: %.1f in the second quarter, %.1f in the last", name, early, late);
            QVERIFY2(late <= share * early, name);
        }
        QVERIFY(part(3, 4, &Vitals::maps) <= part(1, 2, &Vitals::maps) * 11 / 10);
    }
};

KVSCOPE_WINDOW_TEST(SoakTest)
#include "soak_test.moc"
