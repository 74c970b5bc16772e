/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Opens BTF, and finds types, members and names in it. */
#include "bpfload/load_btf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bpfload/load_elf.h"

#define BTF_FILE_MAX	(256u << 20)

const struct btf_type *pb_bpf_btf_type(const struct pb_bpf_btf *btf, uint32_t id)
{
	return id < btf->nr ? btf->types[id] : NULL;
}

const char *pb_bpf_btf_str(const struct pb_bpf_btf *btf, uint32_t off)
{
	return off < btf->strings_size ? btf->strings + off : "";
}

static bool is_modifier(const struct btf_type *t)
{
	uint32_t k = pb_btf_kind(t);

	return k == BTF_KIND_CONST || k == BTF_KIND_VOLATILE || k == BTF_KIND_RESTRICT ||
	       k == BTF_KIND_TYPE_TAG;
}

const struct btf_type *pb_bpf_btf_skip(const struct pb_bpf_btf *btf, uint32_t type, bool typedefs,
				       uint32_t *id)
{
	const struct btf_type *t = pb_bpf_btf_type(btf, type);

	for (int n = 0; t && (is_modifier(t) || (typedefs && pb_btf_kind(t) == BTF_KIND_TYPEDEF));
	     n++) {
		if (n == PB_BPF_BTF_DEPTH)
			return NULL;
		type = t->type;
		t = pb_bpf_btf_type(btf, type);
	}
	if (id)
		*id = type;
	return t;
}

int64_t pb_bpf_btf_size(const struct pb_bpf_btf *btf, uint32_t id)
{
	uint64_t n = 1, size;

	for (int depth = 0; depth < PB_BPF_BTF_DEPTH; depth++) {
		const struct btf_type *t = pb_bpf_btf_type(btf, id);

		if (!t)
			return -EINVAL;
		switch (pb_btf_kind(t)) {
		case BTF_KIND_INT: case BTF_KIND_STRUCT: case BTF_KIND_UNION: case BTF_KIND_ENUM:
		case BTF_KIND_ENUM64: case BTF_KIND_FLOAT: case BTF_KIND_DATASEC:
			size = t->size;
			break;
		case BTF_KIND_PTR:
			size = 8;
			break;
		case BTF_KIND_ARRAY:
			n *= pb_btf_array(t)->nelems;
			if (n > UINT32_MAX)
				return -EINVAL;
			id = pb_btf_array(t)->type;
			continue;
		case BTF_KIND_TYPEDEF: case BTF_KIND_CONST: case BTF_KIND_VOLATILE:
		case BTF_KIND_RESTRICT: case BTF_KIND_TYPE_TAG: case BTF_KIND_VAR:
			id = t->type;
			continue;
		default:
			return -EINVAL;
		}
		return n * size > UINT32_MAX ? -EINVAL : (int64_t)(n * size);
	}
	return -EINVAL;
}

uint64_t pb_bpf_btf_enum(const struct pb_bpf_btf *btf, const struct btf_type *t, uint32_t i,
			 const char **name)
{
	if (pb_btf_kind(t) == BTF_KIND_ENUM64) {
		const struct btf_enum64 *e = (const struct btf_enum64 *)(t + 1) + i;

		*name = pb_bpf_btf_str(btf, e->name_off);
		return (uint64_t)e->val_hi32 << 32 | e->val_lo32;
	}
	const struct btf_enum *e = (const struct btf_enum *)(t + 1) + i;

	*name = pb_bpf_btf_str(btf, e->name_off);
	return BTF_INFO_KFLAG(t->info) ? (uint64_t)(int64_t)e->val : (uint32_t)e->val;
}

uint32_t pb_bpf_btf_find(const struct pb_bpf_btf *btf, const char *name, uint32_t kind)
{
	uint32_t id = btf->first ? btf->first[pb_bpf_btf_hash(name, pb_bpf_btf_essential(name)) &
					      btf->mask] : 1;

	for (; id && id < btf->nr; id = btf->first ? btf->next[id] : id + 1)
		if (pb_btf_kind(btf->types[id]) == kind &&
		    !strcmp(pb_bpf_btf_name(btf, btf->types[id]), name))
			return id;
	return 0;
}

void pb_bpf_btf_place(struct pb_bpf_btf *btf, uint32_t datasec, uint32_t number, uint32_t off)
{
	const uint8_t *vars = (const uint8_t *)pb_btf_vars(btf->types[datasec]);
	uint8_t *at = btf->data + (vars - btf->data) + number * sizeof(struct btf_var_secinfo);

	memcpy(at + offsetof(struct btf_var_secinfo, offset), &off, sizeof(off));
}

const char *pb_bpf_btf_kind_name(const struct btf_type *t)
{
	static const char *const names[] = {
		"void", "int", "ptr", "array", "struct", "union", "enum", "fwd", "typedef",
		"volatile",
		"const", "restrict", "func", "func_proto", "var", "datasec", "float", "decl_tag",
		"type_tag", "enum64",
	};
	uint32_t k = t ? pb_btf_kind(t) : 0;

	return k < sizeof(names) / sizeof(names[0]) ? names[k] : "unknown";
}

/* --- opening ------------------------------------------------------------- */

static const char no_memory[] = "no memory";

/* Returns the size of a record in bytes, with its header. 0: the kind is unknown. */
static uint64_t record_size(const struct btf_type *t)
{
	uint64_t n = pb_btf_vlen(t);

	switch (pb_btf_kind(t)) {
	case BTF_KIND_PTR: case BTF_KIND_FWD: case BTF_KIND_TYPEDEF: case BTF_KIND_VOLATILE:
	case BTF_KIND_CONST: case BTF_KIND_RESTRICT: case BTF_KIND_FUNC: case BTF_KIND_FLOAT:
	case BTF_KIND_TYPE_TAG:
		return sizeof(*t);
	case BTF_KIND_INT: case BTF_KIND_VAR: case BTF_KIND_DECL_TAG:
		return sizeof(*t) + 4;
	case BTF_KIND_ARRAY:
		return sizeof(*t) + sizeof(struct btf_array);
	case BTF_KIND_STRUCT: case BTF_KIND_UNION: case BTF_KIND_DATASEC: case BTF_KIND_ENUM64:
		return sizeof(*t) + n * 12;
	case BTF_KIND_ENUM: case BTF_KIND_FUNC_PROTO:
		return sizeof(*t) + n * 8;
	default:
		return 0;
	}
}

static bool refs_are_inside(const struct pb_bpf_btf *b, const struct btf_type *t)
{
	uint32_t n = pb_btf_vlen(t);

	if (t->name_off >= b->strings_size)
		return false;
	switch (pb_btf_kind(t)) {
	case BTF_KIND_PTR: case BTF_KIND_TYPEDEF: case BTF_KIND_VOLATILE: case BTF_KIND_CONST:
	case BTF_KIND_RESTRICT: case BTF_KIND_FUNC: case BTF_KIND_VAR: case BTF_KIND_DECL_TAG:
	case BTF_KIND_TYPE_TAG:
		return t->type < b->nr;
	case BTF_KIND_ARRAY:
		return pb_btf_array(t)->type < b->nr && pb_btf_array(t)->index_type < b->nr;
	case BTF_KIND_STRUCT: case BTF_KIND_UNION:
		for (uint32_t i = 0; i < n; i++)
			if (pb_btf_members(t)[i].type >= b->nr ||
			    pb_btf_members(t)[i].name_off >= b->strings_size)
				return false;
		return true;
	case BTF_KIND_FUNC_PROTO:
		for (uint32_t i = 0; i < n; i++)
			if (pb_btf_params(t)[i].type >= b->nr ||
			    pb_btf_params(t)[i].name_off >= b->strings_size)
				return false;
		return t->type < b->nr;
	case BTF_KIND_DATASEC:
		for (uint32_t i = 0; i < n; i++)
			if (pb_btf_vars(t)[i].type >= b->nr)
				return false;
		return true;
	default:
		return true;	/* the names of an enumeration's values are checked when they are
				 * read */
	}
}

static const char *read_types(struct pb_bpf_btf *b, const uint8_t *types, uint32_t size)
{
	uint32_t at, n = 1;

	for (at = 0; at < size; n++) {
		const struct btf_type *t = (const struct btf_type *)(types + at);
		uint64_t record = size - at < sizeof(*t) ? 0 : record_size(t);

		if (!record || record > size - at)
			return "a BTF type has an unknown kind or is cut off";
		at += (uint32_t)record;
	}
	b->types = calloc(n, sizeof(b->types[0]));
	if (!b->types)
		return no_memory;
	b->nr = n;
	for (at = 0, n = 1; at < size; n++) {
		b->types[n] = (const struct btf_type *)(types + at);
		at += (uint32_t)record_size(b->types[n]);
	}
	for (n = 1; n < b->nr; n++)
		if (!refs_are_inside(b, b->types[n]))
			return "BTF has a type that refers to a type or a name that isn't there";
	return NULL;
}

static const char *read_btf(struct pb_bpf_btf *b, size_t size)
{
	struct btf_header h;
	uint64_t left;

	if (size < sizeof(h))
		return "BTF is shorter than its header";
	memcpy(&h, b->data, sizeof(h));
	if (h.magic != BTF_MAGIC)
		return h.magic == __builtin_bswap16(BTF_MAGIC) ? "BTF is big-endian" : "not BTF";
	if (h.version != BTF_VERSION || h.hdr_len < sizeof(h) || h.hdr_len > size || h.hdr_len % 4)
		return "BTF has an unknown version or header";
	left = size - h.hdr_len;
	if (h.type_off > left || h.type_len > left - h.type_off || h.type_off % 4 ||
	    h.str_off > left || h.str_len > left - h.str_off)
		return "BTF's types or names are outside it";
	b->strings = (const char *)b->data + h.hdr_len + h.str_off;
	b->strings_size = h.str_len;
	if (!h.str_len || b->strings[0] || b->strings[h.str_len - 1])
		return "BTF's string section doesn't begin and end with a zero byte";
	return read_types(b, b->data + h.hdr_len + h.type_off, h.type_len);
}

int pb_bpf_btf_open(const void *bytes, size_t size, struct pb_bpf_btf **btf, const char **why)
{
	struct pb_bpf_btf *b = calloc(1, sizeof(*b));

	*btf = NULL;
	*why = no_memory;
	if (!b)
		return -ENOMEM;
	b->data = malloc(size ? size : 1);
	if (!b->data) {
		free(b);
		return -ENOMEM;
	}
	if (size)
		memcpy(b->data, bytes, size);
	*why = read_btf(b, size);
	if (*why) {
		pb_bpf_btf_close(b);
		return *why == no_memory ? -ENOMEM : -EINVAL;
	}
	*btf = b;
	return 0;
}

static uint8_t *read_all(const char *path, size_t *size, int *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t *data = NULL;
	struct stat st;
	ssize_t n = -1;

	*size = 0;
	if (fd < 0 || fstat(fd, &st)) {
		*err = -errno;
	} else if (st.st_size > BTF_FILE_MAX) {
		*err = -EFBIG;
	} else if (!(data = malloc((size_t)st.st_size + 1))) {
		*err = -ENOMEM;
	} else {
		while (*size < (size_t)st.st_size &&
		       (n = read(fd, data + *size, (size_t)st.st_size - *size)) > 0)
			*size += (size_t)n;
		*err = n < 0 && st.st_size ? -errno : 0;
	}
	if (fd >= 0)
		close(fd);
	if (*err) {
		free(data);
		return NULL;
	}
	return data;
}

int pb_bpf_btf_open_file(const char *path, struct pb_bpf_btf **btf, const char **why)
{
	int err = 0;
	size_t size;
	uint8_t *data = read_all(path, &size, &err);
	struct pb_bpf_elf elf;

	*btf = NULL;
	*why = "the file can't be read";
	if (!data)
		return err;
	if (size > 4 && !memcmp(data, "\177ELF", 4)) {
		err = pb_bpf_elf_open(&elf, data, size, why);
		if (!err) {
			uint32_t i = pb_bpf_elf_find(&elf, ".BTF");
			const uint8_t *p = pb_bpf_elf_data(&elf, i, &size);

			*why = "the file has no section .BTF";
			err = p ? pb_bpf_btf_open(p, size, btf, why) : -ENOENT;
			pb_bpf_elf_close(&elf);
		}
	} else {
		err = pb_bpf_btf_open(data, size, btf, why);
	}
	free(data);
	return err;
}

void pb_bpf_btf_close(struct pb_bpf_btf *b)
{
	if (!b)
		return;
	free(b->data);
	free(b->types);
	free(b->first);
	free(b->next);
	free(b);
}

/* --- by name -------------------------------------------------------------- */

size_t pb_bpf_btf_essential(const char *name)
{
	size_t n = strnlen(name, 512);	/* only the first 512 bytes of a name count */

	for (size_t i = n; i >= 5; i--) {
		const char *s = name + i - 5;

		if (s[0] != '_' && s[1] == '_' && s[2] == '_' && s[3] == '_' && s[4] != '_')
			return i - 4;
	}
	return n;
}

uint32_t pb_bpf_btf_hash(const char *name, size_t n)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (uint8_t)name[i]) * 16777619u;
	return h ^ h >> 15;
}

int pb_bpf_btf_index(struct pb_bpf_btf *b)
{
	uint32_t size = 16;

	if (b->first)
		return 0;
	while (size < b->nr)
		size *= 2;
	b->first = calloc(size, sizeof(b->first[0]));
	b->next = calloc(b->nr, sizeof(b->next[0]));
	if (!b->first || !b->next) {
		free(b->first);
		free(b->next);
		b->first = b->next = NULL;
		return -ENOMEM;
	}
	b->mask = size - 1;
	for (uint32_t id = b->nr - 1; id > 0; id--) {	/* from the last id down, so that the ids in
							 * a list ascend */
		const char *name = pb_bpf_btf_name(b, b->types[id]);
		uint32_t *head;

		if (!name[0])
			continue;
		head = &b->first[pb_bpf_btf_hash(name, pb_bpf_btf_essential(name)) & b->mask];
		b->next[id] = *head;
		*head = id;
	}
	return 0;
}
