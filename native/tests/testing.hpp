// SPDX-License-Identifier: Apache-2.0
//
// Just enough to test the native core without any package.
//
//     TEST_CASE("an empty tree has one cut and it costs nothing") { CHECK(tree.best() == 0); }
//
// Define LIMEN_TEST_MAIN before including this in one file of the program. The program runs the
// cases in order, or those whose name contains its first argument, and returns 1 when one failed.

#pragma once

#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

namespace limen::testing {

// How much to draw at random: less under sanitizers and emulators, more in `make thorough`.
constexpr int effort([[maybe_unused]] int quick, [[maybe_unused]] int usual) {
#if defined(LIMEN_QUICK)
    return quick;
#elif defined(LIMEN_THOROUGH)
    return 10 * usual;
#else
    return usual;
#endif
}

struct Case {
    const char* name;
    void (*body)();
};

inline std::vector<Case>& cases() {
    static std::vector<Case> all;
    return all;
}

struct Register {
    Register(const char* name, void (*body)()) { cases().push_back({name, body}); }
};

// `note` says under which circumstances, such as the seed of a random stream.
inline void check(bool holds, const char* claim, const char* file, int line,
                  const std::string& note = {}) {
    if (!holds)
        throw std::runtime_error(std::string(file) + ":" + std::to_string(line) + ": " + claim +
                                 (note.empty() ? "" : " (" + note + ")"));
}

inline int run_all(const char* wanted) {
    int passed = 0, failed = 0;
    for (const Case& test : cases()) {
        if (std::string(test.name).find(wanted) == std::string::npos) continue;
        try {
            test.body();
            ++passed;
        } catch (const std::exception& failure) {
            ++failed;
            std::printf("FAILED  %s\n        %s\n", test.name, failure.what());
        }
    }
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed == 0 ? 0 : 1;
}

}  // namespace limen::testing

#define LIMEN_JOIN_(a, b) a##b
#define LIMEN_JOIN(a, b) LIMEN_JOIN_(a, b)
#define TEST_CASE(name)                                                      \
    static void LIMEN_JOIN(test_, __LINE__)();                               \
    static const ::limen::testing::Register LIMEN_JOIN(register_, __LINE__){ \
        name, &LIMEN_JOIN(test_, __LINE__)};                                 \
    static void LIMEN_JOIN(test_, __LINE__)()
#define CHECK(claim) ::limen::testing::check((claim), #claim, __FILE__, __LINE__)
#define CHECK_NOTE(claim, note) ::limen::testing::check((claim), #claim, __FILE__, __LINE__, (note))

#ifdef LIMEN_TEST_MAIN
int main(int count, char** arguments) {
    return ::limen::testing::run_all(count > 1 ? arguments[1] : "");
}
#endif
