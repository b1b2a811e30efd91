#pragma once

#include <QGuiApplication>

#include <memory>

namespace kvscope {

/// Qt as far as figures need it: fonts and their measures, no display, and nothing on stderr that is about displays.
/// Where the process has an application already, that one serves.
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
