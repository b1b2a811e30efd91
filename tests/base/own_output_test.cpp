// Outputs and inputs that are one file, whatever the two are called.
#include "core/base/atomic_file.h"
#include "tests/support/error_message.h"
#include "tests/support/test_program.h"

#include <QDir>
#include <QFile>
#include <QTemporaryDir>
#include <QtTest>

using namespace kvscope;

class OwnOutputTest : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;

    std::string at(const char* name) const { return m_folder.filePath(name).toStdString(); }
    void make(const char* name) const { QVERIFY(QFile(m_folder.filePath(name)).open(QIODevice::WriteOnly)); }

private slots:
    void initTestCase() {
        make("capture.h5");
        QVERIFY(QFile::link(m_folder.filePath("capture.h5"), m_folder.filePath("link.h5")));
        QVERIFY(QDir(m_folder.path()).mkdir("folder"));
    }

    void namesOfOneFile() {
        QVERIFY(isSameFile(at("capture.h5"), at("capture.h5")));
        QVERIFY(isSameFile(at("capture.h5"), at("link.h5")));
        QVERIFY(isSameFile(at("capture.h5"), at("folder/../capture.h5")));
        QVERIFY(isSameFile(at("new.h5"), at("folder/../new.h5"))); // not there yet
        QVERIFY(!isSameFile(at("new.h5"), at("folder/new.h5")));
        QVERIFY(!isSameFile(at("new.h5"), at("capture.h5")));
        QDir::setCurrent(m_folder.path());
        QVERIFY(isSameFile("capture.h5", at("capture.h5")) && isSameFile("./new.h5", at("new.h5")));
    }

    void sourcesAreNoOutputs() {
        const std::string refused = errorMessage([&] {
            checkIsNoSource(at("link.h5"), {"", "0.25", at("capture.h5")});
        });
        QVERIFY2(refused.find("would replace it") != std::string::npos && refused.ends_with(at("link.h5")),
                 refused.c_str());
        checkIsNoSource(at("new.h5"), {at("capture.h5"), at("new.h5")}); // nothing lies there: nothing is read there
        checkIsNoSource(at("folder"), {at("folder")});
    }
};

KVSCOPE_TEST(OwnOutputTest)
#include "own_output_test.moc"
