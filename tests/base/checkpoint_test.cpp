// Progress and stop point: parts report their share of the whole and stop with it.
#include "core/base/checkpoint.h"
#include "tests/support/test_program.h"

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
        QVERIFY_THROWS_EXCEPTION(Cancelled, checkpoint.at(3, 4));
        QCOMPARE(shares.size(), std::size_t{2});
    }

    // Steps that each count from 0, and workers that report late, never move the bar back.
    void progressNeverFallsBack() {
        std::vector<double> shares;
        const Checkpoint checkpoint({}, [&](double done, double total) { shares.push_back(done / total); });
        for (const double done : {1.0, 4.0, 2.0, 4.0, 0.0, 8.0}) checkpoint.at(done, 8);
        QCOMPARE(shares, (std::vector<double>{0.125, 0.5, 0.5, 1}));
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
        second.part(0, 0.6).at(1, 1);
        second.at(0, 0); // nothing to do: done
        QCOMPARE(shares, (std::vector<double>{0.5, 0.625, 0.65, 0.75}));
        source.request_stop();
        QVERIFY_THROWS_EXCEPTION(Cancelled, second.at(6, 10));
    }

    // A part of a silent one still stops.
    void partOfASilentOneStops() {
        std::stop_source source;
        const Checkpoint part = Checkpoint(source.get_token()).part(0, 1);
        part.at(1, 2);
        source.request_stop();
        QVERIFY_THROWS_EXCEPTION(Cancelled, part.at(2, 2));
    }
};

KVSCOPE_TEST(CheckpointTest)
#include "checkpoint_test.moc"
