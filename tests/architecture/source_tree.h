#pragma once

#include <QMap>
#include <QString>
#include <QStringList>

#include <vector>

namespace kvscope::architecture {

/// One C++ or CUDA source of the repository.
struct SourceFile {
    QString path; ///< relative to the repository root
    QStringList lines;
    QStringList includes; ///< as written between quotes or angle brackets
};

/// Every .h, .cpp and .cu below the given top-level folders, ascending by path.
std::vector<SourceFile> readSources(const QString& root, const QStringList& folders);

/// The #include targets of a source text; comments that mention includes do not count.
QStringList includesOf(const QStringList& lines);

/// The text of a file; empty where it cannot be read.
QString readText(const QString& path);

/// Where a file lives, from most to least specific: "core/engine/cpu", "core/engine", "views", "app" ...
QString layerOf(const QString& path);

/// Empty, or the sentence that says why `path` must not include `target`.
QString violation(const QString& path, const QString& target);

/// A unit is x.h with x.cpp or x.cu of the same folder: its path without the extension.
QString unitOf(const QString& path);

/// Which units of `sources` each of them includes, itself left out.
QMap<QString, QStringList> unitGraph(const std::vector<SourceFile>& sources);

/// The strongly connected components of two units and more, each ascending: units none of which can be understood, or
/// built, without the others.
std::vector<QStringList> circlesIn(const QMap<QString, QStringList>& graph);

} // namespace kvscope::architecture
