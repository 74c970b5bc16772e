/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Executes exits of each kind, argv[1] times. Prints how many of the exits were returns, and how
 * many were tail jumps. */
#include <stdio.h>
#include <stdlib.h>

#define N 1000
unsigned long returns, jumps;
#define NOINLINE __attribute__((noinline, noipa))

NOINLINE int leaf(int x)
{
	returns++;
	return x * 3 + 1;
}

NOINLINE int tail(int x)
{
	jumps++;
	return leaf(x + 1);
}

NOINLINE int maybe_tail(int x)
{
	if (x & 1) {
		jumps++;
		return leaf(x);
	}
	returns++;
	return x;
}

int (*volatile pointer)(int) = leaf;

NOINLINE int tail_pointer(int x)
{
	jumps++;
	return pointer(x);
}

/* a function with a jcc that leaves it, and one with a prefixed ret */
__asm__(
	".text\n.globl cond, prefixed\n"
	".type cond,@function\ncond: .cfi_startproc\n test $1,%edi\n jne leaf\n"
	" incq returns(%rip)\n mov %edi,%eax\n ret\n"
	".cfi_endproc\n.size cond,.-cond\n"
	".type prefixed,@function\nprefixed: .cfi_startproc\n"
	" incq returns(%rip)\n mov %edi,%eax\n rep ret\n"
	".cfi_endproc\n.size prefixed,.-prefixed\n"
	/* A trampoline slot is a long jump to which a short jump in place of the ret leads. "far"
	 * is code without room for a slot, and keeps the room in other functions out of reach. So
	 * the jump in place of the ret of `shared` shares bytes with a second jump */
	".macro far\n.cfi_startproc\n jmp 1f\n .rept 75\n xbegin 1f\n .endr\n"
	"1: ret\n.cfi_endproc\n.endm\nfar\n"
	".globl shared\n.type shared,@function\nshared: .cfi_startproc\n"
	" incq returns(%rip)\n mov %edi,%eax\n test $3,%edi\n je 1f\n call leaf\n1: ret\n"
	"2: mov $1,%eax\n add $2,%edi\n jmp 1b\n jne 2b\n .cfi_endproc\n"
	".size shared,.-shared\nfar\n");
int cond(int x), prefixed(int x), shared(int x);

/* Functions whose unwind tables or ends have the odd shapes that compilers' output has */
__asm__(
	".text\n.globl lags, late_push, by_lea, bug, nameless, call_nameless\n"
	/* clang: the row of the add comes after the branch */
	".type lags,@function\nlags: .cfi_startproc\n push %rbx\n .cfi_adjust_cfa_offset 8\n"
	" sub $16,%rsp\n .cfi_adjust_cfa_offset 16\n mov %edi,%ebx\n call leaf\n mov %ebx,%edi\n"
	" add $16,%rsp\n test $1,%edi\n je 1f\n .cfi_adjust_cfa_offset -16\n pop %rbx\n"
	" .cfi_adjust_cfa_offset -8\n incq jumps(%rip)\n jmp leaf\n .cfi_adjust_cfa_offset 8\n"
	"1: pop %rbx\n .cfi_adjust_cfa_offset -8\n incq returns(%rip)\n mov %edi,%eax\n ret\n"
	" .cfi_endproc\n.size lags,.-lags\n"
	/* clang: the row of the first push comes after the next instruction */
	".type late_push,@function\nlate_push: .cfi_startproc\n push %rax\n mov %edi,%eax\n"
	" .cfi_adjust_cfa_offset 8\n push %rax\n .cfi_adjust_cfa_offset 8\n push %rax\n"
	" .cfi_adjust_cfa_offset 8\n call leaf\n add $24,%rsp\n .cfi_adjust_cfa_offset -24\n"
	" incq returns(%rip)\n ret\n .cfi_endproc\n.size late_push,.-late_push\n"
	/* gcc: rsp is restored from an address that lea has taken */
	".type by_lea,@function\nby_lea: .cfi_startproc\n push %rbx\n .cfi_adjust_cfa_offset 8\n"
	" .cfi_offset %rbx,-16\n push %rdi\n .cfi_adjust_cfa_offset 8\n push %rdi\n"
	" .cfi_adjust_cfa_offset 8\n lea 16(%rsp),%rbx\n sub $8,%rsp\n .cfi_adjust_cfa_offset 8\n"
	" call leaf\n mov %rbx,%rsp\n .cfi_adjust_cfa_offset -24\n pop %rbx\n"
	" .cfi_adjust_cfa_offset -8\n incq returns(%rip)\n ret\n .cfi_endproc\n"
	".size by_lea,.-by_lea\n"
	/* gcc: a store to the page at 0 ends bug.cold, and other code follows */
	".type bug,@function\nbug: .cfi_startproc\n test %edi,%edi\n js bug.cold\n"
	" incq returns(%rip)\n mov %edi,%eax\n ret\n .cfi_endproc\n.size bug,.-bug\n"
	".type bug.cold,@function\nbug.cold: .cfi_startproc\n push %rax\n"
	" .cfi_adjust_cfa_offset 8\n call leaf\n movb $0,1\n .cfi_endproc\n"
	".size bug.cold,.-bug.cold\n"
	".cfi_startproc\n .cfi_adjust_cfa_offset 40\n add $40,%rsp\n .cfi_adjust_cfa_offset -40\n"
	" ret\n .cfi_endproc\n"
	/* a tail jump to assembly without a symbol and without unwind tables */
	".type nameless,@function\nnameless: .cfi_startproc\n mov %edi,%eax\n"
	" incq jumps(%rip)\n jmp .Lhidden\n .cfi_endproc\n.size nameless,.-nameless\n"
	".type call_nameless,@function\ncall_nameless: .cfi_startproc\n push %rax\n"
	" .cfi_adjust_cfa_offset 8\n call .Lhidden\n pop %rcx\n .cfi_adjust_cfa_offset -8\n"
	" incq returns(%rip)\n ret\n .cfi_endproc\n.size call_nameless,.-call_nameless\n"
	".p2align 4\n.Lhidden: lea 7(%rdi),%eax\n ret\n.p2align 4\n");
int lags(int x), late_push(int x), by_lea(int x), bug(int x), nameless(int x), call_nameless(int x);
/* the exit is in the window of the entry (the bytes that a patch of the entry may overwrite) */
NOINLINE int small(int x)
{
	return x;
}

int main(int argc, char **argv)
{
	long sum = 0, small_calls = 0;
	int n = argc > 1 ? atoi(argv[1]) : N;

	for (int i = 0; i < n; i++) {
		sum += tail(i) + maybe_tail(i) + tail_pointer(i) + prefixed(i) + shared(i);
		if (i & 1)
			jumps++;
		sum += cond(i) + small(i);
		small_calls++;
		sum += lags(i) + late_push(i) + by_lea(i) + bug(i) + nameless(i) + call_nameless(i);
	}
	if (argc > 1)
		printf("%ld %lu %lu\n", sum, returns + (unsigned long)small_calls + 1, jumps);
	else
		printf("%ld\n", sum);
	return 0;
}
