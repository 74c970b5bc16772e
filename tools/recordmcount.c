/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * recordmcount FILE.o...: adds tables of calls to an object that was built with -pg, like the
 * kernel's tool of the same name. The tables are sections with the name __mcount_loc. They have the
 * addresses of the object's calls of mcount and __fentry__. The tool is for compilers without
 * -mrecord-mcount.
 *
 * Each text section that has such calls gets its own table. The table is linked to its text
 * section, and is in the same group (SHF_LINK_ORDER, SHF_GROUP), so that the linker discards both
 * together. The tables are writable, so that a PIE needs no text relocations. The object is
 * replaced only when the new object is complete.
 */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <libelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TABLE		"__mcount_loc"
#define TABLE_RELA	".rela" TABLE

/* The bytes of a new section. They must live until the object is written. */
struct owned {
	struct owned *next;
	_Alignas(16) uint8_t bytes[];
};

struct object {
	struct owned *owned;
	const char *path, *error;
	Elf *elf;
	size_t shstrndx;
	Elf_Data *symbols;
	size_t symtab_index, strtab_index;
	size_t nr_sections;	/* number of sections before the change */
	size_t names_at;	/* offset of TABLE in the section names; 0: it isn't there yet */
};

static bool failed(struct object *o, const char *why)
{
	if (!o->error)
		o->error = why ? why : elf_errmsg(-1);
	return false;
}

static void *zeroed(struct object *o, size_t size)
{
	struct owned *m = calloc(1, sizeof(*m) + size);

	if (!m)
		return NULL;
	m->next = o->owned;
	o->owned = m;
	return m->bytes;
}

static void free_owned(struct object *o)
{
	while (o->owned) {
		struct owned *next = o->owned->next;

		free(o->owned);
		o->owned = next;
	}
}

static bool is_hook(struct object *o, size_t symbol)
{
	GElf_Sym s;
	const char *name;

	if (!gelf_getsym(o->symbols, (int)symbol, &s))
		return false;
	name = elf_strptr(o->elf, o->strtab_index, s.st_name);
	return name && (!strcmp(name, "mcount") || !strcmp(name, "_mcount") ||
			!strcmp(name, "__fentry__"));
}

/* Finds a symbol that lies in the section and that relocations can use. It is the section's own
 * symbol if there is one. Otherwise it is a local symbol, or a global symbol that isn't weak.
 * 0: there is none. */
static size_t anchor(struct object *o, size_t section, uint64_t *value)
{
	size_t best = 0;
	unsigned best_rank = 0;
	GElf_Sym s;

	for (int i = 1; gelf_getsym(o->symbols, i, &s); i++) {
		unsigned rank = GELF_ST_TYPE(s.st_info) == STT_SECTION ? 3 :
				GELF_ST_BIND(s.st_info) == STB_LOCAL ? 2 :
				GELF_ST_BIND(s.st_info) == STB_GLOBAL ? 1 : 0;

		if (s.st_shndx != section || rank <= best_rank)
			continue;
		best = (size_t)i;
		best_rank = rank;
		*value = s.st_value;
	}
	return best;
}

/* Finds the start of the call instruction whose relocated operand is at off. Returns false if the
 * instruction is no call. */
static bool call_at(const Elf_Data *text, uint64_t off, uint64_t *call)
{
	const uint8_t *p = text->d_buf;

	if (off >= text->d_size)
		return false;
	/* ff 15: call through memory; e8: direct call */
	if (off >= 2 && p[off - 2] == 0xff && p[off - 1] == 0x15)
		*call = off - 2;
	else if (off >= 1 && p[off - 1] == 0xe8)
		*call = off - 1;
	else
		return false;
	return true;
}

static bool append(struct object *o, Elf_Scn *to, void *bytes, size_t size, Elf_Type type,
		   size_t align)
{
	Elf_Data *d = bytes ? elf_newdata(to) : NULL;

	if (!d)
		return failed(o, bytes ? NULL : "no memory");
	d->d_buf = bytes;
	d->d_size = size;
	d->d_type = type;
	d->d_align = align;
	d->d_version = EV_CURRENT;
	return true;
}

/* Adds two section names, for the tables and for their relocations, if they aren't added yet. The
 * buffer `names` must live until the object is written. */
static bool add_names(struct object *o)
{
	static char names[] = TABLE "\0" TABLE_RELA;
	Elf_Scn *scn = elf_getscn(o->elf, o->shstrndx);
	GElf_Shdr sh;

	if (o->names_at)
		return true;
	if (!scn || !gelf_getshdr(scn, &sh))
		return failed(o, NULL);
	o->names_at = sh.sh_size;
	return append(o, scn, names, sizeof(names), ELF_T_BYTE, 1);
}

static bool set_header(struct object *o, Elf_Scn *scn, GElf_Shdr sh)
{
	return gelf_update_shdr(scn, &sh) ? true : failed(o, NULL);
}

/* Puts the new sections `table` and `rela` into the group that has `section`. */
static bool join_group(struct object *o, size_t section, size_t table, size_t rela)
{
	for (size_t i = 1; i < o->nr_sections; i++) {
		Elf_Scn *scn = elf_getscn(o->elf, i);
		Elf_Data *d = scn ? elf_getdata(scn, NULL) : NULL;
		GElf_Shdr sh;
		uint32_t *more;

		if (!d || !gelf_getshdr(scn, &sh) || sh.sh_type != SHT_GROUP)
			continue;
		for (size_t k = 1; k < d->d_size / 4; k++) {
			if (((uint32_t *)d->d_buf)[k] != section)
				continue;
			more = zeroed(o, 8);
			if (more) {
				more[0] = (uint32_t)table;
				more[1] = (uint32_t)rela;
			}
			return append(o, scn, more, 8, ELF_T_WORD, 4);
		}
	}
	return failed(o, "a section's group is missing");
}

static bool add_table(struct object *o, size_t text, bool grouped, Elf64_Rela *rela, size_t n)
{
	Elf_Scn *table = elf_newscn(o->elf), *rel = elf_newscn(o->elf);
	uint64_t group = grouped ? SHF_GROUP : 0;

	if (!table || !rel || !add_names(o))
		return failed(o, NULL);
	if (!append(o, table, zeroed(o, n * 8), n * 8, ELF_T_XWORD, 8) ||
	    !append(o, rel, rela, n * sizeof(*rela), ELF_T_RELA, 8))
		return false;
	if (!set_header(o, table, (GElf_Shdr){
			.sh_name = (uint32_t)o->names_at, .sh_type = SHT_PROGBITS,
			.sh_flags = SHF_ALLOC | SHF_WRITE | SHF_LINK_ORDER | group,
			.sh_link = (uint32_t)text, .sh_addralign = 8, .sh_size = n * 8 }) ||
	    !set_header(o, rel, (GElf_Shdr){
			.sh_name = (uint32_t)(o->names_at + sizeof(TABLE)), .sh_type = SHT_RELA,
			.sh_flags = SHF_INFO_LINK | group, .sh_link = (uint32_t)o->symtab_index,
			.sh_info = (uint32_t)elf_ndxscn(table), .sh_addralign = 8,
			.sh_entsize = sizeof(Elf64_Rela), .sh_size = n * sizeof(*rela) }))
		return false;
	return !grouped || join_group(o, text, elf_ndxscn(table), elf_ndxscn(rel));
}

/* Makes the table of one text section, from its relocations. */
static bool record_section(struct object *o, Elf_Scn *scn, const GElf_Shdr *rel)
{
	Elf_Scn *target = elf_getscn(o->elf, rel->sh_info);
	Elf_Data *relocs = elf_getdata(scn, NULL), *text = target ? elf_getdata(target, NULL) :
			   NULL;
	uint64_t base = 0, call;
	size_t n = 0, sym;
	Elf64_Rela *out;
	GElf_Shdr sh;
	GElf_Rela r;

	if (!relocs || !text || !text->d_buf || !gelf_getshdr(target, &sh) ||
	    !(sh.sh_flags & SHF_EXECINSTR))
		return true;
	out = zeroed(o, relocs->d_size + sizeof(*out));
	if (!out)
		return failed(o, "no memory");
	sym = anchor(o, rel->sh_info, &base);
	for (int i = 0; gelf_getrela(relocs, i, &r); i++)
		if (is_hook(o, GELF_R_SYM(r.r_info)) && call_at(text, r.r_offset, &call)) {
			out[n].r_offset = n * 8;
			out[n].r_info = ELF64_R_INFO(sym, R_X86_64_64);
			out[n++].r_addend = (int64_t)(call - base);
		}
	if (n && sym)
		return add_table(o, rel->sh_info, sh.sh_flags & SHF_GROUP, out, n);
	return !n || failed(o, "a section with calls has no symbol to count from");
}

static bool find_symbols(struct object *o)
{
	for (size_t i = 1; i < o->nr_sections; i++) {
		Elf_Scn *scn = elf_getscn(o->elf, i);
		const char *name;
		GElf_Shdr sh;

		if (!scn || !gelf_getshdr(scn, &sh))
			return failed(o, NULL);
		name = elf_strptr(o->elf, o->shstrndx, sh.sh_name);
		if (name && !strcmp(name, TABLE))
			return false;	/* the object already has a table: this is no error */
		if (sh.sh_type == SHT_SYMTAB) {
			o->symbols = elf_getdata(scn, NULL);
			o->symtab_index = i;
			o->strtab_index = sh.sh_link;
		}
	}
	return o->symbols || failed(o, "it has no symbols");
}

static bool record(struct object *o, int fd)
{
	GElf_Ehdr eh;

	o->elf = elf_begin(fd, ELF_C_RDWR, NULL);
	if (!o->elf || !gelf_getehdr(o->elf, &eh) || eh.e_type != ET_REL ||
	    eh.e_machine != EM_X86_64 || gelf_getclass(o->elf) != ELFCLASS64)
		return failed(o, "not an x86-64 object file");
	if (elf_getshdrnum(o->elf, &o->nr_sections) || elf_getshdrstrndx(o->elf, &o->shstrndx))
		return failed(o, NULL);
	if (!find_symbols(o))
		return !o->error;
	for (size_t i = 1; i < o->nr_sections; i++) {
		Elf_Scn *scn = elf_getscn(o->elf, i);
		GElf_Shdr sh;

		if (!scn || !gelf_getshdr(scn, &sh))
			return failed(o, NULL);
		if (sh.sh_type == SHT_RELA && !record_section(o, scn, &sh))
			return false;
	}
	/* if there is no table, nothing is written */
	return !o->names_at || elf_update(o->elf, ELF_C_WRITE) >= 0 || failed(o, NULL);
}

static bool copy_file(int from, int to)
{
	char buf[65536];
	ssize_t n;

	while ((n = read(from, buf, sizeof(buf))) > 0)
		if (write(to, buf, (size_t)n) != n)
			return false;
	return !n;
}

static int one_file(const char *path)
{
	struct object o = { .path = path };
	char temp[PATH_MAX];
	struct stat st;
	int in = open(path, O_RDONLY | O_CLOEXEC), out = -1;
	bool ok;

	if (in < 0 || fstat(in, &st) ||
	    (snprintf(temp, sizeof(temp), "%s.XXXXXX", path) >= PATH_MAX &&
	     (errno = ENAMETOOLONG)) ||
	    (out = mkostemp(temp, O_CLOEXEC)) < 0) {
		fprintf(stderr, "recordmcount: %s: %s\n", path, strerror(errno));
		if (in >= 0)
			close(in);
		return 1;
	}
	ok = copy_file(in, out) || failed(&o, strerror(errno));
	ok = ok && record(&o, out);
	if (o.elf)
		elf_end(o.elf);
	free_owned(&o);
	ok = ok && (!fchmod(out, st.st_mode & 07777) || failed(&o, strerror(errno)));
	ok &= !close(out);
	close(in);
	if (ok && !o.names_at)
		unlink(temp);	/* nothing was added: the file stays as it was */
	else if (!ok || rename(temp, path)) {
		fprintf(stderr, "recordmcount: %s: %s\n", path, o.error ? o.error :
			strerror(errno));
		unlink(temp);
		ok = false;
	}
	return !ok;
}

int main(int argc, char **argv)
{
	int status = 0;

	if (argc < 2 || argv[1][0] == '-') {
		fprintf(stderr, "usage: recordmcount FILE.o...\n"
			"Adds __mcount_loc to objects that were built with -pg.\n");
		return argc < 2 || strcmp(argv[1], "--help") ? 2 : 0;
	}
	elf_version(EV_CURRENT);
	for (int i = 1; i < argc; i++)
		status |= one_file(argv[i]);
	return status;
}
