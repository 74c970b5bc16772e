/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Compares the table of frequent opcodes with Zydis. If the table knows an instruction, the table
 * and Zydis must decode the instruction in the same way. The input is each opcode with each ModRM
 * byte and some prefixes, then random bytes, then real code. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "module/analysis/insn.h"

static ZydisDecoder decoder;
static uint64_t known, unknown;

static void show(const char *by, const struct pb_insn *i)
{
	print_message("%s: length %u what %u legacy %d locked %d segment %d modrm %d %u %u %u "
		      "rex %u sib %u %u disp %u %lld imm %u %d %llx, %u %llx\n",
		      by, i->length, i->what, i->legacy, i->locked, i->segment, i->has_modrm,
		      i->mod, i->reg, i->rm, i->rex, i->sib_base, i->sib_index, i->disp_size,
		      (long long)i->disp, i->imm_size[0], i->relative,
		      (unsigned long long)i->imm[0], i->imm_size[1], (unsigned long long)i->imm[1]);
}

/* Decodes the instruction at p by the table and by Zydis, and compares the results. Returns the
 * length, or 0 if there is no instruction. */
static unsigned compare(const uint8_t *p, size_t avail)
{
	struct pb_insn a, b;
	bool is = pb_insn_by_zydis(&decoder, p, avail, &b);

	if (!pb_insn_by_table(p, avail, &a)) {
		unknown++;
		return is ? b.length : 0;
	}
	known++;
	if (!is || memcmp(&a, &b, sizeof(a))) {
		for (unsigned k = 0; k < 15; k++)
			print_message("%02x ", p[k]);
		print_message("\n");
		show("table", &a);
		if (is)
			show("Zydis", &b);
		fail_msg("%s", is ? "they differ" : "Zydis says that this is no instruction");
	}
	return a.length;
}

static uint64_t random64(void)
{
	static uint64_t x = 0x9e3779b97f4a7c15ull;

	x ^= x << 13;
	x ^= x >> 7;
	return x ^= x << 17;
}

static void fill(uint8_t *p, size_t n)
{
	while (n--)
		*p++ = (uint8_t)(random64() >> 24);
}

/* Compares both decoders on an opcode with each ModRM byte and some SIBs. code[] begins with the
 * prefixes and the opcode; the ModRM byte is at offset `at`. */
static void each_modrm(uint8_t *code, unsigned at)
{
	static const uint8_t sibs[] = { 0x00, 0x24, 0x25, 0x65, 0xe4, 0xff };

	for (unsigned modrm = 0; modrm < 256; modrm++) {
		fill(code + at, 15);
		code[at] = (uint8_t)modrm;
		for (unsigned k = 0; k < sizeof(sibs); k++) {
			code[at + 1] = sibs[k];
			compare(code, 15);
			if ((modrm & 7) != 4 || modrm >= 0xc0)
				break;
		}
	}
}

static void test_opcodes(void **unused)
{
	static const uint8_t prefixes[] = { 0, 0x66, 0xf2, 0xf3, 0x64, 0x65, 0x2e, 0x67, 0xf0 };
	static const uint8_t rexes[] = { 0, 0x40, 0x41, 0x42, 0x44, 0x48, 0x4f };
	uint8_t code[40];

	for (unsigned p = 0; p < sizeof(prefixes); p++)
		for (unsigned fs = 0; fs < 2; fs++)
			for (unsigned rex = 0; rex < sizeof(rexes); rex++)
				for (unsigned op = 0; op < 512; op++) {
					unsigned at = 0;

					if (fs)
						code[at++] = 0x64;
					if (prefixes[p])
						code[at++] = prefixes[p];
					if (rexes[rex])
						code[at++] = rexes[rex];
					if (op >= 256)
						code[at++] = 0x0f;
					code[at++] = (uint8_t)op;
					each_modrm(code, at);
				}
}

static void test_faults(void **unused)
{
	static const struct {
		const char *code;
		uint8_t length;
		bool faults;
	} cases[] = {
		{ "\xc6\x04\x25\x01\0\0\0\0", 8, true },		/* movb $0,1 */
		{ "\xc7\x04\x25\0\0\0\0\0\0\0\0", 11, true },	/* movl $0,0 */
		{ "\x48\x89\x04\x25\xff\x0f\0\0", 8, true },	/* mov %rax,4095 */
		{ "\x8b\x04\x25\0\0\0\0", 7, true },		/* mov 0,%eax */
		{ "\x89\x04\x25\0\x10\0\0", 7, false },		/* mov %eax,4096 */
		{ "\x89\x04\x25\xff\xff\xff\xff", 7, false },	/* mov %eax,-1 */
		{ "\x64\x89\x04\x25\0\0\0\0", 8, false },	/* mov %eax,%fs:0 */
		{ "\x65\x89\x04\x25\0\0\0\0", 8, false },	/* mov %eax,%gs:0 */
		{ "\x42\x89\x04\x25\0\0\0\0", 8, false },	/* mov %eax,(,%r12) */
		{ "\x89\x04\x24", 3, false },			/* mov %eax,(%rsp) */
		{ "\x89\x05\0\0\0\0", 6, false },			/* mov %eax,(%rip) */
		{ "\x89\x44\x25\x01", 4, false },			/* mov %eax,1(%rbp) */
		{ "\x8d\x04\x25\0\0\0\0", 7, false },		/* lea 0,%eax */
	};

	for (size_t k = 0; k < sizeof(cases) / sizeof(*cases); k++) {
		uint8_t code[15] = { 0 };
		struct pb_insn i;

		memcpy(code, cases[k].code, cases[k].length);
		assert_true(pb_insn_decode(&decoder, code, sizeof(code), &i));
		assert_int_equal(i.length, cases[k].length);
		assert_int_equal(pb_insn_faults(&i), cases[k].faults);
		assert_true(pb_insn_by_zydis(&decoder, code, sizeof(code), &i));
		assert_int_equal(pb_insn_faults(&i), cases[k].faults);
	}
}

static void test_random(void **unused)
{
	uint8_t code[16];

	for (unsigned i = 0; i < 1000000; i++) {
		fill(code, sizeof(code));
		compare(code, 1 + random64() % 16);
	}
}

static void sweep(const uint8_t *p, uint64_t size)
{
	for (uint64_t off = 0; off < size;) {
		unsigned n = compare(p + off, size - off);

		off += n ? n : 1;
	}
}

static void test_real(void **unused)
{
	static const char *const files[] = {
		"/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libm.so.6",
		"/lib/x86_64-linux-gnu/libstdc++.so.6", "/lib/x86_64-linux-gnu/libcrypto.so.3",
		"/proc/self/exe",
	};

	known = unknown = 0;
	for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		int fd = open(files[i], O_RDONLY);
		struct stat st;

		if (fd < 0)
			continue;
		assert_int_equal(fstat(fd, &st), 0);
		const uint8_t *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

		assert_ptr_not_equal(map, MAP_FAILED);
		close(fd);
		const Elf64_Ehdr *eh = (const void *)map;
		const Elf64_Phdr *ph = (const void *)(map + eh->e_phoff);

		for (unsigned k = 0; k < eh->e_phnum; k++)
			if (ph[k].p_type == PT_LOAD && ph[k].p_flags & PF_X)
				sweep(map + ph[k].p_offset, ph[k].p_filesz);
		munmap((void *)map, (size_t)st.st_size);
	}
	print_message("%llu instructions by the table, %llu by Zydis alone\n",
		      (unsigned long long)known, (unsigned long long)unknown);
	assert_true(known > unknown);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_opcodes),
		cmocka_unit_test(test_faults),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_real),
	};

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	ZydisDecoderEnableMode(&decoder, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
