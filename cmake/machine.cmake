# What the machine that dbo is built for must have; a sentence for what is not there.
include(CheckSymbolExists)
include(CheckTypeSize)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

check_type_size(__int128 DBO_INT128 LANGUAGE C)
if(NOT HAVE_DBO_INT128)
  message(FATAL_ERROR "This compiler has no __int128 for ${CMAKE_SYSTEM_PROCESSOR}: dbo is for "
                      "64-bit machines, and counts in 128 bits where 64 could overflow.")
endif()

# dbo_find(NAME PACKAGE MODULES what pkg-config may call it... ARCHIVE file, taken under DBO_STATIC)
# makes the interface target dbo_NAME from the first module that exists.
function(dbo_find name package)
  cmake_parse_arguments(arg "" "ARCHIVE" "MODULES" ${ARGN})
  foreach(module IN LISTS arg_MODULES)
    string(REPLACE " " ";" module "${module}")
    pkg_check_modules(${name} QUIET ${module})
    if(${name}_FOUND)
      break()
    endif()
  endforeach()
  if(NOT ${name}_FOUND)
    list(JOIN arg_MODULES "', '" tried)
    message(FATAL_ERROR "${name} was not found: install ${package} (see packages.txt). Asked of "
                        "pkg-config: '${tried}'.")
  endif()
  add_library(dbo_${name} INTERFACE)
  target_include_directories(dbo_${name} SYSTEM INTERFACE ${${name}_INCLUDE_DIRS})
  set(${name}_INCLUDE_DIRS ${${name}_INCLUDE_DIRS} PARENT_SCOPE)
  if(DBO_STATIC)
    find_library(${name}_ARCHIVE ${arg_ARCHIVE} HINTS ${${name}_LIBRARY_DIRS} REQUIRED)
    target_link_libraries(dbo_${name} INTERFACE ${${name}_ARCHIVE} m)
  else()
    target_link_libraries(dbo_${name} INTERFACE ${${name}_LINK_LIBRARIES})
  endif()
endfunction()

if(DBO_APP)
  find_package(PkgConfig REQUIRED)
  # Debian and Alpine: lua5.4; FreeBSD and Homebrew: lua-5.4; Arch: lua54; Fedora: lua, and of others
  # that may be any version.
  dbo_find(lua liblua5.4-dev MODULES lua5.4 lua-5.4 lua54 "lua>=5.4 lua<5.5" ARCHIVE liblua5.4.a)
  dbo_find(jansson libjansson-dev MODULES jansson ARCHIVE libjansson.a)
  dbo_find(zlib zlib1g-dev MODULES zlib ARCHIVE libz.a)

  # glibc has argp; musl and macOS have it as a library of its own.
  add_library(dbo_argp INTERFACE)
  set(CMAKE_REQUIRED_DEFINITIONS -D_GNU_SOURCE)
  check_symbol_exists(argp_parse argp.h DBO_ARGP_IN_LIBC)
  unset(CMAKE_REQUIRED_DEFINITIONS)
  if(NOT DBO_ARGP_IN_LIBC)
    find_path(ARGP_INCLUDE argp.h)
    find_library(ARGP_LIBRARY argp)
    if(NOT ARGP_INCLUDE OR NOT ARGP_LIBRARY)
      message(FATAL_ERROR "argp was not found: this C library has none, so install argp-standalone "
                          "(that is its name in Alpine and in Homebrew).")
    endif()
    target_include_directories(dbo_argp SYSTEM INTERFACE ${ARGP_INCLUDE})
    target_link_libraries(dbo_argp INTERFACE ${ARGP_LIBRARY})
  endif()
endif()

# The archive of boost.context is preferred always: two assembly routines, and a direct call to them
# instead of one through the PLT is a measurable part of a switch.
add_library(dbo_fiber_switch INTERFACE)
if(DBO_FIBER STREQUAL "fcontext")
  find_library(BOOST_CONTEXT NAMES libboost_context.a boost_context)
  if(NOT BOOST_CONTEXT)
    message(FATAL_ERROR "boost.context was not found: install libboost-context-dev, or configure "
                        "with -DDBO_FIBER=ucontext (slower hand-offs).")
  endif()
  target_link_libraries(dbo_fiber_switch INTERFACE ${BOOST_CONTEXT})
  target_compile_definitions(dbo_fiber_switch INTERFACE DBO_FIBER_FCONTEXT)
elseif(NOT DBO_FIBER STREQUAL "ucontext")
  message(FATAL_ERROR "DBO_FIBER is '${DBO_FIBER}'; it can be fcontext or ucontext.")
endif()
