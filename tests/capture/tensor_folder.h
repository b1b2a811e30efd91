#pragma once

#include "core/capture/import/imported_capture.h"
#include "tests/support/error_message.h"
#include "tests/support/tensor_files.h"

#include <QString>
#include <QTemporaryDir>

namespace kvscope::test {

/// What the import of a file is refused with; the sentence is "accepted" where its info and tensors can be read.
inline Error::Parts refusal(const std::string& path, const ImportOptions& options = {}) {
    return errorParts([&] {
        const auto capture = openImported(path, options);
        for (const LayerInfo& layer : capture->info().layers)
            for (const auto role : {TensorRole::Keys, TensorRole::Values}) capture->read(layer.layer, role, {});
    });
}

/// A folder of files with names of their own, removed at the end.
class TensorFolder {
public:
    std::string fresh(const char* extension) {
        return m_folder.filePath(QString("t%1%2").arg(m_number++).arg(extension)).toStdString();
    }
    std::string safetensors(const std::vector<FileTensor>& tensors) {
        const std::string path = fresh(".safetensors");
        writeFile(path, safetensorsOf(tensors));
        return path;
    }

private:
    QTemporaryDir m_folder;
    int m_number = 0;
};

} // namespace kvscope::test
