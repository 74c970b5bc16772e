# Forks: substitutions, pipes, subshells, background jobs, traps. Deterministic.
set -u
n=${1:-40}
s=0
for ((i = 0; i < n; i++)); do
  v=$(echo $((i * i)) | { read x; echo $((x + 1)); })
  s=$((s + v))
done
echo "sum $s"
f() { local d=$1; ((d == 0)) && { echo bottom; return 7; }; (f $((d - 1))); }
f 8; echo "status $?"
for i in 1 2 3 4 5; do (exit $i) & p[$i]=$!; done
for i in 1 2 3 4 5; do wait ${p[$i]}; echo "job $i: $?"; done
trap 'echo got USR1' USR1; kill -USR1 $$
printf '%s\n' {z..a} | sort | tr -d '\n' | rev; echo
seq 1 2000 | grep -c 7
cat <(echo one) <(echo two) | while read -r w; do echo "<$w>"; done
coproc { read l; echo "co $l"; }; echo hi >&"${COPROC[1]}"; read -r r <&"${COPROC[0]}"; echo "$r"; wait 2>/dev/null
timeout 300 true; echo "$?"; timeout 0.1 sleep 10; echo "$?"
( trap 'echo bye' EXIT; exit 3 ); echo "$?"
{ sh -c 'kill -TERM $$'; } 2>/dev/null; echo "$?"
exit 9
