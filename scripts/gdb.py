"""Pretty-printers for gdb: absl::Status and StatusOr, a slot of an executable, a plan, and indices.

  (gdb) source scripts/gdb.py
  (gdb) print status             INVALID_ARGUMENT: graph 'g' buffer 'x' (a.cc:12): nothing is bound; ...
  (gdb) print *slot              where the run of a slot stands
  (gdb) print core->context_.graph.plan_   one node a line, with its lane and segment

They read memory and call nothing, so they work on a core dump too. A member that a class does not have is left out.
gdb knows the members of Slot and Plan where the library is built with debug symbols (docs/howto/debugging.md).
"""
import gdb
import gdb.printing

CODES = ("OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED "
         "RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS "
         "UNAUTHENTICATED").split()
SLOT = "run leased fault predecessors".split()
PROGRESS = "serial next_segment next_command first_unsubmitted epilogue_submitted lane_full deadline".split()
LISTS = "lanes events commands segments host_steps states external_deps instances arenas".split()


def word(address, size=8):
    return int.from_bytes(gdb.selected_inferior().read_memory(address, size), "little")


def elements(vector):
    """The elements of a std::vector."""
    first, last = vector["_M_impl"]["_M_start"], vector["_M_impl"]["_M_finish"]
    return [first[i] for i in range(int(last - first))]


def names(value):
    """The members of a value, those of its bases too."""
    found, types = set(), [value.type.strip_typedefs()]
    while types:
        for field in types.pop().fields():
            types.append(field.type.strip_typedefs()) if field.is_base_class else found.add(field.name)
    return found


class Status:
    """Abseil keeps a code alone in the word itself, and a code with text in a block: count, code, std::string."""

    def __init__(self, value):
        self.word = int(value["rep_"])

    def to_string(self):
        if self.word < 1024:
            return "moved-from" if self.word & 2 else CODES[self.word >> 2]
        block = self.word & ~1
        text = gdb.selected_inferior().read_memory(word(block + 8), word(block + 16)).tobytes()
        return f"{CODES[word(block + 4, 4)]}: {text.decode(errors='replace')}"


class StatusOr:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        text = Status(self.value["status_"]).to_string()
        return f"{text}: {self.value['data_']}" if text == "OK" else text


class Slot:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        return f"slot {self.value['index']}" if "index" in names(self.value) else "slot"

    def children(self):
        progress = self.value["progress"]
        return ([(name, self.value[name]) for name in SLOT if name in names(self.value)] +
                [(name, progress[name]) for name in PROGRESS if name in names(progress)])


class Id:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        return str(self.value["index_"])


class Plan:
    def __init__(self, value):
        self.value = value

    def to_string(self):
        counts = ", ".join(f"{len(elements(self.value[name]))} {name}" for name in LISTS if name in names(self.value))
        nodes = elements(self.value["nodes"])
        lines = [f"\n  {at}  {node['name'].format_string()}  {str(node['kind']).rsplit('::', 1)[-1]}  device "
                 f"{node['device'].format_string()} lane {node['lane'].format_string()} segment {node['segment']}" for at, node in enumerate(nodes)]
        return f"plan {self.value['graph'].format_string()}: {len(nodes)} nodes, {counts}" + "".join(lines)


def printers():
    made = gdb.printing.RegexpCollectionPrettyPrinter("penstock")
    made.add_printer("Status", r"^absl::(\w+::)?Status$", Status)
    made.add_printer("StatusOr", r"^absl::(\w+::)?StatusOr<.*>$", StatusOr)
    made.add_printer("Slot", r"^penstock::runtime::RunSlot$", Slot)
    made.add_printer("Id", r"^penstock::detail::Id<.*>$", Id)
    made.add_printer("Plan", r"^penstock::graph::Plan$", Plan)
    return made


gdb.printing.register_pretty_printer(None, printers(), replace=True)
