/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs random programs on all engines and in this machine's kernel. The engines are the
 * interpreter, the JIT, the JIT with blinded constants, and the JIT without the instructions of
 * newer processors. Results and memory must be the same.
 *
 *	bpf_fuzz_exec [--seconds N] [--seed N] [--inputs N] [--programs N] [--no-kernel]
 *		[--only PROGRAM] [--show]
 *
 * Stops at the first difference. Prints the difference, with the program and the arguments that
 * reproduce the difference.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include "bpf/core/disasm.h"
#include "engines.h"
#include "gen.h"
#include "kernel.h"
#include "kernel_run.h"
#include "own.h"

static struct {
	uint64_t seed, programs, only;
	double seconds;
	unsigned inputs;
	bool kernel, show, has_only;
} opt = { .seed = 1, .seconds = 10, .inputs = 1000, .programs = ~0ull, .kernel = true };

static uint64_t nr_programs, nr_runs, nr_kernel_runs, nr_verified_runs, nr_refused, nr_stricter,
	nr_insns;
static struct bpf_insn insns[GEN_MOST_INSNS + 1];
static char last_log[1 << 22];

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void print_program(uint32_t nr)
{
	for (uint32_t i = 0; i < nr; i++) {
		char line[100] = "";
		struct pb_bpf_text t = { .buf = line, .size = sizeof(line) };

		if (insns[i].code == (BPF_JMP | BPF_JA) && !insns[i].off)
			continue;
		pb_bpf_disasm(&t, &insns[i], NULL);
		printf("%4u: %s\n", i, line);
		i += insns[i].code == (BPF_LD | BPF_IMM | BPF_DW);
	}
}

static void print_bytes(const char *what, const uint8_t *p)
{
	printf("%s ", what);
	for (int i = 0; i < GEN_MEMORY; i++)
		printf("%02x", p[i]);
	printf("\n");
}

struct outcome {
	uint64_t result;
	uint8_t mem[GEN_MEMORY];
};

static bool same(const struct outcome *a, const struct outcome *b)
{
	return a->result == b->result && !memcmp(a->mem, b->mem, GEN_MEMORY);
}

static void reduce(uint32_t nr, const uint8_t *in);
static void print_outcomes(uint32_t nr, const uint8_t *in);

static int difference(uint64_t program, uint32_t nr, const uint8_t *in, const char *who,
		      const struct outcome *a, const struct outcome *b)
{
	printf("FAIL program %lu: %s differs from the %s\n", program, who, engine_names[0]);
	printf("     again: bpf_fuzz_exec --seed %lu --inputs %u --only %lu%s\n", opt.seed,
	       opt.inputs, program, opt.kernel ? "" : " --no-kernel");
	print_bytes("in: ", in);
	printf("%s: %#lx, %s: %#lx\n", engine_names[0], a->result, who, b->result);
	print_bytes("out:", a->mem);
	print_bytes("and:", b->mem);
	if (opt.show)
		print_program(nr);
	reduce(nr, in);
	printf("     reduced:\n");
	print_program(nr);
	print_outcomes(nr, in);
	return 1;
}

/* Returns the program's memory. After this memory come 8 bytes, as in the kernel's packet, and an
 * inaccessible page. */
static uint8_t *memory(void)
{
	static uint8_t *p;

	if (!p) {
		p = mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0);
		mprotect(p + 4096, 4096, PROT_NONE);
		p += 4096 - kernel_packet_len(GEN_MEMORY);
	}
	return p;
}

static void run_one(const struct engine_prog *p, enum engine e, const uint8_t *in,
		    struct outcome *o)
{
	uint8_t *mem = memory();

	memcpy(mem, in, GEN_MEMORY);
	/* the program may read the 8 bytes after its memory, and in the kernel's packet they are
	 * zero at the start */
	memset(mem + GEN_MEMORY, 0, 8);
	o->result = engine_prog_run(p, e, mem, GEN_MEMORY);
	memcpy(o->mem, mem, GEN_MEMORY);
}

static bool differs(uint32_t nr, const uint8_t *in)
{
	struct outcome first, other;
	struct kernel_prog k = { .fd = -1 };
	struct engine_prog p;
	bool ret = false;

	/* a program that the kernel refuses may be unsafe to run */
	if (!opt.kernel || kernel_prog_load(&k, insns, nr, GEN_MEMORY, NULL, 0))
		return false;
	if (!engine_prog_make(&p, insns, nr)) {
		run_one(&p, 0, in, &first);
		for (enum engine e = 1; e < NR_ENGINES && !ret; e++) {
			run_one(&p, e, in, &other);
			ret = !same(&first, &other);
		}
		memcpy(other.mem, in, GEN_MEMORY);
		if (!ret && !kernel_prog_run(&k, other.mem, &other.result))
			ret = !same(&first, &other);
		engine_prog_free(&p);
	}
	kernel_prog_close(&k);
	return ret;
}

/* Replaces instructions that aren't needed for the difference by jumps to the next instruction. The
 * resulting program in insns still shows the difference with the same input. */
static void reduce(uint32_t nr, const uint8_t *in)
{
	const struct bpf_insn nop = { .code = BPF_JMP | BPF_JA };
	bool again = true;

	for (int rounds = 0; again && rounds < 4; rounds++) {
		again = false;
		for (uint32_t i = 0; i < nr; i++) {
			struct bpf_insn was[2] = { insns[i], insns[i + 1] };
			bool two = was[0].code == (BPF_LD | BPF_IMM | BPF_DW);

			/* Keep stores to the stack. Without them, the program may read
			 * uninitialized stack. The kernel accepts such reads, but then results
			 * may differ for this reason alone. */
			bool fills_stack = (BPF_CLASS(was[0].code) == BPF_ST ||
					    BPF_CLASS(was[0].code) == BPF_STX) &&
				was[0].dst_reg == 10 && BPF_MODE(was[0].code) == BPF_MEM;

			if (fills_stack || !memcmp(&was[0], &nop, sizeof(nop)))
				continue;
			insns[i] = nop;
			if (two)
				insns[i + 1] = nop;
			if (differs(nr, in)) {
				again = true;
				continue;
			}
			insns[i] = was[0];
			insns[i + 1] = was[1];
			i += two;
		}
	}
}

static void print_outcomes(uint32_t nr, const uint8_t *in)
{
	struct kernel_prog k = { .fd = -1 };
	struct engine_prog p;
	struct outcome o;

	if (!engine_prog_make(&p, insns, nr)) {
		for (enum engine e = 0; e < NR_ENGINES; e++) {
			run_one(&p, e, in, &o);
			printf("%s: %#lx\n", engine_names[e], o.result);
			print_bytes("out:", o.mem);
		}
		engine_prog_free(&p);
	}
	if (!opt.kernel || kernel_prog_load(&k, insns, nr, GEN_MEMORY, NULL, 0))
		return;
	memcpy(o.mem, in, GEN_MEMORY);
	if (!kernel_prog_run(&k, o.mem, &o.result)) {
		printf("kernel: %#lx\n", o.result);
		print_bytes("out:", o.mem);
	}
	kernel_prog_close(&k);
}

static int run_inputs(uint64_t program, uint32_t nr, const struct engine_prog *p,
		      const struct kernel_prog *k)
{
	uint64_t state = opt.seed ^ program << 20;

	for (unsigned n = 0; n < opt.inputs; n++) {
		struct outcome first, other;
		uint8_t in[GEN_MEMORY];

		gen_memory(&state, in);
		for (enum engine e = 0; e < NR_ENGINES; e++) {
			run_one(p, e, in, e ? &other : &first);
			if (e && !same(&first, &other))
				return difference(program, nr, in, engine_names[e], &first, &other);
		}
		nr_runs++;
		if (!k)
			continue;
		memcpy(other.mem, in, GEN_MEMORY);
		if (kernel_prog_run(k, other.mem, &other.result)) {
			printf("FAIL program %lu: the kernel can't run it: %s\n", program,
			       strerror(errno));
			return 1;
		}
		nr_kernel_runs++;
		if (!same(&first, &other))
			return difference(program, nr, in, "kernel", &first, &other);
	}
	return 0;
}

/* Verifies and resolves the program. Runs the resolved program on each engine, with some of the
 * inputs. The outcomes must be the same as for the original program on the interpreter. */
static int run_verified(uint64_t program, uint32_t nr, const struct engine_prog *plain)
{
	static struct bpf_insn all[GEN_MOST_INSNS + KERNEL_AROUND];
	uint64_t state = opt.seed ^ program << 20;
	uint8_t in[GEN_MEMORY + 16] = { 0 };
	struct own_run r = { .in = in, .len = kernel_packet_len(GEN_MEMORY) };
	struct own_prog p;
	int ret = 0, err;

	err = own_load(&p, BPF_PROG_TYPE_XDP, all, kernel_prog_wrap(insns, nr, GEN_MEMORY, all),
		       NULL, 0, opt.show ? last_log : NULL, sizeof(last_log));
	if (err) {
		nr_stricter++;
		if (opt.show)
			printf("our verifier refuses it: %d %s\n", err, last_log);
		return 0;
	}
	for (unsigned n = 0; n < 8 && n < opt.inputs && !ret; n++) {
		struct outcome first, other;

		gen_memory(&state, in);
		run_one(plain, 0, in, &first);
		for (enum engine e = 0; e < NR_ENGINES && !ret; e++) {
			err = own_run(&p, e, &r);
			memcpy(other.mem, r.out, GEN_MEMORY);
			memcpy(&other.result, r.out + GEN_MEMORY, sizeof(other.result));
			if (err || r.retval != KERNEL_DONE || !same(&first, &other))
				ret = difference(program, nr, in, "verified program", &first,
						 &other);
			nr_verified_runs++;
		}
	}
	own_free(&p);
	return ret;
}

static int run_program(uint64_t program)
{
	uint32_t nr = gen_program(opt.seed * 0x100000001b3ull + program, false, insns);
	struct kernel_prog k = { .fd = -1 };
	struct engine_prog p;
	int ret = 0, err;

	nr_programs++;
	nr_insns += nr;
	if (opt.show)
		print_program(nr);
	err = engine_prog_make(&p, insns, nr);
	if (err) {
		printf("FAIL program %lu: can't be made: %s\n", program, strerror(-err));
		print_program(nr);
		return 1;
	}
	if (opt.kernel && kernel_prog_load(&k, insns, nr, GEN_MEMORY, opt.show ? last_log : NULL,
					   sizeof(last_log))) {
		nr_refused++;
		if (opt.show)
			printf("the kernel refuses it: %s\n", last_log);
	} else {
		ret = run_inputs(program, nr, &p, opt.kernel ? &k : NULL) ||
			run_verified(program, nr, &p);
		kernel_prog_close(&k);
	}
	engine_prog_free(&p);
	return ret;
}

static void options(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const char *a = argv[i], *v = i + 1 < argc ? argv[i + 1] : "0";

		if (!strcmp(a, "--no-kernel"))
			opt.kernel = false;
		else if (!strcmp(a, "--show"))
			opt.show = true;
		else if (i++, !strcmp(a, "--seconds"))
			opt.seconds = atof(v);
		else if (!strcmp(a, "--seed"))
			opt.seed = strtoull(v, NULL, 0);
		else if (!strcmp(a, "--inputs"))
			opt.inputs = (unsigned)atoi(v);
		else if (!strcmp(a, "--programs"))
			opt.programs = strtoull(v, NULL, 0);
		else if (!strcmp(a, "--only"))
			opt.only = strtoull(v, NULL, 0), opt.has_only = true;
		else
			exit(2);
	}
}

int main(int argc, char **argv)
{
	double start = now();
	int bad = 0;

	options(argc, argv);
	opt.kernel = opt.kernel && kernel_is_there();
	if (opt.has_only)
		bad = run_program(opt.only);
	else
		for (uint64_t n = 0; n < opt.programs && !bad && now() - start < opt.seconds; n++)
			bad = run_program(n);
	printf("%lu programs of %lu instructions on average; runs: %lu on each of %d engines, ",
	       nr_programs, nr_programs ? nr_insns / nr_programs : 0, nr_runs, NR_ENGINES);
	printf("%lu in Linux %s, ", nr_kernel_runs, kernel_version());
	printf("%lu of programs that our verifier accepts; programs refused: %lu by Linux, "
	       "%lu by our verifier; seed %lu, %.0f s\n",
	       nr_verified_runs, nr_refused, nr_stricter, opt.seed, now() - start);
	if (!opt.has_only && opt.kernel && (nr_refused + nr_stricter) * 10 > nr_programs + 20) {
		printf("FAIL too many programs are refused for this to be a test\n");
		bad = 1;
	}
	printf("%d passed, %d failed\n", !bad, bad);
	return bad;
}
