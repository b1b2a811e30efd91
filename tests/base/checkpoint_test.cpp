// Progress and stop point: parts report their share of the whole and stop with it.
#include "core/base/checkpoint.h"

#include <QtTest>

using namespace kvscope;

class CheckpointTest : public QObject {
    Q_OBJECT

private slots:
    void reportsAndStops() {
        std::stop_source source;
        std::vector<double> shares;
        const Checkpoint checkpoint(source.get_token(),
                                    [&](double done, double total) { shares.push_back(done / total); });
        checkpoint.at(1, 4);
        checkpoint.at(2, 4);
        QCOMPARE(shares, (std::vector<double>{0.25, 0.5}));
        source.request_stop();
        QVERIFY_EXCEPTION_THROWN(checkpoint.at(3, 4), Cancelled);
        QCOMPARE(shares.size(), std::size_t{2});
    }

    void silentOneDoesNothing() {
        const Checkpoint checkpoint;
        checkpoint.at(1, 1);
        checkpoint.part(0, 0.5).at(1, 1);
    }

    void partReportsItsShare() {
        std::stop_source source;
        std::vector<double> shares;
        const Checkpoint whole(source.get_token(), [&](double done, double total) { shares.push_back(done / total); });
        const Checkpoint second = whole.part(0.5, 0.75);
        second.at(0, 10);
        second.at(5, 10);
        second.at(0, 0); // nothing to do: done
        second.part(0, 0.5).at(1, 1);
        QCOMPARE(shares, (std::vector<double>{0.5, 0.625, 0.75, 0.625}));
        source.request_stop();
        QVERIFY_EXCEPTION_THROWN(second.at(6, 10), Cancelled);
    }

    // A part of a silent one still stops.
    void partOfASilentOneStops() {
        std::stop_source source;
        const Checkpoint part = Checkpoint(source.get_token()).part(0, 1);
        part.at(1, 2);
        source.request_stop();
        QVERIFY_EXCEPTION_THROWN(part.at(2, 2), Cancelled);
    }
};

QTEST_APPLESS_MAIN(CheckpointTest)
#include "checkpoint_test.moc"
