// SPDX-License-Identifier: Apache-2.0
//
// The lock of each object that Python shares between threads.
//
// While an object is locked no Python object is made, looked at or called, nothing is imported and
// no message written: each of these can run code of the caller (a finaliser, a signal handler, a
// method of a number), which may ask the same object and would wait for itself. So every function
// reads its arguments, locks, changes or copies out plain numbers, unlocks, and only then speaks.

#pragma once

#include <nanobind/nanobind.h>

#include <atomic>

#if !defined(_WIN32)
#include <pthread.h>
#endif

#include "core/isa.hpp"

namespace limen::bindings {

namespace nb = nanobind;

// How many threads work on an object without the interpreter. A child that is forked meanwhile
// would find that object half changed and locked for ever, so a fork waits until they are done;
// to be done they need nothing that the forking thread has.
inline std::atomic<int> working{0};

inline void wait_for_work() {
    for (int some; (some = working.load()) > 0;) working.wait(some);
}

// Call when the module is loaded.
inline void make_forks_wait() {
#if !defined(_WIN32)
    pthread_atfork(wait_for_work, nullptr, nullptr);
#endif
}

// One object may be shared by threads. Nobody waits for it while holding the interpreter. It is
// taken with the interpreter only, and so are forks: nothing is half taken in a child.
class ObjectLock {
public:
    // Which lock an object has. It may come to share that of another, also while somebody waits.
    using Place = std::atomic<ObjectLock*>;

    // For as long as the interpreter is held.
    class Guard {
    public:
        LIMEN_INLINE explicit Guard(const Place& place) : lock_(acquired(place)) {}
        LIMEN_INLINE ~Guard() { lock_.release(); }
        Guard(const Guard&) = delete;
        Guard& operator=(const Guard&) = delete;

    private:
        ObjectLock& lock_;
    };

    // For long work, without the interpreter, which is taken back only after the object is free:
    // a thread that holds the one may wait for the other. `first` is done with both, and does not
    // throw.
    class LongGuard {
    public:
        explicit LongGuard(const Place& place) : LongGuard(place, [] {}) {}
        template <class First>
        LongGuard(const Place& place, First&& first) : lock_(acquired(place)) {
            first();
            ++working;
            thread_ = PyEval_SaveThread();
        }
        ~LongGuard() {
            lock_.release_alone();
            --working;
            working.notify_all();
            PyEval_RestoreThread(thread_);
        }
        LongGuard(const LongGuard&) = delete;
        LongGuard& operator=(const LongGuard&) = delete;

    private:
        ObjectLock& lock_;
        PyThreadState* thread_;
    };

    // Let an object that nobody works on have this lock, which is taken, from now on; false where
    // somebody does. A thread that waits for the old one will find out.
    static bool share(Place& place, ObjectLock& lock) {
        ObjectLock& old = *place.load();
        if (!old.take()) return false;
        place = &lock;
        old.release();
        return true;
    }

private:
    LIMEN_INLINE static ObjectLock& acquired(const Place& place) {
        for (;;) {
            ObjectLock& lock = *place.load(std::memory_order_relaxed);
            lock.acquire();
            if (&lock == place.load(std::memory_order_relaxed)) return lock;
            lock.release();
        }
    }
#ifdef Py_GIL_DISABLED
    bool take() { return !taken_.exchange(true); }
    void release() { release_alone(); }
#else
    // The interpreter's lock is held, so no other thread takes it or begins to wait meanwhile.
    // It may have been released without, and what was changed then must be seen.
    LIMEN_INLINE bool take() {
        if (taken_.load(std::memory_order_acquire)) return false;
        taken_.store(true, std::memory_order_relaxed);
        return true;
    }
    LIMEN_INLINE void release() {
        taken_.store(false, std::memory_order_release);
        if (waiting_.load(std::memory_order_relaxed)) taken_.notify_all();
    }
#endif
    // Either this sees who waits, or who is about to wait sees that it is free.
    void release_alone() {
        taken_.exchange(false);
        if (waiting_.load()) taken_.notify_all();
    }
    LIMEN_INLINE void acquire() {
        if (!take()) wait();
    }
    LIMEN_NOINLINE void wait() {
        do {
            ++waiting_;
            {
                nb::gil_scoped_release released;
                taken_.wait(true);
            }
            --waiting_;
        } while (!take());
    }
    std::atomic<bool> taken_{false};
    std::atomic<int> waiting_{0};
};

}  // namespace limen::bindings
