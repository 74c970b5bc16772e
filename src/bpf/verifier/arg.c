/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Checks a helper's arguments against its prototype. */
#include "bpf/verifier/access.h"
#include "bpf/verifier/branch.h"
#include "bpf/verifier/env.h"
#include "bpf/verifier/helper_call.h"
#include "bpf/verifier/live.h"
#include "bpf/verifier/log.h"
#include "bpf/verifier/precise.h"
#include "bpf/verifier/stack_slots.h"
#include "bpf/verifier/state.h"

struct accepted {
	uint8_t type, flags;
};
#define MAX_ACCEPTED 8
#define MEMORY { TO_STACK }, { TO_PACKET }, { TO_PACKET_META }, { TO_MAP_KEY }, { TO_MAP_VALUE }, \
	{ TO_MEM }, { TO_MEM, RESERVED }, { TO_BUF }
#define SOCKETS { TO_SOCK_COMMON }, { TO_SOCKET }, { TO_TCP_SOCK }, { TO_XDP_SOCK }

/* The register types that each kind of argument accepts. NOT_INIT ends a row. */
static const struct accepted accepted[PB_BPF_NR_ARGS][MAX_ACCEPTED + 1] = {
	[PB_BPF_ARG_PTR_TO_MAP_KEY] = { MEMORY },
	[PB_BPF_ARG_PTR_TO_MAP_VALUE] = { MEMORY },
	[PB_BPF_ARG_CONST_SIZE] = { { SCALAR } },
	[PB_BPF_ARG_CONST_SIZE_OR_ZERO] = { { SCALAR } },
	[PB_BPF_ARG_CONST_ALLOC_SIZE_OR_ZERO] = { { SCALAR } },
	[PB_BPF_ARG_CONST_MAP_PTR] = { { MAP_PTR } },
	[PB_BPF_ARG_PTR_TO_CTX] = { { TO_CTX } },
	[PB_BPF_ARG_PTR_TO_SOCK_COMMON] = { SOCKETS },
	[PB_BPF_ARG_PTR_TO_BTF_ID_SOCK_COMMON] = { SOCKETS, { TO_BTF } },
	[PB_BPF_ARG_PTR_TO_SOCKET] = { { TO_SOCKET } },
	[PB_BPF_ARG_PTR_TO_BTF_ID] = { { TO_BTF } },
	[PB_BPF_ARG_PTR_TO_SPIN_LOCK] = { { TO_MAP_VALUE } },
	[PB_BPF_ARG_PTR_TO_MEM] = { MEMORY },
	[PB_BPF_ARG_PTR_TO_ALLOC_MEM] = { { TO_MEM, RESERVED } },
	[PB_BPF_ARG_PTR_TO_PERCPU_BTF_ID] = { { TO_BTF, PERCPU } },
	[PB_BPF_ARG_PTR_TO_FUNC] = { { TO_FUNC } },
	[PB_BPF_ARG_PTR_TO_STACK] = { { TO_STACK } },
	[PB_BPF_ARG_PTR_TO_CONST_STR] = { { TO_MAP_VALUE } },
	[PB_BPF_ARG_PTR_TO_TIMER] = { { TO_MAP_VALUE } },
	[PB_BPF_ARG_PTR_TO_KPTR] = { { TO_MAP_VALUE } },
	[PB_BPF_ARG_PTR_TO_DYNPTR] = { { TO_STACK }, { TO_DYNPTR } },
};

static int refuse_type(struct env *env, unsigned n, const struct reg *r, const struct accepted *a)
{
	log(env, "R%d type=%s expected=", n, type_name(r));
	for (int i = 0; a[i].type; i++)
		log(env, "%s%s", i ? ", " : "", pbv_log_type_name(a[i].type, a[i].flags).s);
	/* the kernel's message also lists trusted pointers, so this message does, too. But Patchbay
	 * doesn't accept trusted pointers here */
	return refuse(env, EACCES, "%s\n", a[0].type == TO_STACK && a[1].type == TO_PACKET ?
		      ", trusted_ptr_" : "");
}

static bool is_a(const char *name, const char *wanted, bool release_sock)
{
	/* all of these begin with a struct sock_common */
	static const char *const socks[] = { "sock_common", "sock", "tcp_sock", "tcp6_sock",
		"udp_sock", "udp6_sock",
					     "tcp_timewait_sock", "tcp_request_sock", "mptcp_sock",
					     "unix_sock" };

	if (!name || !wanted)
		return false;
	if (!strcmp(name, wanted))
		return true;
	for (size_t i = 0; release_sock && i < pb_array_size(socks); i++)
		if (!strcmp(name, socks[i]))
			return true;
	return false;
}

static int check_btf_arg(struct env *env, unsigned n, const struct reg *r,
			 const struct helper_call *call)
{
	unsigned arg = call->proto->arg[n - 1] & PB_BPF_ARG_BASE;
	bool sock = arg == PB_BPF_ARG_PTR_TO_BTF_ID_SOCK_COMMON;
	const char *wanted = sock ? "sock_common" : call->proto->btf[n - 1];

	if (call->id == BPF_FUNC_kptr_xchg) {
		if (call->kptr && !strcmp(r->btf, call->kptr->name))
			return 0;
		return refuse(env, EACCES, "invalid kptr access, R%d type=%s%s expected=ptr_%s\n",
			      n, type_name(r), r->btf, call->kptr ? call->kptr->name : "");
	}
	if (is_a(r->btf, wanted, sock))
		return 0;
	return refuse(env, EACCES, "R%d is of type %s but %s is expected\n", n, r->btf,
		      wanted ? wanted : "another");
}

static int check_type(struct env *env, unsigned n, unsigned arg, const struct helper_call *call)
{
	const struct reg *r = &cur_regs(env)[n];
	const struct accepted *a = accepted[arg & PB_BPF_ARG_BASE];
	struct reg known = *r;
	unsigned flags;

	/* If NULL is allowed, compare the type that the pointer has once it is known not to be
	 * NULL. This may be another type: a value of a map of maps becomes a map, and one of a
	 * sockmap becomes a socket. */
	if (arg & PB_BPF_MAYBE_NULL && r->flags & MAYBE_NULL)
		pbv_known_pointer(env, &known);
	flags = known.flags;
	if (arg & PB_BPF_RDONLY)
		flags &= ~(unsigned)RDONLY;
	for (int i = 0; a[i].type; i++)
		if (known.type == a[i].type && flags == a[i].flags)
			return reg_is(&known, TO_BTF) ? check_btf_arg(env, n, r, call) : 0;
	return refuse_type(env, n, r, a);
}

static int check_offset(struct env *env, unsigned n, const struct reg *r, unsigned arg)
{
	unsigned base = arg & PB_BPF_ARG_BASE;
	bool null = r->flags & MAYBE_NULL;

	if (arg & PB_BPF_RELEASE && r->off && base != PB_BPF_ARG_PTR_TO_DYNPTR)
		return refuse(env, EINVAL,
			      "R%d must have zero offset when passed to release func\n", n);
	switch (null ? NOT_INIT : r->type) {
	case TO_STACK:
		/* Linux 6.1 ignores the pointer's variable part. Here it must be 0 */
		if (base == PB_BPF_ARG_PTR_TO_DYNPTR && !tnum_is(r->var, 0))
			return refuse(env, EINVAL, "dynptr has to be at a constant offset\n");
		if (base == PB_BPF_ARG_PTR_TO_DYNPTR && r->off % SLOT)
			return refuse(env, EINVAL, "cannot pass in dynptr at an offset\n");
		return base == PB_BPF_ARG_PTR_TO_ALLOC_MEM ?
		       pbv_check_unmodified(env, r, n, false) : 0;
	case TO_PACKET: case TO_PACKET_META: case TO_MAP_KEY: case TO_MAP_VALUE: case TO_MEM:
	case TO_BUF: case SCALAR:
		return base == PB_BPF_ARG_PTR_TO_ALLOC_MEM ?
		       pbv_check_unmodified(env, r, n, false) : 0;
	case TO_BTF:
		return pbv_check_unmodified(env, r, n, true);
	default:
		return pbv_check_unmodified(env, r, n, false);
	}
}

/* ---- memory ---------------------------------------------------------------------------------- */

int pbv_helper_memory(struct env *env, unsigned n, int size, bool write, bool zero_ok,
		      struct helper_call *call)
{
	const struct reg *r = &cur_regs(env)[n];
	int err;

	switch (r->type) {
	case TO_PACKET: case TO_PACKET_META:
		return pbv_check_packet(env, n, r->off, size, zero_ok);
	case TO_MAP_KEY:
		if (write)
			return refuse(env, EACCES, "R%d cannot write into %s\n", n, type_name(r));
		return pbv_check_region(env, n, r->off, size, r->map->attr.key_size, false);
	case TO_MAP_VALUE:
		err = pbv_check_map_rights(env, n, r->off, size, write);
		return err ? err : pbv_check_map_access(env, n, r->off, size, zero_ok, true);
	case TO_MEM:
		if (write && r->flags & RDONLY)
			return refuse(env, EACCES, "R%d cannot write into %s\n", n, type_name(r));
		return pbv_check_region(env, n, r->off, size, r->mem_size, zero_ok);
	case TO_BUF:
		if (write && r->flags & RDONLY)
			return refuse(env, EACCES, "R%d cannot write into %s\n", n, type_name(r));
		return pbv_check_buffer(env, r, n, r->off, size, r->flags & RDONLY ? "rdonly" :
					"rdwr");
	case TO_STACK:
		return pbv_stack_initialized(env, n, r->off, size, zero_ok, true, call);
	default:
		if (zero_ok && !size && reg_is_null(r))
			return pbv_precise_reg(env, n);
		return refuse(env, EACCES, "R%d type=%s expected=fp\n", n, type_name(r));
	}
}

/* Checks the memory that register n - 1 points to. The memory's size is in register n. */
static int check_size(struct env *env, unsigned n, bool write, bool zero_ok,
		      struct helper_call *call)
{
	const struct reg *r = &cur_regs(env)[n];
	int err;

	call->most_size = r->wide.umax;
	/* if the size isn't known, the helper may leave bytes unwritten, so all bytes must be
	 * initialised */
	if (!tnum_is_const(r->var))
		call = NULL;
	if (r->wide.smin < 0)
		return refuse(env, EACCES,
			      "R%d min value is negative, either use unsigned or 'var &= const'\n",
			      n);
	if (!r->wide.umin && !zero_ok)
		return refuse(env, EACCES, "R%d invalid zero-sized read: u64=[%ld,%ld]\n", n,
			      (int64_t)r->wide.umin, (int64_t)r->wide.umax);
	if (r->wide.umax >= MAX_VAR_SIZE)
		return refuse(env, EACCES,
			      "R%d unbounded memory access, use 'var &= const' or 'if (var < "
			      "const)'\n", n);
	err = pbv_helper_memory(env, n - 1, (int)r->wide.umax, write, zero_ok, call);
	return err ? err : pbv_precise_reg(env, n);
}

/* ---- parts of values ----------------------------------------------------------------------- */

/* Checks that r points exactly to the lock or timer in a map's value, at offset `at`. */
static int part_of_value(struct env *env, unsigned n, const struct reg *r, const char *what,
			 int32_t at)
{
	int64_t off = (int64_t)r->var.value + r->off;

	if (!tnum_is_const(r->var))
		return refuse(env, EACCES,
			      "R%d doesn't have constant offset. bpf_%s has to be at the constant "
			      "offset\n", n, what);
	if (!r->map->types.btf_value)
		return refuse(env, EACCES, "map '%s' has to have BTF in order to use bpf_%s\n",
			      r->map->name, what);
	if (at < 0)
		return refuse(env, EACCES, "map '%s' doesn't have 'struct bpf_%s'\n", r->map->name,
			      what);
	if (at != off && !strcmp(what, "timer"))
		return refuse(env, EACCES,
			      "off %ld doesn't point to 'struct bpf_timer' that is at %d\n", off,
			      at);
	if (at != off)
		return refuse(env, EACCES, "off %ld doesn't point to 'struct bpf_spin_lock'\n",
			      off);
	return 0;
}

static int check_spin_lock(struct env *env, unsigned n, const struct reg *r, bool lock)
{
	struct state *st = env->cur;
	int err = part_of_value(env, n, r, "spin_lock", r->map->types.spin_lock_off);

	if (err)
		return err;
	if (lock && st->lock)
		return refuse(env, EACCES, "Locking two bpf_spin_locks are not allowed\n");
	if (!lock && !st->lock)
		return refuse(env, EACCES, "bpf_spin_unlock without taking a lock\n");
	if (!lock && st->lock != r->id)
		return refuse(env, EACCES, "bpf_spin_unlock of different lock\n");
	st->lock = lock ? r->id : 0;
	return 0;
}

static int check_kptr(struct env *env, unsigned n, const struct reg *r, struct helper_call *call)
{
	const struct pb_bpf_map_types *t = &r->map->types;
	uint64_t off = (uint64_t)(int64_t)r->off + r->var.value;

	if (!tnum_is_const(r->var))
		return refuse(env, EACCES,
			      "R%d doesn't have constant offset. kptr has to be at the constant "
			      "offset\n", n);
	if (!t->btf_value)
		return refuse(env, EACCES,
			      "map '%s' has to have BTF in order to use bpf_kptr_xchg\n",
			      r->map->name);
	if (!t->nr_kptrs)
		return refuse(env, EACCES, "map '%s' has no valid kptr\n", r->map->name);
	call->map = r->map;
	for (uint32_t i = 0; i < t->nr_kptrs; i++)
		if (t->kptrs[i].off == off)
			call->kptr = &t->kptrs[i];
	if (!call->kptr)
		return refuse(env, EACCES, "off=%d doesn't point to kptr\n", (int)off);
	if (!call->kptr->referenced)
		return refuse(env, EACCES, "off=%d kptr isn't referenced kptr\n", (int)off);
	return 0;
}

static int check_string(struct env *env, unsigned n, const struct reg *r)
{
	const struct pb_bpf_map *m = r->map;
	const char *values = m->ops && m->ops->direct && m->attr.max_entries == 1 ?
			     m->ops->direct((struct pb_bpf_map *)m, 0) : NULL;
	int64_t off = r->off + (int64_t)r->var.value;
	int err;

	if (!pbv_map_is_constant(m))
		return refuse(env, EACCES, "R%d does not point to a readonly map'\n", n);
	if (!tnum_is_const(r->var))
		return refuse(env, EACCES, "R%d is not a constant address'\n", n);
	if (!values)
		return refuse(env, EACCES, "no direct value access support for this map type\n");
	err = pbv_check_map_access(env, n, r->off, (int)m->attr.value_size - r->off, false, true);
	if (err)
		return err;
	for (; off < (int64_t)m->attr.value_size; off++)
		if (!values[off])
			return 0;
	return refuse(env, EINVAL, "string is not zero-terminated\n");
}

/* ---- dynptrs: two slots of stack ----------------------------------------------------------- */

static struct slot *dynptr_slots(struct env *env, const struct reg *r)
{
	struct frame *f = frame_of(env, r);
	int n = (-r->off - 1) / SLOT;

	return n >= 1 && n < (int)f->nr_slots ? &f->slots[n] : NULL;
}

/* Whether the slots s[0] and s[-1] (at the higher address) have bytes of a dynptr. If `all` is set,
 * all 16 bytes must be such bytes. */
static bool dynptr_bytes(const struct slot *s, bool all)
{
	int n = 0;

	for (int i = 0; i < SLOT; i++)
		n += (s[0].type[i] == S_DYNPTR) + (s[-1].type[i] == S_DYNPTR);
	return all ? n == 2 * SLOT : n > 0;
}

static unsigned dynptr_kind(unsigned arg)
{
	return arg & PB_BPF_DYNPTR_LOCAL ? 1 : arg & PB_BPF_DYNPTR_RINGBUF ? 2 : 0;
}

static int check_dynptr(struct env *env, unsigned n, const struct reg *r, unsigned arg,
			struct helper_call *call)
{
	static const char *const names[] = { "<unknown>", "local", "ringbuf" };
	unsigned kind = dynptr_kind(arg);
	struct slot *s;

	/* TO_DYNPTR: an argument of a callback or of a global function. The caller has initialised
	 * this dynptr */
	if (r->type == TO_DYNPTR)
		return !(arg & PB_BPF_UNINIT) ? 0 :
		       refuse(env, EINVAL, "Dynptr has to be an uninitialized dynptr\n");
	s = dynptr_slots(env, r);
	if (arg & PB_BPF_UNINIT) {
		if (s && dynptr_bytes(s, false))
			return refuse(env, EINVAL, "Dynptr has to be an uninitialized dynptr\n");
		call->dynptr_reg = n;
		return 0;
	}
	if (!s || !s->reg.first_slot || !dynptr_bytes(s, true))
		return refuse(env, EINVAL, "Expected an initialized dynptr as arg #%d\n", n);
	pbv_live_read_slot(env, frame_of(env, r), s);
	pbv_live_read_slot(env, frame_of(env, r), s - 1);
	if (kind && s->reg.dynptr != kind)
		return refuse(env, EINVAL, "Expected a dynptr of type %s as arg #%d\n", names[kind],
			      n);
	return 0;
}

int pbv_check_dynptr(struct env *env, unsigned n)
{
	const struct reg *r = &cur_regs(env)[n];
	struct helper_call call = { 0 };
	int err;

	if (!reg_is(r, TO_STACK) && !reg_is(r, TO_DYNPTR))
		return refuse(env, EINVAL,
			      "arg#%d expected pointer to stack or const struct bpf_dynptr\n",
			      (int)n - 1);
	err = check_offset(env, n, r, PB_BPF_ARG_PTR_TO_DYNPTR);
	return err ? err : check_dynptr(env, n, r, PB_BPF_ARG_PTR_TO_DYNPTR, &call);
}

/* ---- one argument -------------------------------------------------------------------------- */

static int note_map(struct env *env, const struct reg *r, struct helper_call *call)
{
	if (call->map && (call->map != r->map || call->map_uid != r->map_uid))
		return refuse(env, EINVAL,
			      "timer pointer in R1 map_uid=%d doesn't match map pointer in R2 "
			      "map_uid=%d\n",
			      (int)call->map_uid, (int)r->map_uid);
	call->map = r->map;
	call->map_uid = r->map_uid;
	return 0;
}

static int note_release(struct env *env, unsigned n, const struct reg *r, unsigned arg,
			struct helper_call *call)
{
	struct slot *s;

	if ((arg & PB_BPF_ARG_BASE) == PB_BPF_ARG_PTR_TO_DYNPTR) {
		s = reg_is(r, TO_STACK) ? dynptr_slots(env, r) : NULL;
		if (!s || !s->reg.id)
			return refuse(env, EINVAL, "arg %d is an unacquired reference\n", n);
	} else if (!r->ref && !reg_is_null(r)) {
		return refuse(env, EINVAL,
			      "R%d must be referenced when passed to release function\n", n);
	}
	if (call->release_reg)
		return refuse(env, EFAULT,
			      "verifier internal error: more than one release argument\n");
	call->release_reg = n;
	return 0;
}

static int note_ref(struct env *env, unsigned n, const struct reg *r, struct helper_call *call)
{
	if (!r->ref)
		return 0;
	if (call->ref)
		return refuse(env, EFAULT, "verifier internal error: more than one arg with "
					   "ref_obj_id R%d %u %u\n", n,
			      r->ref, call->ref);
	call->ref = r->ref;
	return 0;
}

static int check_memory_arg(struct env *env, unsigned n, unsigned arg, struct helper_call *call)
{
	int size = call->proto->size[n - 1], err;

	call->raw = arg & PB_BPF_UNINIT;
	if (!(arg & PB_BPF_FIXED_SIZE))
		return 0;	/* the memory is checked with its size, which is the next
				 * argument */
	err = pbv_helper_memory(env, n, size, arg & PB_BPF_MEM_WRITE, false, call);
	if (err || !(arg & PB_BPF_MEM_ALIGNED))
		return err;
	return pbv_check_alignment(env, &cur_regs(env)[n], 0, size, true);
}

static int check_kind(struct env *env, unsigned n, unsigned arg, struct helper_call *call)
{
	const struct reg *r = &cur_regs(env)[n];

	switch (arg & PB_BPF_ARG_BASE) {
	case PB_BPF_ARG_CONST_MAP_PTR:
		return note_map(env, r, call);
	case PB_BPF_ARG_PTR_TO_MAP_KEY:
		if (!call->map)
			return refuse(env, EACCES, "invalid map_ptr to access map->key\n");
		return pbv_helper_memory(env, n, (int)call->map->attr.key_size, false, false, NULL);
	case PB_BPF_ARG_PTR_TO_MAP_VALUE:
		if (arg & PB_BPF_MAYBE_NULL && reg_is_null(r))
			return 0;
		if (!call->map)
			return refuse(env, EACCES, "invalid map_ptr to access map->value\n");
		call->raw = arg & PB_BPF_UNINIT;
		return pbv_helper_memory(env, n, (int)call->map->attr.value_size,
					 arg & PB_BPF_MEM_WRITE, false, call);
	case PB_BPF_ARG_PTR_TO_PERCPU_BTF_ID:
		call->btf = r->btf;
		return 0;
	case PB_BPF_ARG_PTR_TO_SPIN_LOCK:
		return check_spin_lock(env, n, r, call->id == BPF_FUNC_spin_lock);
	case PB_BPF_ARG_PTR_TO_TIMER:
		call->map_uid = r->map_uid;
		call->map = r->map;
		return part_of_value(env, n, r, "timer", r->map->types.timer_off);
	case PB_BPF_ARG_PTR_TO_FUNC:
		call->subprog = r->subprog;
		return 0;
	case PB_BPF_ARG_PTR_TO_MEM:
		return check_memory_arg(env, n, arg, call);
	case PB_BPF_ARG_CONST_SIZE: case PB_BPF_ARG_CONST_SIZE_OR_ZERO:
		return check_size(env, n, n > 1 && call->proto->arg[n - 2] & PB_BPF_MEM_WRITE,
				  (arg & PB_BPF_ARG_BASE) == PB_BPF_ARG_CONST_SIZE_OR_ZERO, call);
	case PB_BPF_ARG_PTR_TO_DYNPTR:
		return check_dynptr(env, n, r, arg, call);
	case PB_BPF_ARG_CONST_ALLOC_SIZE_OR_ZERO:
		if (!tnum_is_const(r->var))
			return refuse(env, EACCES, "R%d is not a known constant'\n", n);
		call->mem_size = (uint32_t)r->var.value;
		return pbv_precise_reg(env, n);
	case PB_BPF_ARG_PTR_TO_CONST_STR:
		return check_string(env, n, r);
	case PB_BPF_ARG_PTR_TO_KPTR:
		return check_kptr(env, n, r, call);
	default:
		return 0;
	}
}

/* Changes *arg, the kind of a value argument, for maps whose helpers take another kind. A sockmap
 * takes a socket. map_peek_elem() reads the value if the map is a bloom filter, and writes it
 * otherwise. So for a bloom filter, *arg loses the flags of an argument that is written. */
static int arg_of_map(struct env *env, const struct helper_call *call, unsigned *arg)
{
	if (!call->map)
		return refuse(env, EACCES, "invalid map_ptr to access map->type\n");
	switch (call->map->attr.type) {
	case BPF_MAP_TYPE_SOCKMAP: case BPF_MAP_TYPE_SOCKHASH:
		*arg = PB_BPF_ARG_PTR_TO_BTF_ID_SOCK_COMMON;
		return 0;
	case BPF_MAP_TYPE_BLOOM_FILTER:
		if (call->id == BPF_FUNC_map_peek_elem)
			*arg = PB_BPF_ARG_PTR_TO_MAP_VALUE;
		return 0;
	default:
		return 0;
	}
}

int pbv_check_arg(struct env *env, unsigned i, struct helper_call *call)
{
	unsigned arg = call->proto->arg[i], n = i + 1;
	const struct reg *r = &cur_regs(env)[n];
	int err;

	if (!arg)
		return 0;
	err = pbv_reg_use(env, n, READ);
	if (err)
		return err;
	if (arg == PB_BPF_ARG_ANYTHING)
		return pbv_leaks(env, n) ? refuse(env, EACCES,
						  "R%d leaks addr into helper function\n", n) : 0;
	if (reg_is_packet(r) && !pbv_may_access_packet(env, call->proto, false))
		return refuse(env, EACCES, "helper access to the packet is not allowed\n");
	if ((arg & PB_BPF_ARG_BASE) == PB_BPF_ARG_PTR_TO_MAP_VALUE)
		err = arg_of_map(env, call, &arg);
	if (!err && reg_is_null(r) && arg & PB_BPF_MAYBE_NULL) {
		/* only the number 0 may stand for a pointer, so the number must be precise */
		err = pbv_precise_reg(env, n);
	} else if (!err) {
		err = check_type(env, n, arg, call);
		if (!err)
			err = check_offset(env, n, r, arg);
	}
	if (!err && arg & PB_BPF_RELEASE)
		err = note_release(env, n, r, arg, call);
	if (!err)
		err = note_ref(env, n, r, call);
	return err ? err : check_kind(env, n, arg, call);
}
