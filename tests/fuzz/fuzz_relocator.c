/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Does a recipe do what the displaced bytes did? Runs both, from the same
 * random registers, flags and memory, and compares what they leave.
 *
 *   fuzz_relocator SEED ROUNDS [FILE...]   random instructions, and the windows
 *                                          of the files' functions
 *
 * The bytes run at ORIGINAL, the recipe at COPY; everything around is int3 or
 * not mapped, so that a run ends with a signal wherever control goes. The state
 * is that of the signal's frame: registers, flags, x87/SSE, where the PC is (in
 * a copy: the PC it stands for), the fault's address; and data and stack. All
 * of it happens in a child with little to lose: its pointers lead into the
 * sandbox or nowhere.
 */
#include <Zydis/Zydis.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include "abi/analysis_access.h"
#include "module/module_priv.h"
#include "module/relocate.h"

#define ORIGINAL	0x1000000000ull
#define COPY		(ORIGINAL + (256ull << 20))
#define DATA		(ORIGINAL + (1ull << 20))
#define STACK		(ORIGINAL + (2ull << 20))
#define SANDBOX		16384u	/* bytes of each */
#define BATCH		2000

static uint64_t state;

static uint64_t rnd(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* What a run starts from and what it leaves. */
struct start {
	uint64_t reg[16];	/* as in instructions */
	uint64_t flags;
	uint8_t fp[512] __attribute__((aligned(16)));
};

struct result {
	int signal;
	uint64_t fault, pc, flags, reg[16];
	uint8_t fp[416];	/* up to the last xmm */
	uint8_t data[SANDBOX], stack[SANDBOX];
};

static struct start start;
static struct result result[2];
static struct pb_window_out window;
static uint64_t stored[PB_WINDOW_STORE_MAX / 8 + 1]; /* the same as in a file */
static sigjmp_buf back;

static const int greg[16] = {
	REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
	REG_R8, REG_R9, REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15,
};

static void on_signal(int sig, siginfo_t *info, void *context)
{
	const mcontext_t *m = &((ucontext_t *)context)->uc_mcontext;
	struct result *r = &result[0];

	r->signal = sig;
	r->fault = sig == SIGSEGV || sig == SIGBUS ? (uint64_t)info->si_addr : 0;
	r->pc = (uint64_t)m->gregs[REG_RIP];
	r->flags = (uint64_t)m->gregs[REG_EFL] & 0xcd5;
	for (unsigned i = 0; i < 16; i++)
		r->reg[i] = (uint64_t)m->gregs[greg[i]];
	memcpy(r->fp, m->fpregs, sizeof(r->fp));
	siglongjmp(back, 1);
}

/* Loads `start` and goes to pc; on_signal() comes back. */
__attribute__((noreturn, noinline)) static void go(uint64_t pc)
{
	static uint64_t target;

	target = pc;
	__asm__ volatile(
		"fxrstor %c[fp](%%rax)\n"
		"mov %%rax, %%rbp\n"
		"mov %c[rsp](%%rbp), %%rsp\n"
		"push %c[flags](%%rbp)\n"
		"mov (%%rbp), %%rax\n	mov 8(%%rbp), %%rcx\n	mov 16(%%rbp), %%rdx\n"
		"mov 24(%%rbp), %%rbx\n	mov 48(%%rbp), %%rsi\n	mov 56(%%rbp), %%rdi\n"
		"mov 64(%%rbp), %%r8\n	mov 72(%%rbp), %%r9\n	mov 80(%%rbp), %%r10\n"
		"mov 88(%%rbp), %%r11\n	mov 96(%%rbp), %%r12\n	mov 104(%%rbp), %%r13\n"
		"mov 112(%%rbp), %%r14\n	mov 120(%%rbp), %%r15\n"
		"mov 40(%%rbp), %%rbp\n"
		"popf\n"
		"jmp *%[target]\n"
		: : "a"(&start), [target] "m"(target), [fp] "i"(offsetof(struct start, fp)),
		    [rsp] "i"(4 * 8), [flags] "i"(offsetof(struct start, flags)) : "memory");
	__builtin_unreachable();
}

static void fill(void *p, size_t n, uint64_t seed)
{
	uint64_t *v = p;

	for (size_t i = 0; i < n / 8; i++)
		v[i] = seed = seed * 6364136223846793005ull + 1442695040888963407ull;
}

static void run(uint64_t pc, struct result *to, uint64_t memory_seed)
{
	struct itimerval limit = { .it_value.tv_usec = 50000 }, off = { 0 };

	fill((void *)DATA, SANDBOX, memory_seed);
	fill((void *)STACK, SANDBOX, ~memory_seed);
	setitimer(ITIMER_REAL, &limit, NULL);
	if (!sigsetjmp(back, 1))
		go(pc);
	setitimer(ITIMER_REAL, &off, NULL);
	memcpy(result[0].data, (void *)DATA, SANDBOX);
	memcpy(result[0].stack, (void *)STACK, SANDBOX);
	if (to != &result[0])
		*to = result[0];
}

/* Pointers into the sandbox, small numbers, and what is no address at all. */
static uint64_t random_register(void)
{
	switch (rnd() % 4) {
	case 0:
		return rnd() % 256;
	case 1:
		return rnd() | 1ull << 62;
	default:
		return DATA + SANDBOX / 2 + rnd() % 512 * 8 - 2048;
	}
}

static void random_start(void)
{
	for (unsigned i = 0; i < 16; i++)
		start.reg[i] = random_register();
	start.reg[4] = STACK + SANDBOX / 2 + rnd() % 64 * 8;
	if (rnd() % 3 == 0)
		start.reg[5] = start.reg[4];
	start.flags = 0x202 | (rnd() & 0x8d5);
	__asm__ volatile("fninit\n	fxsave %0" : "=m"(start.fp));
	for (unsigned i = 160; i < 416; i++)
		start.fp[i] = (uint8_t)rnd();
}

/* What the agent does. false: something is out of reach from here. */
static bool place_recipe(uint8_t *to)
{
	memset(to, 0xcc, 4096);
	memcpy(to, window.code, window.head.len);
	for (unsigned i = 0; i < window.head.nr_fixups; i++) {
		const struct pb_fixup *f = &window.fixups[i];
		uint64_t v = f->value;

		if (f->kind == PB_FIX_REL32) {
			v -= (uint64_t)to + f->off + 4u + f->addend;
			if ((int64_t)v != (int32_t)v)
				return false;
		} else if (f->kind == PB_FIX_HI32) {
			v >>= 32;
		}
		memcpy(to + f->off, &v, f->kind == PB_FIX_ABS64 ? 8 : 4);
	}
	return true;
}

/* Whether an instruction does the same each time and harms nobody. */
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
		return false;
	default:
		break;
	}
	/* mask registers and upper halves aren't set before a run */
	if (i->encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX)
		return false;
	for (unsigned k = 0; k < i->operand_count; k++) {
		bool writes = op[k].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;

		if (op[k].type == ZYDIS_OPERAND_TYPE_REGISTER && writes &&
		    ZydisRegisterGetClass(op[k].reg.value) == ZYDIS_REGCLASS_SEGMENT)
			return false;
		if (op[k].type == ZYDIS_OPERAND_TYPE_MEMORY && writes &&
		    (op[k].mem.segment == ZYDIS_REGISTER_FS || op[k].mem.segment == ZYDIS_REGISTER_GS))
			return false;
	}
	return true;
}

static bool window_is_tame(const uint8_t *bytes, unsigned len)
{
	ZydisDecoder d;
	ZydisDecodedInstruction i;
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];

	ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (unsigned off = 0; off < len; off += i.length) {
		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&d, bytes + off, 32 + len - off, &i, op)))
			return bytes[off] == 0x00 || bytes[off] == 0xcc;	/* padding */
		if (!tame(&i, op))
			return false;
	}
	for (unsigned k = 0; k < window.head.nr_fixups; k++)
		if (window.fixups[k].value == ORIGINAL)
			return false;	/* a loop through its own start: an entry anew */
	return true;
}

/* call *m leaves its operand 16 bytes below where rsp was. */
static void forget_slot_below(struct result *r)
{
	uint64_t slot = r->reg[4] - 8 - STACK;

	if (slot < SANDBOX - 8)
		memset(r->stack + slot, 0, 8);
}

/* Nops leave nothing in a copy: before and behind them is one place there. */
static void skip_nops(struct result *r)
{
	const struct pb_recipe *recipe = (const struct pb_recipe *)stored;
	uint64_t off = r->pc - ORIGINAL;
	int copy = off < PB_WINDOW_MAX ? pb_recipe_copy_offset(recipe, (uint8_t)off) : -1;

	if (copy >= 0)
		r->pc = ORIGINAL + pb_recipe_orig_offset(recipe, (uint8_t)copy);
}

static bool same(void)
{
	struct result *o = &result[1], *c = &result[0];
	static const uint8_t jmp_below[] = { 0xff, 0x64, 0x24, 0xf8 };

	if (o->signal == SIGALRM || c->signal == SIGALRM)
		return true;
	if (c->pc >= COPY && c->pc < COPY + 256)
		c->pc = ORIGINAL + pb_recipe_orig_offset((const struct pb_recipe *)stored,
							 (uint8_t)(c->pc - COPY));
	skip_nops(o);
	skip_nops(c);
	if (window.head.len > 4 && !memcmp(window.code + window.head.len - 4, jmp_below, 4)) {
		forget_slot_below(o);
		forget_slot_below(c);
	}
	/* a call of a non-canonical address; see relocate.c */
	if (o->signal == SIGSEGV && !o->fault &&
	    !c->fault && o->pc == c->pc && o->reg[4] == c->reg[4] + 8)
		return true;
	/* where the last x87 instruction stood */
	memset(o->fp + 8, 0, 8);
	memset(c->fp + 8, 0, 8);
	return !memcmp(o, c, sizeof(*o));
}

static void print_bytes(const char *what, const uint8_t *p, unsigned n)
{
	fprintf(stderr, "%-9s", what);
	for (unsigned i = 0; i < n; i++)
		fprintf(stderr, " %02x", p[i]);
	fputc('\n', stderr);
}

static void explain(uint64_t round)
{
	const struct result *o = &result[1], *c = &result[0];

	fprintf(stderr, "round %llu differs\n", (unsigned long long)round);
	print_bytes("original", window.orig, window.head.window_len);
	print_bytes("recipe", (const uint8_t *)COPY, window.head.len);
	fprintf(stderr, "signal %d %d  fault %llx %llx  pc %llx %llx  flags %llx %llx\n", o->signal,
		c->signal, (unsigned long long)o->fault, (unsigned long long)c->fault,
		(unsigned long long)o->pc, (unsigned long long)c->pc,
		(unsigned long long)o->flags, (unsigned long long)c->flags);
	for (unsigned i = 0; i < 16; i++)
		if (o->reg[i] != c->reg[i])
			fprintf(stderr, "reg %u: %llx %llx\n", i, (unsigned long long)o->reg[i],
				(unsigned long long)c->reg[i]);
	for (unsigned i = 0; i < SANDBOX; i++)
		if (o->data[i] != c->data[i] || o->stack[i] != c->stack[i])
			fprintf(stderr, "memory at %u: data %x %x stack %x %x\n", i, o->data[i],
				c->data[i], o->stack[i], c->stack[i]);
}

static struct {
	uint64_t made, refused, wild, ran, failed;
} *count;

/* bytes: at least 32. */
static void try_window(uint64_t round, const uint8_t *bytes, unsigned jump_len)
{
	struct pb_window_in in = { .bytes = bytes, .addr = ORIGINAL, .avail = 32, .room = 64,
				   .jump_len = jump_len };
	uint8_t *text = (uint8_t *)ORIGINAL;
	uint64_t memory_seed = rnd();

	count->made++;
	if (pb_window_make(&in, &window)) {
		count->refused++;
		return;
	}
	if (!window_is_tame(bytes, window.head.window_len) || !place_recipe((uint8_t *)COPY)) {
		count->wild++;
		return;
	}
	pb_window_store(&window, (uint8_t *)stored);
	random_start();
	memset(text, 0xcc, 4096);
	memcpy(text, bytes, window.head.window_len);
	run(ORIGINAL, &result[1], memory_seed);
	memset(text, 0xcc, 64);
	run(COPY, &result[0], memory_seed);
	count->ran++;
	if (!same()) {
		count->failed++;
		explain(round);
	}
}

static void try(uint64_t round, const uint8_t *bytes)
{
	try_window(round, bytes, PB_JUMP_LEN);
	try_window(round, bytes, PB_JUMP_SHORT);
	try_window(round, bytes, PB_DIG_LEN);
}

/* Instructions of the kinds that need relocation, and any others. */
static void random_bytes(uint8_t *p)
{
	static const uint8_t seeds[][6] = {
		{ 0x74, 0x10 }, { 0xeb, 0x20 }, { 0xe8, 0, 1, 0, 0 }, { 0xe9, 0, 1, 0, 0 },
		{ 0x0f, 0x85, 0x40, 0, 0, 0 }, { 0xe3, 0x30 }, { 0x67, 0xe3, 0x30 }, { 0xe2, 0x30 },
		{ 0xe1, 0x11 }, { 0xe0, 0x12 }, { 0xff, 0xd0 }, { 0xff, 0x50, 0x08 },
		{ 0xff, 0x54, 0x24, 0x08 }, { 0xff, 0x15, 0, 0, 0x10, 0 }, { 0x41, 0xff, 0xd3 },
		{ 0x48, 0x8b, 0x05, 0, 0, 0x10 }, { 0x48, 0x8d, 0x0d, 0, 0, 0x10 },
		{ 0x83, 0x3d, 0, 0, 0x10, 0 }, { 0x66, 0x0f, 0x6f, 0x05, 0, 0 }, { 0x55 }, { 0x53 },
		{ 0x48, 0x83, 0xec, 0x18 }, { 0x48, 0x89, 0xe5 }, { 0x31, 0xc0 }, { 0xc3 },
		{ 0x48, 0x85, 0xff }, { 0x90 }, { 0x66, 0x90 }, { 0xff, 0x25, 0, 0, 0x10, 0 },
	};
	unsigned at = 0;

	for (unsigned i = 0; i < 32; i++)
		p[i] = (uint8_t)rnd();
	while (rnd() % 4 && at < 8) {
		const uint8_t *s = seeds[rnd() % (sizeof(seeds) / sizeof(seeds[0]))];
		unsigned n = 6;

		while (n > 1 && !s[n - 1])
			n--;
		if (s[0] == 0xe8 || s[0] == 0xe9)
			n = 5;
		memcpy(p + at, s, 6);
		at += n;
	}
	/* rip-relative operands that hit the data now and then */
	for (unsigned i = 0; i + 6 < 16; i++)
		if ((p[i] & 0xc7) == 0x05 && rnd() % 2) {
			uint32_t disp = (uint32_t)(DATA - ORIGINAL + rnd() % 8192);

			memcpy(p + i + 1, &disp, 4);
		}
}

static void set_up(void)
{
	static uint8_t alternate[65536];
	stack_t ss = { .ss_sp = alternate, .ss_size = sizeof(alternate) };
	struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE, SIGALRM };
	static const uint64_t maps[] = { ORIGINAL, COPY, DATA, STACK };

	for (unsigned i = 0; i < 4; i++)
		if (mmap((void *)maps[i], SANDBOX, PROT_READ | PROT_WRITE | (i < 2 ? PROT_EXEC : 0),
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == MAP_FAILED) {
			perror("mmap");
			exit(2);
		}
	sigaltstack(&ss, NULL);
	sigfillset(&sa.sa_mask);
	for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &sa, NULL);
}

static void try_at(struct pb_elf *e, uint32_t func, uint64_t addr)
{
	const uint8_t *p = pb_elf_at(e, addr, 32);
	uint8_t bytes[32];

	if (!p)
		return;
	memcpy(bytes, p, 32);
	for (unsigned k = 0; k < 3; k++)
		try(func, bytes);
}

/* The windows and digs of a file's functions, each moved to ORIGINAL. */
static void try_file(const char *path)
{
	int fd = open(path, O_RDONLY);
	struct pb_elf e;
	const char *why;
	uint8_t *blob;
	size_t size;

	if (fd < 0 || pb_elf_open(&e, fd, false, &why) || pb_analyse(fd, path, 0, &blob, &size, &why)) {
		fprintf(stderr, "%s: can't be analysed\n", path);
		return;
	}
	const struct pb_analysis *a = (const struct pb_analysis *)blob;
	const struct pb_func *f = pb_analysis_funcs(a);

	for (uint32_t i = 0; i < a->nr_funcs; i++) {
		if (f[i].refused)
			continue;
		try_at(&e, i, pb_func_window(&f[i]));
		if (f[i].flags & PB_FUNC_DUG)
			try_at(&e, i, pb_func_dig(&f[i]));
	}
	free(blob);
	pb_elf_close(&e);
	close(fd);
}

/* A child that dies is a round that harmed it: counted as wild. */
static void in_child(uint64_t seed, uint64_t rounds, const char *path)
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		set_up();
		state = (seed + 1) * 0x9e3779b97f4a7c15ull | 1;
		if (path)
			try_file(path);
		for (uint64_t i = 0; i < rounds; i++) {
			uint8_t bytes[32];

			random_bytes(bytes);
			try(seed + i, bytes);
		}
		_exit(0);
	}
	if (waitpid(pid, &status, 0) == pid && status) {
		fprintf(stderr, "child of seed %llu ended with %x\n", (unsigned long long)seed, status);
		count->wild++;
	}
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: %s SEED ROUNDS [FILE...]\n", argv[0]);
		return 2;
	}
	uint64_t seed = strtoull(argv[1], NULL, 0), rounds = strtoull(argv[2], NULL, 0);

	count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (uint64_t i = 0; i < rounds; i += BATCH)
		in_child(seed + i, rounds - i < BATCH ? rounds - i : BATCH, NULL);
	for (int i = 3; i < argc; i++)
		in_child(seed, 0, argv[i]);
	printf("%llu sequences: %llu refused, %llu not run, %llu compared, %llu differ\n",
	       (unsigned long long)count->made, (unsigned long long)count->refused,
	       (unsigned long long)count->wild, (unsigned long long)count->ran,
	       (unsigned long long)count->failed);
	/* a run that compares nothing proves nothing */
	return count->failed || !count->ran;
}
