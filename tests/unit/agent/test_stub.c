/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Tests the bytes of stubs and jumps, and the matching of globs. The comments beside the bytes are
 * their assembly. A window is the bytes that a patch may overwrite. A slot is five bytes with a
 * jump to a stub. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <cmocka.h>

#include "abi/analysis.h"
#include "arch/arch.h"
#include "base/glob.h"

/* Memory at a known address, so that displacements are known too. */
#define AT 0x10000000ul

static uint8_t *low_memory(void)
{
	void *p = mmap((void *)AT, 8192, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	assert_ptr_equal(p, (void *)AT);
	return p;
}

static void stub_with_a_rip_relative_operand(void **state)
{
	/* The window at 0x2000 has mov 0x100(%rip),%rax. The operand is at 0x2107. The function
	 * goes on at 0x2007. */
	static const uint8_t code[] = { 0x48, 0x8b, 0x05, 0, 0, 0, 0, 0xe9, 0, 0, 0, 0 };
	static const uint8_t window[] = { 0x48, 0x8b, 0x05, 0x00, 0x01, 0x00, 0x00 };
	static const uint8_t want[] = {
		0x4c, 0x89, 0x5c, 0x24, 0xc8,		  /* mov %r11,-56(%rsp)      */
		0x4c, 0x8d, 0x1d, 0xf4, 0x0f, 0x00, 0x00, /* lea 0xff4(%rip),%r11   -> the site */
		0x41, 0xff, 0x23,			  /* jmp *(%r11)            */
		0x4c, 0x8b, 0x5c, 0x24, 0xc8,		  /* mov -56(%rsp),%r11      */
		0x48, 0x8b, 0x05, 0xec, 0x20, 0x00, 0x00, /* mov 0x20ec(%rip),%rax  -> 0x10002107 */
		0xe9, 0xe7, 0x1f, 0x00, 0x00,		  /* jmp 0x10002007         */
	};
	struct {
		struct pb_recipe head;
		struct pb_fixup fixups[2];
		struct pb_pair pairs[2];
		uint8_t code[sizeof(code)], orig[sizeof(window)], rest[sizeof(window)];
	} r = {
		.head = { .len = sizeof(code), .nr_fixups = 2, .nr_pairs = 2,
			  .window_len = sizeof(window) },
		.fixups = { { .value = 0x2107, .off = 3, .kind = PB_FIX_REL32 },
			    { .value = 0x2007, .off = 8, .kind = PB_FIX_REL32 } },
		.pairs = { { 0, 0 }, { 7, 7 } },
	};
	uint8_t *mem = low_memory();
	struct pb_site *site = (struct pb_site *)(mem + 0x1000);
	struct pb_place p;

	memcpy(r.code, code, sizeof(code));
	memcpy(r.orig, window, sizeof(window));
	memcpy(r.rest, window, sizeof(window));
	p = (struct pb_place){ .recipe = &r.head };
	assert_int_equal(pb_stub_size(&p), 32);
	assert_int_equal(pb_stub_emit(mem, (uint64_t)mem, site, &p, NULL, AT), 0);
	assert_memory_equal(mem, want, sizeof(want));
	assert_true(pb_stub_is(mem, site));
	assert_false(pb_stub_is(mem, site + 1));
	/* a target that is out of reach is refused */
	assert_int_equal(pb_stub_emit(mem, (uint64_t)mem, site, &p, NULL, AT + (1ul << 40)), -34);
	munmap(mem, 8192);
}

struct small_recipe {
	struct pb_recipe head;
	struct pb_fixup fixups[1];
	struct pb_pair pairs[2];
	uint8_t code[16];
};

/* In this stub, the copy of the window is followed by the copy of the code that the slot
 * displaces. */
static void stub_with_a_code_slot(void **state)
{
	/* the window, at 0x2000: xor %eax,%eax */
	static const struct small_recipe window = {
		.head = { .len = 7, .nr_fixups = 1, .nr_pairs = 2, .window_len = 2 },
		.fixups = { { .value = 0x2002, .off = 3, .kind = PB_FIX_REL32 } },
		.pairs = { { 0, 0 }, { 2, 2 } },
		.code = { 0x31, 0xc0, 0xe9 },
	};
	/* the slot at 0x2003 displaces mov %rcx,%rdx; mov $7,%edi; add %edi,%eax. The copy jumps
	 * back to 0x200d. */
	static const struct small_recipe displaced = {
		.head = { .len = 15, .nr_fixups = 1, .nr_pairs = 2, .window_len = 10 },
		.fixups = { { .value = 0x200d, .off = 11, .kind = PB_FIX_REL32 } },
		.pairs = { { 0, 0 }, { 10, 10 } },
		.code = { 0x48, 0x89, 0xca, 0xbf, 7, 0, 0, 0, 0x01, 0xf8, 0xe9 },
	};
	static const uint8_t want[] = {
		0x4c, 0x89, 0x5c, 0x24, 0xc8,			/* mov %r11,-56(%rsp)      */
		0x4c, 0x8d, 0x1d, 0xf4, 0x0f, 0x00, 0x00,	/* lea 0xff4(%rip),%r11   */
		0x41, 0xff, 0x23,				/* jmp *(%r11)            */
		0x4c, 0x8b, 0x5c, 0x24, 0xc8,			/* mov -56(%rsp),%r11      */
		0x31, 0xc0,					/* xor %eax,%eax          */
		0xe9, 0xe7, 0x1f, 0x00, 0x00,			/* jmp 0x10002002         */
		0x48, 0x89, 0xca,				/* mov %rcx,%rdx          */
		0xbf, 0x07, 0x00, 0x00, 0x00,			/* mov $7,%edi            */
		0x01, 0xf8,					/* add %edi,%eax          */
		0xe9, 0xe3, 0x1f, 0x00, 0x00,			/* jmp 0x1000200d         */
	};
	/* jmp 0x1000001b; jmp 0x10000000 */
	static const uint8_t code_slot[] = {
		0xe9, 0x13, 0xe0, 0xff, 0xff,
		0xe9, 0xf3, 0xdf, 0xff, 0xff,
	};
	struct pb_place p = { .recipe = &window.head, .second = &displaced.head, .via = 8 };
	uint8_t *mem = low_memory(), out[PB_CODE_SLOT_LEN];
	struct pb_site *site = (struct pb_site *)(mem + 0x1000);

	assert_int_equal(pb_stub_size(&p), 48);
	assert_int_equal(pb_stub_emit(mem, (uint64_t)mem, site, &p, NULL, AT), 0);
	assert_memory_equal(mem, want, sizeof(want));
	assert_int_equal(pb_stub_emit(mem, (uint64_t)mem, site, &p, NULL, AT + (1ul << 40)), -34);
	assert_int_equal(pb_code_slot_emit(out, AT + 0x2003, AT + 27, AT), 0);
	assert_memory_equal(out, code_slot, sizeof(code_slot));
	assert_int_equal(pb_code_slot_emit(out, AT, AT + 0x80000005, AT), -34);
	assert_int_equal(pb_code_slot_emit(out, AT, AT, AT + 0x80000009 + 1), -34);
	munmap(mem, 8192);
}

/* The code at 0x2000 is test %eax,%eax; je 0x3000; pop %rbx. The last instruction is ret, ret $16
 * or jmp 0x4000. */
struct body_recipe {
	struct pb_recipe head;
	struct pb_fixup fixups[1];
	struct pb_pair pairs[4];
	uint8_t code[16], orig[10], rest[10];
	struct pb_window_exit exits[2];
};

/* The next three functions run in this order on the same recipe. Each of them sets the last
 * instruction and checks the emitted code. */
static void ends_with_ret(struct body_recipe *b, struct pb_place *p, uint8_t *mem)
{
	static const uint8_t plain[] = {
		0x85, 0xc0,					/* test %eax,%eax         */
		0x0f, 0x84, 0x07, 0x00, 0x00, 0x00,		/* je   1f                */
		0x5b,						/* pop  %rbx              */
		0xff, 0x25, 0xf1, 0x0f, 0x00, 0x00,		/* jmp  *ret(%rip)        */
		0x4c, 0x89, 0x5c, 0x24, 0xc8,			/* 1: mov %r11,-56(%rsp)   */
		0x4c, 0x8d, 0x1d, 0x06, 0x00, 0x00, 0x00,	/* lea  2f(%rip),%r11     */
		0xff, 0x25, 0xe7, 0x0f, 0x00, 0x00,		/* jmp  *jump(%rip)       */
		0x4c, 0x8b, 0x5c, 0x24, 0xc8,			/* 2: mov -56(%rsp),%r11   */
		0xe9, 0xd5, 0x2f, 0x00, 0x00,			/* jmp  0x10003000        */
	};
	struct pb_returns *words = (struct pb_returns *)(mem + 0x1000);

	memcpy(b->code, "\x85\xc0\x0f\x84\0\0\0\0\x5b\xc3", 10);
	assert_int_equal(pb_body_size(p), sizeof(plain));
	assert_int_equal(pb_body_emit(mem, (uint64_t)mem, p, words, AT), 0);
	assert_memory_equal(mem, plain, sizeof(plain));
	/* checks to which original instruction each offset belongs, and whether r11 is saved at
	 * -56(%rsp) */
	for (unsigned off = 0; off < sizeof(plain); off++) {
		unsigned is = off < 2 ? 0 : off < 8 ? 2 : off < 9 ? 8 : off < 15 ? 9 : 2;
		struct pb_original o = pb_body_original(p, off);

		assert_int_equal(o.pc, 0x2000 + is);
		assert_int_equal(o.next, o.pc);
		assert_int_equal(o.own, off >= 15 && off < 15 + PB_EXIT_JUMP_LEN);
	}
	assert_int_equal(pb_body_copy(p, 0x2008), 8);
	assert_int_equal(pb_body_copy(p, 0x2009), 9);
	assert_int_equal(pb_body_copy(p, 0x2001), -1);
	assert_int_equal(pb_body_copy(p, 0x200a), -1);
}

static void ends_with_ret_16(struct body_recipe *b, struct pb_place *p, uint8_t *mem)
{
	static const uint8_t pops[] = {
		0x4c, 0x89, 0x5c, 0x24, 0xc8,			/* mov  %r11,-56(%rsp)     */
		0x4c, 0x8d, 0x1d, 0x06, 0x00, 0x00, 0x00,	/* lea  1f(%rip),%r11     */
		0xff, 0x25, 0xed, 0x0f, 0x00, 0x00,		/* jmp  *jump(%rip)       */
		0x4c, 0x8b, 0x5c, 0x24, 0xc8,			/* 1: mov -56(%rsp),%r11   */
		0xc2, 0x10, 0x00,				/* ret  $16               */
	};
	static const uint8_t je[] = { 0x0f, 0x84, 0x1b, 0x00, 0x00, 0x00 };
	struct pb_returns *words = (struct pb_returns *)(mem + 0x1000);

	b->exits[1] = (struct pb_window_exit){ 9, PB_EXIT_RET_POPS, 3 };
	memcpy(b->code + 9, "\xc2\x10", 3);
	b->head.len = 12;
	assert_int_equal(pb_body_size(p), 9 + sizeof(pops) + PB_EXIT_JUMP_LEN + PB_JUMP_LEN);
	assert_int_equal(pb_body_emit(mem, (uint64_t)mem, p, words, AT), 0);
	assert_memory_equal(mem + 2, je, sizeof(je));
	assert_memory_equal(mem + 9, pops, sizeof(pops));
	for (unsigned off = 9; off < 9 + sizeof(pops); off++) {
		assert_int_equal(pb_body_original(p, off).pc, 0x2009);
		assert_int_equal(pb_body_original(p, off).own, off < 9 + PB_EXIT_JUMP_LEN);
	}
}

static void ends_with_jmp(struct body_recipe *b, struct pb_place *p, uint8_t *mem)
{
	static const uint8_t jmp[] = { 0xe9, 0xdb, 0x3f, 0x00, 0x00 };
	struct pb_returns *words = (struct pb_returns *)(mem + 0x1000);

	/* the copied jump has a new displacement, because the copy is at another address */
	p->exits = &b->exits[1];
	p->nr_exits = 1;
	b->exits[1] = (struct pb_window_exit){ 9, PB_EXIT_JMP, 5 };
	b->head.len = 14;
	b->code[9] = 0xe9;
	b->fixups[0] = (struct pb_fixup){ .value = 0x4000, .off = 10, .kind = PB_FIX_REL32 };
	assert_int_equal(pb_body_emit(mem, (uint64_t)mem, p, words, AT), 0);
	assert_memory_equal(mem + 9 + PB_EXIT_JUMP_LEN, jmp, sizeof(jmp));
}

/* In the copy of a window, each exit leads to code that jumps to the exit's handler. For a jcc,
 * this code follows the copy, and the copied jcc jumps to it. For a return or an unconditional
 * jump, this code is in the exit's place. */
static void body_with_exits(void **state)
{
	struct body_recipe b = {
		.head = { .len = 10, .nr_fixups = 1, .nr_pairs = 4, .window_len = 10 },
		.fixups = { { .value = 0x3000, .off = 4, .kind = PB_FIX_REL32 } },
		.pairs = { { 0, 0 }, { 2, 2 }, { 8, 8 }, { 9, 9 } },
		.exits = { { 2, PB_EXIT_JCC, 6 }, { 9, PB_EXIT_RET, 1 } },
	};
	struct pb_place p = {
		.window = 0x2000, .recipe = &b.head, .exits = b.exits, .nr_exits = 2,
	};
	uint8_t *mem = low_memory();

	ends_with_ret(&b, &p, mem);
	ends_with_ret_16(&b, &p, mem);
	ends_with_jmp(&b, &p, mem);
	munmap(mem, 8192);
}

static void stub_with_an_emulated_call(void **state)
{
	/* call 0x3000 at the window's end pushes the original return address */
	static const uint8_t code[] = {
		0x48, 0x8d, 0x64, 0x24, 0xf8,			/* lea -8(%rsp),%rsp  */
		0xc7, 0x04, 0x24, 0, 0, 0, 0,			/* movl $lo,(%rsp)    */
		0xc7, 0x44, 0x24, 0x04, 0, 0, 0, 0,		/* movl $hi,4(%rsp)   */
		0xe9, 0, 0, 0, 0,				/* jmp 0x3000         */
	};
	struct {
		struct pb_recipe head;
		struct pb_fixup fixups[3];
		uint8_t code[sizeof(code)];
	} r = {
		.head = { .len = sizeof(code), .nr_fixups = 3 },
		.fixups = { { .value = 0x2005, .off = 8, .kind = PB_FIX_LO32 },
			    { .value = 0x2005, .off = 16, .kind = PB_FIX_HI32 },
			    { .value = 0x3000, .off = 21, .kind = PB_FIX_REL32 } },
	};
	uint8_t *mem = low_memory();
	uint32_t word;

	memcpy(r.code, code, sizeof(code));
	assert_int_equal(pb_stub_emit(mem, (uint64_t)mem, (struct pb_site *)(mem + 0x1000),
				      &(struct pb_place){ .recipe = &r.head }, NULL, AT), 0);
	memcpy(&word, mem + PB_STUB_COPY + 8, 4);
	assert_int_equal(word, AT + 0x2005);
	memcpy(&word, mem + PB_STUB_COPY + 16, 4);
	assert_int_equal(word, 0);
	memcpy(&word, mem + PB_STUB_COPY + 21, 4);
	assert_int_equal(word, 0x3000 - (PB_STUB_COPY + 25));
	munmap(mem, 8192);
}

/* What the code at an offset is for the program. */
struct meaning {
	uint8_t off, pc, next, pushed;	/* pc and next: offsets from 0x2000 */
	bool own;
};

static void check_meanings(const struct pb_place *p, const struct meaning *m, size_t nr)
{
	for (; nr; m++, nr--) {
		struct pb_original o = pb_body_original(p, m->off);

		assert_int_equal(o.pc, 0x2000 + m->pc);
		assert_int_equal(o.next, 0x2000 + m->next);
		assert_int_equal(o.pushed, m->pushed);
		assert_int_equal(o.own, m->own);
	}
}

/* The copy of a call has pushed a word after some of its instructions. */
static void calls_that_are_half_done(void **state)
{
	/* push %rbx; call *0x100(%rip) */
	static const struct {
		struct pb_recipe head;
		struct pb_fixup fixups[3];
		struct pb_pair pairs[2];
		uint8_t code[28];
	} by_pointer = {
		.head = { .len = 28, .nr_fixups = 3, .nr_pairs = 2, .window_len = 7 },
		.fixups = { { .value = 0x2107, .off = 3, .kind = PB_FIX_REL32 },
			    { .value = 0x2007, .off = 12, .kind = PB_FIX_LO32 },
			    { .value = 0x2007, .off = 20, .kind = PB_FIX_HI32 } },
		.pairs = { { 0, 0 }, { 1, 1 } },
		.code = { 0x53, 0xff, 0x35, 0, 0, 0, 0, 0x8f, 0x44, 0x24, 0xf0,
			  0x68, 0, 0, 0, 0, 0xc7, 0x44, 0x24, 0x04, 0, 0, 0, 0,
			  0xff, 0x64, 0x24, 0xf8 },
	/* sub $8,%rsp; call 0x3000 */
	}, direct = {
		.head = { .len = 22, .nr_fixups = 3, .nr_pairs = 2, .window_len = 9 },
		.fixups = { { .value = 0x2009, .off = 5, .kind = PB_FIX_LO32 },
			    { .value = 0x2009, .off = 13, .kind = PB_FIX_HI32 },
			    { .value = 0x3000, .off = 18, .kind = PB_FIX_REL32 } },
		.pairs = { { 0, 0 }, { 4, 4 } },
		.code = { 0x48, 0x83, 0xec, 0x08, 0x68, 0, 0, 0, 0,
			  0xc7, 0x44, 0x24, 0x04, 0, 0, 0, 0, 0xe9 },
	};
	static const struct meaning in_pointer[] = {
		{ 0, 0, 0, 0 }, { 1, 1, 1, 0 }, { 7, 1, 1, 8 }, { 11, 1, 1, 0 }, { 16, 1, 1, 8 },
		{ 24, 1, 1, 8 },
	}, in_direct[] = {
		{ 0, 0, 0, 0 }, { 4, 4, 4, 0 }, { 9, 4, 4, 8 }, { 17, 4, 4, 8 },
	};
	struct pb_place p = { .window = 0x2000, .recipe = &by_pointer.head };

	check_meanings(&p, in_pointer, sizeof(in_pointer) / sizeof(in_pointer[0]));
	p.recipe = &direct.head;
	check_meanings(&p, in_direct, sizeof(in_direct) / sizeof(in_direct[0]));
}

/* After the first instruction of its copy, a loop has counted. So the program is at the loop's
 * target or at the next instruction. */
static void loops_that_have_counted(void **state)
{
	/* mov %rdi,%rcx; loop 0x2045 */
	static const struct {
		struct pb_recipe head;
		struct pb_fixup fixups[2];
		struct pb_pair pairs[3];
		uint8_t code[17];
	} r = {
		.head = { .len = 17, .nr_fixups = 2, .nr_pairs = 3, .window_len = 5 },
		.fixups = { { .value = 0x2045, .off = 8, .kind = PB_FIX_REL32 },
			    { .value = 0x2005, .off = 13, .kind = PB_FIX_REL32 } },
		.pairs = { { 0, 0 }, { 3, 3 }, { 5, 12 } },
		.code = { 0x48, 0x89, 0xf9, 0xe2, 0x02, 0xeb, 0x05, 0xe9, 0, 0, 0, 0, 0xe9 },
	};
	static const struct pb_window_exit loop = { 3, PB_EXIT_JCC, 2 };
	/* the code from offset 17 on is run only if the loop is an exit */
	static const struct meaning meanings[] = {
		{ 0, 0, 0 }, { 3, 3, 3 }, { 5, 3, 5 }, { 7, 3, 0x45 }, { 12, 5, 5 },
		{ 17, 3, 0x45, .own = true }, { 17 + 18, 3, 0x45, .own = true },
		{ 17 + PB_EXIT_JUMP_LEN, 3, 0x45 },
	};
	struct pb_place p = { .window = 0x2000, .recipe = &r.head };

	check_meanings(&p, meanings, 5);
	p.exits = &loop;
	p.nr_exits = 1;
	check_meanings(&p, meanings, sizeof(meanings) / sizeof(meanings[0]));
}

static void jumps(void **state)
{
	static const uint8_t forth[] = { 0xe9, 0xfb, 0x0f, 0x00, 0x00 };
	static const uint8_t back[] = { 0xe9, 0xfb, 0xef, 0xff, 0xff };
	uint8_t out[PB_JUMP_LEN];

	assert_int_equal(pb_jump_emit(out, 0x400000, 0x401000), 0);
	assert_memory_equal(out, forth, sizeof(forth));
	assert_int_equal(pb_jump_emit(out, 0x401000, 0x400000), 0);
	assert_memory_equal(out, back, sizeof(back));
	assert_int_equal(pb_jump_emit(out, 0, 0x80000004), 0);
	assert_int_equal(pb_jump_emit(out, 0, 0x80000005), -34);
	assert_int_equal(pb_jump_emit(out, 0x80000000, 0), -34);
}

static void globs(void **state)
{
	static const struct { const char *pattern, *text; int match; } cases[] = {
		{ "", "", 1 }, { "", "a", 0 }, { "a", "a", 1 }, { "a", "b", 0 },
		{ "a*", "a", 1 }, { "a*", "abc", 1 }, { "*c", "abc", 1 }, { "*c", "abcd", 0 },
		{ "a*c*e", "abcde", 1 }, { "a*c*e", "abcdf", 0 }, { "*", "", 1 }, { "**", "x", 1 },
		{ "?", "", 0 }, { "?", "a", 1 }, { "a?c", "abc", 1 }, { "a?c", "ac", 0 },
		{ "[a-c]x", "bx", 1 }, { "[a-c]x", "dx", 0 }, { "[!a-c]x", "dx", 1 },
		{ "[!a-c]x", "ax", 0 }, { "[]]", "]", 1 }, { "[a-]", "-", 1 }, { "[", "[", 1 },
		{ "[a", "[a", 1 }, { "\\*", "*", 1 }, { "\\*", "a", 0 }, { "a\\", "a\\", 1 },
		{ "*ab*ab*", "xabyabz", 1 }, { "*aab", "aaaaaab", 1 }, { "[!x]", "", 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (pb_glob_match(cases[i].pattern, cases[i].text) != cases[i].match)
			fail_msg("\"%s\" and \"%s\"", cases[i].pattern, cases[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stub_with_a_rip_relative_operand),
		cmocka_unit_test(stub_with_a_code_slot),
		cmocka_unit_test(stub_with_an_emulated_call),
		cmocka_unit_test(calls_that_are_half_done),
		cmocka_unit_test(loops_that_have_counted),
		cmocka_unit_test(body_with_exits),
		cmocka_unit_test(jumps),
		cmocka_unit_test(globs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
