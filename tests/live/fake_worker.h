#pragma once

#include "app/live/live_capture.h"
#include "app/live/live_client.h"
#include "tests/support/source_dir.h"

#include <QDir>
#include <QFile>
#include <QTemporaryDir>

#include <csignal>
#include <cstring>

namespace kvscope::testing {

/// The folder that a fake worker serves, and the command that starts it.
class FakeWorker {
public:
    /// `capture`: in float32, all queries; null: the worker has no context to serve.
    explicit FakeWorker(const CaptureReader* capture = nullptr) {
        if (capture) serve(*capture);
    }
    QString path() const { return m_folder.path(); }
    std::string command(const std::string& mode) const {
        return "python3 -S '" + sourceDir() + "/tests/live/fake_worker.py' " + mode + " '" +
               m_folder.path().toStdString() + "'";
    }
    live::WorkerOptions options(const std::string& mode) const {
        live::WorkerOptions options;
        options.command = command(mode);
        return options;
    }
    /// The process of the worker that was started last; empty until it has written its number.
    QByteArray process() const {
        QFile pid(m_folder.filePath("pid"));
        return pid.open(QIODevice::ReadOnly) ? pid.readAll() : QByteArray();
    }
    void kill() const {
        const int number = process().toInt();
        if (number <= 0) qFatal("no worker runs");
        ::kill(number, SIGKILL);
    }
    /// Whether that process runs.
    bool isAlive() const {
        const QByteArray number = process();
        QFile state("/proc/" + number + "/stat");
        if (number.isEmpty() || !state.open(QIODevice::ReadOnly)) return false;
        const QByteArray line = state.readAll();
        return !line.isEmpty() && line.mid(line.lastIndexOf(')') + 2, 1) != "Z"; // empty: gone meanwhile
    }
    void write(const QString& name, const QByteArray& bytes) const {
        QFile file(m_folder.filePath(name));
        if (!file.open(QIODevice::WriteOnly) || file.write(bytes) != bytes.size()) qFatal("cannot write a test's file");
    }

private:
    void serve(const CaptureReader& capture) const {
        using live::Json;
        const CaptureInfo& info = capture.info();
        const TokenTable& tokens = capture.tokens();
        Json layers = Json::array(), segments = Json::array(), texts = Json::array(), nll = Json::array();
        for (const LayerInfo& layer : info.layers) {
            layers.push_back({{"layer", layer.layer.value},
                              {"scaling", layer.scaling},
                              {"kv_of_q", layer.gqaGroupOf},
                              {"sliding_window", layer.slidingWindow},
                              {"has_rope", layer.hasRope},
                              {"dtype", "f32"},
                              {"queries", layer.queryCount}});
            for (const auto& [role, name] :
                 {std::pair{TensorRole::Keys, "k"}, {TensorRole::Values, "v"}, {TensorRole::Queries, "q"}}) {
                const HostTensor tensor = capture.read(layer.layer, role, {});
                write(QString("%1_%2.f32").arg(layer.layer.value).arg(name),
                      QByteArray(reinterpret_cast<const char*>(tensor.data.data()),
                                 static_cast<qsizetype>(tensor.data.size() * sizeof(float))));
            }
        }
        for (const Segment& segment : tokens.segments)
            segments.push_back({segment.begin, segment.end, std::string(segmentName(segment.kind))});
        for (std::size_t i = 0; i < tokens.ids.size(); ++i) {
            texts.push_back(std::string(tokens.textOf(static_cast<TokenIndex>(i))));
            nll.push_back(i == 0 ? Json() : Json(0.5));
        }
        Json described = {{"model_id", "fake"},
                          {"num_layers", info.numLayers},
                          {"num_q_heads", info.numQueryHeads},
                          {"num_kv_heads", info.numKvHeads},
                          {"head_dim", info.headDim},
                          {"value_dim", info.valueDim},
                          {"layers", layers}};
        described["inv_freq"] = {{"", capture.inverseFrequencies(info.layers.front().layer)}};
        const Json context = {
            {"hash", "abc"},
            {"texts", texts},
            {"info", described},
            {"tokens", {{"ids", tokens.ids}, {"positions", tokens.positions}, {"nll", nll}, {"segments", segments}}}};
        write("context.json", QByteArray::fromStdString(context.dump()));
    }

    QTemporaryDir m_folder;
};

} // namespace kvscope::testing
