/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Compares recipes byte by byte. A recipe describes the relocated copy of a window's instructions.
 * Comments before the bytes have their assembly. All windows are at 0x1000. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "abi/analysis_access.h"
#include "base/base.h"
#include "module/analysis/relocate.h"

#define AT	0x1000u
#define FAR	64u	/* for `room`: no other entry is near the window */

struct golden {
	const char *what;
	const char *bytes;	/* the bytes at AT: the window, and some bytes after it */
	unsigned window_len;
	const char *code;	/* the bytes of fixups are zero */
	const char *fixups;	/* kind@offset=value+addend ... */
	const char *pairs;	/* orig>copy ... */
};

static const struct golden golden[] = {
	{ "whole instructions, at least five bytes",
	  /* push %rbp; mov %rsp,%rbp; sub $0x20,%rsp */
	  "55 4889e5 4883ec20", 8,
	  /* push %rbp; mov %rsp,%rbp; sub $0x20,%rsp; jmp 0x1008 */
	  "55 4889e5 4883ec20 e900000000", "1@9=1008+0", "0>0 1>1 4>4 8>8" },
	{ "exactly five",
	  /* mov $1,%eax; ret */
	  "b801000000 c3", 5,
	  "b801000000 e900000000", "1@6=1005+0", "0>0 5>5" },
	{ "rip-relative load",
	  /* mov 0x100(%rip),%rax		# 0x1107 */
	  "488b0500010000", 7,
	  "488b0500000000 e900000000", "1@3=1107+0 1@8=1007+0", "0>0 7>7" },
	{ "rip-relative with an immediate after the displacement",
	  /* cmpl $5,0x10(%rip)			# 0x1017 */
	  "833d1000000005", 7,
	  "833d0000000005 e900000000", "1@2=1017+1 1@8=1007+0", "0>0 7>7" },
	{ "rip-relative with a 4-byte immediate",
	  /* movq $-1,-0x80(%rip)		# 0xf8b
	   * The displacement isn't -8, because then the operand would be in the window. */
	  "48c70580ffffffffffffff", 11,
	  "48c70500000000ffffffff e900000000", "1@3=f8b+4 1@12=100b+0", "0>0 11>11" },
	{ "jcc rel8 widened",
	  /* test %rdi,%rdi; je 0x1015 */
	  "4885ff 7410", 5,
	  /* test %rdi,%rdi; je rel32; jmp */
	  "4885ff 0f8400000000 e900000000", "1@5=1015+0 1@10=1005+0", "0>0 3>3 5>9" },
	{ "jcc rel32 kept",
	  /* jne 0x1106 */
	  "0f8500010000", 6,
	  "0f8500000000 e900000000", "1@2=1106+0 1@7=1006+0", "0>0 6>6" },
	{ "a branch hint is dropped",
	  /* xor %eax,%eax; jne,pt 0x1015 */
	  "31c0 3e7510", 5,
	  "31c0 0f8500000000 e900000000", "1@4=1015+0 1@9=1005+0", "0>0 2>2 5>8" },
	{ "jmp rel8 over padding: nothing falls through",
	  /* jmp 0x1042; int3 ... */
	  "eb40 cccccc", 5,
	  "e900000000", "1@1=1042+0", "0>0" },
	{ "jmp rel32 (a thunk)",
	  /* jmp 0x1105 */
	  "e900010000", 5,
	  "e900000000", "1@1=1105+0", "0>0" },
	{ "bnd jmp",
	  /* bnd jmp 0x1106 */
	  "f2e900010000", 6,
	  "e900000000", "1@1=1106+0", "0>0" },
	{ "a jump to the window's own start enters the function anew",
	  /* sub $1,%edi; jne 0x1000 */
	  "83ef01 75fb", 5,
	  "83ef01 0f8500000000 e900000000", "1@5=1000+0 1@10=1005+0", "0>0 3>3 5>9" },
	{ "loop",
	  /* dec %rdi; loop 0x1015 */
	  "48ffcf e210", 5,
	  /* dec %rdi; loop +2; jmp +5; jmp 0x1015; jmp 0x1005 */
	  "48ffcf e202 eb05 e900000000 e900000000", "1@8=1015+0 1@13=1005+0", "0>0 3>3 5>12" },
	{ "jecxz keeps its prefix",
	  /* xor %eax,%eax; jecxz 0x1015 */
	  "31c0 67e310", 5,
	  "31c0 67e302 eb05 e900000000 e900000000", "1@8=1015+0 1@13=1005+0", "0>0 2>2 5>12" },
	{ "direct call at the end: the original return address is pushed",
	  /* sub $8,%rsp; call 0x1109 */
	  "4883ec08 e800010000", 9,
	  /* sub $8,%rsp; push $lo(0x1009); movl $hi,4(%rsp); jmp 0x1109 */
	  "4883ec08 6800000000 c744240400000000 e900000000",
	  "3@5=1009+0 4@13=1009+0 1@18=1109+0", "0>0 4>4" },
	{ "call through a register",
	  /* mov %rdi,%r11; call *%r11 */
	  "4989fb 41ffd3", 6,
	  /* mov %rdi,%r11; push; movl; jmp *%r11 */
	  "4989fb 6800000000 c744240400000000 41ffe3", "3@4=1006+0 4@12=1006+0", "0>0 3>3" },
	{ "call through memory: the operand is read first",
	  /* push %rax; call *0x100(%rip)	# 0x1107 */
	  "50 ff1500010000", 7,
	  /* push %rax; push 0x1107; pop -16(%rsp); push; movl; jmp *-8(%rsp) */
	  "50 ff3500000000 8f4424f0 6800000000 c744240400000000 ff6424f8",
	  "1@3=1107+0 3@12=1007+0 4@20=1007+0", "0>0 1>1" },
	{ "call through the stack",
	  /* push %rbx; call *0x10(%rsp) */
	  "53 ff542410", 5,
	  "53 ff742410 8f4424f0 6800000000 c744240400000000 ff6424f8",
	  "3@10=1005+0 4@18=1005+0", "0>0 1>1" },
	{ "nops leave nothing",
	  /* nop x5 */
	  "9090909090 c3", 5,
	  "e900000000", "1@1=1005+0", "0>0 1>0 2>0 3>0 4>0 5>0" },
	{ "a nop among instructions",
	  /* push %rbp; nopl 0(%rax) */
	  "55 0f1f4000", 5,
	  "55 e900000000", "1@2=1005+0", "0>0 1>1 5>1" },
	{ "what only Zydis calls a nop is kept",
	  /* prefetchw of a register: undefined on some processors */
	  "0f0dd3 31c0", 5,
	  "0f0dd3 31c0 e900000000", "1@6=1005+0", "0>0 3>3 5>5" },
	{ "ret and padding",
	  /* ret; nopw 0(%rax,%rax) */
	  "c3 660f1f440000", 7,
	  "c3", "", "0>0" },
	{ "XRay's sled: a jump over nine bytes of nop",
	  /* jmp 0x100b; nopw 512(%rax,%rax) */
	  "eb09 660f1f840000020000", 11,
	  "e900000000", "1@1=100b+0", "0>0" },
	{ "load of the canary",
	  /* mov %fs:0x28,%rax */
	  "64488b042528000000", 9,
	  "64488b042528000000 e900000000", "1@10=1009+0", "0>0 9>9" },
};

static unsigned from_hex(const char *s, uint8_t *to)
{
	unsigned n = 0, digit;

	for (; *s; s++) {
		if (*s == ' ')
			continue;
		assert_int_equal(sscanf(s++, "%2x", &digit), 1);
		to[n++] = (uint8_t)digit;
	}
	return n;
}

static void show(const struct pb_window_out *w, char *fixups, char *pairs)
{
	*fixups = *pairs = 0;
	for (unsigned i = 0; i < w->head.nr_fixups; i++)
		fixups += sprintf(fixups, "%s%u@%u=%llx+%u", i ? " " : "", w->fixups[i].kind,
				  w->fixups[i].off, (unsigned long long)w->fixups[i].value,
				  w->fixups[i].addend);
	for (unsigned i = 0; i < w->head.nr_pairs; i++)
		pairs += sprintf(pairs, "%s%u>%u", i ? " " : "", w->pairs[i].orig,
				 w->pairs[i].copy);
}

/* Windows over which the patch writes a jmp rel8. */
static const struct golden golden_short[] = {
	{ "two bytes, and what follows stays",
	  /* xor %eax,%eax; dec %edi; jne 0x1002 */
	  "31c0 ffcf 75fc c3", 2, "31c0 e900000000", "1@3=1002+0", "0>0 2>2" },
	{ "a byte and more",
	  /* push %rbx; mov %rdi,%rbx; mov 0x44(%rbx),%eax */
	  "53 4889fb 8b4344", 4, "53 4889fb e900000000", "1@5=1004+0", "0>0 1>1 4>4" },
	{ "no jump after a return",
	  /* ret; int3 */
	  "c3 cc cc", 2, "c3", "", "0>0" },
	{ "a call's return address is the window's end",
	  /* call *%rax; xor %eax,%eax; ret */
	  "ffd0 31c0 c3", 2, "6800000000 c744240400000000 ffe0", "3@1=1002+0 4@9=1002+0", "0>0" },
	{ "a short jump",
	  /* jmp 0x100f */
	  "eb0d 0fb60c06", 2, "e900000000", "1@1=100f+0", "0>0" },
	{ "before what can't be moved",
	  /* xor %eax,%eax; syscall; ret */
	  "31c0 0f05 c3", 2, "31c0 e900000000", "1@3=1002+0", "0>0 2>2" },
};

/* The windows of code slots, which have room for two jumps. */
static const struct golden golden_code_slot[] = {
	{ "exactly ten bytes; the first jump ends inside the first instruction",
	  /* mov %rax,0x100(%rip); dec %rax; cmp $1,%rcx */
	  "48890500010000 48ffc8 4883f901", 10,
	  "48890500000000 48ffc8 e900000000", "1@3=1107+0 1@11=100a+0", "0>0 7>7 10>10" },
	{ "a branch to its beginning comes back through the text",
	  /* add $3,%eax; mov $5,%ecx; jne 0x1000 */
	  "83c003 b905000000 75f6", 10,
	  "83c003 b905000000 0f8500000000 e900000000", "1@10=1000+0 1@15=100a+0",
	  "0>0 3>3 8>8 10>14" },
};

/* The one-byte window of the first of two shared jumps. */
static const struct golden golden_shared[] = {
	{ "a byte", /* ret */ "c3 554889e5", 1, "c3", "", "0>0" },
};

static void check_golden(const struct golden *table, size_t n, unsigned jump_len)
{
	for (size_t i = 0; i < n; i++) {
		const struct golden *g = &table[i];
		uint8_t bytes[64], code[PB_RECIPE_MAX];
		char fixups[512], pairs[256];
		struct pb_window_in in = { .bytes = bytes, .addr = AT, .jump_len = jump_len,
					   .room = FAR };
		struct pb_window_out w;
		unsigned len = from_hex(g->code, code);

		in.avail = from_hex(g->bytes, bytes);
		enum pb_refused refused = pb_window_make(&in, &w);

		show(&w, fixups, pairs);
		if (refused || w.head.window_len != g->window_len || w.head.len != len ||
		    memcmp(w.code, code, len) || strcmp(fixups, g->fixups) ||
		    strcmp(pairs, g->pairs)) {
			print_message("%s: refused %d, window %u, fixups %s, pairs %s, code",
				      g->what, refused, w.head.window_len, fixups, pairs);
			for (unsigned k = 0; k < w.head.len; k++)
				print_message(" %02x", w.code[k]);
			print_message("\n");
			fail();
		}
		assert_memory_equal(w.orig, bytes, w.head.window_len);
		assert_memory_equal(w.rest, bytes, w.head.window_len);
	}
}

static void test_golden(void **unused)
{
	check_golden(golden, pb_array_size(golden), PB_JUMP_LEN);
	check_golden(golden_short, pb_array_size(golden_short), PB_JUMP_SHORT);
	check_golden(golden_code_slot, pb_array_size(golden_code_slot), PB_CODE_SLOT_LEN);
	check_golden(golden_shared, pb_array_size(golden_shared), PB_JUMP_SHARED);
}

static const struct {
	const char *what, *bytes;
	unsigned room;
	enum pb_refused refused;
} refusals[] = {
	/* ret | next entry */
	{ "too short", "c3 90 90 5548", 3, PB_REFUSED_SHORT },
	/* ret; the code after it may be executed */
	{ "no padding after ret", "c3 31c0 c3 9090", FAR, PB_REFUSED_SHORT },
	/* push %rbp; push %rbx | next entry */
	{ "falls into the next", "55 53 4889e5 c3", 2, PB_REFUSED_CROSSES },
	/* an instruction crosses the start of the next function */
	{ "reaches over the next", "55 b801000000", 5, PB_REFUSED_CROSSES },
	{ "undecodable", "06 0606060606", FAR, PB_REFUSED_DECODE },
	{ "cut off", "55 48", FAR, PB_REFUSED_DECODE },
	/* call *%rax; xor %eax,%eax; ret */
	{ "returns into the jump", "ffd0 31c0 c3", FAR, PB_REFUSED_CALL },
	/* call *%rsp */
	{ "call of the stack", "4883ec08 ffd4", FAR, PB_REFUSED_RELOCATE },
	/* xbegin */
	{ "xbegin", "c7f800000000", FAR, PB_REFUSED_RELOCATE },
	/* mov $1,%al; syscall; ret */
	{ "syscall leaves rip in rcx", "b001 0f05 31c0", FAR, PB_REFUSED_RELOCATE },
	/* xor %eax,%eax, and then an instruction that always traps; nop */
	{ "ud2", "31c0 0f0b 90", FAR, PB_REFUSED_TRAP },
	{ "ud1", "31c0 670fb94005", FAR, PB_REFUSED_TRAP },
	{ "ud0", "31c0 0fffc0", FAR, PB_REFUSED_TRAP },
	{ "int3", "31c0 cc 9090", FAR, PB_REFUSED_TRAP },
	{ "int1", "31c0 f1 9090", FAR, PB_REFUSED_TRAP },
	{ "int", "31c0 cd80 90", FAR, PB_REFUSED_TRAP },
	{ "hlt", "31c0 f4 9090", FAR, PB_REFUSED_TRAP },
	{ "in", "31c0 e410 90", FAR, PB_REFUSED_TRAP },
	{ "outs", "31c0 6e 9090", FAR, PB_REFUSED_TRAP },
	{ "cli", "31c0 fa 9090", FAR, PB_REFUSED_TRAP },
	{ "rdmsr", "31c0 0f32 90", FAR, PB_REFUSED_TRAP },
	{ "mov of a control register", "31c0 0f20c0", FAR, PB_REFUSED_TRAP },
	{ "lgdt", "31c0 0f0110", FAR, PB_REFUSED_TRAP },
	{ "vmcall", "31c0 0f01c1", FAR, PB_REFUSED_TRAP },
	{ "vmmcall", "31c0 0f01d9", FAR, PB_REFUSED_TRAP },
	/* je with an operand-size prefix */
	{ "16-bit branch", "31c0 667410", FAR, PB_REFUSED_RELOCATE },
	/* mov 0x100(%eip),%eax */
	{ "eip-relative", "678b0500010000", FAR, PB_REFUSED_RELOCATE },
	/* lcall *(%rdi) */
	{ "far call", "4889f8 48ff1f", FAR, PB_REFUSED_RELOCATE },
	{ "ret and zeros, which may be data", "c3 00000000", FAR, PB_REFUSED_SHORT },
	/* xor %eax,%eax; dec %edi; jne 0x1002 */
	{ "branch into its own middle", "31c0 ffcf 75fc", FAR, PB_REFUSED_BRANCH },
	/* push %rbx; endbr64 */
	{ "an indirect branch may land", "53 f30f1efa", FAR, PB_REFUSED_BRANCH },
};

static void test_refusals(void **unused)
{
	for (size_t i = 0; i < pb_array_size(refusals); i++) {
		uint8_t bytes[64];
		struct pb_window_in in = { .bytes = bytes, .addr = AT, .jump_len = PB_JUMP_LEN,
					   .room = refusals[i].room };
		struct pb_window_out w;

		in.avail = from_hex(refusals[i].bytes, bytes);
		enum pb_refused got = pb_window_make(&in, &w);

		if (got != refusals[i].refused) {
			print_message("%s: %d, not %d\n", refusals[i].what, got,
				      refusals[i].refused);
			fail();
		}
	}
}

/* If the compiler emitted a call of mcount or __fentry__, the call becomes a nop. The recipe has no
 * code for the call, and rest[] has the nop. */
static void test_hook_call(void **unused)
{
	/* push %rbp; mov %rsp,%rbp; call *mcount@GOTPCREL(%rip) */
	static const uint8_t bytes[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0x15, 1, 2, 3, 4, 0xc3 };
	static const uint8_t rest[] = { 0x55, 0x48, 0x89, 0xe5, 0x66, 0x0f, 0x1f, 0x44, 0, 0 };
	static const struct pb_nop nops[] = { { .addr = 0x900, .len = 5 },
					      { .addr = AT + 4, .len = 6 } };
	struct pb_window_in in = { .bytes = bytes, .addr = AT, .jump_len = PB_JUMP_LEN,
				   .avail = sizeof(bytes), .room = FAR, .nops = nops,
				   .nr_nops = 2 };
	struct pb_window_out w;

	assert_int_equal(pb_window_make(&in, &w), PB_REFUSED_NOT);
	assert_int_equal(w.head.window_len, 10);
	assert_int_equal(w.head.len, 4 + 5);
	assert_memory_equal(w.code, bytes, 4);
	assert_memory_equal(w.orig, bytes, 10);
	assert_memory_equal(w.rest, rest, 10);

	/* a call of __fentry__ takes the whole window of five bytes, so the recipe has only the
	 * jump back */
	static const uint8_t fentry[] = { 0xe8, 1, 2, 3, 4, 0xc3 };
	static const struct pb_nop one = { .addr = AT, .len = 5 };

	in = (struct pb_window_in){ .bytes = fentry, .addr = AT, .jump_len = PB_JUMP_LEN,
				    .avail = sizeof(fentry), .room = FAR, .nops = &one,
				    .nr_nops = 1 };
	assert_int_equal(pb_window_make(&in, &w), PB_REFUSED_NOT);
	assert_int_equal(w.head.window_len, 5);
	assert_int_equal(w.head.len, 5);
	assert_memory_equal(w.rest, pb_nop_bytes(5), 5);
	assert_true(w.all_nops);
}

static void test_pc_mapping(void **unused)
{
	/* test %rdi,%rdi; je; the copies are at 0 and 3, and the final jump is at 9 */
	static const uint8_t bytes[] = { 0x48, 0x85, 0xff, 0x74, 0x10, 0xc3 };
	struct pb_window_in in = { .bytes = bytes, .addr = AT, .jump_len = PB_JUMP_LEN,
				   .avail = sizeof(bytes), .room = FAR };
	struct pb_window_out w;
	uint64_t stored[PB_WINDOW_STORE_MAX / 8 + 1];
	const struct pb_recipe *r = (const struct pb_recipe *)stored;

	assert_int_equal(pb_window_make(&in, &w), PB_REFUSED_NOT);
	size_t size = pb_window_store(&w, (uint8_t *)stored);

	assert_int_equal(size, pb_recipe_size(r));
	assert_int_equal(pb_recipe_orig_offset(r, 0), 0);
	assert_int_equal(pb_recipe_orig_offset(r, 2), 0);
	assert_int_equal(pb_recipe_orig_offset(r, 3), 3);
	assert_int_equal(pb_recipe_orig_offset(r, 8), 3);
	assert_int_equal(pb_recipe_orig_offset(r, 9), 5);
	assert_int_equal(pb_recipe_copy_offset(r, 3), 3);
	assert_int_equal(pb_recipe_copy_offset(r, 1), -1);
	assert_int_equal(pb_recipe_copy_offset(r, 5), -1);
	assert_memory_equal(pb_recipe_orig(r), bytes, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_hook_call),
		cmocka_unit_test(test_pc_mapping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
