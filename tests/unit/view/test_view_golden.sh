#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
# Runs each view on generated data and compares the output with tests/golden/view.
#   test_view_golden.sh GEN_DATA PATCHBAY GOLDEN_DIR [--update]
set -u
gen=$(realpath "$1") patchbay=$(realpath "$2") golden=$3 update=${4-}
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
failed=0

check() {	# NAME SCENARIO COMMAND [OPTIONS]: compares output, warnings, status
	name=$1 scenario=$2; shift 2
	[ -d "$tmp/$scenario" ] || "$gen" "$scenario" "$tmp/$scenario" || exit 1
	command=$1; shift
	(cd "$tmp" && "$patchbay" "$command" -d "$scenario" "$@" 2>&1; echo "status $?") >"$tmp/out"
	if [ "$update" ]; then
		cp "$tmp/out" "$golden/$name"
	elif ! diff -u "$golden/$name" "$tmp/out"; then
		echo "FAILED: $name: patchbay $command $*"
		failed=1
	fi
}

for s in basic skipped recursion tails lost threads stacks killed function; do
	check "replay-$s" "$s" replay
	check "report-$s.csv" "$s" report --format=csv
	check "raw-$s" "$s" dump --format=raw
done
check replay-function_untimed function_untimed replay
check replay-columns basic replay -O funcgraph-abstime -O funcgraph-proc -O funcgraph-tail
check replay-tails-columns tails replay -O funcgraph-tail -O nofuncgraph-duration
check replay-tails-time tails replay -t 60
check replay-bare basic replay -O nofuncgraph-overhead -O nofuncgraph-duration -O nofuncgraph-tid
check replay-time basic replay -t 10us
check replay-time-gap lost replay -t 1us
# calls that were left by a jump have no duration, so no view shows them with -t
check replay-skipped-time skipped replay -t 300
check report-skipped-time skipped report -t 300 --sort=func
check chrome-skipped-time skipped dump --format=chrome -t 300
check replay-depth basic replay -D 2
check replay-filter basic replay -F work -N parse
check replay-filter-cpp basic replay -F 'ns::pair<int>::first'
check replay-range basic replay --range 1us~25us
check replay-function-range function replay --range 100s~100.000003
check replay-range-before function replay --range '~1s'
check report-range-before.csv function report --range '~1s' --format=csv
check replay-tid threads replay --tid 101
check replay-stacks-filter stacks replay -F work -N '*::write_fmt'
check replay-gone_stacks gone_stacks replay
check replay-stacks-depth stacks replay -D 3
check replay-coroutines-filter coroutines replay -F main
check report-coroutines-notrace.csv coroutines report -N main --format=csv
check report-self basic report --sort=self
check report-avg basic report --sort=avg
check report-json threads report --format=json
check report-diff basic report --diff threads
check report-diff-self basic report --diff threads -s self -D 2
check report-diff-filter basic report --diff threads -F fib -F helper -s calls
check report-diff.csv basic report --diff threads --format=csv
check report-diff.json function report --diff threads --format=json
check report-diff-lost basic report --diff lost
check report-diff-lost.json basic report --diff lost --format=json
# the difference of a time and of an unknown time isn't known
check report-diff-killed killed report --diff basic
check report-diff-untimed function_untimed report --diff basic -s self
check report-damaged damaged report
check report-diff-damaged basic report --diff damaged
check report-diff-unknown basic report --diff nowhere
check report-filter basic report -F work
check report-notrace basic report -N work -N fib
check report-depth basic report -D 2
check report-time basic report -t 10us
check report-time-lost lost report -t 1us
check report-range.csv basic report --range 1350ns~1ms --format=csv
check report-threads-filter.csv threads report -F parse --format=csv
check graph-filter basic graph -F work
check graph-depth basic graph -D 2 -N '*helper'
check graph-time basic graph -t 1ms
check graph-regex basic graph --match=regex '^(help|par)'
# a time that isn't known is shown as "-"
check graph-killed killed graph
check graph-main-killed killed graph main
check graph-function-tracer function graph helper
check flame-killed killed dump --format=flame-graph
check flame-time basic dump --format=flame-graph -t 1ms
check flame-range killed dump --format=flame-graph --range 0~2500
check chrome-filter basic dump --format=chrome -F work -F '!ns::*' -D 2
check chrome-range killed dump --format=chrome --range 2300~2500
check dot-filter basic dump --format=graphviz -N fib -t 15us
check raw-filter basic dump --format=raw -F work
check tid-unknown threads report --tid 100,7
check filter-unknown basic replay -F wrok
check time-function function replay -t 1us
check report-buffers buffers report
check report-buffer-7 buffers report --buffer=7
check replay-buffer-7 buffers replay --buffer=7
check buffer-unknown buffers replay --buffer=3
check graph-basic basic graph
check graph-helper threads graph helper
# a function that another function of the pattern calls has all its callers
check graph-two threads graph helper parse
check graph-two-depth threads graph -D 1 helper parse
check graph-nothing threads graph nothing
check graph-function-time basic graph -t 1s main
check graph-function-none basic graph -t 1s fib
check graph-function-range basic graph --range 1us~2us main
check chrome-killed killed dump --format=chrome
check chrome-threads threads dump --format=chrome
check chrome-tails tails dump --format=chrome
check chrome-lost lost dump --format=chrome
check chrome-same_pids same_pids dump --format=chrome
check chrome-same_pids_forked same_pids_forked dump --format=chrome
check flame-threads threads dump --format=flame-graph
check dot-threads threads dump --format=graphviz
check info-basic basic info
check info-killed.json killed info --format=json --open
check info-open killed info --open
exit $failed
