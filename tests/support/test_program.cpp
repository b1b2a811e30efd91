#include "tests/support/test_program.h"

#include <QCoreApplication>
#include <QSettings>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

namespace kvscope::testing {
namespace {

using Tests = std::map<std::string, RegisteredTest::Run>;

/// Static objects of other files fill it, whichever comes first.
Tests& tests() {
    static Tests all;
    return all;
}

} // namespace

RegisteredTest::RegisteredTest(const char* file, Run run) {
    const std::string name = std::filesystem::path(file).stem().string();
    if (!tests().emplace(name, run).second) {
        std::fprintf(stderr, "Two tests of this program have the name %s.\n", name.c_str());
        std::abort();
    }
}

} // namespace kvscope::testing

#ifdef __SANITIZE_THREAD__
extern "C" int __clone(int (*function)(void*), void* stack, int flags, void* argument, ...); // glibc's own

/// QProcess starts programs by it, in a child that shares this process's memory until it runs them. The sanitizer's
/// clone takes such a child for a forked one, which it no longer watches, and from then on does not see what this
/// thread synchronises. Arguments: clone(2).
extern "C" int clone(int (*function)(void*), void* stack, int flags, void* argument, ...) {
    std::va_list rest;
    va_start(rest, argument);
    void *const parent = va_arg(rest, void*), *const storage = va_arg(rest, void*), *const child = va_arg(rest, void*);
    va_end(rest);
    return __clone(function, stack, flags, argument, parent, storage, child);
}
#endif

int main(int argc, char** argv) {
    const auto& tests = kvscope::testing::tests();
    const std::string name = argc > 1 ? argv[1] : "--list";
    const auto found = tests.find(name);
    if (found == tests.end()) {
        const bool asked = name == "--list";
        if (!asked)
            std::fprintf(stderr, "No test %s. Usage: %s TEST [Qt Test's arguments], where TEST is one of\n",
                         name.c_str(), argv[0]);
        for (const auto& [known, run] : tests) std::fprintf(asked ? stdout : stderr, "%s\n", known.c_str());
        return asked ? 0 : 2;
    }
    // Each test has settings of its own, and begins without any.
    QCoreApplication::setOrganizationName("KVScope test");
    QCoreApplication::setApplicationName(QString::fromStdString(name));
    QSettings().clear();
    for (int i = 1; i < argc; ++i) argv[i] = argv[i + 1]; // the last one is the null pointer at the end
    return found->second(argc - 1, argv);
}
