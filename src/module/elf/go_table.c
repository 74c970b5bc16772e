/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The reader of Go's table of functions (go_table.h). The table begins with a header. Its first
 * word says which version of Go made the table. The header leads to an array with the start of each
 * function, in the order of addresses, and with the offset of the function's description. The
 * description has the offset of the function's name, and of a list with the stack's depth in each
 * part of the function. The parts' lengths give the function's end. (Trailing bytes of 0xcc don't
 * show the end: they may be padding, or the end of a jump.) After the last function, the array has
 * the end of Go's code.
 *
 *   version   starts of functions                          offsets in the array are from
 *   1.2       addresses                                    the table
 *   1.16      addresses                                    the array
 *   1.18      offsets from the text's start in the header  the array
 *   1.20      the same
 *
 * Patches at wrong addresses would destroy the program. So the table is used only if the code
 * agrees with it: runtime.goexit, which is in each Go program, must be `nop; call runtime.goexit1`.
 * In a program without a fixed address, addresses in the table may be zero in the file, because the
 * loader writes them. Then the relocations have these addresses. If the header doesn't have the
 * text's start at all, a search for the code of runtime.goexit finds the text's start.
 */
#include "module/elf/go_table.h"
#include <string.h>
#include "base/base.h"

#define MAX_NAME	65536
#define MAX_TRIES	16	/* how many places of a file may look like a table */
/* Limits on the number of steps: a step reads a byte of a name, or a number of a list of depths.
 * For names, as well as for lists, a file may take MAX_STEPS, plus MAX_STEPS_OF_BYTE for each of
 * its bytes. Real files need much less, but functions of a hostile file may share long lists. */
#define MAX_STEPS	(64u << 20)
#define MAX_STEPS_OF_BYTE	2
#define MAX_EXITS	4	/* a name may occur twice: a function and its wrapper */
#define EXIT_LEN	6	/* nop; call */

/* Offsets in the header. */
enum { NR_FUNCS = 8, OLD_FUNCS = 16 };
/* Offsets in a function's description, after the function's start. */
enum { INFO_NAME = 0, INFO_DEPTHS = 12, INFO_LEN = 16 };

static const struct layout {
	uint32_t magic;
	uint8_t text;		/* where the header has the text's start. 0: the array has
				 * addresses */
	uint8_t names, depths, funcs; /* where the header has the offsets of the names, of the lists
				 * of depths, and of the array. 0: names and lists have offsets
				 * from the table, and the array follows the number of functions */
} layouts[] = {
	{ 0xfffffff1, 24, 32, 56, 64 },
	{ 0xfffffff0, 24, 32, 56, 64 },
	{ 0xfffffffa, 0, 24, 48, 56 },
	{ 0xfffffffb, 0, 0, 0, 0 },
};

struct table {
	struct pb_elf *e;
	uint64_t addr, off, size;	/* off: the table's offset in the file */
	const struct layout *layout;
	uint64_t n;			/* number of functions */
	uint64_t names, depths, funcs, infos; /* offsets in the table. infos: the place from which
					 * the offsets of descriptions count */
	uint64_t text;			/* the address from which the starts of functions count */
	uint64_t name_steps, depth_steps; /* count towards MAX_STEPS */
	uint64_t *starts;		/* n + 1 elements: the functions' starts, and the end */
};

/* A place where runtime.goexit may be, and the operand of its call. `at` counts from the text's
 * start. */
struct exit_code {
	uint64_t at;
	int32_t operand;
};
typedef PB_VEC(struct exit_code) exit_vec;

static const void *bytes(const struct table *t, uint64_t off, uint64_t len)
{
	if (off > t->size || len > t->size - off)
		return NULL;
	return pb_elf_bytes(t->e, t->off + off, len);
}

/* Reads a word of the header. */
static bool header(const struct table *t, uint64_t off, uint64_t *value)
{
	const void *p = bytes(t, off, 8);

	if (p)
		memcpy(value, p, 8);
	return p;
}

static const struct layout *layout_of(const uint8_t *p)
{
	uint32_t magic;

	memcpy(&magic, p, 4);
	/* two zeros; instructions have any length; an address has 8 bytes */
	if (p[4] || p[5] || p[6] != 1 || p[7] != 8)
		return NULL;
	for (size_t i = 0; i < pb_array_size(layouts); i++)
		if (magic == layouts[i].magic)
			return &layouts[i];
	return NULL;
}

/* Returns the number of bytes that a function has in the array. */
static unsigned entry_size(const struct table *t)
{
	return t->layout->text ? 8 : 16;
}

static bool read_header(struct table *t)
{
	const uint8_t *p = bytes(t, 0, OLD_FUNCS);
	const struct layout *l = p ? layout_of(p) : NULL;
	uint64_t room;

	t->layout = l;
	if (!l || !header(t, NR_FUNCS, &t->n))
		return false;
	t->names = t->depths = t->infos = 0;
	t->funcs = OLD_FUNCS;
	if (l->names && (!header(t, l->names, &t->names) || !header(t, l->depths, &t->depths) ||
			 !header(t, l->funcs, &t->funcs)))
		return false;
	if (l->names)
		t->infos = t->funcs;
	if (l->text && !header(t, l->text, &t->text))
		return false;
	room = t->funcs < t->size ? t->size - t->funcs : 0;
	/* half an entry, the end of the code, follows the last function */
	return t->names < t->size && t->depths < t->size && t->n && t->n < room / entry_size(t);
}

/* Takes from the relocations the addresses that the loader will write into the table. */
static void relocate(struct table *t)
{
	uint64_t addr, size, funcs = t->addr + t->funcs;
	const Elf64_Rela *r;

	if (!pb_elf_dynamic(t->e, DT_RELA, &addr) || !pb_elf_dynamic(t->e, DT_RELASZ, &size) ||
	    !(r = pb_elf_at(t->e, addr, size)) || (uintptr_t)r % 8)
		return;
	for (uint64_t i = 0; i < size / sizeof(*r); i++) {
		uint64_t at = r[i].r_offset;

		if (ELF64_R_TYPE(r[i].r_info) != R_X86_64_RELATIVE)
			continue;
		if (t->layout->text && at == t->addr + t->layout->text)
			t->text = (uint64_t)r[i].r_addend;
		if (!t->layout->text && at >= funcs && (at - funcs) % 16 == 0 &&
		    (at - funcs) / 16 <= t->n)
			t->starts[(at - funcs) / 16] = (uint64_t)r[i].r_addend;
	}
}

static bool read_starts(struct table *t)
{
	unsigned entry = entry_size(t), word = entry / 2;
	const uint8_t *p = bytes(t, t->funcs, t->n * entry + word);

	if (!p)
		return false;
	for (uint64_t i = 0; i <= t->n; i++)
		memcpy(&t->starts[i], p + i * entry, word);
	relocate(t);
	for (uint64_t i = 0; i < t->n; i++)
		if (t->starts[i + 1] < t->starts[i])
			return false;
	return true;
}

/* Returns the description of function i, without the function's start: INFO_LEN bytes, or NULL. */
static const uint8_t *info_of(const struct table *t, uint64_t i)
{
	unsigned word = entry_size(t) / 2;
	const uint8_t *p = bytes(t, t->funcs + i * 2 * word + word, word);
	uint64_t info = 0;

	if (!p)
		return NULL;
	memcpy(&info, p, word);
	return info < t->size ? bytes(t, t->infos + info + word, INFO_LEN) : NULL;
}

/* Counts steps. Returns true if there are more than a real file needs. */
static bool exceeds(const struct table *t, uint64_t *count, uint64_t steps)
{
	*count += steps;
	return *count > MAX_STEPS + MAX_STEPS_OF_BYTE * t->e->size;
}

/* Returns a name, or "". */
static const char *name_at(struct table *t, uint32_t off)
{
	uint64_t room = off < t->size - t->names ? t->size - t->names - off : 0;
	const char *name, *nul;

	room = room < MAX_NAME ? room : MAX_NAME;
	name = room && !exceeds(t, &t->name_steps, 0) ? bytes(t, t->names + off, room) : NULL;
	nul = name ? memchr(name, 0, room) : NULL;
	if (name)
		t->name_steps += nul ? (uint64_t)(nul - name) : room;
	return nul ? name : "";
}

static bool read_number(const struct table *t, uint64_t *at, uint32_t *value)
{
	const uint8_t *p;

	*value = 0;
	for (unsigned shift = 0; shift < 35 && (p = bytes(t, *at, 1)); shift += 7) {
		*value |= (uint32_t)(*p & 0x7f) << shift;
		++*at;
		if (!(*p & 0x80))
			return true;
	}
	return false;
}

/* Returns the length of a function, which is at most max. Returns 0 if it isn't known. The list of
 * depths consists of pairs: the difference from the last depth, and the length of a part. A
 * difference of zero ends the list, except at its beginning. */
static uint64_t length_by_depths(struct table *t, uint32_t off, uint64_t max)
{
	uint64_t at = t->depths + off, len = 0;
	uint32_t change, part;
	bool first = true;

	if (!off)
		return 0;
	for (;; first = false) {
		if (exceeds(t, &t->depth_steps, 2) || !read_number(t, &at, &change))
			return 0;
		if (!change && !first)
			return len;
		if (!read_number(t, &at, &part) || !part || part > max - len)
			return 0;
		len += part;
	}
}

static void read_functions(struct table *t, pb_go_vec *out)
{
	for (uint64_t i = 0; i < t->n; i++) {
		const uint8_t *info = info_of(t, i);
		uint64_t max = t->starts[i + 1] - t->starts[i], len;
		uint32_t name, depths;

		if (!info || !max)
			continue;
		memcpy(&name, info + INFO_NAME, 4);
		memcpy(&depths, info + INFO_DEPTHS, 4);
		len = length_by_depths(t, depths, max);
		pb_vec_push(out, (struct pb_go_func){
			.start = t->starts[i], .end = t->starts[i] + (len ? len : max),
			.name = name_at(t, name), .padded = !len });
	}
}

static bool is_named(const struct pb_go_func *f, const char *name)
{
	size_t n = strlen(name);

	return !strncmp(f->name, name, n) && (!f->name[n] || !strcmp(f->name + n, ".abi0"));
}

static void find_exits(const pb_go_vec *v, exit_vec *exits)
{
	uint64_t called[MAX_EXITS];
	unsigned nr_called = 0, nr = 0;

	for (size_t i = 0; i < v->n && nr_called < MAX_EXITS; i++)
		if (is_named(&v->v[i], "runtime.goexit1"))
			called[nr_called++] = v->v[i].start;
	for (size_t i = 0; i < v->n && nr < MAX_EXITS; i++) {
		if (!is_named(&v->v[i], "runtime.goexit"))
			continue;
		nr++;
		for (unsigned k = 0; k < nr_called; k++) {
			uint64_t next = v->v[i].start + EXIT_LEN;

			pb_vec_push(exits, (struct exit_code){
				v->v[i].start, (int32_t)(uint32_t)(called[k] - next) });
		}
	}
}

/* p: EXIT_LEN bytes */
static bool is_exit(const uint8_t *p, int32_t operand)
{
	return p[0] == 0x90 && p[1] == 0xe8 && !memcmp(p + 2, &operand, 4);
}

/* Assumes that the text starts at `text`. True if runtime.goexit is then at the address that the
 * table gives. */
static bool agrees(struct pb_elf *e, const exit_vec *exits, uint64_t text)
{
	for (size_t i = 0; i < exits->n; i++) {
		const uint8_t *p = pb_elf_at(e, text + exits->v[i].at, EXIT_LEN);

		if (p && is_exit(p, exits->v[i].operand))
			return true;
	}
	return false;
}

/* Searches the code for runtime.goexit, to find where the text starts. */
static bool find_text(struct pb_elf *e, const exit_vec *exits, uint64_t *text)
{
	for (unsigned i = 0; exits->n && i < e->nr_ph; i++) {
		const Elf64_Phdr *ph = &e->ph[i];
		const uint8_t *p, *at, *end;

		if (ph->p_type != PT_LOAD || !(ph->p_flags & PF_X) ||
		    !(p = pb_elf_bytes(e, ph->p_offset, ph->p_filesz)))
			continue;
		end = p + ph->p_filesz;
		for (at = p; (at = memmem(at, (size_t)(end - at), "\x90\xe8", 2)); at++)
			for (size_t k = 0; end - at >= EXIT_LEN && k < exits->n; k++)
				if (is_exit(at, exits->v[k].operand)) {
					*text = ph->p_vaddr + (uint64_t)(at - p) - exits->v[k].at;
					return true;
				}
	}
	return false;
}

/* Makes the functions' addresses absolute. Drops functions that don't lie in the file's bytes. */
static void place(struct pb_elf *e, uint64_t text, pb_go_vec *v)
{
	size_t n = 0;

	for (size_t i = 0; i < v->n; i++) {
		struct pb_go_func f = v->v[i];

		f.start += text;
		f.end += text;
		if (f.start < f.end && pb_elf_at(e, f.start, f.end - f.start))
			v->v[n++] = f;
	}
	v->n = n;
}

/* Reads the table at addr, if there is one. The table has at most size bytes. */
static bool read_table(struct pb_elf *e, uint64_t addr, uint64_t size, pb_go_vec *out)
{
	struct table t = { .e = e, .addr = addr, .size = size };
	const uint8_t *p = pb_elf_at(e, addr, size);
	exit_vec exits = { 0 };
	bool ok;

	out->n = 0;
	if (!p)
		return false;
	t.off = (uint64_t)(p - e->base);
	if (!read_header(&t))
		return false;
	t.starts = calloc(t.n + 1, sizeof(*t.starts));
	out->failed |= !t.starts;
	ok = t.starts && read_starts(&t);
	if (ok) {
		read_functions(&t, out);
		find_exits(out, &exits);
		ok = agrees(e, &exits, t.text) ||
		     (t.layout->text && find_text(e, &exits, &t.text));
	}
	if (ok)
		place(e, t.text, out);
	out->failed |= exits.failed;
	if (!ok || out->failed)
		out->n = 0;
	pb_vec_free(&exits);
	free(t.starts);
	return ok;
}

/* Searches the data for the header of a table. In a program without a fixed address, another linker
 * than Go's puts the table into a section with other data. */
static void search_table(struct pb_elf *e, pb_go_vec *out)
{
	unsigned tries = 0;

	for (unsigned i = 0; i < e->nr_ph; i++) {
		const Elf64_Phdr *ph = &e->ph[i];
		uint64_t skip = -ph->p_vaddr % 8;
		const uint8_t *p;

		if (ph->p_type != PT_LOAD || ph->p_flags & PF_X || ph->p_filesz < skip ||
		    !(p = pb_elf_bytes(e, ph->p_offset, ph->p_filesz)))
			continue;
		for (uint64_t off = skip; ph->p_filesz - off >= 8; off += 8) {
			if (!layout_of(p + off))
				continue;
			if (read_table(e, ph->p_vaddr + off, ph->p_filesz - off, out) ||
			    out->failed || ++tries == MAX_TRIES)
				return;
		}
	}
}

void pb_go_functions(struct pb_elf *e, bool search, pb_go_vec *out)
{
	static const char *const names[] = { ".gopclntab", ".data.rel.ro.gopclntab" };

	for (size_t i = 0; i < pb_array_size(names); i++) {
		const Elf64_Shdr *sh = pb_elf_section(e, names[i]);

		if (sh && sh->sh_type != SHT_NOBITS && sh->sh_flags & SHF_ALLOC) {
			read_table(e, sh->sh_addr, sh->sh_size, out);
			return;
		}
	}
	if (search)
		search_table(e, out);
}
