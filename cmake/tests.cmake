# The tests: programs of cmocka by room, fuzzers, examples, and scripts over the tree itself.
# tests/ROOM/test_NAME.c is one cmocka program and one test, NAME, that links only the room's library
# and those below it; *_long carry the label `long`. Timeouts end what hangs and judge no speed: the
# machine may be busy, and sanitizers are slow.
enable_testing()
set(DBO_TEST_TIMEOUT 300 CACHE STRING "seconds after which a test that hangs is ended")
set(dbo_test_timeout ${DBO_TEST_TIMEOUT})
# Scripts are this tree's, whatever is installed on the machine.
set(dbo_own_scripts "XDG_DATA_HOME=/nowhere;XDG_DATA_DIRS=/nowhere")
pkg_check_modules(CMOCKA QUIET IMPORTED_TARGET cmocka)
# What several tests share is in tests/support.
file(GLOB test_support CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/support/*.c)
add_library(dbo_test_support STATIC EXCLUDE_FROM_ALL ${test_support})
target_link_libraries(dbo_test_support PRIVATE dbo_options PUBLIC dbo_core)

# Back ends that tests load: libdbo_NAME.so in backends/ of the build.
function(dbo_test_backend name source)
  add_library(backend_${name} MODULE EXCLUDE_FROM_ALL tests/backends/${source})
  target_link_libraries(backend_${name} PRIVATE dbo_options Threads::Threads)
  target_compile_definitions(backend_${name} PRIVATE ${ARGN})
  set_target_properties(backend_${name} PROPERTIES OUTPUT_NAME dbo_${name}
                        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/backends)
  add_dependencies(dbo_test_support backend_${name})
endfunction()
dbo_test_backend(null null.c)
dbo_test_backend(absent bad.c)
dbo_test_backend(old bad.c BAD_VERSION)
dbo_test_backend(hollow bad.c BAD_RUN)
dbo_test_backend(mute bad.c BAD_SYMBOL)
dbo_test_backend(needy bad.c BAD_NEED)

function(dbo_test room source)
  cmake_path(GET source STEM stem)
  string(REGEX REPLACE "^test_" "" name ${stem})
  add_executable(${stem} ${source})
  target_link_libraries(${stem} PRIVATE dbo_options dbo_test_support dbo_${room} PkgConfig::CMOCKA m)
  target_include_directories(${stem} PRIVATE ${dbo_generated})
  target_compile_definitions(${stem} PRIVATE DBO_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                             DBO_TEST_BACKENDS="${PROJECT_BINARY_DIR}/backends")
  if(room MATCHES "lab|app") # which may load back ends, and lend them the core
    dbo_lend_core(${stem})
  endif()
  if(room STREQUAL "app")
    add_dependencies(${stem} dbo)
    target_compile_definitions(${stem} PRIVATE DBO_PROGRAM="$<TARGET_FILE:dbo>")
  endif()
  add_test(NAME ${name} COMMAND ${stem})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${dbo_test_timeout}
                       ENVIRONMENT "${dbo_own_scripts}")
  if(name MATCHES "_long$")
    set_tests_properties(${name} PROPERTIES TIMEOUT 1200 LABELS long)
  endif()
endfunction()

if(CMOCKA_FOUND)
  foreach(room core sim viz lab app)
    file(GLOB tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${room}/test_*.c)
    foreach(source IN LISTS tests)
      dbo_test(${room} ${source})
    endforeach()
  endforeach()
else()
  message(STATUS "cmocka was not found (libcmocka-dev): the C tests are left out")
endif()

# Its allocations, of the static libraries too, go through functions that can refuse.
if(TARGET test_alloc_failure)
  foreach(name malloc calloc realloc aligned_alloc posix_memalign strdup free mmap munmap
          pthread_create)
    target_link_options(test_alloc_failure PRIVATE -Wl,--wrap=${name})
  endforeach()
endif()

# tests/fuzz/fuzz_NAME.c reads foreign input: mutations of tests/fuzz/corpus/NAME, few and many; or,
# with DBO_FUZZ, for hours: ./dev fuzz NAME. Counts: one to two seconds.
if(NOT DBO_FUZZ)
  add_library(dbo_fuzz_driver OBJECT tests/fuzz/driver.c)
  target_link_libraries(dbo_fuzz_driver PRIVATE dbo_options)
endif()
set(fuzz_counts eval 60000 lua 800 model 500 program 20000 requests 500 script 1500 set 3000)
file(GLOB fuzzers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/fuzz_*.c)
foreach(source IN LISTS fuzzers)
  cmake_path(GET source STEM stem)
  string(REGEX REPLACE "^fuzz_" "" name ${stem})
  list(FIND fuzz_counts ${name} at)
  math(EXPR at "${at} + 1")
  list(GET fuzz_counts ${at} count)
  math(EXPR many "${count} * 60")
  add_executable(${stem} ${source})
  target_link_libraries(${stem} PRIVATE dbo_options dbo_app)
  if(name STREQUAL "script") # calls that go by the fuzzer
    target_sources(${stem} PRIVATE tests/fuzz/script.c tests/fuzz/script_values.c
                   tests/fuzz/script_mutate.c tests/fuzz/words.c)
    foreach(function dbo_sandbox_watched_call dbo_settings_set dbo_setting_unknown)
      target_link_options(${stem} PRIVATE -Wl,--wrap=${function})
    endforeach()
  endif()
  if(DBO_FUZZ)
    target_link_options(${stem} PRIVATE -fsanitize=fuzzer)
    if(DBO_FUZZ_SANITIZE)
      target_link_options(${stem} PRIVATE -fsanitize=${DBO_FUZZ_SANITIZE})
    endif()
    continue()
  endif()
  target_link_libraries(${stem} PRIVATE dbo_fuzz_driver)
  add_test(NAME fuzz:${name} COMMAND ${stem} tests/fuzz/corpus/${name} ${count}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  add_test(NAME fuzz_long:${name} COMMAND ${stem} tests/fuzz/corpus/${name} ${many}
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(fuzz:${name} PROPERTIES TIMEOUT 120)
  set_tests_properties(fuzz_long:${name} PROPERTIES TIMEOUT 1200 LABELS long)
endforeach()

# examples/NAME.c uses only what is installed; it checks itself and fails if it is wrong.
file(GLOB examples CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.c)
foreach(source IN LISTS examples)
  cmake_path(GET source STEM stem)
  add_executable(example_${stem} ${source})
  target_compile_options(example_${stem} PRIVATE ${dbo_flags})
  target_link_libraries(example_${stem} PRIVATE dbo::sim)
  add_test(NAME example:${stem} COMMAND example_${stem})
  set_tests_properties(example:${stem} PROPERTIES TIMEOUT ${dbo_test_timeout})
endforeach()

# What is installed: somebody else's projects against it, somebody else who runs it.
separate_arguments(dbo_c_flags UNIX_COMMAND "${CMAKE_C_FLAGS}")
add_test(NAME install COMMAND sh tests/package/install.sh ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}
         ${CMAKE_COMMAND} ${CMAKE_C_COMPILER} ${dbo_c_flags}
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(install PROPERTIES TIMEOUT ${dbo_test_timeout})

# What packagers do: builds of its own, for minutes.
add_test(NAME builds_long COMMAND sh tests/package/builds_long.sh ${PROJECT_SOURCE_DIR}
         ${CMAKE_COMMAND} ${CMAKE_C_COMPILER} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(builds_long PROPERTIES TIMEOUT 1800 LABELS long RUN_SERIAL ON)

# Every header stands alone: compiled by itself, under the flags of the sources; those of gpu in a
# build with it, which has found CUDA's headers.
set(headers)
set(header_rooms core sim viz lab app)
set(header_includes)
if(TARGET dbo_cuda)
  list(APPEND header_rooms gpu)
  get_target_property(header_includes dbo_cuda INTERFACE_SYSTEM_INCLUDE_DIRECTORIES)
  list(TRANSFORM header_includes PREPEND -isystem)
endif()
foreach(room IN LISTS header_rooms)
  file(GLOB_RECURSE of_room CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
       ${PROJECT_SOURCE_DIR}/${room}/*.h)
  list(APPEND headers ${of_room})
endforeach()
foreach(header IN LISTS headers)
  add_test(NAME header:${header} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
           COMMAND ${CMAKE_C_COMPILER} -std=c17 ${dbo_flags} -Werror -D_GNU_SOURCE
                   -I${PROJECT_SOURCE_DIR} -I${dbo_generated} -I${lua_INCLUDE_DIRS}
                   ${header_includes} -Wno-unused-function -fsyntax-only -x c ${header})
  set_tests_properties(header:${header} PROPERTIES LABELS style TIMEOUT ${dbo_test_timeout})
endforeach()

# Sizes; and that the script that checks them can fail.
foreach(script style style_selftest)
  add_test(NAME ${script} COMMAND sh tests/house/${script}.sh .
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${script} PROPERTIES LABELS style TIMEOUT ${dbo_test_timeout})
endforeach()

# Whom a room may use, and what of its symbols others see; and that the script that says so can fail.
set(libraries)
foreach(room core sim viz lab app)
  list(APPEND libraries $<TARGET_FILE:dbo_${room}>)
endforeach()
if(TARGET dbo_cuda)
  list(APPEND libraries $<TARGET_FILE:dbo_cuda>)
endif()
add_test(NAME rooms COMMAND sh tests/house/rooms.sh . ${libraries}
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
add_test(NAME rooms_selftest COMMAND sh tests/house/rooms_selftest.sh . ${CMAKE_C_COMPILER}
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(rooms rooms_selftest PROPERTIES LABELS style TIMEOUT ${dbo_test_timeout})

# The engine knows of no fault, nor does the checker; and the script that says so can fail.
foreach(script blind blind_selftest)
  add_test(NAME ${script} COMMAND sh tests/house/${script}.sh .
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${script} PROPERTIES LABELS style TIMEOUT ${dbo_test_timeout})
endforeach()

# A dbo without lab/faults, as DBO_FAULTS=OFF builds it, which is the same but for them: what stands
# in for them comes first, and so the linker takes nothing of theirs from the library.
if(TARGET dbo AND DBO_FAULTS)
  add_executable(dbo_no_faults app/main.c lab/no_faults.c)
  target_link_libraries(dbo_no_faults PRIVATE dbo_options dbo_app)
  target_include_directories(dbo_no_faults PRIVATE ${dbo_generated})
  dbo_lend_core(dbo_no_faults)
  add_test(NAME no_faults COMMAND sh tests/app/no_faults.sh . $<TARGET_FILE:dbo>
           $<TARGET_FILE:dbo_no_faults> WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(no_faults PROPERTIES TIMEOUT ${dbo_test_timeout})
endif()

# That ./dev mutate finds what no test sees, in a tree of two functions.
add_test(NAME mutate_selftest COMMAND sh tests/house/mutate_selftest.sh .
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(mutate_selftest PROPERTIES LABELS style TIMEOUT ${dbo_test_timeout})

# That ./dev refuses what it cannot take.
add_test(NAME dev_selftest COMMAND sh tests/house/dev_selftest.sh .
         WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
set_tests_properties(dev_selftest PROPERTIES LABELS style TIMEOUT ${dbo_test_timeout})

# What the documents show is what the program prints.
if(TARGET dbo)
  add_test(NAME docs COMMAND sh tests/app/docs.sh check ${PROJECT_SOURCE_DIR} $<TARGET_FILE:dbo>
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(docs PROPERTIES TIMEOUT ${dbo_test_timeout}
                       ENVIRONMENT "${dbo_own_scripts}")
  add_test(NAME map COMMAND sh tests/app/map.sh ${PROJECT_SOURCE_DIR} $<TARGET_FILE:dbo>
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(map PROPERTIES TIMEOUT ${dbo_test_timeout})
  find_program(BASH bash)
  if(BASH)
    add_test(NAME completion
             COMMAND ${BASH} ${PROJECT_SOURCE_DIR}/tests/app/completion.sh $<TARGET_FILE:dbo>)
    set_tests_properties(completion PROPERTIES TIMEOUT ${dbo_test_timeout})
  endif()
endif()
