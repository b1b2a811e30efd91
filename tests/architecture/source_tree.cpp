// Reads the sources of the repository and knows which arrows the house allows. The rules are tables, so that a new
// folder or a new package is one line.
#include "tests/architecture/source_tree.h"

#include <QDirIterator>
#include <QFile>
#include <QFileInfo>
#include <QRegularExpression>

#include <algorithm>

namespace kvscope::architecture {

namespace {

struct Arrow {
    QString layer;
    QStringList allowed; ///< layers it may include besides itself
};

/// What the window stands on.
QStringList belowWindow() {
    return {"core/base",  "core/parameters", "core/capture",  "core/engine", "core/policies", "core/metrics",
            "core/lists", "core/run",        "gpu",           "views",       "app/text",      "app/export",
            "app/live",   "app/study",       "app/workbench", "app/lessons", "app/report"};
}

QStringList windowFolders(const QStringList& names) {
    QStringList folders;
    for (const QString& name : names) folders << "app/window/" + name;
    return folders;
}

// A layer is the longest prefix of the path; core/base is open to all.
const std::vector<Arrow>& arrows() {
    static const std::vector<Arrow> table = {
        {"core/base", {}},
        {"core/parameters", {"core/base"}},
        {"core/capture", {"core/base"}},
        {"core/engine", {"core/base"}},
        {"core/engine/cpu", {"core/base", "core/engine"}},
        {"core/policies", {"core/base", "core/parameters", "core/engine"}},
        {"core/metrics", {"core/base", "core/engine"}},
        {"core/lists", {"core/base", "core/capture", "core/policies", "core/engine", "core/parameters"}},
        {"core/calibration",
         {"core/base", "core/capture", "core/lists", "core/metrics", "core/policies", "core/parameters"}},
        {"core/jobs", {"core/base"}},
        {"core/run",
         {"core/base", "core/parameters", "core/capture", "core/engine", "core/policies", "core/metrics", "core/lists",
          "core/calibration"}},
        {"core/studies",
         {"core/base", "core/parameters", "core/capture", "core/engine", "core/policies", "core/metrics", "core/lists",
          "core/calibration", "core/run"}},
        {"gpu", {"core/base", "core/engine"}},
        {"views",
         {"core/base", "core/parameters", "core/capture", "core/engine", "core/policies", "core/metrics", "core/lists",
          "core/calibration", "core/run", "core/studies"}},
        {"app/text", {"core/base", "views"}},
        {"app/export", {"core/base", "core/run", "views", "app/text"}},
        {"app/live", {"core/base", "core/capture", "core/policies", "core/parameters"}},
        {"app/study",
         {"core/base", "core/parameters", "core/capture", "core/engine", "core/policies", "core/metrics", "core/lists",
          "core/calibration", "core/run", "core/studies", "views", "app/live"}},
        {"app/workbench",
         {"core/base", "core/capture", "core/engine", "core/policies", "core/metrics", "core/jobs", "core/run", "views",
          "app/live", "app/study"}},
        {"app/lessons",
         {"core/base", "core/engine", "core/metrics", "core/policies", "core/run", "core/calibration", "core/studies",
          "views", "app/live", "app/study"}},
        {"app/report",
         {"core/base", "core/capture", "core/policies", "core/metrics", "core/run", "views", "app/text", "app/export",
          "app/study", "app/lessons"}},
        {"app/command_line",
         {"core/base", "core/parameters", "core/capture", "core/engine", "core/policies", "core/metrics", "core/lists",
          "core/calibration", "core/run", "core/studies", "gpu", "views", "app/text", "app/export", "app/study",
          "app/lessons", "app/report", "app/live"}},
        {"app/window",
         belowWindow() + windowFolders({"style", "widgets", "canvas", "dialogs", "docks", "actions", "panels"})},
        {"app/window/style", belowWindow()},
        {"app/window/widgets", belowWindow() + windowFolders({"style"})},
        {"app/window/canvas", belowWindow() + windowFolders({"style", "widgets"})},
        {"app/window/dialogs", belowWindow() + windowFolders({"style", "widgets", "canvas"})},
        {"app/window/docks", belowWindow() + windowFolders({"style", "widgets"})},
        {"app/window/actions", belowWindow() + windowFolders({"style", "widgets", "canvas", "docks"})},
        {"app/window/panels", belowWindow() + windowFolders({"style", "widgets", "canvas", "actions"})},
        {"app/python",
         {"core/base", "core/parameters", "core/capture", "core/engine", "core/engine/cpu", "core/policies",
          "core/metrics", "core/run"}},
        {"app", {"core/base", "app/command_line", "app/window"}},
    };
    return table;
}

struct Containment {
    QRegularExpression package; ///< include target
    QString name;
    QStringList homes; ///< path prefixes where it may appear
};

const std::vector<Containment>& containments() {
    static const std::vector<Containment> table = {
        {QRegularExpression("^Q[A-Z][A-Za-z]*(/.*)?$|^qt"), "Qt", {"app/", "tests/"}},
        {QRegularExpression("^(imgui|imstb)"), "Dear ImGui", {"views/imgui/", "app/window/canvas/", "tests/"}},
        {QRegularExpression("^(torch|ATen|c10)/"), "LibTorch", {"gpu/"}},
        {QRegularExpression("^hdf5|^H5"), "HDF5", {"core/capture/", "tests/"}},
        {QRegularExpression("^(Eigen|unsupported/Eigen|Spectra)/"), "Eigen or Spectra", {"core/engine/cpu/"}},
        {QRegularExpression("^nlohmann/"), "nlohmann-json", {"core/", "app/", "tests/"}},
        {QRegularExpression("^CLI/"), "CLI11", {"app/command_line/"}},
        {QRegularExpression("^openssl/"), "OpenSSL", {"core/capture/"}},
        {QRegularExpression("^zip\\.h$"), "libzip", {"core/capture/import/", "tests/"}},
        {QRegularExpression("^md4c"), "md4c", {"app/report/"}},
        {QRegularExpression("^hb"), "HarfBuzz", {"app/export/"}},
        {QRegularExpression("^(nanobind/|Python\\.h$)"), "Python", {"app/python/"}},
    };
    return table;
}

bool startsWithAny(const QString& text, const QStringList& prefixes) {
    return std::any_of(prefixes.begin(), prefixes.end(), [&](const QString& p) { return text.startsWith(p); });
}

QString packageViolation(const QString& path, const QString& target) {
    for (const Containment& rule : containments())
        if (rule.package.match(target).hasMatch() && !startsWithAny(path, rule.homes))
            return rule.name + " may be included only below " + rule.homes.join(", ");
    return {};
}

} // namespace

QString layerOf(const QString& path) {
    QString best;
    for (const Arrow& arrow : arrows())
        if (path.startsWith(arrow.layer + "/") && arrow.layer.size() > best.size()) best = arrow.layer;
    return best;
}

QString violation(const QString& path, const QString& target) {
    if (const QString package = packageViolation(path, target); !package.isEmpty()) return package;
    const QString from = layerOf(path), to = layerOf(target);
    if (from.isEmpty() || to.isEmpty() || from == to) return {};
    for (const Arrow& arrow : arrows())
        if (arrow.layer == from && !arrow.allowed.contains(to)) return from + " must not include " + to;
    return {};
}

QString unitOf(const QString& path) { return path.left(path.lastIndexOf('.')); }

QMap<QString, QStringList> unitGraph(const std::vector<SourceFile>& sources) {
    QMap<QString, QStringList> graph;
    for (const SourceFile& source : sources) graph[unitOf(source.path)];
    for (const SourceFile& source : sources)
        for (const QString& target : source.includes) {
            const QString from = unitOf(source.path), to = unitOf(target);
            if (to != from && graph.contains(to) && !graph[from].contains(to)) graph[from] << to;
        }
    return graph;
}

namespace {

/// Tarjan's algorithm: a component is complete when the walk leaves the first of its units that it came upon.
class CircleSearch {
public:
    explicit CircleSearch(const QMap<QString, QStringList>& graph) : m_graph(graph) {}

    std::vector<QStringList> run() {
        for (const QString& unit : m_graph.keys())
            if (!m_number.contains(unit)) visit(unit);
        return m_found;
    }

private:
    void visit(const QString& unit) {
        m_number[unit] = m_lowest[unit] = static_cast<int>(m_number.size());
        m_open << unit;
        for (const QString& next : m_graph[unit]) {
            if (!m_number.contains(next)) visit(next);
            if (m_open.contains(next)) m_lowest[unit] = std::min(m_lowest[unit], m_lowest[next]);
        }
        if (m_lowest[unit] != m_number[unit]) return;
        const qsizetype begin = m_open.indexOf(unit);
        QStringList component = m_open.mid(begin);
        m_open.resize(begin);
        component.sort();
        if (component.size() > 1) m_found.push_back(component);
    }

    const QMap<QString, QStringList>& m_graph;
    QMap<QString, int> m_number, m_lowest;
    QStringList m_open;
    std::vector<QStringList> m_found;
};

} // namespace

std::vector<QStringList> circlesIn(const QMap<QString, QStringList>& graph) { return CircleSearch(graph).run(); }

QString readText(const QString& path) {
    QFile file(path);
    return file.open(QIODevice::ReadOnly) ? QString::fromUtf8(file.readAll()) : QString();
}

QStringList includesOf(const QStringList& lines) {
    static const QRegularExpression include(R"(^\s*#\s*include\s*[<"]([^>"]+)[>"])");
    QStringList found;
    for (const QString& line : lines)
        if (const auto match = include.match(line); match.hasMatch()) found << match.captured(1);
    return found;
}

std::vector<SourceFile> readSources(const QString& root, const QStringList& folders) {
    std::vector<SourceFile> sources;
    for (const QString& folder : folders) {
        if (!QFileInfo::exists(root + "/" + folder)) qFatal("%s is not there", qPrintable(folder));
        QDirIterator files(root + "/" + folder, {"*.h", "*.cpp", "*.cu"}, QDir::Files, QDirIterator::Subdirectories);
        while (files.hasNext()) {
            QFile file(files.next());
            if (!file.open(QIODevice::ReadOnly)) continue;
            SourceFile source;
            source.path = file.fileName().mid(root.size() + 1);
            source.lines = QString::fromUtf8(file.readAll()).split('\n');
            source.includes = includesOf(source.lines);
            sources.push_back(std::move(source));
        }
    }
    std::sort(sources.begin(), sources.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
    return sources;
}

} // namespace kvscope::architecture
