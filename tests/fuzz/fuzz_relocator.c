/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Checks that a patched function does the same as before. The function's window is the bytes that a
 * patch may overwrite. The fuzzer first runs the original window. Then it runs the window as the
 * agent patches it, with a jump, a stub, a copy of the instructions, and perhaps a trampoline slot
 * (module/analysis/relocate.c, arch/x86_64/stub.c). Both runs start with the same random registers,
 * flags and memory. They must leave the same state.
 *
 * The input: a byte of CHOOSE_*, 8 bytes that seed the random state, and the code.
 *
 * Around the code, all memory is int3 or isn't mapped. So each run ends with a signal, wherever
 * control goes. The data, the stack and the state in the signal frame are compared. The state is
 * the registers, the flags, x87 and vector state up to AVX-512, the address of a fault, and the PC.
 * A PC in the copy counts as the original PC. Registers point into the sandbox or to unmapped
 * memory. If the code harms the process nevertheless, this is no finding (fuzz_wild).
 */
#include <Zydis/Zydis.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "abi/analysis_access.h"
#include "arch/arch.h"
#include "base/base.h"
#include "driver.h"
#include "module/analysis/analyse.h"
#include "module/analysis/stages.h"
#include "module/analysis/relocate.h"
#include "sandbox.h"
#include "seeds.h"

#define CHOOSE_SHORT	1	/* the jump has two bytes, and leads to a slot */
#define CHOOSE_HOOK	2	/* the first call of 5 or 6 bytes counts as a call of mcount or
				 * __fentry__ */
#define CHOOSE_BIAS	4	/* the load address isn't the link-time address */
#define CHOOSE_CODE_SLOT	8	/* the window's instructions are displaced, to make room for
					 * another function's code slot */
#define SHORT_MS	2	/* a run that takes longer counts as endless */
#define LONG_MS		900
#define CODE_BYTES	32
#define INPUT_BYTES	(1 + 8 + CODE_BYTES)

/* Kinds of windows, by their contents. Compared runs are counted by kind. */
#define KINDS(X) X(PLAIN) X(RIP) X(JCC) X(JMP) X(LOOP) X(CALL) X(CALL_REG) X(CALL_MEM) X(NOP) \
	X(HOOK) X(VECTOR) X(SLOT) X(CODE_SLOT) X(FAULT)
enum kind {
#define X(name) KIND_##name,
	KINDS(X)
#undef X
	NR_KINDS
};
static const char *const kind_names[] = {
#define X(name) #name,
	KINDS(X)
#undef X
};

struct counts {
	uint64_t made, refused, wild, endless, compared, kind[NR_KINDS];
};
const size_t fuzz_counts_size = sizeof(struct counts);
const bool fuzz_wild = true;

static struct pb_window_out window;
static uint64_t stored[PB_WINDOW_STORE_MAX / 8 + 1]; /* the window as an analysis stores it */
static const struct pb_recipe *const recipe = (const struct pb_recipe *)stored;

/* --- code that may be run ------------------------------------------------ */

/* Returns whether an instruction is harmless and always has the same effect. */
static bool tame(const ZydisDecodedInstruction *i, const ZydisDecodedOperand *op)
{
	switch (i->mnemonic) {
	case ZYDIS_MNEMONIC_RDTSC: case ZYDIS_MNEMONIC_RDTSCP: case ZYDIS_MNEMONIC_RDRAND:
	case ZYDIS_MNEMONIC_RDSEED: case ZYDIS_MNEMONIC_CPUID: case ZYDIS_MNEMONIC_RDPID:
	case ZYDIS_MNEMONIC_RDPMC: case ZYDIS_MNEMONIC_WRFSBASE: case ZYDIS_MNEMONIC_WRGSBASE:
	case ZYDIS_MNEMONIC_WRPKRU: case ZYDIS_MNEMONIC_POPF: case ZYDIS_MNEMONIC_POPFQ:
	case ZYDIS_MNEMONIC_INT: case ZYDIS_MNEMONIC_XRSTOR: case ZYDIS_MNEMONIC_XRSTOR64:
	case ZYDIS_MNEMONIC_XSAVE: case ZYDIS_MNEMONIC_XSAVE64: case ZYDIS_MNEMONIC_XSAVEC:
	case ZYDIS_MNEMONIC_XSAVEC64: case ZYDIS_MNEMONIC_XSAVEOPT: case ZYDIS_MNEMONIC_XSAVEOPT64:
	case ZYDIS_MNEMONIC_FXSAVE: case ZYDIS_MNEMONIC_FXSAVE64: case ZYDIS_MNEMONIC_FNSTENV:
	case ZYDIS_MNEMONIC_FNSAVE: case ZYDIS_MNEMONIC_FRSTOR: case ZYDIS_MNEMONIC_FLDENV:
	case ZYDIS_MNEMONIC_FXRSTOR: case ZYDIS_MNEMONIC_FXRSTOR64: case ZYDIS_MNEMONIC_UMWAIT:
	case ZYDIS_MNEMONIC_TPAUSE: case ZYDIS_MNEMONIC_SMSW: case ZYDIS_MNEMONIC_RDFSBASE:
	case ZYDIS_MNEMONIC_LSL: case ZYDIS_MNEMONIC_XGETBV: case ZYDIS_MNEMONIC_LAR:
	case ZYDIS_MNEMONIC_RDGSBASE:
		return false;
	default:
		break;
	}
	for (unsigned k = 0; k < i->operand_count; k++) {
		bool writes = op[k].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;

		if (op[k].type == ZYDIS_OPERAND_TYPE_REGISTER && writes &&
		    ZydisRegisterGetClass(op[k].reg.value) == ZYDIS_REGCLASS_SEGMENT)
			return false;
		if (op[k].type == ZYDIS_OPERAND_TYPE_MEMORY && writes &&
		    (op[k].mem.segment == ZYDIS_REGISTER_FS ||
		     op[k].mem.segment == ZYDIS_REGISTER_GS))
			return false;
	}
	return true;
}

/* Returns whether the instruction's memory operand is in the text near the window, where the patch
 * may put a jump. end: the offset in the window at which the instruction ends. */
static bool knows_the_patch(const ZydisDecodedInstruction *i, unsigned end)
{
	int64_t at = (int64_t)end + i->raw.disp.value;

	return at > -256 && at < 256;
}

static enum kind kind_of(const ZydisDecodedInstruction *i)
{
	switch (i->meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
		return i->opcode >= 0xe0 && i->opcode <= 0xe3 ? KIND_LOOP : KIND_JCC;
	case ZYDIS_CATEGORY_UNCOND_BR:
		return KIND_JMP;
	case ZYDIS_CATEGORY_CALL:
		return i->raw.imm[0].is_relative ? KIND_CALL :
		       i->raw.modrm.mod == 3 ? KIND_CALL_REG : KIND_CALL_MEM;
	case ZYDIS_CATEGORY_NOP: case ZYDIS_CATEGORY_WIDENOP:
		return KIND_NOP;
	default:
		return i->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY ? KIND_VECTOR : KIND_PLAIN;
	}
}

/* Returns whether all instructions of the window may be run. Adds their kinds to *kinds. */
static bool window_is_tame(const uint8_t *bytes, unsigned len, uint32_t *kinds)
{
	ZydisDecoder d;
	ZydisDecodedInstruction i;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];

	ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (unsigned off = 0; off < len; off += i.length) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&d, bytes + off, CODE_BYTES - off, &i,
							  op)))
			return bytes[off] == 0x00 || bytes[off] == 0xcc;	/* padding */
		if (!tame(&i, op))
			return false;
		*kinds |= 1u << kind_of(&i);
		if (!(i.attributes & ZYDIS_ATTRIB_IS_RELATIVE) || i.raw.imm[0].is_relative)
			continue;
		*kinds |= 1u << KIND_RIP;
		if (knows_the_patch(&i, off + i.length))
			return false;
	}
	return true;
}

/* Finds the first call that is as long as a call of mcount or __fentry__. Writes it to *hook, as if
 * it were such a call. */
static bool find_hook(const uint8_t *bytes, struct pb_nop *hook)
{
	ZydisDecoder d;
	ZydisDecodedInstruction i;

	ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (unsigned off = 0; off < PB_WINDOW_MAX; off += i.length) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&d, NULL, bytes + off,
								CODE_BYTES - off, &i)))
			return false;
		if (i.mnemonic != ZYDIS_MNEMONIC_CALL || (i.length != 5 && i.length != 6))
			continue;
		hook->addr = off;
		hook->len = i.length;
		memcpy(hook->orig, bytes + off, i.length);
		return true;
	}
	return false;
}

/* --- one window --------------------------------------------------------- */

/* Returns whether the window jumps to its own start. The runs of such a window can't be compared,
 * because the stub stores r11 in the red zone each time control enters the stub. The original code
 * doesn't. sandbox.c makes up for the first store only: it stores r11 in both runs, before the
 * first instruction. */
static bool enters_itself(uint64_t link)
{
	for (unsigned k = 0; k < window.head.nr_fixups; k++)
		if (window.fixups[k].value == link)
			return true;
	return false;
}

/* Chooses a place for the slot. No operand or jump in the window may refer to the place. Returns
 * the distance from the function to the slot, or 0 if no place was found. */
static int choose_slot(uint64_t link, uint64_t random)
{
	for (unsigned tries = 0; tries < 16; tries++, random = random * 7 + 13) {
		int via = (int)(random % 250) - 125;
		bool taken = via > -PB_JUMP_LEN - 1 && via < PB_WINDOW_MAX + 1;

		for (unsigned k = 0; k < window.head.nr_fixups; k++) {
			int64_t at = (int64_t)(window.fixups[k].value - link);

			taken |= at >= via && at < via + PB_JUMP_LEN;
		}
		if (!taken)
			return via;
	}
	return 0;
}

/* A place for the stub. stub: the stub's address. via: the distance from the function to its slot;
 * 0: there is no slot. code_slot: the patch writes another function's code slot over the window. */
struct place {
	uint64_t stub;
	int via;
	bool code_slot;
};

/* Returns the address of the copy of the window's instructions. */
static uint64_t copy_at(const struct place *p)
{
	return p->stub + PB_STUB_COPY + (p->code_slot ? recipe->len : 0u);
}

/* Writes the stub, and a jump to the stub over the start of the window, as the agent does. The rest
 * of the window is int3. */
static bool patch(uint64_t bias, const struct place *p)
{
	struct pb_site *site = (struct pb_site *)(p->stub + SANDBOX / 2);
	uint64_t at = ORIGINAL + (uint64_t)(int64_t)p->via;
	uint8_t jump[PB_CODE_SLOT_LEN];

	memset((void *)p->stub, 0xcc, 4096);
	site->handler = p->stub + PB_STUB_IDLE;
	site->body = p->stub + PB_STUB_COPY;
	if (pb_stub_emit((uint8_t *)p->stub, p->stub, site,
			 &(struct pb_place){ .recipe = recipe,
					     .second = p->code_slot ? recipe : NULL,
					     .via = p->code_slot ? 1 : 0 },
			 NULL, bias) ||
	    (p->code_slot ? pb_code_slot_emit(jump, at, copy_at(p), p->stub) :
			    pb_jump_emit(jump, at, p->stub)))
		return false;
	sandbox_clear_text();
	sandbox_write_text(at, jump, p->code_slot ? PB_CODE_SLOT_LEN : PB_JUMP_LEN);
	if (p->via) {
		pb_jump_emit_short(jump, p->via);
		sandbox_write_text(ORIGINAL, jump, PB_JUMP_SHORT);
	}
	return true;
}

/* Changes the PC as the engine does before the program's signal handler sees it. A PC in the stub
 * becomes the entry. A PC in the copy becomes the PC of the original instruction. Nops have no
 * bytes in the copy, so the PCs before and after nops become the same. */
static void map_pc(struct result *r, const struct place *p)
{
	uint64_t off = r->pc - copy_at(p);
	int copy;

	if (r->pc - p->stub < PB_STUB_COPY)
		r->pc = ORIGINAL;
	else if (off < recipe->len)
		r->pc = ORIGINAL + pb_recipe_orig_offset(recipe, (uint8_t)off);
	off = r->pc - ORIGINAL;
	copy = off < PB_WINDOW_MAX ? pb_recipe_copy_offset(recipe, (uint8_t)off) : -1;
	if (copy >= 0)
		r->pc = ORIGINAL + pb_recipe_orig_offset(recipe, (uint8_t)copy);
}

/* Removes the differences that a recipe is allowed to make (see the top of relocate.c). */
static void forgive(struct result *o, struct result *c)
{
	static const uint8_t jmp_below[] = { 0xff, 0x64, 0x24, 0xf8 };

	/* the copy of `call *m` stores the value of m 16 bytes below the original rsp */
	if (window.head.len > 4 && !memcmp(window.code + window.head.len - 4, jmp_below, 4)) {
		result_forget(o, o->reg[REG_NR_RSP] - 8);
		result_forget(c, c->reg[REG_NR_RSP] - 8);
	}
	/* the copy of a call to a non-canonical address faults only after the push */
	if (o->signal == SIGSEGV && !o->fault && !c->fault && o->pc == c->pc &&
	    o->reg[REG_NR_RSP] == c->reg[REG_NR_RSP] + 8) {
		result_forget(o, c->reg[REG_NR_RSP]);
		result_forget(o, c->reg[REG_NR_RSP] - 8);
		result_forget(c, c->reg[REG_NR_RSP]);
		result_forget(c, c->reg[REG_NR_RSP] - 8);
		c->reg[REG_NR_RSP] += 8;
	}
}

static void print_bytes(const char *what, const uint8_t *p, unsigned n)
{
	fprintf(stderr, "%-9s", what);
	for (unsigned i = 0; i < n; i++)
		fprintf(stderr, " %02x", p[i]);
	fputc('\n', stderr);
}

static void explain(const struct place *p)
{
	print_bytes("original", window.orig, window.head.window_len);
	print_bytes("copy", (const uint8_t *)copy_at(p), window.head.len);
	result_explain(&results[RUN_ORIGINAL], &results[RUN_PATCHED]);
}

enum verdict { SAME, DIFFERS, ENDLESS, UNREACHABLE };

/* Runs the original and the patched window, and compares the results. */
static enum verdict run_both(uint64_t bias, const struct place *p)
{
	struct result *o = &results[RUN_ORIGINAL], *c = &results[RUN_PATCHED];

	sandbox_clear_text();
	sandbox_write_text(ORIGINAL, window.rest, window.head.window_len);
	sandbox_run(ORIGINAL, RUN_ORIGINAL, SHORT_MS);
	if (o->signal == SIGPROF)
		return ENDLESS;
	if (!patch(bias, p))
		return UNREACHABLE;
	sandbox_run(ORIGINAL, RUN_PATCHED, SHORT_MS);
	if (c->signal == SIGPROF)	/* the machine is busy, or the loop is endless */
		sandbox_run(ORIGINAL, RUN_PATCHED, LONG_MS);
	map_pc(o, p);
	map_pc(c, p);
	forgive(o, c);
	return result_same(o, c) ? SAME : DIFFERS;
}

static bool may_run(const struct pb_window_in *in, struct place places[2], uint64_t random,
		    uint32_t *kinds)
{
	bool via = in->jump_len == PB_JUMP_SHORT, code_slot = in->jump_len == PB_CODE_SLOT_LEN;

	for (unsigned i = 0; i < 2; i++) {
		places[i] = (struct place){ i ? STUB2 : STUB1,
					    via ? choose_slot(in->addr, random + i) : 0,
					    code_slot };
		if (via && !places[i].via)
			return false;
	}
	if (in->nr_nops && in->nops->addr - in->addr < window.head.window_len)
		*kinds |= 1u << KIND_HOOK;
	*kinds |= (uint32_t)via << KIND_SLOT | (uint32_t)code_slot << KIND_CODE_SLOT;
	return window_is_tame(window.rest, window.head.window_len, kinds) &&
	       (code_slot || !enters_itself(in->addr));
}

static void count_verdict(struct counts *count, enum verdict v, uint32_t kinds)
{
	count->endless += v == ENDLESS;
	count->wild += v == DIFFERS || v == UNREACHABLE;
	if (v != SAME)
		return;
	count->compared++;
	if (results[RUN_ORIGINAL].signal != SIGTRAP)
		kinds |= 1u << KIND_FAULT;
	for (unsigned k = 0; k < NR_KINDS; k++)
		count->kind[k] += kinds >> k & 1;
}

/* Returns whether two runs of the original window differ. They may differ if a random pointer hits
 * memory outside the sandbox, for example a sanitizer's memory, which has low addresses. */
static bool differs_from_itself(void)
{
	struct result *o = &results[RUN_ORIGINAL], *again = &results[RUN_PATCHED];

	sandbox_clear_text();
	sandbox_write_text(ORIGINAL, window.rest, window.head.window_len);
	sandbox_run(ORIGINAL, RUN_ORIGINAL, SHORT_MS);
	sandbox_run(ORIGINAL, RUN_PATCHED, SHORT_MS);
	return o->signal == SIGPROF || again->signal == SIGPROF || !result_same(o, again);
}

/* Tests one window. choices: CHOOSE_*. random: the seed of everything else. */
static void try(const uint8_t *code, unsigned choices, uint64_t random)
{
	struct counts *count = fuzz_counts();
	uint64_t bias = choices & CHOOSE_BIAS ? ORIGINAL - 0x1000 - random % 16 * 0x12341000 : 0;
	struct pb_nop hook = { 0 };
	struct pb_window_in in = {
		.bytes = code, .addr = ORIGINAL - bias, .avail = CODE_BYTES, .room = 64,
		.jump_len = choices & CHOOSE_CODE_SLOT ? PB_CODE_SLOT_LEN :
			    choices & CHOOSE_SHORT ? PB_JUMP_SHORT : PB_JUMP_LEN,
		.nops = &hook,
		.nr_nops = choices & CHOOSE_HOOK && find_hook(code, &hook),
	};
	struct place places[2];
	uint32_t kinds = 0;

	hook.addr += in.addr;
	count->made++;
	if (pb_window_make(&in, &window)) {
		count->refused++;
		return;
	}
	pb_window_store(&window, (uint8_t *)stored);
	if (!may_run(&in, places, random, &kinds)) {
		count->wild++;
		return;
	}
	sandbox_set_up();
	sandbox_random_start(random);
	enum verdict v = run_both(bias, &places[0]);
	/* A random pointer may hit the stub or the slot. In this case the results differ with
	 * places[0], but not with places[1]. */
	if (v == DIFFERS && run_both(bias, &places[1]) == DIFFERS && !differs_from_itself()) {
		run_both(bias, &places[1]);
		explain(&places[1]);
		FUZZ_CHECK(!"a patched function does what it did before");
	}
	count_verdict(count, v, kinds);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	unsigned choices = (unsigned)fuzz_take(&in, 1);
	uint64_t random = fuzz_take(&in, 8);
	uint8_t code[CODE_BYTES] = { 0 };

	memcpy(code, in.p, in.left < CODE_BYTES ? in.left : CODE_BYTES);
	try(code, choices, random);
	return 0;
}

/* --- inputs ------------------------------------------------------------- */

/* Makes code: instructions of the kinds that need relocation, then random bytes. */
static void random_code(struct fuzz_rng *r, uint8_t *p)
{
	static const struct { uint8_t len, v[7]; } list[] = {
		{ 2, { 0x74, 0x10 } }, { 2, { 0xeb, 0x20 } }, { 5, { 0xe8, 0, 1, 0, 0 } },
		{ 5, { 0xe9, 0, 1, 0, 0 } }, { 6, { 0x0f, 0x85, 0x40, 0, 0, 0 } },
		{ 2, { 0xe3, 0x30 } }, { 3, { 0x67, 0xe3, 0x30 } }, { 2, { 0xe2, 0x30 } },
		{ 2, { 0xe1, 0x11 } }, { 2, { 0xe0, 0x12 } }, { 2, { 0xff, 0xd0 } },
		{ 3, { 0xff, 0x50, 0x08 } }, { 4, { 0xff, 0x54, 0x24, 0x08 } },
		{ 6, { 0xff, 0x15, 0, 0, 0x10, 0 } }, { 3, { 0x41, 0xff, 0xd3 } },
		{ 7, { 0x48, 0x8b, 0x05, 0, 0, 0x10, 0 } },
		{ 7, { 0x48, 0x8d, 0x0d, 0, 0, 0x10, 0 } },
		{ 7, { 0x83, 0x3d, 0, 0, 0x10, 0, 3 } }, { 1, { 0x55 } }, { 1, { 0x53 } },
		{ 4, { 0x48, 0x83, 0xec, 0x18 } }, { 3, { 0x48, 0x89, 0xe5 } },
		{ 2, { 0x31, 0xc0 } }, { 1, { 0xc3 } }, { 3, { 0x48, 0x85, 0xff } },
		{ 1, { 0x90 } }, { 2, { 0x66, 0x90 } },
		{ 6, { 0xff, 0x25, 0, 0, 0x10, 0 } }, { 4, { 0xc5, 0xf9, 0x6f, 0xc8 } },
		{ 4, { 0xc5, 0xfc, 0x58, 0xc1 } }, { 6, { 0x62, 0xf1, 0x7c, 0x48, 0x58, 0xc1 } },
		{ 5, { 0x0f, 0x1f, 0x44, 0, 0 } }, { 2, { 0x75, 0xfe } },
	};
	unsigned at = 0;

	for (unsigned i = 0; i < CODE_BYTES; i++)
		p[i] = (uint8_t)fuzz_random(r);
	while (fuzz_random(r) % 4 && at < 12) {
		size_t k = fuzz_below(r, pb_array_size(list));

		memcpy(p + at, list[k].v, list[k].len);
		at += list[k].len;
	}
	/* make some rip-relative operands refer to the data */
	for (unsigned i = 0; i + 6 < 16; i++)
		if ((p[i] & 0xc7) == 0x05 && fuzz_random(r) % 2) {
			uint32_t disp = (uint32_t)(DATA - ORIGINAL + fuzz_random(r) % 8192);

			memcpy(p + i + 1, &disp, 4);
		}
}

size_t fuzz_mutate(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	struct fuzz_rng r;
	uint64_t random;

	fuzz_rng_seed(&r, seed);
	if (size < INPUT_BYTES)
		memset(data + size, 0, INPUT_BYTES - size);
	size = INPUT_BYTES;
	random = fuzz_random(&r);
	data[0] = (uint8_t)random;
	memcpy(data + 1, &random, 8);
	switch (random >> 60 & 3) {
	case 0:
		break;
	case 1:
		fuzz_poke(&r, data, size, 9 + fuzz_below(&r, CODE_BYTES));
		break;
	default:
		random_code(&r, data + 9);
	}
	return size;
}

static void seed_code(struct pb_elf *e, uint64_t addr, uint8_t choices)
{
	const uint8_t *p = pb_elf_at(e, addr, CODE_BYTES);
	uint8_t input[INPUT_BYTES] = { choices };

	if (!p)
		return;
	memcpy(input + 9, p, CODE_BYTES);
	fuzz_seed(input, sizeof(input));
}

/* Adds the windows and code slots of a file's functions as seeds. */
static void seed_file(const char *path, const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size), *blob;
	size_t blob_size;
	struct pb_elf e;
	const char *why;

	memcpy(copy, data, size);
	if (pb_analyse_memory(copy, size, path, PB_MODULE_ALL_SITES, &blob, &blob_size, &why))
		return;
	copy = malloc(size);
	memcpy(copy, data, size);
	FUZZ_CHECK(!pb_elf_open_memory(&e, copy, size, false, &why));
	const struct pb_analysis *a = (const struct pb_analysis *)blob;
	const struct pb_func *f = pb_analysis_funcs(a);
	for (uint32_t i = 0; i < a->nr_funcs; i++) {
		if (f[i].refused)
			continue;
		seed_code(&e, pb_func_window(&f[i]), f[i].via ? CHOOSE_SHORT : 0);
		if (f[i].flags & PB_FUNC_CODE_SLOT)
			seed_code(&e, pb_func_code_slot(&f[i]), CHOOSE_CODE_SLOT);
	}
	free(blob);
	pb_elf_close(&e);
}

void fuzz_seeds(void)
{
	fuzz_each_elf(4 << 20, seed_file);
}

bool fuzz_summary(const void *counts)
{
	const struct counts *c = counts;
	bool all = true;

	printf("fuzz_relocator: %llu windows: %llu refused, %llu not run, %llu without end,"
	       " %llu compared:",
	       (unsigned long long)c->made, (unsigned long long)c->refused,
	       (unsigned long long)c->wild, (unsigned long long)c->endless,
	       (unsigned long long)c->compared);
	for (unsigned k = 0; k < NR_KINDS; k++) {
		printf(" %s %llu", kind_names[k], (unsigned long long)c->kind[k]);
		/* each kind must have been compared at least once */
		all &= c->kind[k] || (k == KIND_VECTOR && !sandbox_has_vectors());
	}
	putchar('\n');
	return all || c->made < 50000;
}
