#pragma once

#include <QGuiApplication>
#include <QtTest>

/// A test program that needs Qt's fonts and painting but no display.
#define KVSCOPE_OFFSCREEN_TEST_MAIN(TestObject)                                                                        \
    int main(int argc, char** argv) {                                                                                  \
        qputenv("QT_QPA_PLATFORM", "offscreen");                                                                       \
        QGuiApplication application(argc, argv);                                                                       \
        TestObject test;                                                                                               \
        return QTest::qExec(&test, argc, argv);                                                                        \
    }
