#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tests what `patchbay bpf map dump` prints: variables by their types, and maps that a stray write
# has damaged. Also tests maps that can't have the types that their object gives them.
#   test_dump.sh PATCHBAY
set -u
patchbay=$(realpath "$1") failed=0
command -v clang >/dev/null && command -v python3 >/dev/null || exit 77
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT; trap 'exit 130' INT; trap 'exit 143' TERM
XDG_RUNTIME_DIR=$tmp/run; export XDG_RUNTIME_DIR
mkdir -m 700 "$tmp/run"
dir=$tmp/run/patchbay/bpf

check() {	# STATUS EXPECTED ARGS...: `bpf ARGS` exits with STATUS and prints EXPECTED
	status=$1 expected=$2; shift 2
	got=$("$patchbay" bpf "$@" 2>"$tmp/err" </dev/null); was=$?
	[ "$was" = "$status" ] && [ "$got" = "$expected" ] && return
	printf 'FAILED: bpf %s\n  status %s, not %s\n  %s\nnot\n  %s\n' "$*" "$was" "$status" "$got" "$expected"
	cat "$tmp/err"
	failed=1
}
compile() {	# NAME: compiles NAME.bpf.c, from standard input
	{ printf '#include <linux/bpf.h>\n#include <bpf/bpf_helpers.h>\n'; cat; } >"$tmp/$1.bpf.c"
	clang -O2 -g -target bpf "-I/usr/include/$(uname -m)-linux-gnu" -c "$tmp/$1.bpf.c" -o "$tmp/$1.bpf.o" || exit 1
}

# Variables have the offsets that the loader gives them. The compiler leaves all offsets of global
# variables at 0. The kernel's version is 0 if it can't be found.
compile vars <<'C'
int first = 5, second = 7;
static volatile int third = 9;
extern int LINUX_KERNEL_VERSION __kconfig __weak;
extern long LINUX_HAS_BPF_COOKIE __kconfig;
SEC("socket") int vars(struct __sk_buff *skb)
{
	return first + second + third + LINUX_KERNEL_VERSION + LINUX_HAS_BPF_COOKIE;
}
C
check 0 "" load -q "$tmp/vars.bpf.o" vars
"$patchbay" bpf map --btf "$tmp/vars.bpf.o" dump "$dir/vars/maps/vars_data" | sort >"$tmp/out"
printf 'first = 5\nsecond = 7\nthird = 9\n' | diff - "$tmp/out" || { echo "FAILED: variables in .data"; failed=1; }
"$patchbay" bpf map --btf "$tmp/vars.bpf.o" dump "$dir/vars/maps/vars_kconfig" | sort >"$tmp/out"
grep -qx 'LINUX_HAS_BPF_COOKIE = 1' "$tmp/out" && grep -qx 'LINUX_KERNEL_VERSION = \(0\|[0-9]\{5,\}\)' "$tmp/out" || {
	echo "FAILED: variables in .kconfig"; cat "$tmp/out"; failed=1
}

# A key in the map's memory changes. The dump ends, and shows the other elements.
compile keys <<'C'
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, long);
	__type(value, long);
	__uint(max_entries, 100);
} table SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(key_size, 12);
	__uint(value_size, 8);
	__uint(max_entries, 100);
} trie SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(key_size, 5);
	__uint(value_size, 60000);
	__uint(max_entries, 100);
} wide SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_WRONLY);
	__type(key, long);
	__type(value, long);
	__uint(max_entries, 100);
} hash_in SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_WRONLY);
	__type(key, int);
	__type(value, long);
	__uint(max_entries, 4);
} array_in SEC(".maps");
SEC("socket") int keys(struct __sk_buff *skb)
{
	char key[12] = {};

	return bpf_map_lookup_elem(&table, key) || bpf_map_lookup_elem(&trie, key) ||
	       bpf_map_lookup_elem(&wide, key) || bpf_map_lookup_elem(&hash_in, key) ||
	       bpf_map_lookup_elem(&array_in, key);
}
C
check 0 "" load -q "$tmp/keys.bpf.o" keys
for i in 10 11 12 13 14 15 16 17 18 19; do
	check 0 "" map update "$dir/keys/maps/table" key hex $i ab cd ef 01 02 03 04 value hex $i 0 0 0 0 0 0 0
	check 0 "" map update "$dir/keys/maps/trie" key hex 40 0 0 0 $i ab cd ef 01 02 03 04 value hex $i 0 0 0 0 0 0 0
done
# an entry that all keys match
check 0 "" map update "$dir/keys/maps/trie" key hex 0 0 0 0 0 0 0 0 0 0 0 0 value hex ff 0 0 0 0 0 0 0
damage() {	# MAP KEY: changes the key that begins with KEY
	python3 - "$dir/keys/maps/$1" "$2" <<'PY' || exit 1
import sys
key = bytes.fromhex(sys.argv[2]) + bytes.fromhex("abcdef01020304")
with open(sys.argv[1], "r+b") as f:
	at = f.read().index(key)
	f.seek(at)
	f.write(bytes([key[0] ^ 0x80]))
PY
}
dump_ends() {	# MAP ELEMENTS: the dump ends, and has the elements
	"$patchbay" bpf map dump "$dir/keys/maps/$1" 2>"$tmp/err" | head -1000 >"$tmp/out"
	[ "$(grep -c '^Found' "$tmp/out")" = 1 ] && [ "$(grep -c '^key' "$tmp/out")" = "$2" ] &&
		[ "$(grep '^key' "$tmp/out" | sort -u | wc -l)" = "$2" ] && return
	echo "FAILED: the dump of the damaged $1"; head -30 "$tmp/out"; cat "$tmp/err"
	failed=1
}
dump_ends table 10
dump_ends trie 11
damage table 13
dump_ends table 9
[ ! -s "$tmp/err" ] || { echo "FAILED: the dump of a hash says:"; cat "$tmp/err"; failed=1; }
damage trie 13
dump_ends trie 4		# the walk can't go on after the damaged key, the fourth
grep -q 'trie: the map was changed too often, or is damaged: not all of its elements could be read$' "$tmp/err" || {
	echo "FAILED: the dump of a damaged trie says:"; cat "$tmp/err"; failed=1
}

# A trie is changed while its dump shows key 14. The dump can't go on until the rest of this element
# is read from the pipe. Elements that are there all the time are shown once, in the trie's order: a
# prefix comes after all that begin with it.
python3 - "$patchbay" "$dir/keys/maps/wide" <<'PY' || failed=1
import os, re, subprocess, sys

def change(what, key, *value):
	subprocess.run([sys.argv[1], "bpf", "map", what, sys.argv[2], "key", "hex", *key.split(), *value], check=True)

def update(last, bits="8"):
	change("update", "%s 0 0 0 %s" % (bits, last), "value", "hex", *["0"] * 60000)

def dump(changes):
	with subprocess.Popen([sys.argv[1], "bpf", "map", "dump", sys.argv[2]], stdout=subprocess.PIPE, bufsize=0) as p:
		text = b""
		while piece := os.read(p.stdout.fileno(), 4096):
			text += piece
			if changes and b"key: 08 00 00 00 14" in text:
				changes()
				changes = None
	return p.returncode, re.findall("key: (..) 00 00 00 (..)", text.decode())

failed = 0
keys = [("08", str(i)) for i in range(10, 20)] + [("04", "10"), ("00", "00")]
rows = {
	"delete 12, 14": lambda: [change("delete", "8 0 0 0 " + key) for key in ("12", "14")],
	"delete 10, 14": lambda: [change("delete", "8 0 0 0 " + key) for key in ("10", "14")],
	"add 9, delete 14": lambda: [update("9"), change("delete", "8 0 0 0 14")],
	"nothing": lambda: None,
}
for row, changes in rows.items():
	for bits, last in keys:
		update(last, bits)
	expected = keys if row != "nothing" else [("08", "09")] + keys
	got = dump(changes)
	if got != (0, expected):
		print("FAILED: the dump of a trie (%s): %s" % (row, got))
		failed = 1
sys.exit(failed)
PY

# Elements that the map's flags don't allow to read are an error.
for map in hash_in array_in; do
	check 1 "Found 0 elements" map dump "$dir/keys/maps/$map"
	grep -q "$map: the elements can't be read: Operation not permitted$" "$tmp/err" || {
		echo "FAILED: the dump of $map says:"; cat "$tmp/err"; failed=1
	}
done

# A map of a type that can't have a lock is made without types, and the verifier says so.
compile lock <<'C'
struct value { long n; struct bpf_spin_lock lock; };
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, int);
	__type(value, struct value);
	__uint(max_entries, 1);
} slots SEC(".maps");
SEC("tc") int locks(struct __sk_buff *skb)
{
	int zero = 0;
	struct value *v = bpf_map_lookup_elem(&slots, &zero);

	if (!v)
		return 0;
	bpf_spin_lock(&v->lock);
	v->n++;
	bpf_spin_unlock(&v->lock);
	return 0;
}
SEC("tc") int counts(struct __sk_buff *skb)
{
	int zero = 0;
	struct value *v = bpf_map_lookup_elem(&slots, &zero);

	return v ? v->n : 0;
}
char _license[] SEC("license") = "GPL";
C
got=$("$patchbay" bpf verify -q "$tmp/lock.bpf.o" | sed 's/ verified=.*//; s/ xlated=.*//')
[ "$got" = "locks: REJECT errno=13 map 'slots' has to have BTF in order to use bpf_spin_lock
counts: ACCEPT" ] || { printf 'FAILED: a lock in a per-CPU map\n%s\n' "$got"; failed=1; }
exit $failed
