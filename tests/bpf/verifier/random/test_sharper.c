/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Tests which instruction sharper_at() names as the reason why our verifier accepts a program that
 * the kernel refuses. Linux 6.18 wrote the logs.
 *
 * In the program, r1 is r5 - 1. On the path that Linux refuses, w1 >= 23 and r5 < 3, so r5 is 0 and
 * r1 is -1. r1 is linked to r5. When a branch compares r5, Linux forgets what it knew of r1. But
 * the log shows r1 only when a later instruction reads r1.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "sharper.h"
#include "verdict.h"

static const struct bpf_insn prog[] = {
	CALL(get_prandom_u32), BPF_ALU32_REG(BPF_MOV, 5, 0), MOV(1, 5),
	BPF_ALU64_IMM(BPF_ADD, 1, -1),
	BPF_JMP32_IMM(BPF_JGE, 1, 23, 1), BPF_JMP_A(6), BPF_JMP_IMM(BPF_JGE, 5, 3, 5), MOV(0, 1),
	BPF_JMP_IMM(BPF_JGE, 0, 26, 3), MOV(9, 10), BPF_ALU64_REG(BPF_ADD, 9, 0),
	BPF_ST_MEM(BPF_B, 9, -535, 1), SET(0, 0), EXIT(),
};

#define U32	"smin=0,smax=umax=0xffffffff,var_off=(0x0; 0xffffffff)"
#define BEGIN \
	"0: R1=ctx() R10=fp0\n" \
	"0: (85) call bpf_get_prandom_u32#7    ; R0=scalar()\n" \
	"1: (bc) w5 = w0                       ; R0=scalar() R5=scalar(" U32 ")\n" \
	"2: (bf) r1 = r5                       ; R1=scalar(id=1," U32 ") R5=scalar(id=1," U32 ")\n"
#define END \
	"8: (35) if r0 >= 0x1a goto pc+3       ; R0=scalar(id=2,smin=smin32=0," \
		"smax=umax=smax32=umax32=1,var_off=(0x0; 0x1))\n" \
	"9: (bf) r9 = r10                      ; R9=fp0 R10=fp0\n" \
	"10: (0f) r9 += r0\n" \
	"11: (72) *(u8 *)(r9 -535) = 1\n" \
	"invalid variable-offset write to stack R9 var_off=(0x0; 0x1) off=-535 size=1\n" \
	"processed 14 insns (limit 1000000) max_states_per_insn 0 total_states 1 peak_states 1 " \
		"mark_read 0\n"
#define FROM(r1) \
	"from 4 to 6: R0=scalar() R1=scalar(" r1 ") R5=scalar(id=1," U32 ") R10=fp0\n"
#define BRANCH	"6: (35) if r5 >= 0x3 goto pc+5        ; R5=scalar(id=1,smin=smin32=0," \
		"smax=umax=smax32=umax32=2,var_off=(0x0; 0x3))\n"
#define COPY	"7: (bf) r0 = r1                       ; " \
		"R0=scalar(id=2,smin=smin32=-1,smax=smax32=1) " \
		"R1=scalar(id=2,smin=smin32=-1,smax=smax32=1)\n"
#define KNOWN	"smin=-1,smax=0xfffffffe,umin=umin32=23"

static void blames(const char *log, const char *wanted)
{
	struct pb_bpf_verify v = {
		.type = pb_bpf_type_of(BPF_PROG_TYPE_SOCKET_FILTER), .caps = PB_BPF_CAP_ALL,
		.gpl = true, .insns = prog, .nr = sizeof prog / sizeof *prog, .mem = &pb_bpf_heap,
	};
	char insn[100];
	bool dead;

	assert_int_equal(VERDICT(SOCKET_FILTER, prog), 0);
	sharper_at(v, log, false, insn, sizeof insn, &dead);
	assert_string_equal(insn, wanted);
}

static void test_linked_register(void **state)
{
	blames(BEGIN "3: (07) r1 += -1                      ; "
	       "R1=scalar(id=1-1,smin=-1,smax=0xfffffffe)\n"
	       FROM("id=1-1," KNOWN) BRANCH COPY END, "a branch");
}

/* No branch compares a register that is linked to r1. So sharper_at() finds the instruction that
 * copies r1, not the branch. */
static void test_other_register(void **state)
{
	blames(BEGIN "3: (07) r1 += -1                      ; R1=scalar(smin=-1,smax=0xfffffffe)\n"
	       FROM(KNOWN) BRANCH COPY END, "rN = rN");
	blames(BEGIN "3: (07) r1 += -1                      ; "
	       "R1=scalar(id=3,smin=-1,smax=0xfffffffe)\n"
	       FROM("id=3," KNOWN) BRANCH COPY END, "rN = rN");
}

/* If the kernel forgets something at an instruction other than the branch, sharper_at() finds this
 * instruction. */
static void test_lost_before(void **state)
{
	blames(BEGIN "3: (07) r1 += -1                      ; R1=scalar(id=1-1)\n"
	       FROM("id=1-1") BRANCH COPY END, "rN += N");
	blames(BEGIN "3: (07) r1 += -1                      ; "
	       "R1=scalar(id=1-1,smin=-1,smax=0xfffffffe)\n"
	       FROM("id=1-1," KNOWN) BRANCH
	       "7: (bf) r0 = r1                       ; R0=scalar(id=2) "
	       "R1=scalar(id=1-1," KNOWN ")\n"
	       END, "rN = rN");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_linked_register), cmocka_unit_test(test_other_register),
		cmocka_unit_test(test_lost_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
