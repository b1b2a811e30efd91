#pragma once

#include <dirent.h>
#include <unistd.h>

#include <fstream>
#include <string>

namespace kvscope::testing {

/// CPU time of the process so far in milliseconds, by threads: a machine that others use too changes it little. Linux.
struct CpuTime {
    double window = 0;   ///< the main thread: events, scenes, painting
    double workers = 0;  ///< policies and engine
    double painters = 0; ///< Qt's thread pool, which paints canvases
    double llvmpipe = 0; ///< software OpenGL's own threads

    double all() const { return window + workers + painters + llvmpipe; }
    friend CpuTime operator-(const CpuTime& a, const CpuTime& b) {
        return {a.window - b.window, a.workers - b.workers, a.painters - b.painters, a.llvmpipe - b.llvmpipe};
    }

    static CpuTime now() {
        CpuTime sum;
        const std::string folder = "/proc/self/task/", mainThread = std::to_string(getpid());
        DIR* threads = opendir(folder.c_str());
        while (const dirent* entry = threads ? readdir(threads) : nullptr) {
            const std::string thread = entry->d_name;
            if (thread.starts_with('.')) continue; // ".." would be the main thread once more
            std::string name;
            double nanoseconds = 0;
            std::ifstream(folder + thread + "/comm") >> name;
            std::ifstream(folder + thread + "/schedstat") >> nanoseconds;
            double* sumOfKind = &sum.workers;
            if (thread == mainThread)
                sumOfKind = &sum.window;
            else if (name.starts_with("llvmpipe"))
                sumOfKind = &sum.llvmpipe;
            else if (name == "Thread") // "Thread (pooled)"
                sumOfKind = &sum.painters;
            *sumOfKind += nanoseconds / 1e6;
        }
        if (threads) closedir(threads);
        return sum;
    }
};

} // namespace kvscope::testing
