/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Makes tail calls of each kind, and calls that end in other ways, argv[1] times. For each traced
 * function, prints how often it was called and how often it ended in a tail call.
 */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SLEEP_US 120000
#define NOINLINE __attribute__((noinline, noipa))
#define FUNCTIONS(X) \
	X(leaf) X(plain) X(to_traced) X(to_traced_late) X(to_untraced) X(to_untraced_late) \
	X(conditional) X(by_pointer) X(slow) X(slow_late) X(machine_a) X(machine_b) X(machine_c) \
	X(again) X(runs_on) X(into) X(jumps_out) X(pops) X(repz)

/* Each function in FUNCTIONS counts its calls and tail calls in these variables. The functions in
 * assembly do so, too. */
#define X(name) unsigned long calls_##name, tails_##name;
FUNCTIONS(X)
#undef X

NOINLINE int leaf(int x)
{
	calls_leaf++;
	return x * 3 + 1;
}

/* Isn't traced, but calls leaf(), which is traced. If a call ends by a jump to untraced(), the tree
 * shows the call as a sibling of leaf(), not as leaf()'s caller. */
NOINLINE int untraced(int x)
{
	return leaf(x) + 1;
}

NOINLINE int plain(int x)
{
	calls_plain++;
	return leaf(x) + 1;
}

NOINLINE int to_traced(int x)
{
	calls_to_traced++, tails_to_traced++;
	return leaf(x + 1);
}

/* Makes another call before its tail call. */
NOINLINE int to_traced_late(int x)
{
	calls_to_traced_late++, tails_to_traced_late++;
	return leaf(leaf(x));
}

NOINLINE int to_untraced(int x)
{
	calls_to_untraced++, tails_to_untraced++;
	return untraced(x + 1);
}

NOINLINE int to_untraced_late(int x)
{
	calls_to_untraced_late++, tails_to_untraced_late++;
	return untraced(leaf(x));
}

/* One call of slow() takes longer than a record's time field can express. */
NOINLINE int slow(int x)
{
	calls_slow++, tails_slow++;
	if (!x)
		usleep(SLEEP_US);
	return leaf(x);
}

NOINLINE int slow_late(int x)
{
	calls_slow_late++, tails_slow_late++;
	leaf(x);
	if (!x)
		usleep(SLEEP_US);
	return leaf(x);
}

int (*volatile pointer)(int) = leaf;

NOINLINE int by_pointer(int x)
{
	calls_by_pointer++, tails_by_pointer++;
	return pointer(x);
}

/* A state machine. Its states call one another by tail calls, so all states have the first state's
 * depth. */
NOINLINE int machine_a(int x);

NOINLINE int machine_c(int x)
{
	calls_machine_c++;
	if (!x)
		return leaf(x) + 1;
	tails_machine_c++;
	return machine_a(x - 1);
}

NOINLINE int machine_b(int x)
{
	calls_machine_b++, tails_machine_b++;
	return machine_c(x);
}

NOINLINE int machine_a(int x)
{
	calls_machine_a++, tails_machine_a++;
	return machine_b(x);
}

static jmp_buf out;

/* longjmp ends the calls of this function. */
NOINLINE void jumps_out(int x)
{
	calls_jumps_out++;
	if (x >= 0)
		longjmp(out, 1);
}

/*
 * If x is odd, conditional() ends with a jcc to leaf(). again() jumps to its own entry, x times.
 * runs_on() runs on into the next function, which has a separate entry in the unwind table.
 */
__asm__(
	".text\n"
	".macro func name\n.globl \\name\n.type \\name, @function\n\\name:\n.cfi_startproc\n.endm\n"
	".macro endfunc name\n.cfi_endproc\n.size \\name, . - \\name\n.endm\n"
	"func conditional\n incq calls_conditional(%rip)\n mov %edi, %eax\n and $1, %eax\n"
	" add %rax, tails_conditional(%rip)\n"
	" test $1, %edi\n jne leaf\n mov %edi, %eax\n ret\nendfunc conditional\n .balign 16\n"
	"func again\n incq calls_again(%rip)\n dec %edi\n js 1f\n"
	" incq tails_again(%rip)\n jmp again\n"
	"1: mov %edi, %eax\n ret\nendfunc again\n .balign 16\n"
	/* returns of other kinds */
	"func pops\n incq calls_pops(%rip)\n mov %edi, %eax\n ret $0\nendfunc pops\n .balign 16\n"
	"func repz\n incq calls_repz(%rip)\n mov %edi, %eax\n rep ret\nendfunc repz\n .balign 16\n"
	"func runs_on\n incq calls_runs_on(%rip)\n incq tails_runs_on(%rip)\nendfunc runs_on\n"
	"func into\n incq calls_into(%rip)\n mov %edi, %eax\n ret\nendfunc into\n");
int conditional(int x), again(int x), runs_on(int x), into(int x), pops(int x), repz(int x);

int main(int argc, char **argv)
{
	volatile long sum = 0;
	int n = argc > 1 ? atoi(argv[1]) : 100;

	for (volatile int i = 0; i < n; i++) {
		sum += plain(i) + to_traced(i) + to_traced_late(i) + to_untraced(i) +
		       to_untraced_late(i);
		sum += slow(i) + slow_late(i) + conditional(i) + by_pointer(i) +
		       machine_a(i % 200) + again(i % 5) + runs_on(i) + into(i) + pops(i) + repz(i);
		/* makes all calls from the same place */
		for (volatile int k = 0; k < 3; k++)
			if (!setjmp(out))
				jumps_out(i);
	}
#define X(name) printf("%s %lu %lu\n", #name, calls_##name, tails_##name);
	FUNCTIONS(X)
#undef X
	return 0;
}
