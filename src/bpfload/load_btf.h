/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Reads BTF from bytes that are not trusted. pb_bpf_btf_open() accepts BTF only if every record is
 * inside the bytes, and every type number is below `nr`. It doesn't check the names of an
 * enumeration's values. So pb_bpf_btf_str() reads a name outside of the bytes as an empty name.
 * Chains of types may form circles, so code that follows a chain must count its steps, as the
 * functions of this file do. Source of the format: Documentation/bpf/btf.rst, linux/btf.h.
 *
 * Context: any thread, libc. Opened BTF isn't changed, except by pb_bpf_btf_index().
 */
#ifndef PB_BPFLOAD_LOAD_BTF_H
#define PB_BPFLOAD_LOAD_BTF_H
#include <linux/btf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PB_BPF_BTF_DEPTH	32	/* limit on modifiers, typedefs and arrays in one chain */

struct pb_bpf_btf {
	uint8_t *data;			/* malloc */
	const char *strings;
	uint32_t strings_size;
	uint32_t nr;			/* number of types; type 0 is void */
	const struct btf_type **types;
	uint32_t *first, *next;		/* lists of types by name without flavour; see
					 * pb_bpf_btf_index() */
	uint32_t mask;
};

/* Copies the bytes. Returns 0, -EINVAL or -ENOMEM. After an error, *why is the reason. */
int pb_bpf_btf_open(const void *bytes, size_t size, struct pb_bpf_btf **btf, const char **why);
/* Like pb_bpf_btf_open(), but reads a file: raw BTF, or an ELF file with a section .BTF. */
int pb_bpf_btf_open_file(const char *path, struct pb_bpf_btf **btf, const char **why);
void pb_bpf_btf_close(struct pb_bpf_btf *btf);

static inline uint32_t pb_btf_kind(const struct btf_type *t)
{
	return BTF_INFO_KIND(t->info);
}
static inline uint32_t pb_btf_vlen(const struct btf_type *t)
{
	return BTF_INFO_VLEN(t->info);
}
static inline bool pb_btf_is_composite(const struct btf_type *t)
{
	return pb_btf_kind(t) == BTF_KIND_STRUCT || pb_btf_kind(t) == BTF_KIND_UNION;
}
static inline bool pb_btf_is_enum(const struct btf_type *t)
{
	return pb_btf_kind(t) == BTF_KIND_ENUM || pb_btf_kind(t) == BTF_KIND_ENUM64;
}
static inline const struct btf_member *pb_btf_members(const struct btf_type *t)
{
	return (const struct btf_member *)(t + 1);
}
static inline const struct btf_param *pb_btf_params(const struct btf_type *t)
{
	return (const struct btf_param *)(t + 1);
}
static inline const struct btf_array *pb_btf_array(const struct btf_type *t)
{
	return (const struct btf_array *)(t + 1);
}
static inline const struct btf_var_secinfo *pb_btf_vars(const struct btf_type *t)
{
	return (const struct btf_var_secinfo *)(t + 1);
}
/* Returns the word after the type's header. For an INT the word has the encoding, for a VAR the
 * linkage. */
static inline uint32_t pb_btf_int(const struct btf_type *t)
{
	return *(const uint32_t *)(t + 1);
}
/* Returns the offset of member i, in bits. */
static inline uint32_t pb_btf_member_bits(const struct btf_type *t, uint32_t i)
{
	uint32_t off = pb_btf_members(t)[i].offset;

	return BTF_INFO_KFLAG(t->info) ? BTF_MEMBER_BIT_OFFSET(off) : off;
}
/* Returns the size of bit field i, in bits. 0: member i isn't a bit field. */
static inline uint32_t pb_btf_member_bitfield(const struct btf_type *t, uint32_t i)
{
	return BTF_INFO_KFLAG(t->info) ? BTF_MEMBER_BITFIELD_SIZE(pb_btf_members(t)[i].offset) : 0;
}

/* Returns NULL for void, and if there is no type with this id. */
const struct btf_type *pb_bpf_btf_type(const struct pb_bpf_btf *btf, uint32_t id);
/* Never NULL. */
const char *pb_bpf_btf_str(const struct pb_bpf_btf *btf, uint32_t off);
static inline const char *pb_bpf_btf_name(const struct pb_bpf_btf *btf, const struct btf_type *t)
{
	return pb_bpf_btf_str(btf, t->name_off);
}
/* Skips const, volatile, restrict and type tags, and also typedefs if `typedefs` is true. *id
 * becomes the number of the returned type. id may be NULL. Returns NULL for void (*id becomes 0),
 * and if more than PB_BPF_BTF_DEPTH types would be skipped (*id doesn't change). */
const struct btf_type *pb_bpf_btf_skip(const struct pb_bpf_btf *btf, uint32_t type, bool typedefs,
				       uint32_t *id);
/* Returns the size of a type in bytes, or -EINVAL. */
int64_t pb_bpf_btf_size(const struct pb_bpf_btf *btf, uint32_t id);
/* Returns the i-th value of an enumeration, and sets *name to its name. The enumeration's values
 * may have 32 or 64 bits. */
uint64_t pb_bpf_btf_enum(const struct pb_bpf_btf *btf, const struct btf_type *t, uint32_t i,
			 const char **name);
/* Returns the number of the type with this name and kind; 0: there is no such type. */
uint32_t pb_bpf_btf_find(const struct pb_bpf_btf *btf, const char *name, uint32_t kind);
/* Returns the name of the type's kind: "struct", "typedef", ... */
const char *pb_bpf_btf_kind_name(const struct btf_type *t);

/* Sets the offset of variable `number` of a DATASEC. */
void pb_bpf_btf_place(struct pb_bpf_btf *btf, uint32_t datasec, uint32_t number, uint32_t off);

/* Returns the length of a name without its flavour. The flavour is the last "___" with all
 * characters after it, for example "___old" in "task_struct___old". The characters next to "___"
 * must not be "_". */
size_t pb_bpf_btf_essential(const char *name);
/*
 * Indexes types by name without flavour, in lists: first[hash & mask], then next[id]; 0 ends a
 * list. Returns 0 or -ENOMEM. During the call, no other thread may call this function for the same
 * BTF, or use its index.
 */
int pb_bpf_btf_index(struct pb_bpf_btf *btf);
uint32_t pb_bpf_btf_hash(const char *name, size_t n);
#endif
