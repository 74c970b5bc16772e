/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs a program instruction by instruction, for exits_oracle.h.
 *
 *   exits_step [-n STEPS] [-b BURST [-f NS]] [-e] [-l CALLS] [-q] [-x] PROGRAM [ARGUMENT...]
 *
 *   -n STEPS   ends after STEPS instructions
 *   -b BURST   after each BURST instructions, lets the program run freely for a while
 *   -f NS      with -b: each time lets the program run freely for NS nanoseconds
 *   -e         begins at the program's entry point, after the loader
 *   -l CALLS   up to CALLS calls may end without a known exit, by longjmp
 *   -q         does not print each error
 *   -x         drops one exit of each function from the function's list, so that the test must fail
 *
 * Only the first thread is followed.
 */
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include "exits_oracle.h"
#include "module/analysis/insn.h"

static long free_ns = 1000000;
static uint64_t done;
static bool from_entry;
static pid_t pid;

static struct module *find_other(uint64_t ip)
{
	char line[512], path[256];
	FILE *f;
	struct module *m = NULL;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		unsigned long from, to, offset;
		char perms[8];
		int at = 0;

		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %n",
			   &from, &to, perms, &offset, &at) < 4 ||
		    ip < from || ip >= to || line[at] != '/')
			continue;
		line[strcspn(line, "\n")] = 0;
		m = load(line + at, from, to, offset);
	}
	if (f)
		fclose(f);
	return m;
}

static bool run_freely(int *status)
{
	struct timespec t = { 0, free_ns };

	ptrace(PTRACE_CONT, pid, 0, 0);
	nanosleep(&t, NULL);
	kill(pid, SIGSTOP);
	for (;;) {
		if (waitpid(pid, status, 0) < 0 || !WIFSTOPPED(*status))
			return false;
		if (WSTOPSIG(*status) == SIGSTOP)
			return true;
		ptrace(PTRACE_CONT, pid, 0, WSTOPSIG(*status) == SIGTRAP ? 0 : WSTOPSIG(*status));
	}
}

/* Runs the program to its own entry point, without stepping through the loader. */
static bool run_to_entry(int *status)
{
	uint64_t entry = 0, aux[2];
	struct user_regs_struct r;
	char path[64];
	long word;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/auxv", pid);
	f = fopen(path, "r");
	while (f && fread(aux, sizeof(aux), 1, f) == 1)
		if (aux[0] == AT_ENTRY)
			entry = aux[1];
	if (f)
		fclose(f);
	word = ptrace(PTRACE_PEEKTEXT, pid, entry, 0);
	if (!entry || ptrace(PTRACE_POKETEXT, pid, entry, (word & ~0xffl) | PB_INSN_INT3) ||
	    ptrace(PTRACE_CONT, pid, 0, 0) || waitpid(pid, status, 0) < 0 || !WIFSTOPPED(*status))
		return false;
	ptrace(PTRACE_POKETEXT, pid, entry, word);
	ptrace(PTRACE_GETREGS, pid, 0, &r);
	r.rip = entry;
	ptrace(PTRACE_SETREGS, pid, 0, &r);
	return true;
}

/* Executes one instruction. Returns false if the program has ended. */
static bool step(int *status, bool *signalled)
{
	long sig = 0;

	*signalled = false;
	for (;;) {
		if (ptrace(PTRACE_SINGLESTEP, pid, 0, sig) || waitpid(pid, status, 0) < 0 ||
		    !WIFSTOPPED(*status))
			return false;
		if (WSTOPSIG(*status) == SIGTRAP)
			return true;
		sig = WSTOPSIG(*status);
		*signalled = true;
	}
}

static void follow(uint64_t steps, uint64_t burst, int *status)
{
	struct user_regs_struct r, last = { 0 };
	bool fresh = true, signalled = false;

	if (ptrace(PTRACE_GETREGS, pid, 0, &r))
		return;
	for (;;) {
		struct module *m = find(r.rip);
		struct at *a = at(m, r.rip);

		drop(r.rsp, r.rip);
		if (a)
			before(m, a, r.rip, r.rsp, fresh || signalled ? 0 : last.rip);
		last = r;
		fresh = false;
		if (!step(status, &signalled))
			return;
		done++;
		ptrace(PTRACE_GETREGS, pid, 0, &r);
		if (a)
			after(m, a, last.rip, last.rsp, r.rip, r.rsp);
		if (steps && done >= steps)
			return;
		if (burst && done % burst == 0) {
			if (!run_freely(status))
				return;
			nr_calls = nr_slots = 0;
			fresh = true;
			ptrace(PTRACE_GETREGS, pid, 0, &r);
		}
	}
}

int main(int argc, char **argv)
{
	uint64_t steps = 0, burst = 0;
	int i = 1, status = 0;

	for (; i < argc && argv[i][0] == '-'; i++) {
		if (!strcmp(argv[i], "-q"))
			quiet = true;
		else if (!strcmp(argv[i], "-x"))
			leave_out = true;
		else if (!strcmp(argv[i], "-e"))
			from_entry = true;
		else if (!strcmp(argv[i], "-l") && i + 1 < argc)
			may_be_lost = strtoull(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "-n") && i + 1 < argc)
			steps = strtoull(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "-b") && i + 1 < argc)
			burst = strtoull(argv[++i], NULL, 10);
		else if (!strcmp(argv[i], "-f") && i + 1 < argc)
			free_ns = atol(argv[++i]);
	}
	if (i >= argc)
		return 2;
	calls = calloc(MAX_DEPTH, sizeof(*calls));
	slots = calloc(MAX_DEPTH, sizeof(*slots));
	pid = fork();
	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execvp(argv[i], argv + i);
		_exit(127);
	}
	if (!calls || !slots || waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status))
		return 2;
	ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_EXITKILL);
	if (from_entry && !run_to_entry(&status))
		return 2;
	follow(steps, burst, &status);
	if (WIFSTOPPED(status))
		kill(pid, SIGKILL);
	return result(done);
}
