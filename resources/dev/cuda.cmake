# Finds nvcc and switches the CUDA language on; sets KVSCOPE_CUDA. Looks in CMAKE_CUDA_COMPILER, CUDACXX, CUDA_HOME,
# the PATH, /usr/local/cuda, and what resources/dev/cuda_toolkit.sh fetched. No GPU is needed to compile kernels.
option(KVSCOPE_USE_CUDA "Build the CUDA kernels when nvcc is found" ON)
# 90a: Hopper with warpgroup products. 100: data-centre Blackwell, 10.0 and 10.3. A GPU that is left out runs the code of
# 80, or its driver compiles the PTX of 80. So a machine without a GPU compiles for the oldest and the newest architecture
# and for the one with code of its own.
set(architectures "80;90a-real;120-real")
if(EXISTS /dev/nvidiactl)
  set(architectures "80;89-real;90a-real;100-real;120-real")
endif()
set(KVSCOPE_CUDA_ARCHITECTURES "${architectures}" CACHE STRING
    "Architectures to compile kernels for; native: that of the GPU in this machine")
set(KVSCOPE_CUDA OFF)

if(NOT KVSCOPE_USE_CUDA OR KVSCOPE_SANITIZE)
  message(STATUS "CUDA kernels: off (KVSCOPE_USE_CUDA is off, or a sanitizer build: the emulated device tests them)")
  return()
endif()

set(cache_home $ENV{XDG_CACHE_HOME})
if(NOT cache_home)
  set(cache_home $ENV{HOME}/.cache)
endif()
file(GLOB fetched ${cache_home}/kvscope/cuda-*/nvidia/cu13/bin)
find_program(KVSCOPE_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_HOME PATH_SUFFIXES bin PATHS /usr/local/cuda/bin ${fetched})
if(NOT CMAKE_CUDA_COMPILER AND KVSCOPE_NVCC)
  set(CMAKE_CUDA_COMPILER ${KVSCOPE_NVCC})
endif()
if(NOT CMAKE_CUDA_COMPILER)
  message(STATUS "CUDA kernels: off (no nvcc; resources/dev/cuda_toolkit.sh fetches one)")
  return()
endif()

set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
# The driver (gpu_report.sh) and older build folders say 90, but only 90a has warpgroup products.
string(REGEX REPLACE "(^|;)90(;|-|$)" "\\190a\\2" KVSCOPE_CUDA_ARCHITECTURES "${KVSCOPE_CUDA_ARCHITECTURES}")
set(CMAKE_CUDA_ARCHITECTURES ${KVSCOPE_CUDA_ARCHITECTURES})
include(CheckLanguage)
check_language(CUDA)
if(CMAKE_CUDA_COMPILER)
  enable_language(CUDA)
  # CMake 3.25 does not know that this nvcc has C++20.
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  set(KVSCOPE_CUDA ON)
  message(STATUS "CUDA kernels: nvcc ${CMAKE_CUDA_COMPILER_VERSION} for ${KVSCOPE_CUDA_ARCHITECTURES}")
else()
  message(STATUS "CUDA kernels: off (${KVSCOPE_NVCC} does not work with ${CMAKE_CXX_COMPILER})")
endif()
