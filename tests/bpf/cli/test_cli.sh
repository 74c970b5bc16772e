#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Tests the output and exit status of `patchbay bpf`. The expected verdicts are the kernel's
# verdicts on the same instructions. Times and sizes of code aren't compared.
#   test_cli.sh PATCHBAY
set -u
strip=
command -v python3 >/dev/null || exit 77
patchbay=$(realpath "$1") failed=0 tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT; trap 'exit 130' INT; trap 'exit 143' TERM

check() {	# STATUS EXPECTED ARGS...: `bpf ARGS` exits with STATUS and prints EXPECTED
	status=$1 expected=$2; shift 2
	got=$("$patchbay" bpf "$@" 2>"$tmp/err" </dev/null); was=$?
	got=$(printf %s "$got" | sed 's/ jited=[0-9]*//; s/ xlated=[0-9]*//; s/ ns=[0-9]*$//; '"$strip")
	[ "$was" = "$status" ] && [ "$got" = "$expected" ] && return
	printf 'FAILED: bpf %s\n  status %s, not %s\n  %s\nnot\n  %s\n' "$*" "$was" "$status" "$got" "$expected"
	failed=1
}

zeros=$(printf '%0128d' 0)
exit0=9500000000000000
one="b700000001000000 $exit0"
check 0 "ACCEPT verified=2
RUN retval=1 data_out=$zeros" run -q $one
check 0 "ACCEPT verified=2" verify -q $one
check 0 "ACCEPT verified=2" run -q -n $one
check 1 "REJECT errno=13 R0 !read_ok" run -q $exit0
check 1 "REJECT errno=22 program of this type cannot use helper bpf_setsockopt#49" run -q 8500000031000000 $one
check 1 "REJECT errno=22 last insn is not an exit or jmp" verify -q b700000001000000
# a helper writes a number only to an aligned address; bpf_strtol gets the addresses fp-24, fp-20,
# and the address of a map's value plus 4
text="620af8ff31320000 bfa1000000000000 07010000f8ffffff b702000002000000 b703000000000000 bfa4000000000000"
strtol=8500000069000000
check 0 "ACCEPT verified=9
RUN retval=2 data_out=$zeros" run -q $text 07040000e8ffffff $strtol $exit0
check 1 "REJECT errno=13 misaligned stack access off 0+-20+0 size 8" \
	verify -q $text 07040000ecffffff $strtol $exit0
check 1 "REJECT errno=13 misaligned value access off 0+4+0 size 8" \
	verify -q -m 2,4,16,1 $text 1824000000000000 0000000004000000 $strtol $exit0
# the program reads a context field; the packet is given
check 0 "ACCEPT verified=2
RUN retval=20 data_out=000000000000000000000000000000000000aabb" \
	run -q -t cls -d 000000000000000000000000000000000000aabb 6110000000000000 $exit0
# the program changes packet data after a check against data_end
check 0 "ACCEPT verified=9
RUN retval=2 data_out=ff00000000000000000000000000" run -q -t xdp -d 0000000000000000000000000000 \
	b700000002000000 6112000000000000 6113040000000000 bf24000000000000 0704000001000000 \
	2d34010000000000 72020000ff000000 $exit0
# the program updates and looks up an element of a map
check 0 "ACCEPT verified=17
RUN retval=5 data_out=$zeros" run -q -m 1,4,8,4 \
	620afcff01000000 7a0af0ff05000000 bfa2000000000000 07020000fcffffff bfa3000000000000 07030000f0ffffff \
	b704000000000000 1811000000000000 0000000000000000 8500000002000000 bfa2000000000000 07020000fcffffff \
	1811000000000000 0000000000000000 8500000001000000 1500010000000000 7900000000000000 $exit0
check 0 "ACCEPT verified=2
RUN retval=42 data_out=" run -q -t raw_tp -c 2a00000000000000 7910000000000000 $exit0
check 2 "ACCEPT verified=2
RUN errno=22 Invalid argument" run -q -t raw_tp -c 2a00000000000000 7910080000000000 $exit0
check 2 "ACCEPT verified=2
RUN errno=524 programs of this type run only with a context (--ctx)" run -q -t kprobe $one
check 0 "ACCEPT verified=2
RUN retval=7 data_out=" run -q -t kprobe -c 0700000000000000 7910000000000000 $exit0
check 2 "ACCEPT verified=2
RUN errno=22 Invalid argument" run -q -t xdp -c 0400000000000000 $one
# a loop with 450,000 iterations makes a log of more than 8 MB; the log is cut, and the verdict
# stays the same
loop="b701000000000000 0701000001000000 a501feffd0dd0600"
check 0 "ACCEPT verified=900003" verify -q $loop $one
check 0 "ACCEPT verified=900003" verify -q -l 1 $loop $one
check 0 "ACCEPT verified=900003" verify -l 2 $loop $one
grep -q "^(the log is cut: [0-9]* bytes before this are missing)" "$tmp/err" || { echo "FAILED: the log doesn't report how much was cut"; failed=1; }
tail -3 "$tmp/err" | grep -q "^processed 900003 insns" || { echo "FAILED: no last line"; failed=1; }
# The largest program needs at most 100 MB, although the verifier keeps a state at every eighth
# instruction, and the log has its maximal size. A sanitizer needs more memory itself.
grep -qE "__asan_report_load8|__tsan_func_entry" "$patchbay" || python3 - "$patchbay" <<'EOF' || { echo "FAILED: the memory of a large program"; failed=1; }
import os, resource, subprocess, sys
env = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}     # meson's MALLOC_PERTURB_ touches all allocated memory
text = "8500000005000000 " * 999998 + "b700000000000000 9500000000000000"
done = subprocess.run([sys.argv[1], "bpf", "run", "-l", "1"], input=text, capture_output=True, text=True, env=env)
most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
if done.returncode or "RUN retval=" not in done.stdout or most > 100 << 10:
    sys.exit("%d, %s, %d KB" % (done.returncode, done.stdout[:200], most))
EOF
# without -l, an accepted program has no log; for a rejected program, only the end of the log is
# printed
check 0 "ACCEPT verified=2" verify $one
[ -s "$tmp/err" ] && { echo "FAILED: a log was written without -l"; failed=1; }
check 1 "REJECT errno=13 R3 !read_ok" verify $loop bf30000000000000 $exit0
tail -2 "$tmp/err" | head -1 | grep -q "^R3 !read_ok" || { echo "FAILED: the reason is cut off"; failed=1; }
check 1 "REJECT errno=13 R3 !read_ok" verify -q -l 4 $loop bf30000000000000 $exit0
check 1 "REJECT errno=1 " verify -q --unprivileged -t kprobe $one
check 3 "" run -q b7
check 3 "" run -q -m 1,4 $one
# numbers of options aren't cut to 32 bits, and end where their digits end
for m in 4294967298,4,4,1 2,4,4,1,0x 2,4,4,-1 2,4,4,1,0,0 2,4,,1; do
	check 3 "" run -q -m $m $one
	grep -q "^patchbay bpf run: -m $m: TYPE,KEY,VALUE,ENTRIES\[,FLAGS\] are numbers" "$tmp/err" || { echo "FAILED: -m $m"; failed=1; }
done
for option in -a -l -r --load-flags=; do
	for n in 4294967297 -1 1k x; do
		check 3 "" run -q $option$n $one
		grep -q "^patchbay bpf run: ${option%=} $n: not a number from 0 to 4294967295" "$tmp/err" || { echo "FAILED: $option$n"; failed=1; }
	done
done
check 3 "" run -q -t nonsense $one
printf '\267\000\000\000\011\000\000\000\225\000\000\000\000\000\000\000' >"$tmp/insns"
check 0 "ACCEPT verified=2
RUN retval=9 data_out=$zeros" run -q -f "$tmp/insns"
check 0 "ACCEPT verified=2
RUN retval=9 data_out=$zeros" run -q --interpret -f "$tmp/insns"
head -c 20 /dev/zero >"$tmp/packet"
check 0 "ACCEPT verified=2
RUN retval=1 data_out=0000000000000000000000000000000000000000" \
	run -q --data-in "$tmp/packet" --data-out "$tmp/out" $one
cmp -s "$tmp/packet" "$tmp/out" || { echo "FAILED: --data-out"; failed=1; }

# a read error isn't the end of the file
for option in "-n -f" --data-in --ctx-in; do
	check 3 "" run -q $option "$tmp" $one
	grep -qx "patchbay bpf run: $tmp: Is a directory" "$tmp/err" || { echo "FAILED: $option DIR"; cat "$tmp/err"; failed=1; }
done

# the plug-in protocol of the bpf_conformance suite
check 0 807060504030201 run --plugin "01 02 03 04 05 06 07 08" --program "7910000000000000 $exit0"
check 0 3 run --plugin "010203" --program "bf20000000000000 $exit0"
check 0 ffffffffffffffff run --plugin --interpret --program "b7000000ffffffff $exit0"
check 1 "" run --plugin --program "7910000000000000 $exit0"
# a program may access the given memory at any alignment, up to the last byte; this memory uses none
# of the program's stack
check 0 8877665544332211 run --plugin "aa bb 11 22 33 44 55 66 77 88 cc dd" --program "7910020000000000 $exit0"
check 0 1100 run --plugin "ff 00 11" --program "6910010000000000 $exit0"
check 0 3322 run --plugin --interpret "ff 00 11" --program "6a01010022330000 6910010000000000 $exit0"
check 1 "" run --plugin "ff 00 11" --program "6910020000000000 $exit0"
check 1 "" run --plugin "ff 00 11" --program "7110ffff00000000 $exit0"
check 0 7 run --plugin "ff" --program "7a0a00fe07000000 79a000fe00000000 $exit0"
check 0 1 run --plugin --program "bf10000000000000 1500010000000000 b700000002000000 0700000001000000 $exit0"
check 0 dc0 run --plugin "$(printf '%07040d' 0)" --program "bf20000000000000 $exit0"
check 1 "" run --plugin "$(printf '%07042d' 0)" --program "bf20000000000000 $exit0"

check 0 "   0: (b7) r0 = 1
   1: (95) exit" dump $one
check 0 "   0: (b7) r0 = 1
   1: (95) exit" dump -t 6 $one
check 0 "   0: (18) r1 = map[id:0]
   2: (85) call bpf_map_lookup_elem#1
   3: (95) exit" dump xlated -m 1,4,8,1 1811000000000000 0000000000000000 8500000001000000 $exit0
"$patchbay" bpf dump jited $one >"$tmp/code" 2>&1
grep -q 'ret$' "$tmp/code" || { echo "FAILED: dump jited"; cat "$tmp/code"; failed=1; }

# an object's programs and maps are pinned; other processes see the programs and maps
command -v clang >/dev/null || { echo "no clang: no objects"; exit $failed; }
XDG_RUNTIME_DIR=$tmp/run; export XDG_RUNTIME_DIR
mkdir -m 700 "$tmp/run"
cat >"$tmp/count.bpf.c" <<'C'
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4);
	__type(key, int);
	__type(value, long);
} counts SEC(".maps");
const volatile int step = 3;
/* the compiler drops the unused parameters, but not from the types */
static __noinline int first(int a, int b, int c, int d, int e, int f)
{
	return step;
}
SEC("xdp") int count(struct xdp_md *ctx)
{
	long one = first(1, 2, 3, 4, 5, 6), *n;
	int key = 7;

	n = bpf_map_lookup_elem(&counts, &key);
	if (n)
		return *n += step;
	bpf_map_update_elem(&counts, &key, &one, BPF_ANY);
	bpf_printk("first %d", key);
	return 0;
}
SEC("xdp") int refused(struct xdp_md *ctx)
{
	return *(int *)(long)ctx->data;
}
char _license[] SEC("license") = "GPL";
C
strip="s/ verified=.*//"	# the number depends on the compiler
clang -O2 -g -target bpf "-I/usr/include/$(uname -m)-linux-gnu" -c "$tmp/count.bpf.c" -o "$tmp/count.bpf.o" || exit 1
check 1 "count: ACCEPT
refused: REJECT errno=13 R1 offset is outside of the packet" verify -q "$tmp/count.bpf.o"
check 0 "count: ACCEPT
RUN retval=15 data_out=$zeros" run -q -r 5 "$tmp/count.bpf.o" count
check 1 "" load -q "$tmp/count.bpf.o" both
grep -q 'refused: rejected: R1 offset is outside' "$tmp/err" || { echo "FAILED: why"; cat "$tmp/err"; failed=1; }
check 0 "" load -q "$tmp/count.bpf.o" ours count
dir=$tmp/run/patchbay/bpf/ours
check 0 "ACCEPT
RUN retval=0 data_out=$zeros" run -q pinned "$dir/count"
grep -qx 'bpf_trace_printk: first 7' "$tmp/err" || { echo "FAILED: bpf_printk"; failed=1; }
check 0 "ACCEPT
RUN retval=6 data_out=$zeros" run -q pinned "$dir/count"
check 0 "key: 07 00 00 00  value: 06 00 00 00 00 00 00 00
Found 1 element" map dump pinned "$dir/maps/counts"
check 1 "" map dump pinned 1
check 2 "" map dump id counts
check 2 "" map dump id 4294967297
check 0 "key: 7  value: 6
Found 1 element" map --btf "$tmp/count.bpf.o" dump pinned "$dir/maps/counts"
check 0 "" map update "$dir/maps/counts" key 1 0 0 0 value hex ff 00 00 00 00 00 00 00 noexist
check 1 "" map update "$dir/maps/counts" key 1 0 0 0 value hex ff 00 00 00 00 00 00 00 noexist
check 0 "key: 01 00 00 00  value: ff 00 00 00 00 00 00 00" map lookup "$dir/maps/counts" key 0x1 0 0 0
check 0 "" map delete "$dir/maps/counts" key 1 0 0 0
check 1 "" map lookup "$dir/maps/counts" key 1 0 0 0
check 2 "" map lookup "$dir/maps/counts" key 1 0
check 0 "" pin map "$dir/maps/counts" again
check 0 "key: 07 00 00 00  value: 06 00 00 00 00 00 00 00
Found 1 element" map dump again
check 1 "" pin map 99 other
# words after the end of a command are refused, and not ignored
check 0 "" map update "$dir/maps/counts" key 2 0 0 0 value 1 0 0 0 0 0 0 0
check 2 "" map update "$dir/maps/counts" key 2 0 0 0 value 2 0 0 0 0 0 0 0 exist twice
check 2 "" map lookup "$dir/maps/counts" key 2 0 0 0 0
check 2 "" map delete "$dir/maps/counts" key 2 0 0 0 0
check 0 "key: 02 00 00 00  value: 01 00 00 00 00 00 00 00" map lookup "$dir/maps/counts" key 2 0 0 0
check 0 "" map delete "$dir/maps/counts" key 2 0 0 0
check 2 "" map dump "$dir/maps/counts" key
check 2 "" map list counts
check 2 "" prog list count
check 3 "" run -q "$tmp/count.bpf.o" count refused
# an id isn't taken modulo 2^32
for kind in map prog; do
	id=$("$patchbay" bpf $kind list | sed -n 's/^\([0-9]*\):.* name count.*/\1/p' | head -1)
	check 2 "" pin $kind "$((4294967296 + id))" wrapped
	check 2 "" pin $kind 18446744073709551617 wrapped
	check 2 "" pin $kind 0 wrapped
	check 1 "" pin $kind "-$id" wrapped
	check 0 "" pin $kind "$id" "by_id_$kind"
done
[ ! -e "$dir/../wrapped" ] || { echo "FAILED: the id of bpf pin wraps around"; failed=1; }
check 1 "" map dump nothing
check 1 "" load -q "$tmp/count.bpf.o" ours count
"$patchbay" bpf stats | grep -q ' count  *2 ' || { echo "FAILED: stats"; failed=1; }
"$patchbay" bpf prog list | grep -q ': xdp  name count  gpl run_time_ns [0-9]* run_cnt 2$' || { echo "FAILED: prog list"; failed=1; }
"$patchbay" bpf map list | grep -q ': hash  name counts  flags 0$' || { echo "FAILED: map list"; failed=1; }
"$patchbay" bpf dump "$tmp/count.bpf.o" count | grep -q 'call bpf_map_lookup_elem#1$' || { echo "FAILED: dump"; failed=1; }
head -c 100 "$dir/count" >"$dir/damaged"
check 3 "" run -q pinned "$dir/damaged"

# a name that no program has is reported; dump and verify go on with the other programs
lacks() {	# NAME OTHER: the last command has reported that there is no program NAME, and suggests OTHER
	[ "$(sed 's/^[^:]*: //' "$tmp/err")" = "$1: $tmp/count.bpf.o has no such program${2:+; did you mean $2?}" ] && return
	echo "FAILED: a misspelled name:"; cat "$tmp/err"
	failed=1
}
check 3 "count: ACCEPT" verify -q "$tmp/count.bpf.o" cuont count; lacks cuont count
check 3 "" verify -q "$tmp/count.bpf.o" nothing; lacks nothing ""
check 3 "" run -q "$tmp/count.bpf.o" cuont; lacks cuont count
check 1 "" load -q "$tmp/count.bpf.o" typo count cuont; lacks cuont count
check 1 "$("$patchbay" bpf dump "$tmp/count.bpf.o" count)" dump "$tmp/count.bpf.o" count cuont; lacks cuont count
# after an error, load leaves neither pins nor directories that it has made
tree=$tmp/run/patchbay/bpf
nothing() {	# NAME: nothing is pinned at NAME
	[ ! -e "$tree/$1" ] || { echo "FAILED: load has left:"; find "$tree/$1"; failed=1; }
}
nothing both
nothing typo
check 1 "" load -q "$tmp/err" unreadable
nothing unreadable
(ulimit -f 1; "$patchbay" bpf load -q "$tmp/count.bpf.o" small count 2>"$tmp/err") && { echo "FAILED: load without room"; failed=1; }
nothing small; grep -q ": File too large (see ulimit -f): key_size" "$tmp/err" || { echo "FAILED: load without room says:"; cat "$tmp/err"; failed=1; }
mkdir -m 700 "$tree/there" && : >"$tree/there/other"
check 1 "" load -q "$tmp/count.bpf.o" there
[ "$(ls "$tree/there")" = other ] || { echo "FAILED: load has left:"; find "$tree/there"; failed=1; }

# nor does load leave the memory of maps, which are files with ids as names
check 1 "" load -q "$tmp/count.bpf.o" both
left=$(find "$tmp/run/patchbay/bpf-ids" -type f -links 1 ! -name .last)
[ -z "$left" ] || { echo "FAILED: load has left maps:"; echo "$left"; failed=1; }

# maps without sizes in the object; user space sets the sizes
cat >"$tmp/sized.bpf.c" <<'C'
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(key_size, 4);
} open SEC(".maps");
int step = 7;
SEC("socket") int third(struct __sk_buff *skb)
{
	int two = 2, *p = bpf_map_lookup_elem(&open, &two);

	return p ? step + p[3] : 1;
}
C
clang -O2 -g -target bpf "-I/usr/include/$(uname -m)-linux-gnu" -c "$tmp/sized.bpf.c" -o "$tmp/sized.bpf.o" || exit 1
says() {	# STATUS TEXT ARGS...: the command exits with STATUS; its only error line has TEXT
	status=$1 text=$2; shift 2
	"$patchbay" bpf "$@" 2>"$tmp/err" </dev/null >/dev/null
	was=$?
	[ "$was" = "$status" ] && [ "$(wc -l <"$tmp/err")" = 1 ] && grep -qF -- "$text" "$tmp/err" && return
	printf 'FAILED: bpf %s\n  status %s, not %s; it says\n  %s\nnot\n  %s\n' "$*" "$was" "$status" "$(cat "$tmp/err")" "$text"
	failed=1
}
says 3 "patchbay bpf run: --global missing=1: $tmp/sized.bpf.o has no such variable" run -q --global missing=1 "$tmp/sized.bpf.o"
says 3 "patchbay bpf run: --global step=-18446744073709551615: " run -q --global step=-18446744073709551615 "$tmp/sized.bpf.o"
says 3 "patchbay bpf run: --global =1: say NAME=VALUE" run -q --global =1 "$tmp/sized.bpf.o"
says 3 "patchbay bpf run: $tmp/sized.bpf.o: types of /dev/null: " run -q --btf /dev/null "$tmp/sized.bpf.o"
# if a program gets no id, it isn't pinned
cat >"$tmp/alone.bpf.c" <<'C'
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
SEC("xdp") int alone(struct xdp_md *ctx) { return 1; }
C
clang -O2 -g -target bpf "-I/usr/include/$(uname -m)-linux-gnu" -c "$tmp/alone.bpf.c" -o "$tmp/alone.bpf.o" || exit 1
ids=$tmp/run/patchbay/bpf-ids
mv "$ids/.last" "$tmp/last" && mkdir "$ids/.last"
says 1 "patchbay bpf load: $tmp/run/patchbay/bpf: no id for a program: Is a directory" load -q "$tmp/alone.bpf.o" alone
[ ! -e "$tmp/run/patchbay/bpf/alone" ] || { echo "FAILED: a program without an id is pinned"; failed=1; }
rmdir "$ids/.last" && mv "$tmp/last" "$ids/.last"
# what is pinned already is named in one line
"$patchbay" bpf load -q --map open:max_entries=3,value_size=16 "$tmp/sized.bpf.o" twice
says 1 "$tmp/run/patchbay/bpf/twice/maps/open is pinned already; remove $tmp/run/patchbay/bpf/twice, or choose another path" \
	load -q "$tmp/sized.bpf.o" twice
# two maps whose names have the first 15 characters in common
cat >"$tmp/similar.bpf.c" <<'C'
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, int);
	__type(value, long);
} bytes_received_in SEC(".maps"), bytes_received_out SEC(".maps");
SEC("xdp") int similar(struct xdp_md *ctx)
{
	int zero = 0;
	long *in = bpf_map_lookup_elem(&bytes_received_in, &zero), *out = bpf_map_lookup_elem(&bytes_received_out, &zero);

	return in && out ? *out = 5, *in = 1 : 0;
}
C
clang -O2 -g -target bpf "-I/usr/include/$(uname -m)-linux-gnu" -c "$tmp/similar.bpf.c" -o "$tmp/similar.bpf.o" || exit 1
check 0 "" load -q "$tmp/similar.bpf.o" similar
check 0 "ACCEPT
RUN retval=1 data_out=$zeros" run -q pinned similar/similar
check 0 "key: 00 00 00 00  value: 05 00 00 00 00 00 00 00
Found 1 element" map dump similar/maps/bytes_received_out
says 1 "$tmp/run/patchbay/bpf/similar/maps/bytes_received_in is pinned already; remove " load -q "$tmp/similar.bpf.o" similar
says 3 "patchbay bpf run: $tmp/none.bpf.o: No such file or directory" run -q "$tmp/none.bpf.o"
# no name leads out of the tree of pins
cat >"$tmp/out.bpf.c" <<'C'
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
SEC("xdp") int out(struct xdp_md *ctx) __asm__("../../../out");
SEC("xdp") int out(struct xdp_md *ctx) { return 1; }
C
clang -O2 -g -target bpf "-I/usr/include/$(uname -m)-linux-gnu" -c "$tmp/out.bpf.c" -o "$tmp/out.bpf.o" || exit 1
check 0 "" load -q "$tmp/out.bpf.o" alone
[ -e "$tmp/run/patchbay/bpf/alone/_________out" ] && [ ! -e "$tmp/run/out" ] ||
	{ echo "FAILED: the pin of a program with slashes in its name"; find "$tmp/run"; failed=1; }
says 1 "patchbay bpf pin: ../out: the path of a pin has no dots" pin prog alone/_________out ../out
says 3 "patchbay bpf run: ../out: the path of a pin has no dots" run -q pinned ../out
# if the tree can't be opened, one line says so
mkdir -p -m 700 "$tmp/other/patchbay" && : >"$tmp/other/patchbay/bpf"
XDG_RUNTIME_DIR=$tmp/other says 1 "patchbay bpf map: $tmp/other/patchbay/bpf: Not a directory" map dump any
# a directory that another process removes during the walk doesn't end the walk
mkdir "$tmp/run/patchbay/bpf/gone"
if strace -qq -o "$tmp/trace" true 2>/dev/null; then
	all=$("$patchbay" bpf prog list)
	got=$(strace -qq -o "$tmp/trace" -P "$tmp/run/patchbay/bpf/gone" -e inject=openat:error=ENOENT "$patchbay" bpf prog list) &&
		[ "$got" = "$all" ] && grep -q INJECTED "$tmp/trace" || { echo "FAILED: a directory is gone"; cat "$tmp/trace"; failed=1; }
fi
rmdir "$tmp/run/patchbay/bpf/gone"
size="--map=open:max_entries"
# a map of 32 MB; `limited` limits the address space, and some of its limits leave no room for a
# copy of the map's value
check 0 "" load -q "$size=1,value_size=$((32 << 20))" "$tmp/sized.bpf.o" large
limited() {	# VERB ARGS...: runs `map VERB` with 32 to 112 MB; reads one byte of its output
	verb=$1; shift
	: >"$tmp/err"
	for mb in 32 48 64 80 96 112; do
		(ulimit -v $((mb << 10)); "$patchbay" bpf map "$verb" large/maps/open "$@" 2>>"$tmp/err"
		 [ $? = 139 ] && echo "$verb: killed by SIGSEGV" >>"$tmp/err") | head -c 1 >/dev/null
	done
	grep -q "open: no memory for an element" "$tmp/err" && ! grep -q SIGSEGV "$tmp/err" && return
	echo "FAILED: map $verb with little memory"; cat "$tmp/err"
	failed=1
}
if (ulimit -v $((112 << 10)); exec "$patchbay" --version) >/dev/null 2>&1; then	# not with ASan
	limited dump
	limited update key 0 0 0 0 value 1
fi
sizes="key_size 4, value_size 0, max_entries 0"
check 1 "third: REJECT errno=22 map open (array): Invalid argument: $sizes" run -q "$tmp/sized.bpf.o" third
check 0 "third: ACCEPT
RUN retval=7 data_out=$zeros" run -q $size=3,value_size=16 "$tmp/sized.bpf.o" third
check 0 "third: ACCEPT
RUN retval=9 data_out=$zeros" run -q $size=3,value_size=16 --global step=9 "$tmp/sized.bpf.o" third
check 0 "third: ACCEPT
RUN retval=1 data_out=$zeros" run -q $size=2 --map open:value_size=0x10 "$tmp/sized.bpf.o" third
check 0 "third: ACCEPT
RUN retval=7 data_out=$zeros" run -q -m open:value_size=16 -m open:max_entries=3 -m sized.data:value_size=64 "$tmp/sized.bpf.o"
check 1 "third: REJECT errno=13 R1 min value is outside of the allowed memory range" \
	run -q $size=3,value_size=8 "$tmp/sized.bpf.o" third
sizes="key_size 8, value_size 16, max_entries 3"
check 1 "third: REJECT errno=22 map open (array): Invalid argument: $sizes" run -q $size=3,value_size=16,key_size=8 "$tmp/sized.bpf.o"
sizes="key_size 4, value_size 2147483647, max_entries 4294967295"
check 1 "third: REJECT errno=22 map open (array): Cannot allocate memory: $sizes" \
	run -q $size=4294967295,value_size=2147483647 "$tmp/sized.bpf.o"
check 0 "" load -q $size=3,value_size=16 "$tmp/sized.bpf.o" sized
"$patchbay" bpf map list | grep -q 'key 4B  value 16B  max_entries 3 ' || { echo "FAILED: load --map"; failed=1; }
says 3 "patchbay bpf run: --map opne: $tmp/sized.bpf.o has no such map; it has open, sized.data" \
	run -q --map opne:max_entries=3 "$tmp/sized.bpf.o"
says 3 "patchbay bpf run: --map open:entries=3: entries: a map has max_entries=N, value_size=N and key_size=N" \
	run -q --map open:entries=3 "$tmp/sized.bpf.o"
for bad in 4294967296 99999999999999999999 0 -1 1k '' ; do
	says 3 "patchbay bpf run: --map open:max_entries=$bad,value_size=8: $bad: not a size; give a number from 1 to 4294967295" \
		run -q "$size=$bad,value_size=8" "$tmp/sized.bpf.o"
done
says 3 "patchbay bpf run: --map :max_entries=1: say NAME:max_entries=N, or value_size, key_size" \
	run -q --map :max_entries=1 "$tmp/sized.bpf.o"
says 2 "a map has max_entries=N" load -q --map open: "$tmp/sized.bpf.o" other
# if the program's source writes a number as map descriptor into a load, the load is invalid; the
# number isn't taken as an index of the object's maps
cat >"$tmp/raw.bpf.c" <<'C'
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, int);
	__type(value, int);
} first SEC(".maps");
/* r1 = the map of a descriptor or an index, or the address of its value */
#define RAW(name, src, number) \
	SEC("socket") int name(struct __sk_buff *skb) \
	{ \
		asm volatile(".byte 0x18, %0, 0, 0; .long %1; .8byte 0" : : "i"(src << 4 | 1), "i"(number) : "r1"); \
		return 0; \
	}
RAW(descriptor, BPF_PSEUDO_MAP_FD, 0)
RAW(value, BPF_PSEUDO_MAP_VALUE, 0)
RAW(far, BPF_PSEUDO_MAP_FD, 1000)
RAW(by_index, BPF_PSEUDO_MAP_IDX, 0)
SEC("socket") int good(struct __sk_buff *skb)
{
	int zero = 0;

	return bpf_map_lookup_elem(&first, &zero) != NULL;
}
C
clang -O2 -g -target bpf "-I/usr/include/$(uname -m)-linux-gnu" -c "$tmp/raw.bpf.c" -o "$tmp/raw.bpf.o" || exit 1
check 1 "descriptor: REJECT errno=9 fd 0 is not pointing to valid bpf_map
value: REJECT errno=9 fd 0 is not pointing to valid bpf_map
far: REJECT errno=9 fd 1000 is not pointing to valid bpf_map
by_index: REJECT errno=71 fd_idx without fd_array is invalid
good: ACCEPT" verify -q "$tmp/raw.bpf.o"
check 1 "REJECT errno=9 fd 1 is not pointing to valid bpf_map" verify -q -m 2,4,4,1 1811000001000000 0000000000000000 $one
check 1 "REJECT errno=9 fd 0 is not pointing to valid bpf_map" verify -q 1811000000000000 0000000000000000 $one

# programs that other programs reach by tail calls; the arrays get the elements that libbpf would
# store
cat >"$tmp/chain.bpf.c" <<'C'
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#define JUMPS(name, ...) \
	struct { \
		__uint(type, BPF_MAP_TYPE_PROG_ARRAY); \
		__uint(max_entries, 2); \
		__uint(key_size, 4); \
		__array(values, int (void *)); \
	} name SEC(".maps") = { .values = { __VA_ARGS__ } }
#define PROG(name, ...) SEC("socket") int name(struct __sk_buff *skb) { __VA_ARGS__ }
int last(struct __sk_buff *skb), middle(struct __sk_buff *skb), loop(struct __sk_buff *skb);
int broken(struct __sk_buff *skb), far(struct __sk_buff *skb), other(struct xdp_md *ctx);
int sleeping(struct __sk_buff *skb);
JUMPS(to_middle, [1] = (void *)middle);
JUMPS(to_last, [0] = (void *)last);
JUMPS(to_loop, [0] = (void *)loop);
JUMPS(to_broken, [0] = (void *)broken);
JUMPS(to_far, [0] = (void *)far);
JUMPS(to_other, [0] = (void *)other);
JUMPS(to_sleeping, [0] = (void *)sleeping);
JUMPS(too_far, [0] = (void *)last, [1] = (void *)last, [2] = (void *)last);
struct inner {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, int);
	__type(value, int);
} one SEC(".maps"), two SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 2);
	__uint(key_size, 4);
	__array(values, struct inner);
} outer SEC(".maps") = { .values = { [0] = &one, [1] = &two } };
PROG(last, return 42;)
PROG(first, bpf_tail_call(skb, &to_middle, 1); return 1;)
PROG(middle, bpf_tail_call(skb, &to_last, 0); return 2;)
/* calls itself up to the limit of 33 tail calls */
int calls;
PROG(loop, calls++; bpf_tail_call(skb, &to_loop, 0); return calls;)
PROG(broken, return *(int *)(long)skb->len;)
PROG(near, bpf_tail_call(skb, &to_broken, 0); return 1;)
PROG(far, bpf_tail_call(skb, &to_broken, 0); return 1;)
PROG(farther, bpf_tail_call(skb, &to_far, 0); return 1;)
SEC("xdp") int other(struct xdp_md *ctx) { return ctx->data_end - ctx->data; }
PROG(types, bpf_tail_call(skb, &to_other, 0); return 1;)
SEC("?socket") int sleeping(struct __sk_buff *skb) { return 3; }
PROG(wakes, bpf_tail_call(skb, &to_sleeping, 0); return 1;)
PROG(beyond, bpf_tail_call(skb, &too_far, 0); return 1;)
PROG(inside, int zero = 0, *n; void *m = bpf_map_lookup_elem(&outer, &zero);
     if (!m || !(n = bpf_map_lookup_elem(m, &zero))) return -1; return ++*n;)
C
clang -O2 -g -target bpf "-I/usr/include/$(uname -m)-linux-gnu" -c "$tmp/chain.bpf.c" -o "$tmp/chain.bpf.o" || exit 1
check 0 "first: ACCEPT
RUN retval=42 data_out=$zeros" run -q "$tmp/chain.bpf.o" first
check 0 "first: ACCEPT
RUN retval=42 data_out=$zeros" run -q --interpret "$tmp/chain.bpf.o" first
check 0 "loop: ACCEPT
RUN retval=34 data_out=$zeros" run -q "$tmp/chain.bpf.o" loop
check 0 "inside: ACCEPT
RUN retval=2 data_out=$zeros" run -q -r 2 "$tmp/chain.bpf.o" inside
# a program is reached by tail calls, but it can't be loaded; libbpf gives the same errors for the
# object
bad="R1 invalid mem access 'scalar'"
check 1 "near: REJECT errno=13 program broken, which it reaches by tail calls: $bad" run -q "$tmp/chain.bpf.o" near
check 1 "farther: REJECT errno=13 program broken, which it reaches by tail calls: $bad" run -q "$tmp/chain.bpf.o" farther
check 1 "types: REJECT errno=22 map to_other: slot 0: program other is of another type than types" \
	run -q "$tmp/chain.bpf.o" types
check 1 "wakes: REJECT errno=9 map to_sleeping: slot 0: program sleeping isn't loaded automatically: its section name \"?socket\" begins with ?" \
	run -q "$tmp/chain.bpf.o" wakes
check 1 "beyond: REJECT errno=7 map too_far: slot 2: Argument list too long" \
	run -q "$tmp/chain.bpf.o" beyond
# `verify` gives a verdict on one program, not on the programs that it reaches
check 0 "near: ACCEPT" verify -q "$tmp/chain.bpf.o" near
# the initial elements of a map of maps have keys of at most 4 bytes, as in libbpf
cat >"$tmp/keyed.bpf.c" <<'C'
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
struct inner {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, int);
	__type(value, int);
} one SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, 2);
	__type(key, KEY);
	__array(values, struct inner);
} outer SEC(".maps") = { .values = { [1] = &one } };
SEC("socket") int keyed(struct __sk_buff *skb)
{
	KEY key = 1;

	return bpf_map_lookup_elem(&outer, &key) != NULL;
}
C
for key in short int long; do
	clang -O2 -g -target bpf "-I/usr/include/$(uname -m)-linux-gnu" -DKEY=$key -c "$tmp/keyed.bpf.c" -o "$tmp/keyed-$key.bpf.o" || exit 1
	[ $key = long ] || check 0 "keyed: ACCEPT
RUN retval=1 data_out=$zeros" run -q "$tmp/keyed-$key.bpf.o" keyed
done
check 1 "keyed: REJECT errno=22 map outer: keys of initial elements have 4 bytes, not 8" run -q "$tmp/keyed-long.bpf.o" keyed
check 1 "keyed: REJECT errno=22 map outer (hash_of_maps): Invalid argument: key_size 8, value_size 4, max_entries 2" \
	run -q --map outer:key_size=8 "$tmp/keyed-int.bpf.o" keyed
# programs that are in arrays are pinned, too
check 0 "" load -q "$tmp/chain.bpf.o" chain loop first inside
[ "$(cd "$tmp/run/patchbay/bpf/chain" && echo *)" = "first inside last loop maps middle" ] || { echo "FAILED: pinned chain"; failed=1; }
check 0 "ACCEPT
RUN retval=42 data_out=$zeros" run -q pinned chain/first
check 0 "ACCEPT
RUN retval=34 data_out=$zeros" run -q pinned chain/loop
check 0 "ACCEPT
RUN retval=1 data_out=$zeros" run -q pinned chain/inside
check 0 "ACCEPT
RUN retval=2 data_out=$zeros" run -q --interpret pinned chain/inside
check 1 "" load -q "$tmp/chain.bpf.o" broken near
nothing broken
check 0 "" load -q "$tmp/chain.bpf.o" awake wakes sleeping
check 0 "ACCEPT
RUN retval=3 data_out=$zeros" run -q pinned awake/wakes
# in an array of programs, a value is the id of a pinned program
id=$("$patchbay" bpf prog list | awk '$4 == "sleeping" { print $1 + 0 }')
check 0 "" map update chain/maps/to_last key 0 0 0 0 value "$id" 0 0 0
check 0 "ACCEPT
RUN retval=3 data_out=$zeros" run -q pinned chain/first
check 1 "" map update chain/maps/to_last key 0 0 0 0 value 250 0 0 0
id=$("$patchbay" bpf prog list | awk '$4 == "last" { print $1 + 0 }')
check 0 "" map update chain/maps/to_last key 0 0 0 0 value "$id" 0 0 0
# if a program is removed, its slot acts as empty; a program that is loaded later doesn't take its
# place
rm "$tmp/run/patchbay/bpf/chain/last"
check 0 "" load -q "$tmp/count.bpf.o" later count
check 0 "ACCEPT
RUN retval=2 data_out=$zeros" run -q pinned chain/first
exit $failed
