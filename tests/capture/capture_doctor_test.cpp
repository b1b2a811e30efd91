// The doctor's findings: a sound capture has none that matter, and each fault made here is named at its place.
#include "core/capture/capture_doctor.h"
#include "tests/support/forwarding_capture.h"
#include "tests/support/memory_synthetic.h"
#include "tests/support/test_program.h"

#include <QtTest>

#include <algorithm>
#include <cstddef>

using namespace kvscope;

namespace {

std::shared_ptr<MemoryCapture> sound() { return makeSyntheticCapture({.tokens = 64, .layers = 2, .headDim = 16}); }

bool finds(const CaptureReader& capture, Severity severity, const std::string& place, bool everything = false) {
    const auto findings = examineCapture(capture, {.readEverything = everything}, {});
    return std::any_of(findings.begin(), findings.end(), [&](const CaptureFinding& f) {
        return f.severity == severity && f.place == place && !f.what.empty();
    });
}

/// Its data are not those that the hash was made of.
struct ChangedCapture : testing::ForwardingCapture {
    using ForwardingCapture::ForwardingCapture;
    std::string computeHash(const Checkpoint&) const override { return "0123"; }
};

} // namespace

class CaptureDoctorTest : public QObject {
    Q_OBJECT

private slots:
    void aSoundCaptureHasNoWarning() {
        for (const CaptureFinding& f : examineCapture(*sound(), {.readEverything = true}, {}))
            QVERIFY2(f.severity == Severity::Ok || f.severity == Severity::Note, f.what.c_str());
    }

    void faultsAreNamed() {
        auto capture = sound();
        capture->captureInfo.layers[1].queryCount = 0;
        QVERIFY(finds(*capture, Severity::Warning, "layers/*/q"));
        capture = sound();
        capture->captureInfo.layers[1].queryCount = 8;
        QVERIFY(finds(*capture, Severity::Note, "layers/*/q_window"));
        capture = sound();
        capture->frequencies.clear();
        QVERIFY(finds(*capture, Severity::Warning, "rope/inv_freq"));
        capture = sound();
        capture->tokenTable.positions[5] = 4;
        QVERIFY(finds(*capture, Severity::Warning, "tokens/position_ids"));
        capture = sound();
        capture->captureInfo.layers[0].stage = "pre_rope";
        QVERIFY(finds(*capture, Severity::Error, "stage"));
        capture = sound();
        capture->captureInfo.checks = {{"attention", "failed", 0.4, 1e-3, "relative", 16, "largest in layer 1"}};
        QVERIFY(finds(*capture, Severity::Error, "self_check"));
        capture = sound();
        capture->captureInfo.checks = {{"attention", "passed", 1e-6, 1e-3, "relative", 16, "largest in layer 1"}};
        QVERIFY(finds(*capture, Severity::Ok, "self_check"));
        capture = sound();
        capture->captureInfo.layers[0].sinks = {1, 2, 3, 4};
        QVERIFY(finds(*capture, Severity::Note, "layers/*/sinks"));
    }

    void equalScalingsAreSaidOnce() {
        auto capture = sound();
        for (LayerInfo& layer : capture->captureInfo.layers) layer.scaling = 0.5;
        const auto notes = [&] {
            std::vector<std::string> all;
            for (const CaptureFinding& finding : examineCapture(*capture, {}, {}))
                if (finding.place == "layers/*/scaling") all.push_back(finding.what);
            return all;
        };
        QCOMPARE(notes(), std::vector<std::string>{"scaling of layers 0, 1 is 0.5, not 1/sqrt(head_dim) = 0.25"});
        capture->captureInfo.layers[1].scaling = 0.125;
        QVERIFY(finds(*capture, Severity::Note, "layers/*/scaling"));
        capture->captureInfo.layers[0].scaling = 0.25; // the usual one
        QCOMPARE(notes().size(), std::size_t{1});
        QVERIFY2(notes()[0].starts_with("scaling of layer 1 is 0.125"), notes()[0].c_str());
    }

    void storedKeysAreHeldAgainstTheirRotation() {
        auto capture = sound();
        const LayerIndex first(0);
        capture->tensors[{first, TensorRole::KeysPreRope}] = capture->read(first, TensorRole::KeysPreRope, {});
        capture->captureInfo.layers[0].hasKeysPreRope = true;
        QVERIFY(finds(*capture, Severity::Ok, "layers/00/k_pre", true));
        capture->captureInfo.rope.interleaved = true; // the wrong layout
        QVERIFY(finds(*capture, Severity::Error, "layers/00/k_pre", true));
    }

    void theHashIsHeldAgainstTheData() {
        auto capture = sound();
        capture->captureInfo.hasStoredHash = true;
        QVERIFY(finds(*capture, Severity::Ok, "capture_hash", true));
        QVERIFY(finds(ChangedCapture(capture), Severity::Error, "capture_hash", true));
    }
};

KVSCOPE_TEST(CaptureDoctorTest)
#include "capture_doctor_test.moc"
