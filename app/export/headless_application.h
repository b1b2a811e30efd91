#pragma once

#include <QGuiApplication>

#include <memory>

namespace kvscope {

/// A Qt application for figures: fonts and text measurement without a display, and without messages about displays.
/// Reuses the process's application if there is one.
class HeadlessApplication {
public:
    HeadlessApplication();

private:
    char m_name[8] = "kvscope";
    char* m_arguments[2] = {m_name, nullptr};
    int m_count = 1;
    std::unique_ptr<QGuiApplication> m_application;
};

} // namespace kvscope
