// Where a command line names several policies after one --policy, and where the word behind is something else.
#include <QTemporaryDir>
#include <QTest>

#include "app/command_line/command.h"
#include "tests/support/test_program.h"

#include <filesystem>
#include <fstream>

using kvscope::withEachPolicyNamed;

namespace {

std::vector<std::string> split(const QString& line) {
    std::vector<std::string> words;
    for (const QString& word : line.split(' ')) words.push_back(word.toStdString());
    return words;
}

} // namespace

class PolicyWordsTest : public QObject {
    Q_OBJECT

private slots:
    void everyPolicyGetsItsOption_data() {
        QTest::addColumn<QString>("typed");
        QTest::addColumn<QString>("read");
        const auto row = [](const char* name, const char* typed, const char* read) {
            QTest::newRow(name) << typed << read;
        };
        row("one", "evict a.h5 --policy keydiff@0.1 --out x", "evict a.h5 --policy keydiff@0.1 --out x");
        row("two", "sweep a.h5 --policy keydiff snapkv --out x", "sweep a.h5 --policy keydiff --policy snapkv --out x");
        row("three of them with specs",
            "sweep --policy keydiff:paper,anchor=mean@0.1 score:z(snapkv)@0.1 imported,file=F.h5:/p@9t --out x",
            "sweep --policy keydiff:paper,anchor=mean@0.1 --policy score:z(snapkv)@0.1 --policy "
            "imported,file=F.h5:/p@9t --out x");
        row("a capture behind", "sweep --policy keydiff snapkv a.h5 b.h5 --out x",
            "sweep --policy keydiff --policy snapkv a.h5 b.h5 --out x");
        row("named one by one", "plot token_strip a.h5 --policy keydiff@0.1 --policy tova@0.1",
            "plot token_strip a.h5 --policy keydiff@0.1 --policy tova@0.1");
        row("with =", "sweep a.h5 --policy=keydiff tova --out x", "sweep a.h5 --policy=keydiff --policy tova --out x");
        row("another option ends them", "sweep a.h5 --policy keydiff --out tova",
            "sweep a.h5 --policy keydiff --out tova");
        row("a view called like a policy", "plot --policy keydiff@0.1 leverage a.h5",
            "plot --policy keydiff@0.1 leverage a.h5");
        row("a policy called like a view", "plot curves a.h5 --policy keydiff leverage --retention 0.1",
            "plot curves a.h5 --policy keydiff --policy leverage --retention 0.1");
        row("no such policy", "sweep --policy keydiff keydif a.h5", "sweep --policy keydiff keydif a.h5");
        row("its value, whatever it is", "evict --policy --out x", "evict --policy --out x");
    }
    void everyPolicyGetsItsOption() {
        QFETCH(QString, typed);
        QFETCH(QString, read);
        QCOMPARE(withEachPolicyNamed(split(typed)), split(read));
    }

    void aFileCalledLikeAPolicyIsAFile() {
        QTemporaryDir folder;
        const auto before = std::filesystem::current_path();
        std::filesystem::current_path(folder.path().toStdString());
        std::ofstream("tova") << "a capture";
        const auto words = split("sweep --policy keydiff tova");
        const auto read = withEachPolicyNamed(words);
        std::filesystem::current_path(before);
        QCOMPARE(read, words);
    }

    void nothingComesOfNothing() { QVERIFY(withEachPolicyNamed({}).empty()); }
};

KVSCOPE_CORE_TEST(PolicyWordsTest)
#include "policy_words_test.moc"
