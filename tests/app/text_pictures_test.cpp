// Pictures of text runs: kept while they are drawn, however much memory they take.
#include <QtTest>

#include "app/export/text_pictures.h"
#include "tests/support/test_program.h"

using namespace kvscope;

class TextPicturesTest : public QObject {
    Q_OBJECT

private slots:
    void whatIsDrawnStays() {
        TextPictures pictures;
        TextItem large;
        large.style.size = 400;
        const auto keyOf = [&](int i) {
            large.text = "run " + std::to_string(i);
            return pictures.of(large, 1).image.cacheKey();
        };
        std::vector<qint64> first;
        for (int i = 0; i < 40; ++i) first.push_back(keyOf(i)); // 1 MB or so each
        pictures.beginFrame();
        for (int i = 0; i < 30; ++i) QCOMPARE(keyOf(i), first[i]);
        pictures.beginFrame(); // without the last ten
        for (int i = 0; i < 30; ++i) QCOMPARE(keyOf(i), first[i]);
        for (int i = 30; i < 40; ++i) QVERIFY(keyOf(i) != first[i]);
    }
};

KVSCOPE_OFFSCREEN_TEST(TextPicturesTest)
#include "text_pictures_test.moc"
