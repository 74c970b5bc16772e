/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Checks loads and stores. A table has one check for each pointer type that allows accesses. The
 * check decides whether the access is allowed. For a load, it also sets what the verifier knows of
 * the loaded value.
 */
#include "bpf/verifier/access.h"
#include "bpf/verifier/env.h"
#include "bpf/verifier/log.h"
#include "bpf/verifier/precise.h"
#include "bpf/verifier/stack_slots.h"
#include "bpf/verifier/state.h"

bool pbv_leaks(const struct env *env, unsigned n)
{
	return !env->ptr_leaks && cur_regs(env)[n].type != SCALAR;
}

bool pbv_map_is_constant(const struct pb_bpf_map *m)
{
	return m->attr.flags & BPF_F_RDONLY_PROG && m->frozen;
}

/* Returns the kernel's name for the structure of a map of this type. */
static const char *map_struct(uint32_t type)
{
	switch (type) {
	case BPF_MAP_TYPE_ARRAY: case BPF_MAP_TYPE_PERCPU_ARRAY: case BPF_MAP_TYPE_PROG_ARRAY:
	case BPF_MAP_TYPE_PERF_EVENT_ARRAY: case BPF_MAP_TYPE_CGROUP_ARRAY:
	case BPF_MAP_TYPE_ARRAY_OF_MAPS:
		return "bpf_array";
	case BPF_MAP_TYPE_HASH: case BPF_MAP_TYPE_PERCPU_HASH: case BPF_MAP_TYPE_LRU_HASH:
	case BPF_MAP_TYPE_LRU_PERCPU_HASH: case BPF_MAP_TYPE_HASH_OF_MAPS:
		return "bpf_htab";
	case BPF_MAP_TYPE_LPM_TRIE:
		return "lpm_trie";
	case BPF_MAP_TYPE_QUEUE: case BPF_MAP_TYPE_STACK:
		return "bpf_queue_stack";
	case BPF_MAP_TYPE_RINGBUF:
		return "bpf_ringbuf_map";
	case BPF_MAP_TYPE_STACK_TRACE:
		return "bpf_stack_map";
	default:
		return "bpf_map";
	}
}

/* ---- regions of memory --------------------------------------------------------------- */

static int in_region(struct env *env, unsigned n, int64_t off, int size, uint32_t mem_size,
		     bool zero_ok)
{
	const struct reg *r = &cur_regs(env)[n];
	int o = (int)off;

	if (o >= 0 && (size > 0 || (!size && zero_ok)) && (uint64_t)o + (uint64_t)size <= mem_size)
		return 0;
	switch (r->flags ? NOT_INIT : r->type) {
	case TO_MAP_KEY:
		return refuse(env, EACCES,
			      "invalid access to map key, key_size=%d off=%d size=%d\n",
			      (int)mem_size, o, size);
	case TO_MAP_VALUE:
		return refuse(env, EACCES,
			      "invalid access to map value, value_size=%d off=%d size=%d\n",
			      (int)mem_size, o, size);
	case TO_PACKET: case TO_PACKET_META: case TO_PACKET_END:
		return refuse(env, EACCES,
			      "invalid access to packet, off=%d size=%d, R%d(id=%d,off=%d,r=%d)\n",
			      o, size, n, (int)r->id, o, (int)mem_size);
	default:
		return refuse(env, EACCES, "invalid access to memory, mem_size=%u off=%d size=%d\n",
			      mem_size, o, size);
	}
}

#define NEGATIVE \
	"R%d min value is negative, either use unsigned index or do a if (index >=0) check.\n"

/* Checks the lowest and the highest address that the access may reach. */
int pbv_check_region(struct env *env, unsigned n, int off, int size, uint32_t mem_size,
		     bool zero_ok)
{
	const struct range *r = &cur_regs(env)[n].wide;
	int64_t least = off + r->smin;
	int err;

	if (r->smin < 0 && (r->smin == INT64_MIN || least != (int32_t)least || least < 0))
		return refuse(env, EACCES, NEGATIVE, n);
	err = in_region(env, n, least, size, mem_size, zero_ok);
	if (err) {
		log(env, "R%d min value is outside of the allowed memory range\n", n);
		return err;
	}
	if (r->umax >= MAX_VAR_OFF)
		return refuse(env, EACCES, "R%d unbounded memory access, make sure to bounds check "
					   "any such access\n",
			      n);
	err = in_region(env, n, (int64_t)r->umax + off, size, mem_size, zero_ok);
	if (err)
		log(env, "R%d max value is outside of the allowed memory range\n", n);
	return err;
}

int pbv_check_unmodified(struct env *env, const struct reg *r, unsigned n, bool fixed_ok)
{
	if (r->off < 0)
		return refuse(env, EACCES, "negative offset %s ptr R%d off=%d disallowed\n",
			      type_name(r), n, r->off);
	if (!fixed_ok && r->off)
		return refuse(env, EACCES, "dereference of modified %s ptr R%d off=%d disallowed\n",
			      type_name(r), n, r->off);
	if (!tnum_is(r->var, 0))
		return refuse(env, EACCES, "variable %s access var_off=%s disallowed\n",
			      type_name(r), tnum_text(r->var));
	return 0;
}

/* ---- maps ------------------------------------------------------------------------------- */

int pbv_check_map_rights(struct env *env, unsigned n, int off, int size, bool write)
{
	const struct pb_bpf_map *m = cur_regs(env)[n].map;

	if (!(m->attr.flags & (write ? BPF_F_RDONLY_PROG : BPF_F_WRONLY_PROG)))
		return 0;
	return refuse(env, EACCES, "%s map forbidden, value_size=%d off=%d size=%d\n",
		      write ? "write into" : "read from", (int)m->attr.value_size, off, size);
}

static bool touches(const struct reg *r, int off, int size, uint32_t at, uint32_t len)
{
	return r->wide.smin + off < (int64_t)at + len &&
	       at < r->wide.umax + (uint64_t)(int64_t)off + (uint64_t)size;
}

static int check_kptrs(struct env *env, const struct reg *r, int off, int size, bool helper)
{
	const struct pb_bpf_map_types *t = &r->map->types;

	for (uint32_t i = 0; i < t->nr_kptrs; i++) {
		uint32_t at = t->kptrs[i].off;

		if (!touches(r, off, size, at, 8))
			continue;
		if (helper)
			return refuse(env, EACCES,
				      "kptr cannot be accessed indirectly by helper\n");
		if (!tnum_is_const(r->var))
			return refuse(env, EACCES, "kptr access cannot have variable offset\n");
		if (at != (uint64_t)(int64_t)off + r->var.value)
			return refuse(env, EACCES, "kptr access misaligned expected=%u off=%lu\n",
				      at, (uint64_t)(int64_t)off + r->var.value);
		if (size != 8)
			return refuse(env, EACCES, "kptr access size must be BPF_DW\n");
		break;
	}
	return 0;
}

int pbv_check_map_access(struct env *env, unsigned n, int off, int size, bool zero_ok, bool helper)
{
	const struct reg *r = &cur_regs(env)[n];
	const struct pb_bpf_map_types *t = &r->map->types;
	int err = pbv_check_region(env, n, off, size, r->map->attr.value_size, zero_ok);

	if (err)
		return err;
	if (t->spin_lock_off >= 0 && touches(r, off, size, (uint32_t)t->spin_lock_off, 4))
		return refuse(env, EACCES,
			      "bpf_spin_lock cannot be accessed directly by load/store\n");
	if (t->timer_off >= 0 && touches(r, off, size, (uint32_t)t->timer_off, 16))
		return refuse(env, EACCES, "bpf_timer cannot be accessed directly by load/store\n");
	return check_kptrs(env, r, off, size, helper);
}

/* ---- packets -------------------------------------------------------------------------------- */

bool pbv_may_access_packet(struct env *env, const struct pb_bpf_helper *helper, bool write)
{
	const struct pb_bpf_type *type = env->v->type;

	if (!type->packet || (write && !type->packet_writable))
		return false;
	return !helper || helper->flags & PB_BPF_HELPER_PKT;
}

int pbv_check_packet(struct env *env, unsigned n, int off, int size, bool zero_ok)
{
	const struct reg *r = &cur_regs(env)[n];
	int err;

	if (r->wide.smin < 0)
		return refuse(env, EACCES, NEGATIVE, n);
	err = r->range < 0 ? -EINVAL : in_region(env, n, off, size, (uint32_t)r->range, zero_ok);
	if (err)
		log(env, "R%d offset is outside of the packet\n", n);
	return err;
}

/* ---- alignment ----------------------------------------------------------------------------- */

int pbv_check_alignment(struct env *env, const struct reg *r, int off, int size, bool strict)
{
	static const char *const names[NR_REG_TYPES] = {
		[TO_FLOW_KEYS] = "flow keys ", [TO_MAP_KEY] = "key ", [TO_MAP_VALUE] = "value ",
		[TO_CTX] = "context ", [TO_STACK] = "stack ", [TO_SOCKET] = "sock ",
		[TO_SOCK_COMMON] = "sock_common ", [TO_TCP_SOCK] = "tcp_sock ",
		[TO_XDP_SOCK] = "xdp_sock ",
	};
	bool packet = reg_is_packet(r) && !r->flags;
	int shift = packet ? 2 : 0;	/* the kernel's NET_IP_ALIGN: the data after Ethernet's 14
					 * bytes are at a multiple of 4 */
	const char *name = !r->flags && names[r->type] ? names[r->type] : "";

	/* accesses to the stack must be aligned, because a spilled register fills a slot */
	strict |= env->strict || reg_is(r, TO_STACK);
	if (!strict || size == 1 ||
	    tnum_aligned(tnum_add(r->var, tnum_of((uint64_t)(int64_t)(shift + r->off + off))),
			 (uint64_t)size))
		return 0;
	if (packet)
		return refuse(env, EACCES, "misaligned packet access off %d+%s+%d+%d size %d\n",
			      shift, tnum_text(r->var), r->off, off, size);
	return refuse(env, EACCES, "misaligned %saccess off %s+%d+%d size %d\n", name,
		      tnum_text(r->var), r->off, off, size);
}

/* ---- one access ---------------------------------------------------------------------------- */

struct access {
	unsigned n;		/* the pointer's register */
	int off, size, value;
	bool write;
};

static int leak_into(struct env *env, const struct access *a, const char *what)
{
	if (!a->write || a->value < 0 || !pbv_leaks(env, (unsigned)a->value))
		return 0;
	return refuse(env, EACCES, "R%d leaks addr into %s\n", a->value, what);
}

/* Loads a value of which nothing is known. */
static void load_any(struct env *env, const struct access *a)
{
	if (!a->write && a->value >= 0)
		pbv_reg_make_scalar(&cur_regs(env)[a->value], !env->capable);
}

static int access_map_key(struct env *env, const struct reg *r, const struct access *a)
{
	int err;

	if (a->write)
		return refuse(env, EACCES, "write to change key R%d not allowed\n", a->n);
	err = pbv_check_region(env, a->n, a->off, a->size, r->map->attr.key_size, false);
	if (!err)
		load_any(env, a);
	return err;
}

static const struct pb_bpf_kptr *kptr_at(const struct pb_bpf_map *m, uint64_t off)
{
	for (uint32_t i = 0; i < m->types.nr_kptrs; i++)
		if (m->types.kptrs[i].off == off)
			return &m->types.kptrs[i];
	return NULL;
}

static int check_kptr_type(struct env *env, const struct pb_bpf_kptr *k, const struct reg *v,
			   unsigned n)
{
	unsigned allowed = MAYBE_NULL | (k->referenced ? 0u : UNTRUSTED);

	if (v->type == TO_BTF && !(v->flags & ~allowed)) {
		int err = pbv_check_unmodified(env, v, n, true);

		if (err || (!v->off && !strcmp(v->btf, k->name)))
			return err;
	}
	log(env, "invalid kptr access, R%d type=%s%s ", n, type_name(v),
	    v->type == TO_BTF ? v->btf : "");
	log(env, "expected=ptr_%s", k->name);
	if (k->referenced)
		return refuse(env, EACCES, "\n");
	return refuse(env, EACCES, " or untrusted_ptr_%s\n", k->name);
}

static int access_kptr(struct env *env, const struct pb_bpf_kptr *k, const struct access *a)
{
	const struct bpf_insn *insn = &env->insns[env->insn];
	unsigned form = pb_bpf_ops[env->ops[env->insn]].form;
	struct reg *v = a->value >= 0 ? &cur_regs(env)[a->value] : NULL;

	if (form != PB_BPF_LDX && form != PB_BPF_STX && form != PB_BPF_ST)
		return refuse(env, EACCES,
			      "kptr in map can only be accessed using BPF_MEM instruction mode\n");
	if (form != PB_BPF_LDX && k->referenced)
		return refuse(env, EACCES, "store to referenced kptr disallowed\n");
	if (form == PB_BPF_ST && insn->imm)
		return refuse(env, EACCES, "BPF_ST imm must be 0 when storing to kptr at off=%u\n",
			      k->off);
	if (form == PB_BPF_STX && v)
		return reg_is_null(v) ? pbv_precise_reg(env, (unsigned)a->value) :
					check_kptr_type(env, k, v, (unsigned)a->value);
	if (form == PB_BPF_LDX && v) {
		pbv_reg_make(v, TO_BTF, MAYBE_NULL | UNTRUSTED);
		v->btf = k->name;
		v->btf_size = k->size;
		v->id = ++env->ids;
	}
	return 0;
}

static uint64_t constant_at(const char *p, int size)
{
	uint64_t v = 0;

	memcpy(&v, p, (size_t)size);
	return v;
}

static int access_map_value(struct env *env, const struct reg *r, const struct access *a)
{
	const struct pb_bpf_map *m = r->map;
	const struct pb_bpf_kptr *k;
	int err = leak_into(env, a, "map");
	const char *values;

	if (!err)
		err = pbv_check_map_rights(env, a->n, a->off, a->size, a->write);
	if (!err)
		err = pbv_check_map_access(env, a->n, a->off, a->size, false, false);
	if (err)
		return err;
	k = tnum_is_const(r->var) ? kptr_at(m, (uint64_t)(int64_t)a->off + r->var.value) : NULL;
	if (k)
		return access_kptr(env, k, a);
	/* if the map is constant and has only one value, a load gives a known number */
	values = !a->write && a->value >= 0 && tnum_is_const(r->var) && pbv_map_is_constant(m) &&
		 m->attr.max_entries == 1 && m->ops && m->ops->direct ?
		 m->ops->direct((struct pb_bpf_map *)m, 0) : NULL;
	if (values)
		pbv_reg_make_const(&cur_regs(env)[a->value],
				   constant_at(values + a->off + (int64_t)r->var.value, a->size));
	else
		load_any(env, a);
	return 0;
}

static int access_mem(struct env *env, const struct reg *r, const struct access *a)
{
	int err;

	if (r->flags & MAYBE_NULL)
		return refuse(env, EACCES, "R%d invalid mem access '%s'\n", a->n, type_name(r));
	if (a->write && r->flags & RDONLY)
		return refuse(env, EACCES, "R%d cannot write into %s\n", a->n, type_name(r));
	err = leak_into(env, a, "mem");
	if (!err)
		err = pbv_check_region(env, a->n, a->off, a->size, r->mem_size, false);
	if (!err)
		load_any(env, a);
	return err;
}

static void load_field(struct env *env, unsigned kind, struct reg *v)
{
	static const struct { uint8_t type, flags; } types[] = {
		[PB_BPF_FIELD_SCALAR] = { SCALAR }, [PB_BPF_FIELD_PKT] = { TO_PACKET },
		[PB_BPF_FIELD_PKT_META] = { TO_PACKET_META },
		[PB_BPF_FIELD_PKT_END] = { TO_PACKET_END },
		[PB_BPF_FIELD_FLOW_KEYS] = { TO_FLOW_KEYS },
		[PB_BPF_FIELD_SOCK_COMMON] = { TO_SOCK_COMMON, MAYBE_NULL },
		[PB_BPF_FIELD_SOCKET] = { TO_SOCKET },
	};

	if (kind == PB_BPF_FIELD_SCALAR) {
		pbv_reg_make_scalar(v, !env->capable);
		return;
	}
	pbv_reg_make(v, types[kind].type, types[kind].flags);
	if (v->flags & MAYBE_NULL)
		v->id = ++env->ids;
}

static int access_ctx(struct env *env, const struct reg *r, const struct access *a)
{
	const struct pb_bpf_verify *v = env->v;
	struct pb_bpf_ctx_access field;
	int err = leak_into(env, a, "ctx");

	if (!err)
		err = pbv_check_unmodified(env, r, a->n, false);
	if (err)
		return err;
	if (pb_bpf_ctx_access(v->type, v->caps, v->attach_type, a->off, a->size, a->write,
			      &field)) {
		log(env, "invalid bpf_context access off=%d size=%d\n", a->off, a->size);
		pbv_log_line(env, env->insn, "; ");
		return -EACCES;
	}
	if (env->ctx_needed < (uint32_t)(a->off + a->size))
		env->ctx_needed = (uint32_t)(a->off + a->size);
	if (!a->write && a->value >= 0)
		load_field(env, field.kind, &cur_regs(env)[a->value]);
	return 0;
}

static int access_stack(struct env *env, const struct reg *r, const struct access *a)
{
	int err = pbv_stack_bounds(env, a->n, a->off, a->size, false, a->write);

	if (err)
		return err;
	return a->write ? pbv_stack_write(env, a->n, a->off, a->size, a->value) :
			  pbv_stack_read(env, a->n, a->off, a->size, a->value);
}

static int access_packet(struct env *env, const struct reg *r, const struct access *a)
{
	int err;

	if (a->write && !pbv_may_access_packet(env, NULL, true))
		return refuse(env, EACCES, "cannot write into packet\n");
	err = leak_into(env, a, "packet");
	if (!err)
		err = pbv_check_packet(env, a->n, a->off, a->size, false);
	if (!err)
		load_any(env, a);
	return err;
}

static int access_flow_keys(struct env *env, const struct reg *r, const struct access *a)
{
	int err = leak_into(env, a, "flow keys");

	if (err)
		return err;
	if (a->off < 0 || (size_t)a->off + (size_t)a->size > sizeof(struct bpf_flow_keys))
		return refuse(env, EACCES, "invalid access to flow keys off=%d size=%d\n", a->off,
			      a->size);
	load_any(env, a);
	return 0;
}

static int access_sock(struct env *env, const struct reg *r, const struct access *a)
{
	static const uint8_t kinds[NR_REG_TYPES] = {
		[TO_SOCKET] = PB_BPF_SOCK_FULL, [TO_SOCK_COMMON] = PB_BPF_SOCK_COMMON,
		[TO_TCP_SOCK] = PB_BPF_SOCK_TCP, [TO_XDP_SOCK] = PB_BPF_SOCK_XDP,
	};
	struct pb_bpf_ctx_access field;

	if (a->write)
		return refuse(env, EACCES, "R%d cannot write into %s\n", a->n, type_name(r));
	if (r->wide.smin < 0)
		return refuse(env, EACCES, NEGATIVE, a->n);
	if (pb_bpf_sock_access(kinds[r->type], a->off, a->size, a->write, &field))
		return refuse(env, EACCES, "R%d invalid %s access off=%d size=%d\n", a->n,
			      type_name(r), a->off, a->size);
	load_any(env, a);
	return 0;
}

int pbv_check_buffer(struct env *env, const struct reg *r, unsigned n, int off, int size,
		     const char *what)
{
	if (off < 0)
		return refuse(env, EACCES, "R%d invalid %s buffer access: off=%d, size=%d\n", n,
			      what, off, size);
	if (!tnum_is(r->var, 0))
		return refuse(env, EACCES,
			      "R%d invalid variable buffer offset: off=%d, var_off=%s\n", n, off,
			      tnum_text(r->var));
	return 0;
}

/* Checks an access to a structure of the kernel. A load that faults returns 0. */
static int access_btf(struct env *env, const struct reg *r, const struct access *a)
{
	if (a->off < 0)
		return refuse(env, EACCES, "R%d is ptr_%s invalid negative access: off=%d\n", a->n,
			      r->btf, a->off);
	if (!tnum_is(r->var, 0))
		return refuse(env, EACCES,
			      "R%d is ptr_%s invalid variable offset: off=%d, var_off=%s\n", a->n,
			      r->btf, a->off, tnum_text(r->var));
	if (r->flags & USER)
		return refuse(env, EACCES, "R%d is ptr_%s access user memory: off=%d\n", a->n,
			      r->btf, a->off);
	if (r->flags & PERCPU)
		return refuse(env, EACCES, "R%d is ptr_%s access percpu memory: off=%d\n", a->n,
			      r->btf, a->off);
	if (a->write)
		return refuse(env, EACCES, "only read is supported\n");
	if (r->btf_size && (uint32_t)(a->off + a->size) > r->btf_size)
		return refuse(env, EACCES, "access beyond struct %s at off %d size %d\n", r->btf,
			      a->off, a->size);
	load_any(env, a);
	return 0;
}

static int access_buf(struct env *env, const struct reg *r, const struct access *a)
{
	int err;

	if (a->write && r->flags & RDONLY)
		return refuse(env, EACCES, "R%d cannot write into %s\n", a->n, type_name(r));
	err = pbv_check_buffer(env, r, a->n, a->off, a->size, r->flags & RDONLY ? "rdonly" :
			       "rdwr");
	if (!err)
		load_any(env, a);
	return err;
}

/* Checks an access through a pointer to a map. A program may read only the first member of the
 * map's structure. */
static int access_map_ptr(struct env *env, const struct reg *r, const struct access *a)
{
	const char *name = map_struct(r->map->attr.type);

	if (!env->ptr_leaks)
		return refuse(env, EPERM,
			      "%s access is allowed only to CAP_PERFMON and CAP_SYS_ADMIN\n", name);
	if (a->off < 0)
		return refuse(env, EACCES, "R%d is %s invalid negative access: off=%d\n", a->n,
			      name, a->off);
	if (a->write)
		return refuse(env, EACCES, "only read from %s is supported\n", name);
	if (a->off || a->size != 8)
		return refuse(env, EACCES,
			      "cannot access ptr member ops with moff 0 in struct bpf_map with off "
			      "%d size %d\n",
			      a->off, a->size);
	if (a->value >= 0) {
		struct reg *v = &cur_regs(env)[a->value];

		pbv_reg_make(v, TO_BTF, 0);
		v->btf = "bpf_map_ops";
	}
	return 0;
}

int pbv_check_mem(struct env *env, unsigned n, int off, int size, bool write, int value,
		  bool strict)
{
	static int (*const checks[NR_REG_TYPES])(struct env *, const struct reg *,
						 const struct access *) = {
		[TO_MAP_KEY] = access_map_key, [TO_MAP_VALUE] = access_map_value,
		[TO_MEM] = access_mem, [TO_CTX] = access_ctx, [TO_STACK] = access_stack,
		[TO_PACKET] = access_packet, [TO_PACKET_META] = access_packet,
		[TO_FLOW_KEYS] = access_flow_keys, [TO_SOCKET] = access_sock,
		[TO_SOCK_COMMON] = access_sock, [TO_TCP_SOCK] = access_sock,
		[TO_XDP_SOCK] = access_sock, [TO_BTF] = access_btf, [TO_BUF] = access_buf,
		[MAP_PTR] = access_map_ptr,
	};
	const struct reg *r = &cur_regs(env)[n];
	struct access a = { .n = n, .off = off + r->off, .size = size, .value = value,
		.write = write };
	int err = pbv_check_alignment(env, r, off, size, strict);

	if (err)
		return err;
	if (!checks[r->type] || (r->flags & MAYBE_NULL && r->type != TO_MEM))
		return refuse(env, EACCES, "R%d invalid mem access '%s'\n", n, type_name(r));
	err = checks[r->type](env, r, &a);
	if (!err && size < 8 && value >= 0 && !write && cur_regs(env)[value].type == SCALAR)
		pbv_reg_cut(&cur_regs(env)[value], size);
	return err;
}
