# cmake -DPAGE=page.html -DPARTS=a.js,b.css,... -DOUTPUT=x.cc -P EmbedReport.cmake: the report's page as a C++ source, which
# defines what src/cli/report_page.cc declares.
#
# A line or place <!--= NAME --> of the page stands for the file of that name beside it or, in capitals, for data that a
# report brings. A part that the page does not name, and a name that is no part, are errors.
cmake_minimum_required(VERSION 3.25)
file(READ ${PAGE} rest)
cmake_path(GET PAGE PARENT_PATH folder)
string(REPLACE "," ";" parts "${PARTS}")
set(pieces "")

# Compilers take literals of 65535 characters; a text is several, and lines are never cut.
function(append_text text)
  while(NOT text STREQUAL "")
    string(LENGTH "${text}" length)
    set(size ${length})
    if(length GREATER 16000)
      string(SUBSTRING "${text}" 0 16000 begin)
      string(FIND "${begin}" "\n" size REVERSE)
      if(size LESS 0)
        message(FATAL_ERROR "the report's page has a line of more than 16000 characters")
      endif()
      math(EXPR size "${size} + 1")
    endif()
    string(SUBSTRING "${text}" 0 ${size} begin)
    string(SUBSTRING "${text}" ${size} -1 text)
    string(APPEND pieces "    {Data::kNone, R\"penstock(${begin})penstock\"},\n")
  endwhile()
  set(pieces "${pieces}" PARENT_SCOPE)
endfunction()

string(FIND "${rest}" "<!--=" at)
while(at GREATER -1)
  string(SUBSTRING "${rest}" 0 ${at} before)
  string(SUBSTRING "${rest}" ${at} -1 rest)
  string(FIND "${rest}" "-->" end)
  string(SUBSTRING "${rest}" 5 ${end} name)
  string(REGEX REPLACE "^ *([A-Za-z_.]+) .*" "\\1" name "${name}")
  math(EXPR end "${end} + 3")
  string(SUBSTRING "${rest}" ${end} -1 rest)
  append_text("${before}")
  if(name MATCHES "^[A-Z]+$")
    string(SUBSTRING "${name}" 0 1 initial)
    string(SUBSTRING "${name}" 1 -1 others)
    string(TOLOWER "${others}" others)
    string(APPEND pieces "    {Data::k${initial}${others}, {}},\n")
  elseif(name IN_LIST parts)
    file(READ ${folder}/${name} text)
    append_text("${text}")
    list(REMOVE_ITEM parts ${name})
  else()
    message(FATAL_ERROR "${PAGE} names '${name}', which is no part of the report; list it in src/cli/CMakeLists.txt")
  endif()
  string(FIND "${rest}" "<!--=" at)
endwhile()
append_text("${rest}")
if(parts)
  message(FATAL_ERROR "${PAGE} does not name ${parts}")
endif()

file(WRITE ${OUTPUT} "// Generated from the files of src/cli/report.
#include \"src/cli/report_page.h\"

namespace penstock::cli {

const std::vector<PagePiece>& ReportPieces() {
  using Data = PagePiece::Data;
  static const std::vector<PagePiece> pieces = {
${pieces}  };
  return pieces;
}

}  // namespace penstock::cli
")
