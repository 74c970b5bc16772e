/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads .BTF.ext, which has three tables: the types of functions, the lines of source, and the
 * CO-RE relocations. A table begins with the size of its records. The rest of the table has a part
 * for each section of code: the section's name, the count of records, and the records.
 */
#include <errno.h>
#include <string.h>

#include "bpfload/load_priv.h"

#define EXT_LINE	512	/* limit on a source line's text; the rest is cut off */

struct header {
	uint16_t magic;
	uint8_t version, flags;
	uint32_t size;
	uint32_t func_off, func_len, line_off, line_len;
	uint32_t core_off, core_len;	/* valid only if `size` includes them */
};

struct table {
	const uint8_t *p;
	uint32_t size, least;		/* least: minimum bytes of a record */
	int (*fn)(struct load *l, struct load_func *f, uint32_t insn, const uint8_t *record);
};

static uint32_t word(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, 4);
	return v;
}

static int walk_section(struct load *l, const struct table *t, uint32_t section, const uint8_t *p,
			uint32_t nr, uint32_t record)
{
	int ret = 0;

	for (uint32_t i = 0; i < nr && !ret; i++, p += record) {
		struct load_func *f = section ? load_func_at(l, section, word(p) / 8) : NULL;

		if (f && word(p) % 8 == 0)
			ret = t->fn(l, f, word(p) / 8 - f->start, p);
	}
	return ret;
}

static int walk(struct load *l, const struct table *t)
{
	const uint8_t *p = t->p, *end = p + t->size;
	uint32_t record;
	int ret = 0;

	if (!t->size)
		return 0;
	record = t->size >= 4 ? word(p) : 0;
	if (record < t->least || record % 4)
		return load_refuse(l, ".BTF.ext has records of an unknown size");
	for (p += 4; p < end && !ret;) {
		const char *name, *spent = NULL;
		uint32_t nr;

		if (end - p < 8 || word(p + 4) > (uint64_t)(end - p - 8) / record)
			return load_refuse(l, ".BTF.ext is cut off");
		name = pb_bpf_btf_str(l->object.btf, word(p));
		if (!load_compare(l, l->elf.nr, name, &spent))
			return load_refuse(l, "%s", spent);
		nr = word(p + 4);
		ret = walk_section(l, t, pb_bpf_elf_find(&l->elf, name), p + 8, nr, record);
		p += 8 + (uint64_t)nr * record;
	}
	return ret;
}

static int func_record(struct load *l, struct load_func *f, uint32_t insn, const uint8_t *p)
{
	const struct btf_type *t = pb_bpf_btf_type(l->object.btf, word(p + 4));

	if (!insn && t && pb_btf_kind(t) == BTF_KIND_FUNC)
		f->btf = word(p + 4);
	return 0;
}

/* The table of lines is read twice: count_line() counts the lines of each function, then
 * line_record() stores them. */
static int count_line(struct load *l, struct load_func *f, uint32_t insn, const uint8_t *p)
{
	f->nr_lines++;
	return 0;
}

static const char *line_text(struct load *l, const char *text)
{
	char line[EXT_LINE];
	size_t n;

	while (*text == ' ' || *text == '\t')
		text++;
	n = strnlen(text, sizeof(line) - 1);
	memcpy(line, text, n);
	line[n] = 0;
	return load_text(l, line);
}

static int line_record(struct load *l, struct load_func *f, uint32_t insn, const uint8_t *p)
{
	uint32_t off = word(p + 8), n = f->nr_lines;
	const char *text = off == l->line_off ? l->line :
			   line_text(l, pb_bpf_btf_str(l->object.btf, off));

	if (!f->lines) {	/* room for all lines that count_line() has counted */
		f->lines = load_alloc(l, f->nr_lines * sizeof(f->lines[0]));
		n = 0;
	}
	if (!f->lines || !text)
		return -ENOMEM;
	l->line_off = off;
	l->line = text;
	if (n && f->lines[n - 1].insn >= insn)
		return 0;
	f->lines[n] = (struct pb_bpf_line){ .insn = insn, .text = text };
	f->nr_lines = n + 1;
	return 0;
}

static int core_record(struct load *l, struct load_func *f, uint32_t insn, const uint8_t *p)
{
	struct bpf_core_relo relo;

	memcpy(&relo, p, sizeof(relo));
	return load_core(l, f, insn, &relo);
}

static int set_table(struct table *t, const uint8_t *p, uint64_t size, uint32_t off, uint32_t len)
{
	if (off > size || len > size - off)
		return -EINVAL;
	t->p = p + off;
	t->size = len;
	return 0;
}

int load_ext(struct load *l)
{
	struct table funcs = { .least = 8, .fn = func_record },
		counts = { .least = 16, .fn = count_line };
	struct table lines = { .least = 16, .fn = line_record },
		core = { .least = 16, .fn = core_record };
	struct header h = {};
	size_t size;
	const uint8_t *p = pb_bpf_elf_data(&l->elf, pb_bpf_elf_find(&l->elf, ".BTF.ext"), &size);
	int ret;

	if (!p || !l->object.btf)
		return 0;
	if (size < 24)
		return load_refuse(l, ".BTF.ext is shorter than its header");
	memcpy(&h, p, size < sizeof(h) ? size : sizeof(h));
	if (h.magic != BTF_MAGIC || h.version != 1 || h.size < 24 || h.size > size)
		return load_refuse(l, ".BTF.ext has an unknown header");
	if (h.size < sizeof(h))
		h.core_off = h.core_len = 0;
	p += h.size;
	size -= h.size;
	if (set_table(&funcs, p, size, h.func_off, h.func_len) ||
	    set_table(&counts, p, size, h.line_off, h.line_len) ||
	    set_table(&lines, p, size, h.line_off, h.line_len) ||
	    set_table(&core, p, size, h.core_off, h.core_len))
		return load_refuse(l, ".BTF.ext has tables outside it");
	l->line_off = UINT32_MAX;
	ret = walk(l, &funcs);
	if (!ret)
		ret = walk(l, &counts);
	if (!ret)
		ret = walk(l, &lines);
	return ret ? ret : walk(l, &core);
}
