/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The conformance suite. Runs the cases of data files on all engines: first without the verifier,
 * then as programs that our verifier has accepted. conformance/README.md describes the data files.
 * If permitted, the suite also runs the cases in this machine's kernel. For each case with valid
 * instructions, the assembler must make the same instructions from the disassembler's output.
 *
 *	bpf_conformance [--no-kernel] [--only NAME] [--every N] [--verbose] FILE...
 *
 * With --every, it runs only each N-th row of tables.
 */
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "asm.h"
#include "base/base.h"
#include "bpf/core/disasm.h"
#include "engines.h"
#include "kernel.h"
#include "kernel_run.h"
#include "own.h"

#define MOST_INSNS	70000
#define MOST_MEMORY	KERNEL_MOST_MEMORY
#define MOST_FIELDS	10

/* A block of a data file: one case, or a table with a case in each row. */
struct block {
	const char *file, *name;
	int line;
	char *text;			/* assembly */
	char *mem, *after, *result;	/* NULL: the block has no such line */
	char *rows;			/* lines of "field ... -> result" */
	bool invalid;			/* the instructions aren't valid */
	bool kernel_refuses, no_kernel, no_verifier, no_engines;
};

/* One case: a block, or a row of a block. For a row, `fields` has the row's fields. */
struct one {
	const struct block *b;
	char name[300];
	const char *fields[MOST_FIELDS];
	int nr_fields;
};

static bool use_kernel = true, verbose;
static const char *only;
static unsigned every = 1, nr_rows;
static unsigned passed, failed, in_kernel;
static struct bpf_insn insns[MOST_INSNS], again[MOST_INSNS];

static bool fail(const struct one *c, const char *format, ...)
{
	va_list ap;

	printf("FAIL %s:%d: %s: ", c->b->file, c->b->line, c->name);
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	printf("\n");
	return false;
}

/* ---- texts ------------------------------------------------------------------ */

/* Returns the text with the row's fields in place of $1 ... $9. The caller frees the result. If
 * text is NULL, returns NULL. */
static char *fill(const struct one *c, const char *text)
{
	size_t room = 1, n = 0;
	char *out;

	if (!text)
		return NULL;
	for (const char *p = text; *p; p++)
		room += *p == '$' ? 200 : 1;
	out = malloc(room);
	for (const char *p = text; *p; p++) {
		int field = p[1] - '1';

		if (*p != '$' || field < 0 || field >= c->nr_fields) {
			out[n++] = *p;
			continue;
		}
		n += (size_t)snprintf(out + n, 200, "%s", c->fields[field]);
		p++;
	}
	out[n] = 0;
	return out;
}

static int32_t unhex(const char *s, uint8_t *out, size_t most)
{
	uint32_t n = 0;

	for (; *s; s++) {
		unsigned v;

		if (isspace((unsigned char)*s))
			continue;
		if (n == most || sscanf(s, "%2x", &v) != 1 || !isxdigit((unsigned char)s[1]))
			return -1;
		out[n++] = (uint8_t)v;
		s++;
	}
	return (int32_t)n;
}

static char *hex(const uint8_t *p, uint32_t n)
{
	static char text[2][2 * MOST_MEMORY + 1];
	static int k;

	k = !k;
	for (uint32_t i = 0; i < n; i++)
		sprintf(text[k] + 2 * i, "%02x", p[i]);
	text[k][2 * n] = 0;
	return text[k];
}

/* ---- assembler and disassembler agree ------------------------------------------ */

static bool sources(void *arg, struct pb_bpf_text *t, const struct bpf_insn *i, uint64_t imm)
{
	switch (i->src_reg) {
	case BPF_PSEUDO_FUNC:
		pb_bpf_printf(t, "func pc%+d", i->imm);
		return true;
	case BPF_PSEUDO_MAP_FD:
		pb_bpf_printf(t, "map %d", i->imm);
		return true;
	default:
		return false;
	}
}

static bool round_trip(const struct one *c, uint32_t nr)
{
	static const struct pb_bpf_names names = { .imm64 = sources };
	static char buf[MOST_INSNS * 64];
	struct pb_bpf_text text = { .buf = buf, .size = sizeof(buf) };
	struct asm_out out = { .insns = again, .most = MOST_INSNS };

	buf[0] = 0;
	for (uint32_t i = 0; i < nr; i++) {
		pb_bpf_disasm(&text, &insns[i], &names);
		pb_bpf_printf(&text, "\n");
		i += insns[i].code == (BPF_LD | BPF_IMM | BPF_DW);
	}
	if (assemble(buf, &out))
		return fail(c, "the disassembly can't be read: %s\n%s", out.error,
			    nr < 100 ? buf : "");
	if (out.nr != nr)
		return fail(c, "%u instructions were disassembled and %u assembled", nr, out.nr);
	for (uint32_t i = 0; i < nr; i++)
		if (memcmp(&insns[i], &again[i], sizeof(insns[i])))
			return fail(c, "instruction %u isn't the same through disassembler and "
				    "assembler", i);
	return true;
}

/* ---- runs ---------------------------------------------------------------------- */

struct expected {
	uint8_t mem[MOST_MEMORY], after[MOST_MEMORY];
	uint32_t len;
	uint64_t result;
};

/* Returns memory of len bytes. An inaccessible page follows the memory. */
static uint8_t *at_the_end(uint32_t len)
{
	static uint8_t *end;

	if (!end) {
		uint8_t *p = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		mprotect(p, 4096, PROT_NONE);
		mprotect(p + 2 * 4096, 4096, PROT_NONE);
		end = p + 2 * 4096;
	}
	return end - len;
}

static bool compare(const struct one *c, const char *who, const struct expected *want,
		    uint64_t result, const uint8_t *mem)
{
	if (result != want->result)
		return fail(c, "%s: r0 is %#lx, not %#lx", who, result, want->result);
	if (memcmp(mem, want->after, want->len))
		return fail(c, "%s: memory is %s, not %s", who, hex(mem, want->len),
			    hex(want->after, want->len));
	return true;
}

static bool run_ours(const struct one *c, const struct expected *want, uint32_t nr)
{
	struct engine_prog p;
	bool good = true;
	int err;

	if (c->b->no_engines)
		return true;
	err = engine_prog_make(&p, insns, nr);
	if (c->b->invalid)
		return err == -EINVAL || fail(c, "isn't rejected as invalid");
	if (err)
		return fail(c, "can't be made: %s", strerror(-err));
	for (enum engine e = 0; e < NR_ENGINES && good; e++) {
		uint8_t *mem = at_the_end(want->len);

		memcpy(mem, want->mem, want->len);
		good = compare(c, engine_names[e], want, engine_prog_run(&p, e, mem, want->len),
			       mem);
	}
	engine_prog_free(&p);
	return good;
}

static bool run_kernels(const struct one *c, const struct expected *want, uint32_t nr)
{
	static char log[1 << 20];
	bool refuse = c->b->invalid || c->b->kernel_refuses, good;
	uint8_t mem[MOST_MEMORY];
	struct kernel_prog p;
	uint64_t result;
	int err;

	if (!use_kernel || c->b->no_kernel)
		return true;
	err = kernel_prog_load(&p, insns, nr, want->len, verbose ? log : NULL, sizeof(log));
	in_kernel++;
	if (refuse) {
		kernel_prog_close(&p);
		return err || fail(c, "the kernel takes it");
	}
	if (err)
		return fail(c, "the kernel refuses it: %s%s%s", strerror(-err), verbose ? "\n" : "",
			    verbose ? log : "");
	memcpy(mem, want->mem, want->len);
	err = kernel_prog_run(&p, mem, &result);
	good = err ? fail(c, "the kernel can't run it: %s", strerror(-err)) :
		compare(c, "kernel", want, result, mem);
	kernel_prog_close(&p);
	return good;
}

/* Verifies and resolves the same XDP program that the kernel gets (kernel_run.h). Runs the result
 * on all engines. */
static bool run_verified(const struct one *c, const struct expected *want, uint32_t nr)
{
	static struct bpf_insn all[MOST_INSNS + KERNEL_AROUND];
	static char log[1 << 16];
	bool refuse = c->b->invalid || c->b->kernel_refuses, good = true;
	uint8_t in[MOST_MEMORY + 16] = { 0 };
	struct own_run r = { .in = in, .len = kernel_packet_len(want->len) };
	struct own_prog p;
	int err;

	if (c->b->no_verifier)
		return true;
	log[0] = 0;
	err = own_load(&p, BPF_PROG_TYPE_XDP, all, kernel_prog_wrap(insns, nr, want->len, all),
		       NULL, 0, verbose ? log : NULL, sizeof(log));
	if (refuse) {
		own_free(&p);
		return err || fail(c, "our verifier takes it");
	}
	if (err)
		return fail(c, "our verifier refuses it: %s%s%s", strerror(-err),
			    verbose ? "\n" : "", log);
	memcpy(in, want->mem, want->len);
	for (enum engine e = 0; e < NR_ENGINES && good; e++) {
		uint64_t result;

		err = own_run(&p, e, &r);
		memcpy(&result, r.out + want->len, sizeof(result));
		good = err || r.retval != KERNEL_DONE || r.out_len != r.len ?
			fail(c, "the verified program can't be run: %d, %u", err, r.retval) :
			compare(c, engine_names[e], want, result, r.out);
	}
	own_free(&p);
	return good;
}

static bool run_with(const struct one *c, const char *text, const char *mem, const char *after,
		     const char *result)
{
	struct asm_out out = { .insns = insns, .most = MOST_INSNS };
	static struct expected want;
	int32_t n = 0;
	char *end;

	if (assemble(text, &out))
		return fail(c, "%s", out.error);
	if (mem && (n = unhex(mem, want.mem, sizeof(want.mem))) < 0)
		return fail(c, "mem isn't hex");
	want.len = (uint32_t)n;
	memcpy(want.after, want.mem, want.len);
	if (after && unhex(after, want.after, sizeof(want.after)) != n)
		return fail(c, "the memory afterwards isn't hex of the same length");
	want.result = strtoull(result ? result : "0", &end, 0);
	if (*end || (!result && !c->b->invalid))
		return fail(c, "no result");
	return (c->b->invalid || round_trip(c, out.nr)) && run_ours(c, &want, out.nr) &&
	       run_verified(c, &want, out.nr) && run_kernels(c, &want, out.nr);
}

static void run_one(struct one *c, const char *result)
{
	char *text = fill(c, c->b->text), *mem = fill(c, c->b->mem), *after = fill(c, c->b->after);

	if (run_with(c, text, mem, after, result))
		passed++;
	else
		failed++;
	free(text);
	free(mem);
	free(after);
}

static void run_rows(const struct block *b)
{
	char *rows = strdup(b->rows), *save, *row = strtok_r(rows, "\n", &save);

	for (; row; row = strtok_r(NULL, "\n", &save)) {
		struct one c = { .b = b };
		char *arrow = strstr(row, "->"), *in, *field;
		const char *result = NULL;

		if (*row == '#' || nr_rows++ % every)
			continue;
		if (arrow) {
			*arrow = 0;
			result = arrow + 2 + strspn(arrow + 2, " \t");
		}
		snprintf(c.name, sizeof(c.name), "%s: %s", b->name, row);
		for (field = strtok_r(row, " \t", &in); field && c.nr_fields < MOST_FIELDS;
		     field = strtok_r(NULL, " \t", &in))
			c.fields[c.nr_fields++] = field;
		run_one(&c, result);
	}
	free(rows);
}

static void run_block(const struct block *b)
{
	struct one c = { .b = b };

	if (only && !strstr(b->name, only))
		return;
	if (b->rows) {
		run_rows(b);
		return;
	}
	snprintf(c.name, sizeof(c.name), "%s", b->name);
	run_one(&c, b->result);
}

/* ---- files ------------------------------------------------------------------------ */

static char *trimmed(char *s)
{
	size_t n;

	s += strspn(s, " \t");
	for (n = strlen(s); n && isspace((unsigned char)s[n - 1]);)
		s[--n] = 0;
	return s;
}

/* Reads a line "-- key: value" or "-- name". A name begins a new block. Returns the member of b
 * that gets the lines that follow, or NULL. */
static char **option(struct block *b, char *line)
{
	static const struct { const char *key; size_t at; } texts[] = {
		{ "mem:", offsetof(struct block, mem) },
		{ "after:", offsetof(struct block, after) },
		{ "result:", offsetof(struct block, result) } };

	for (size_t k = 0; k < pb_array_size(texts); k++)
		if (!strncmp(line, texts[k].key, strlen(texts[k].key))) {
			*(char **)((char *)b + texts[k].at) = trimmed(line + strlen(texts[k].key));
			return NULL;
		}
	if (!strcmp(line, "rows:"))
		return &b->rows;
	if (!strcmp(line, "invalid"))
		b->invalid = true;
	else if (!strcmp(line, "kernel: refuses"))
		b->kernel_refuses = true;
	else if (!strncmp(line, "kernel: no", 10))
		b->no_kernel = true;
	else if (!strncmp(line, "verifier: no", 12))
		b->no_verifier = true;
	else if (!strncmp(line, "engines: no", 11))
		b->no_engines = true;
	else
		return &b->text;
	return NULL;
}

/* Splits the text of a file into blocks, and runs each block. The lines of each text of a block
 * are contiguous in `data`. So members of the block point into `data`, and each text ends with a
 * NUL there. */
static void run_file(const char *path, char *data)
{
	struct block b = { 0 };
	char **to = NULL, *line, *next;

	for (line = data; line && *line; line = next) {
		static int number;
		char *end = strchr(line, '\n');

		number = line == data ? 1 : number + 1;
		next = end ? end + 1 : NULL;
		if (!strncmp(line, "-- ", 3)) {
			char **was = to;

			if (line > data)
				line[-1] = 0;
			if (end)
				*end = 0;
			to = option(&b, trimmed(line + 3));
			if (to == &b.text) {
				if (was || b.text || b.result || b.rows)
					run_block(&b);
				b = (struct block){ .file = path, .name = trimmed(line + 3),
						    .line = number };
			}
			if (to)
				*to = next ? next : (char *)"";
		} else if (!to && *line != '#' && *line != '\n') {
			printf("FAIL %s:%d: the line belongs to no block\n", path, number);
			failed++;
			return;
		}
	}
	if (b.text)
		run_block(&b);
}

static char *read_file(const char *path)
{
	FILE *f = fopen(path, "r");
	char *data = NULL;
	size_t room = 0;

	if (!f)
		return NULL;
	if (getdelim(&data, &room, 0, f) < 0) {
		free(data);
		data = NULL;
	}
	fclose(f);
	return data;
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		char *data;

		if (!strcmp(argv[i], "--no-kernel")) {
			use_kernel = false;
			continue;
		}
		if (!strcmp(argv[i], "--verbose")) {
			verbose = true;
			continue;
		}
		if (!strcmp(argv[i], "--only") && i + 1 < argc) {
			only = argv[++i];
			continue;
		}
		if (!strcmp(argv[i], "--every") && i + 1 < argc && atoi(argv[i + 1]) > 0) {
			every = (unsigned)atoi(argv[++i]);
			continue;
		}
		if (use_kernel && !in_kernel)
			use_kernel = kernel_is_there();
		data = read_file(argv[i]);
		if (!data) {
			printf("FAIL %s: %s\n", argv[i], strerror(errno));
			failed++;
			continue;
		}
		run_file(argv[i], data);
		free(data);
	}
	if (in_kernel)
		printf("%u cases ran also in Linux %s\n", in_kernel, kernel_version());
	else
		printf("without a kernel to compare with\n");
	printf("%u passed, %u failed\n", passed, failed);
	return failed || !passed;
}
