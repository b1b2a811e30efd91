// Every lesson is opened and its answer computed: what the text explains must be what comes out. The numbers themselves
// are counted again from the policies' results.
#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QTemporaryDir>
#include <QTest>

#include "app/lessons/lesson.h"
#include "app/lessons/lesson_answer.h"
#include "app/lessons/lesson_quantities.h"
#include "app/study/live_rows.h"
#include "app/study/resources.h"
#include "app/study/session_file.h"
#include "app/study/session_source.h"
#include "core/metrics/fidelity.h"
#include "core/policies/balance/balance_log.h"
#include "core/policies/subgen/subgen_log.h"
#include "tests/app/open_lesson.h"
#include "tests/support/error_message.h"
#include "tests/support/test_program.h"

#include <cmath>
#include <set>

using namespace kvscope;
using kvscope::testing::OpenLesson;

namespace {

const std::string kFolder = kvscope::testing::lessonFolder();

} // namespace

class LessonsTest : public QObject {
    Q_OBJECT

private slots:
    void theProgramFindsThemInOrder() {
        const auto lessons = lessonsIn(kFolder);
        QCOMPARE(lessons.size(), std::size_t{16});
        for (std::size_t i = 0; i < lessons.size(); ++i) QCOMPARE(lessons[i].lesson.number, static_cast<int>(i) + 1);
        QCOMPARE(lessonsIn(findResource("resources/lessons")).size(), lessons.size());
        QVERIFY(lessonsIn("/nowhere").empty());
    }

    void aViewThatDoesNotExistIsNamed() {
        for (const char* part :
             {R"("views": ["token_strp"])", R"("stops": [{"text": "c", "views": ["token_strp"]}])"}) {
            Session session;
            session.lesson = std::string(R"({"title": "a", "text": "b", )") + part + "}";
            const std::string said = errorMessage([&] { (void)lessonOf(session); });
            QVERIFY2(said.find("there is no view 'token_strp'") != std::string::npos, said.c_str());
            QVERIFY2(said.find("token_strip") != std::string::npos, said.c_str());
        }
    }

    void theComputedAnswerIsTheOneThatTheTextExplains_data() {
        QTest::addColumn<QString>("path");
        for (const LessonFile& file : lessonsIn(kFolder))
            QTest::newRow(file.lesson.title.c_str()) << QString::fromStdString(file.path);
    }
    void theComputedAnswerIsTheOneThatTheTextExplains() {
        QFETCH(QString, path);
        OpenLesson open(QFileInfo(path).baseName().toStdString());
        QVERIFY(open.bench->capture());
        open.bench->change([&](Session& s) { applySetting(s, open.lesson.asked); }, "Question");
        open.executor.runAll();
        for (const PaneData& pane : open.bench->viewInput().panes) QVERIFY2(pane.result, pane.error.c_str());
        const LessonAnswer answer = open.answer();
        QVERIFY2(answer.choice == open.lesson.claim, answer.valueText.c_str());
        QVERIFY2(answer.text.find_first_of("{}") == std::string::npos, answer.text.c_str());
        QVERIFY2(answer.text.find(answer.valueText) != std::string::npos, answer.text.c_str());
        qInfo("%s", answer.text.c_str());
    }

    void everyStopCanBeGoneTo_data() { theComputedAnswerIsTheOneThatTheTextExplains_data(); }
    void everyStopCanBeGoneTo() {
        QFETCH(QString, path);
        OpenLesson open(QFileInfo(path).baseName().toStdString());
        QVERIFY(!open.lesson.stops.empty());
        for (const LessonStop& stop : open.lesson.stops) {
            open.bench->change([&](Session& s) { applySetting(s, stop.setting); }, "Stop");
            open.executor.runAll();
            QVERIFY(isAt(open.bench->session(), stop.setting));
            for (const PaneData& pane : open.bench->viewInput().panes) QVERIFY2(pane.result, pane.error.c_str());
        }
    }

    // Whatever the reader did before, a stop shows the same: the start of the lesson with what the stop names.
    void aStopCarriesTheWholeState_data() { theComputedAnswerIsTheOneThatTheTextExplains_data(); }
    void aStopCarriesTheWholeState() {
        QFETCH(QString, path);
        Session session = readSession(path.toStdString());
        noteStart(session);
        const Session start = session;
        for (std::size_t i = 0; i < lessonOf(start)->stops.size(); ++i) {
            Session fresh = start;
            applySetting(fresh, lessonOf(start)->stops[i].setting);
            Session changed = start;
            changed.layer = LayerIndex(5);
            changed.kvHead = KvHeadIndex(0);
            changed.queryHead = QueryHeadIndex(1);
            changed.panes = {{PolicySpec::parse("tova@0.7"), {}, {}}};
            changed.activePane = 0;
            changed.panesLinked = false;
            changed.budget = {Budget::Unit::Tokens, 17};
            changed.seed = 9;
            changed.cut = "last:100";
            select(changed, {1, 2}, "mine");
            changed.look.cursor = 77;
            changed.look.ranges["token_profile"] = {1, 2, 3, 4};
            changed.viewOptions = {{"merge_tree", {{"tree", "first"}}}, {"walk", {{"x", "y"}}}};
            changed.look.theme = ThemeChoice::Dark; // the interface is the reader's
            const auto stops = lessonOf(changed)->stops;
            QVERIFY(!isAt(changed, stops[i].setting));
            applySetting(changed, stops[i].setting);
            QVERIFY(isAt(changed, stops[i].setting));
            QCOMPARE(changed.look.theme, ThemeChoice::Dark);
            changed.look.theme = fresh.look.theme;
            QVERIFY2(changed == fresh, lessonOf(start)->stops[i].text.c_str());
        }
        // The file is as it was, and the start is noted once.
        QTemporaryDir folder;
        const std::string copy = folder.filePath("copy.kvscope").toStdString();
        writeSession(copy, start);
        Session again = readSession(copy);
        noteStart(again);
        QCOMPARE(again.lesson, start.lesson);
    }

    void blockEvictionsAreCountedAsTheyHappened() {
        const OpenLesson open("blocks");
        const auto result = open.result(0);
        std::set<TokenIndex> cache;
        double left = 0, own = 0;
        // Blocks of 128 again, token by token.
        for (TokenIndex token = 0, step = 0; token < result->visible; ++token) {
            cache.insert(token);
            const bool blockEnds = (token + 1) % 128 == 0 || token + 1 == result->visible;
            if (!blockEnds || cache.size() <= 249) continue;
            for (const TokenIndex gone : result->steps.at(static_cast<std::size_t>(step)).evicted[open.head()]) {
                QVERIFY(cache.erase(gone));
                ++left;
                own += gone / 128 == token / 128 ? 1 : 0;
            }
            ++step;
            QCOMPARE(cache.size(), std::size_t{249});
        }
        QCOMPARE(open.quantity("same_block_evictions"), own / left);
        const std::vector<TokenIndex> oneShot = open.result(1)->selection.heads[open.head()].kept;
        const auto both =
            std::count_if(oneShot.begin(), oneShot.end(), [&](TokenIndex t) { return cache.count(t) > 0; });
        QCOMPARE(open.quantity("shared_with_next"), static_cast<double>(both) / 249);
    }

    void neededRetentionIsWhereTheErrorComesDownForGood() {
        OpenLesson open("compactor");
        const double needed = open.quantity("needed_retention");
        const auto errorAt = [&](double retention) {
            open.bench->change([&](Session& s) { setBudget(s, {Budget::Unit::Fraction, retention}); }, "Budget");
            open.executor.runAll();
            const auto& errors = open.result(0)->fidelity->meanOutputError;
            return (errors[4] + errors[5] + errors[6] + errors[7]) / 4; // the query heads of KV head 1
        };
        for (int i = static_cast<int>(std::lround(needed * 20)); i <= 20; ++i)
            QVERIFY2(errorAt(i / 20.0) <= 0.1, qPrintable(QString::number(i / 20.0)));
        QVERIFY(errorAt(needed - 0.05) > 0.1);
        QCOMPARE(open.quantity("output_error"), errorAt(needed - 0.05));
        QVERIFY_THROWS_EXCEPTION(Error, open.quantity("needed_retention", 7)); // a lesson's file may name any pane
    }

    void clustersAndWalksAreThoseOfTheLogs() {
        const OpenLesson subgen("subgen");
        const auto clusters =
            std::dynamic_pointer_cast<const SubgenLog>(subgen.result(0, true)->log)->heads[subgen.head()];
        std::set<std::int32_t> firstHalf, all;
        for (std::size_t token = 0; token < clusters.cluster.size(); ++token) {
            all.insert(clusters.cluster[token]);
            if (token < 497) firstHalf.insert(clusters.cluster[token]);
        }
        QCOMPARE(subgen.quantity("cluster_count"), static_cast<double>(all.size()));
        QCOMPARE(subgen.quantity("late_clusters"),
                 static_cast<double>(all.size() - firstHalf.size()) / static_cast<double>(all.size()));

        const OpenLesson balance("walk");
        const auto walks = std::dynamic_pointer_cast<const BalanceLog>(balance.result(3, true)->log)->walks;
        double walked = 0, coins = 0;
        for (const BalanceWalkLog& walk : walks)
            if (walk.kvHead == 1) {
                walked += walk.discrepancy() * walk.discrepancy();
                coins += walk.fairCoins.back();
            }
        QVERIFY(std::abs(balance.quantity("coin_ratio", 3) - walked / coins) < 1e-9);
        QVERIFY(balance.quantity("coin_ratio", 3) < 0.9 && balance.quantity("coin_ratio", 0) > 0.95);
    }

    void anotherSettingHasAnotherAnswer() {
        OpenLesson open("subgen");
        const double before = open.answer().value;
        open.bench->change([&](Session& s) { applySetting(s, open.lesson.stops[2].setting); }, "Stop");
        QVERIFY(open.answer().value != before);
        QVERIFY(open.answer().text.find(open.answer().valueText) != std::string::npos);
    }

    // Another number of the lesson may be recorded.
    void aComputedValueIsNotCalledRecorded() {
        OpenLesson open("blocks");
        const std::string value = open.answer().valueText;
        open.lesson.recorded = {{"answering_retention@0", 0.7}};
        QVERIFY(!open.answer().isRecorded);
        QCOMPARE(open.answer().valueText, value);
        open.lesson.recorded = {{open.lesson.quantity + "@" + std::to_string(open.lesson.pane), 0.25}};
        QVERIFY(open.answer().isRecorded);
        QCOMPARE(open.answer().value, 0.25);
    }

    void aPaneThatWasRemovedIsNamed() {
        OpenLesson open("blocks");
        open.bench->change([](Session& s) { removePane(s, 1); }, "Remove pane");
        QVERIFY(errorMessage([&] { open.answer(); }).find("pane C") != std::string::npos);
        open.bench->change([](Session& s) { s.panes[0].policy = PolicySpec::parse("keydiff"); }, "Policy");
        open.lesson.answer = "{value}";
        open.lesson.quantity = "coin_ratio";
        open.lesson.pane = 0;
        QVERIFY(errorMessage([&] { open.answer(); }).find("no steps of the kind") != std::string::npos);
    }

    void theNumberDecidesTheChoiceAtItsBounds() {
        OpenLesson open("blocks");
        const double value = open.answer().value;
        open.lesson.choices = {{"below", value}, {"from here on", INFINITY}};
        QCOMPARE(open.answer().choice, 1);
        open.lesson.choices[0].below = std::nextafter(value, 2);
        QCOMPARE(open.answer().choice, 0);
    }

    void brokenLessonsAreRefusedWithTheirKey_data() {
        QTest::addColumn<QByteArray>("from");
        QTest::addColumn<QByteArray>("to");
        QTest::addColumn<QString>("expected");
        QTest::newRow("quantity") << QByteArray("\"same_block_evictions\"") << QByteArray("\"same_blok\"")
                                  << "same_block_evictions";
        QTest::newRow("answer") << QByteArray("{value}") << QByteArray("{vlue}") << "vlue";
        QTest::newRow("claim") << QByteArray("\"claim\": 2") << QByteArray("\"claim\": 3") << "question/claim";
        QTest::newRow("bounds") << QByteArray("\"below\": 0.5") << QByteArray("\"below\": 0.1") << "question/choices";
        QTest::newRow("equal bounds") << QByteArray("\"below\": 0.5") << QByteArray("\"below\": 0.3333")
                                      << "question/choices";
        QTest::newRow("no text") << QByteArray("\"choices\"") << QByteArray("\"chioces\"") << "choices";
        QTest::newRow("policy of a stop") << QByteArray("keydiff,prompt_block=32") << QByteArray("kediff") << "keydiff";
    }
    void brokenLessonsAreRefusedWithTheirKey() {
        QFETCH(QByteArray, from);
        QFETCH(QByteArray, to);
        QFETCH(QString, expected);
        QFile file(QString::fromStdString(kFolder + "/blocks.kvscope"));
        QVERIFY(file.open(QIODevice::ReadOnly));
        QByteArray text = file.readAll();
        QVERIFY(text.contains(from));
        text.replace(from, to);
        QTemporaryDir folder;
        QFile broken(folder.filePath("broken.kvscope"));
        QVERIFY(broken.open(QIODevice::WriteOnly));
        broken.write(text);
        broken.close();
        const auto message = QString::fromStdString(errorMessage([&] { lessonsIn(folder.path().toStdString()); }));
        QVERIFY2(message.contains(expected), qPrintable(message));
    }

    void oneBrokenLessonHidesNoOtherAndACopyIsNotItsOriginal() {
        QTemporaryDir folder;
        const auto write = [&](const char* name, const char* from, const char* to) {
            QFile file(QString::fromStdString(kFolder + "/blocks.kvscope")), made(folder.filePath(name));
            QVERIFY(file.open(QIODevice::ReadOnly) && made.open(QIODevice::WriteOnly));
            QByteArray text = file.readAll();
            QVERIFY(text.contains(from));
            made.write(text.replace(from, to));
        };
        write("broken.kvscope", "\"same_block_evictions\"", "\"same_blok\"");
        write("copy.kvscope", "\"claim\": 2", "\"claim\": 1");
        std::vector<std::string> broken;
        std::vector<LessonFile> files = lessonsIn(kFolder);
        const auto shipped =
            std::ranges::find_if(files, [](const LessonFile& file) { return file.path.ends_with("/blocks.kvscope"); });
        const Session original = readSession(shipped->path);
        Session copy = readSession(folder.filePath("copy.kvscope").toStdString());
        for (const LessonFile& own : readableLessonsIn(folder.path().toStdString(), broken)) files.push_back(own);
        QCOMPARE(files.size(), std::size_t{17});
        QCOMPARE(broken.size(), std::size_t{1});
        QVERIFY2(broken[0].find("broken.kvscope") != std::string::npos, broken[0].c_str());
        noteStart(copy); // as opening does
        QCOMPARE(fileOf(copy, files), &files.back());
        QCOMPARE(fileOf(original, files)->path, kFolder + "/blocks.kvscope");
        copy.lesson = std::string("{\"title\": \"").append(files[3].lesson.title).append("\", \"text\": \"older\"}");
        QCOMPARE(fileOf(copy, files), &files[3]);
        QCOMPARE(fileOf(Session{}, files), nullptr);
    }

    // Where the project's Python environment is (resources/dev/python_tests.sh makes it), the shipped model is asked.
    void theModelAnswersAsRecorded() {
        const QDir cache(QDir::homePath() + "/.cache/kvscope");
        QString python;
        for (const QString& made : cache.entryList({"python-*"}, QDir::Dirs))
            if (const QString one = cache.filePath(made); QFileInfo::exists(one + "/whole"))
                python = one + "/venv/bin/python";
        if (python.isEmpty()) QSKIP("no Python environment");
        OpenLesson open("answer");
        auto described = live::descriptionOf(open.lesson.live);
        QVERIFY2(QFileInfo::exists(QString::fromStdString(described.model.path) + "/config.json"),
                 described.model.path.c_str());
        described.command =
            "env PYTHONPATH='" + kvscope::testing::sourceDir() + "/resources/python' '" + python.toStdString() + "'";
        const auto file = open.bench->capture();
        QCOMPARE(open.answer().valueText, std::string("100.0 %"));
        QVERIFY(open.answer().isRecorded);
        Session session = open.bench->session();
        nameSource(session, {{}, SharedText(live::textOf(described))});
        open.bench->openSession(session);
        open.executor.runAll();
        QVERIFY(open.bench->live());
        // The same prompt as the capture's, but for the end of the answer.
        const auto& ids = open.bench->live()->tokens().ids;
        QVERIFY(std::equal(ids.begin(), ids.end(), file->tokens().ids.begin()));
        QCOMPARE(ids.size() + 1, file->tokens().ids.size());
        for (std::size_t pane = 0; pane < 3; ++pane)
            QCOMPARE(open.quantity("answering_retention", pane),
                     open.lesson.recorded.at("answering_retention@" + std::to_string(pane)));
        QVERIFY(!open.answer().isRecorded);
        QCOMPARE(open.answer().choice, open.lesson.claim);
        // What its stops say that the panes write: the code of the garden at 100 %, at 30 % C's code in its window.
        const auto written = [&](std::size_t stop, std::size_t pane) {
            open.bench->change([&](Session& s) { applySetting(s, open.lesson.stops[stop].setting); }, "Stop");
            open.executor.runAll();
            const live::LiveAnswers answers(open.bench->live(), live::LiveAnswers::Rounds::None);
            std::vector<LiveRow> rows(1, {.pane = open.bench->request()->panes[pane]});
            sendRow(rows[0], open.bench->runner(), answers, {});
            askRows(rows, answers, {.mostTokens = static_cast<int>(answers.answer().size())}, {});
            return rows[0].greedy ? QString::fromStdString(rows[0].greedy->text).trimmed() : QString("nothing");
        };
        for (std::size_t pane = 0; pane < 3; ++pane) QCOMPARE(written(0, pane), QString("81590"));
        QCOMPARE(written(2, 2), QString("83016"));
    }

    void aSavedLessonIsStillALesson() {
        QTemporaryDir folder;
        const std::string path = folder.filePath("mine.kvscope").toStdString();
        const Session session = readSession(kFolder + "/blocks.kvscope");
        writeSession(path, session);
        QCOMPARE(lessonOf(readSession(path))->question, lessonOf(session)->question);
        QVERIFY(!lessonOf(Session{}));
    }
};

KVSCOPE_CORE_TEST(LessonsTest)
#include "lessons_test.moc"
