# SPDX-License-Identifier: LGPL-2.1-or-later
"""Reads the text of `replay` (function_graph), and checks the calls that it shows. Tests use
this module through pbtest."""
import collections
import functools
import re

# A line of function_graph text: "  1234)   0.5 us  |    name() {". The text after the '|' is the
# call. Other columns may come between the ')' and the '|'.
INDENT_LEVELS = 256     # replay doesn't indent deeper calls any further
TID_COLUMN = re.compile(r"^\s*\[?\s*(?:\S+-)?(\d+)\]?\s*[)|]$")
COMMENT = re.compile(r"\s*/\*.*?\*/\s*")
Event = collections.namedtuple("Event", "tid kind depth name")


@functools.lru_cache(maxsize=1 << 12)
def tid_in(column):
    """Returns the tid in a line's first columns, which end with ')' or '|'. None: the line shows no
    call."""
    m = TID_COLUMN.match(column.decode(errors="replace"))
    return int(m.group(1)) if m else None


@functools.lru_cache(maxsize=1 << 17)
def event(column, right):
    """Returns the event of a line, from its first columns and from the text after the '|'. None:
    the line is a remark."""
    tid = tid_in(column)
    text = right.lstrip(b" ")
    depth = max(0, len(right) - len(text) - 2) // 2
    text = text.decode(errors="replace")
    if tid is None or text.startswith("/*"):
        return None
    text = COMMENT.sub("", text).rstrip()
    if text.startswith("}"):
        return Event(tid, "close", depth, "")
    if text.endswith("{"):
        return Event(tid, "open", depth, function_name(text[:-1]))
    if text.endswith(";"):
        return Event(tid, "leaf", depth, function_name(text[:-1]))
    return None


def parse_replay(lines):
    """Yields the open, leaf and close events of function_graph text."""
    for line in lines:
        if line.startswith(b"#"):
            continue
        end = line.find(b")") + 1
        bar = line.find(b"|", end)
        if not end or bar < 0:
            end = line.find(b"|") + 1
            bar = line.find(b"|", end)
        if not end or bar < 0:
            continue
        e = event(line[:end], line[bar + 1:])
        if e:
            yield e


def function_name(text):
    text = text.strip()
    if text.endswith("()"):
        text = text[:-2]
    text = re.sub(r" \[[^\]]*\]$", "", text)        # module
    # C++: only the last part of a name counts, without arguments
    return re.sub(r"\(.*\)(?: const)?$", "", text).split("::")[-1] or text


def with_depths(events):
    """Yields each event with a list: the names of the open calls of the event's thread. The view
    doesn't indent very deep calls any further, so this function computes the depth of their events.
    The list of names is cut to the event's depth, and doesn't have the event's own name yet."""
    stacks = collections.defaultdict(list)
    for e in events:
        st = stacks[e.tid]
        if e.depth >= INDENT_LEVELS:
            e = Event(e.tid, e.kind, max(INDENT_LEVELS, len(st) - (e.kind == "close")), e.name)
        del st[e.depth:]
        while len(st) < e.depth:
            st.append("?")
        yield e, st
        if e.kind == "open":
            st.append(e.name)


def is_handler(name):
    return name.startswith("on_")


def marker_errors(events, paths, limit=5):
    """Checks each call of marker_begin among the events. Its ancestors must end in one of `paths`.
    Its callees must be exactly marker_a { marker_b } and marker_c. The calls of a signal handler
    don't count as callees of the interrupted call, but markers in handlers are checked, too.
    Returns (number of markers, complaints)."""
    want = [("marker_a", 0), ("marker_b", 1), ("marker_c", 0)]
    current = {}                        # tid -> [depth, path, callees] of each open marker_begin
    seen, errors = 0, []

    def complain(text):
        if len(errors) < limit:
            errors.append(text)

    def finish(tid, depth):
        open_markers = current.get(tid, [])
        while open_markers and open_markers[-1][0] >= depth:
            _, path, got = open_markers.pop()
            if got != want:
                complain("%s: the calls below marker_begin are %s" % ("/".join(path[-4:]), got))

    for e, st in with_depths(events):
        markers = current.setdefault(e.tid, [])
        if markers:
            finish(e.tid, e.depth)
        if e.kind == "close":
            continue
        if markers:
            base = markers[-1][0]
            between = st[base + 1:] + [e.name]
            if not any(is_handler(n) for n in between) and e.name != "marker_begin":
                markers[-1][2].append((e.name, e.depth - base - 1))
        if e.name == "marker_begin":
            seen += 1
            if paths and not any(path_ends(st, p) for p in paths):
                complain("marker_begin's ancestors are %s" % "/".join(st[-8:]))
            markers.append([e.depth, list(st), []])
            if e.kind == "leaf":
                finish(e.tid, e.depth)
    for tid in list(current):
        finish(tid, 0)
    return seen, errors


def path_ends(stack, path):
    """Returns whether the stack ends in path. '?' stands for a call that was open when the view of
    this thread or stack began."""
    return len(stack) >= len(path) and all(a in (b, "?") for a, b in zip(stack[-len(path):], path))
