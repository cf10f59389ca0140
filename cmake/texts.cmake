# Texts for people: files of their own, which the compiler gets as rows of C. A line that begins with
# # is left out, one that begins with blanks goes on with the line before; each file says the rest.

# The file's text, with each of its lines as one, ready to stand between quotes.
function(dbo_read_text name out)
  set(path ${PROJECT_SOURCE_DIR}/app/say/${name}.txt)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  file(READ ${path} text)
  string(REGEX REPLACE "(^|\n)#[^\n]*" "" text "${text}")
  string(REGEX REPLACE "([\"\\])" "\\\\\\1" text "${text}")
  string(REGEX REPLACE "\n +" " " text "${text}")
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

dbo_read_text(terms text)
string(REGEX REPLACE "\n([^[\n][^\n]*):: ([^\n]*)" "\n    {\"\\1\", \"\\2\"}," text "${text}")
string(REGEX REPLACE "\n\\[([a-z_]+)\\]" "};\nstatic const row \\1[] = {" text "${text}")
string(REGEX REPLACE "^[ \n]*};" "" text "${text}")
file(CONFIGURE OUTPUT ${dbo_generated}/terms.inc @ONLY CONTENT "${text}};\n")

dbo_read_text(faults text)
string(REGEX REPLACE "\n[|]([^\n]*)" "\n        \"\\1\\\\n\"" text "${text}")
string(REGEX REPLACE "\npicture::" "\n    .picture =" text "${text}")
string(REGEX REPLACE "\nby_run:: true" "\n    .by_run = true," text "${text}")
string(REGEX REPLACE "\n([a-z]+):: ([^\n]*)" "\n    .\\1 = \"\\2\"," text "${text}")
string(REGEX REPLACE "\n\\[([A-Z_]+)\\]" "},\n[DBO_FAULT_\\1] = {" text "${text}")
string(REGEX REPLACE "^[ \n]*}," "" text "${text}")
file(CONFIGURE OUTPUT ${dbo_generated}/faults.inc @ONLY CONTENT "${text}}\n")

dbo_read_text(commands text)
string(REGEX REPLACE "\n(group|what):: ([^\n]*)" "\n, .\\1 = \"\\2\"" text "${text}")
string(REGEX REPLACE "\n(help|notes):: ([^\n]*)" "\n, .\\1 = \"\\2\\\\n\"" text "${text}")
string(REGEX REPLACE "\nexamples::" "\n, .examples =" text "${text}")
string(REGEX REPLACE "\n[|]([^\n]*)" "\n \"\\1\\\\n\"" text "${text}")
string(REGEX REPLACE "\n+([, ])" "\\1" text "${text}")
string(REGEX REPLACE "\n\\[([a-z]+)\\]" "\n#define DBO_COMMAND_TEXT_\\1 .name = \"\\1\"" text "${text}")
file(CONFIGURE OUTPUT ${dbo_generated}/command_texts.h @ONLY CONTENT "${text}")

# What stands in a file, as one string literal.
foreach(name completion.bash completion.zsh completion.fish manual_begin.roff manual_end.roff)
  set(path ${PROJECT_SOURCE_DIR}/app/say/${name})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  file(READ ${path} text)
  string(REGEX REPLACE "([\"\\])" "\\\\\\1" text "${text}")
  string(REGEX REPLACE "([^\n]*)\n" "\"\\1\\\\n\"\n" text "${text}")
  file(CONFIGURE OUTPUT ${dbo_generated}/${name}.inc @ONLY CONTENT "${text}")
endforeach()
