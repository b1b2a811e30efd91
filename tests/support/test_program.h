#pragma once

#include <QtTest>

/// A program of many tests. Each *_test.cpp ends with one of the macros below, which makes its class known by the name
/// of the file: `base_tests csv_test [function[:row]]`. The test's application and the test are made when it was
/// chosen.
namespace kvscope::testing {

struct RegisteredTest {
    using Run = int (*)(int argc, char** argv);
    RegisteredTest(const char* file, Run run);
};

} // namespace kvscope::testing

/// `...` comes before the test is made: its application.
#define KVSCOPE_REGISTER_TEST(TestObject, ...)                                                                         \
    static const kvscope::testing::RegisteredTest registered##TestObject(__FILE__, [](int argc, char** argv) {         \
        __VA_ARGS__                                                                                                    \
        TestObject test;                                                                                               \
        return QTest::qExec(&test, argc, argv);                                                                        \
    });

/// A test without an application.
#define KVSCOPE_TEST(TestObject) KVSCOPE_REGISTER_TEST(TestObject, )
/// A test of processes, timers or events: no fonts, no painting.
#define KVSCOPE_CORE_TEST(TestObject) KVSCOPE_REGISTER_TEST(TestObject, QCoreApplication application(argc, argv);)
/// A test that needs Qt's fonts and painting but no display.
#define KVSCOPE_OFFSCREEN_TEST(TestObject)                                                                             \
    KVSCOPE_REGISTER_TEST(TestObject, qputenv("QT_QPA_PLATFORM", "offscreen"); QGuiApplication application(argc, argv);)
/// The same with widgets.
#define KVSCOPE_OFFSCREEN_WIDGETS_TEST(TestObject)                                                                     \
    KVSCOPE_REGISTER_TEST(TestObject, qputenv("QT_QPA_PLATFORM", "offscreen"); QApplication application(argc, argv);)
/// A test of real windows on the display. CMake reads this line too (kvscope_tests): no other test runs at the same
/// time.
#define KVSCOPE_WINDOW_TEST(TestObject)                                                                                \
    KVSCOPE_REGISTER_TEST(TestObject, QApplication application(argc, argv); application.setAttribute(Qt::AA_Use96Dpi);)
