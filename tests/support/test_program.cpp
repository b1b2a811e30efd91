#include "tests/support/test_program.h"

#include <QCoreApplication>
#include <QSettings>

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
