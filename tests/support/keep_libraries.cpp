// Part of every test under a sanitizer: libraries that are opened at run time (OpenGL drivers) stay until the end, so
// that what they hold counts as held and their frames in a report have names.
extern "C" int dlclose(void*) { return 0; }
