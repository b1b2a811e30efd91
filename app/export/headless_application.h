#pragma once

#include <QGuiApplication>

namespace kvscope {

/// Qt as far as figures need it: fonts and their measures, no display, and nothing on stderr that is about displays.
class HeadlessApplication {
public:
    HeadlessApplication();

private:
    static bool prepare();

    char m_name[8] = "kvscope";
    char* m_arguments[2] = {m_name, nullptr};
    int m_count = 1;
    bool m_prepared = prepare(); // before the application looks at the environment
    QGuiApplication m_application;
};

} // namespace kvscope
