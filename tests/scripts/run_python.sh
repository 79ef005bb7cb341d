# run_python SCRIPT ARGS...: runs a Python script of the project and shows what it prints, errors too. All scripts of a
# test are forked from one interpreter, since starting one takes as long as twenty checks of a small tree. Sourced.
coproc python {
  exec python3 -uc '
import os, runpy, sys
for line in sys.stdin:
    output, *sys.argv = line.rstrip("\n").split("\t")
    child = os.fork()
    if child == 0:
        to = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(to, 1), os.dup2(to, 2)
        sys.path.insert(0, os.path.dirname(sys.argv[0]))
        try:
            runpy.run_path(sys.argv[0], run_name="__main__")
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
            if code and not isinstance(end.code, int): print(end.code)
        except BaseException as error:
            print(repr(error))
            code = 1
        sys.stdout.flush()
        os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
'
}
python_output=$(mktemp)

run_python() {
  local IFS=$'\t' code
  printf '%s\t%s\n' "$python_output" "$*" >&"${python[1]}"
  read -r code <&"${python[0]}"
  printf '%s\n' "$(<"$python_output")"
  return "$code"
}
