/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The log's text. Words and format are the kernel's, since users and tools know them. If a program
 * is refused, level 1 shows the instructions of the refused path. Level 2 shows all paths, and how
 * values are marked as precise (precise.c).
 */
#include "bpf/core/disasm.h"
#include "bpf/helper/kfunc.h"
#include "bpf/verifier/env.h"
#include "bpf/verifier/fastcall.h"
#include "bpf/verifier/log.h"
#include "bpf/verifier/state.h"
#include "bpf/verifier/iterations.h"

#define say(env, ...) pb_bpf_printf((env)->v->log, __VA_ARGS__)

void pbv_log_text(struct env *env, const char *format, ...)
{
	va_list ap;

	if (!env->v->log_level || log_none(env))
		return;
	va_start(ap, format);
	pb_bpf_vprintf(env->v->log, format, ap);
	va_end(ap);
}

const char *pbv_helper_name(int32_t id)
{
	const struct pb_bpf_helper *h = id >= 0 ? pb_bpf_helper_of((uint32_t)id) : NULL;

	return h && h->name ? h->name : "unknown";
}

struct type_text pbv_log_type_name(unsigned type, unsigned flags)
{
	static const char *const names[NR_REG_TYPES] = {
		[NOT_INIT] = "?", [SCALAR] = "scalar", [TO_CTX] = "ctx", [MAP_PTR] = "map_ptr",
		[TO_MAP_VALUE] = "map_value", [TO_MAP_KEY] = "map_key", [TO_STACK] = "fp",
		[TO_PACKET] = "pkt", [TO_PACKET_META] = "pkt_meta", [TO_PACKET_END] = "pkt_end",
		[TO_FLOW_KEYS] = "flow_keys", [TO_SOCKET] = "sock",
		[TO_SOCK_COMMON] = "sock_common", [TO_TCP_SOCK] = "tcp_sock",
		[TO_XDP_SOCK] = "xdp_sock", [TO_BTF] = "ptr_", [TO_MEM] = "mem", [TO_BUF] = "buf",
		[TO_FUNC] = "func", [TO_DYNPTR] = "dynptr_ptr",
	};
	struct type_text out;
	struct pb_bpf_text t = { .buf = out.s, .size = sizeof out.s };

	pb_bpf_printf(&t, "%s%s%s%s%s%s%s", flags & RDONLY ? "rdonly_" : "",
		      flags & RESERVED ? "ringbuf_" : "", flags & USER ? "user_" : "",
		      flags & PERCPU ? "percpu_" : "", flags & UNTRUSTED ? "untrusted_" : "",
		      names[type], !(flags & MAYBE_NULL) ? "" : type == TO_BTF ? "or_null_" :
		      "_or_null");
	return out;
}

/* put_unsigned() and put_signed() write numbers as the kernel does: in base 10 if the number fits
 * in 16 bits, otherwise in base 16. In base 16, negative numbers are two's complements. */
static void put_unsigned(struct pb_bpf_text *t, uint64_t v)
{
	if (v <= UINT16_MAX)
		pb_bpf_printf(t, "%lu", v);
	else
		pb_bpf_printf(t, "%#lx", v);
}

static bool is_small(int64_t v)
{
	return v >= INT16_MIN && v <= INT16_MAX;
}

static void put_signed(struct pb_bpf_text *t, int64_t v)
{
	if (is_small(v))
		pb_bpf_printf(t, "%ld", v);
	else
		pb_bpf_printf(t, "%#lx", (uint64_t)v);
}

struct tnum_text pbv_log_tnum_text(struct tnum v)
{
	struct tnum_text out;
	struct pb_bpf_text t = { .buf = out.s, .size = sizeof out.s };

	if (tnum_is_const(v))
		put_unsigned(&t, v.value);
	else
		pb_bpf_printf(&t, "(%#lx; %#lx)", v.value, v.mask);
	return out;
}

static void say_live(struct env *env, unsigned live)
{
	if (!live)
		return;
	say(env, "_%s%s", live & LIVE_READ ? "r" : "", live & LIVE_WRITTEN ? "w" : "");
}

#define attribute(...) (say(env, "%s", comma), comma = ",", say(env, __VA_ARGS__))

/*
 * Logs all bounds that differ from the default. Lower bounds with the same value are joined, and so
 * are upper bounds. For example: smin=smin32=-1,smax=umax=smax32=umax32=7. A large negative 32-bit
 * bound is shown as 32 bits in base 16.
 */
static void say_ranges(struct env *env, const struct reg *r, const char *comma)
{
	static const char *const names[] = { "smin", "smax", "umin", "umax", "smin32", "smax32",
		"umin32", "umax32" };
	const struct range *w = &r->wide, *l = &r->low;
	const int64_t values[] = {
		w->smin, w->smax, (int64_t)w->umin, (int64_t)w->umax,
		is_small(l->smin) ? l->smin : (uint32_t)l->smin, is_small(l->smax) ? l->smax :
		(uint32_t)l->smax, (int64_t)l->umin, (int64_t)l->umax,
	};
	bool shown[] = {
		w->smin == INT64_MIN, w->smax == INT64_MAX, !w->umin, w->umax == UINT64_MAX,
		l->smin == INT32_MIN, l->smax == INT32_MAX, !l->umin, l->umax == UINT32_MAX,
	};

	for (int i = 0; i < 8; i++) {
		bool is_signed = !(i & 2), negative = is_signed && values[i] < 0;

		if (shown[i])
			continue;
		attribute("%s=", names[i]);
		for (int j = i + 2; j < 8; j += 2) {
			if (shown[j] || values[j] != values[i] ||
			    (!(j & 2) && values[j] < 0) != negative)
				continue;
			shown[j] = true;
			say(env, "%s=", names[j]);
		}
		if (is_signed)
			put_signed(env->v->log, values[i]);
		else
			put_unsigned(env->v->log, (uint64_t)values[i]);
	}
	if (!tnum_is_unknown(r->var))
		attribute("var_off=%s", tnum_text(r->var));
}

/* Logs a register's attributes, without its value. Returns the separator for the next attribute. */
static const char *say_attributes(struct env *env, const struct reg *r)
{
	const char *comma = "";

	if (r->id)
		attribute("id=%d", (int)r->id);
	if (r->type == SCALAR && r->id && r->moved)
		say(env, "%+d", r->delta);
	if (r->ref && (r->type == TO_SOCKET || r->type == TO_TCP_SOCK || r->type == TO_MEM ||
		       r->type == TO_BTF))
		attribute("ref_obj_id=%d", (int)r->ref);
	if (r->type == MAP_PTR || r->type == TO_MAP_KEY || r->type == TO_MAP_VALUE) {
		if (r->map->name[0])
			attribute("map=%s", r->map->name);
		attribute("ks=%d,vs=%d", (int)r->map->attr.key_size, (int)r->map->attr.value_size);
	}
	if (r->type != SCALAR && r->off) {
		attribute("off=");
		put_signed(env->v->log, r->off);
	}
	if (reg_is_packet(r)) {
		attribute("r=");
		put_unsigned(env->v->log, (uint64_t)(int64_t)r->range);
	}
	if (r->type == TO_MEM) {
		attribute("sz=");
		put_unsigned(env->v->log, r->mem_size);
	}
	return comma;
}

static void say_reg(struct env *env, const struct frame *f, const struct reg *r)
{
	const char *comma;

	if (r->type == SCALAR && r->precise)
		say(env, "P");
	if (reg_is_const(r)) {
		put_signed(env->v->log, (int64_t)r->var.value);
		return;
	}
	say(env, "%s", type_name(r));
	if (r->type == TO_STACK && r->frame != f->number)
		say(env, "[%d]", (int)r->frame);
	if (r->type == TO_STACK && tnum_is_const(r->var)) {
		put_signed(env->v->log, (int64_t)r->var.value + r->off);
		return;
	}
	say(env, "%s(", r->type == TO_BTF ? r->btf : "");
	comma = say_attributes(env, r);
	if (!tnum_is_const(r->var)) {
		say_ranges(env, r, comma);
	} else if (r->var.value) {
		attribute("imm=");
		put_signed(env->v->log, (int64_t)r->var.value);
	}
	say(env, ")");
}

static void say_slot(struct env *env, const struct frame *f, const struct slot *s, unsigned n)
{
	static const char letters[] = { '?', 'r', 'm', '0', 'd', 'i' };
	char types[SLOT + 1] = { 0 };
	bool any = false, spilled = slot_spilled(s);

	/* if fewer than 8 bytes were spilled, write the types of the slot's other bytes before the
	 * number */
	for (int i = 0; i < SLOT && !(spilled && s->type[i] == S_SPILL); i++)
		types[i] = letters[s->type[i]];
	for (int i = 0; i < SLOT; i++)
		any |= s->type[i] != S_INVALID;
	if (!any)
		return;
	say(env, " fp%d", -(int)(n + 1) * SLOT);
	say_live(env, s->reg.live);
	if (slot_iterates(s)) {
		say(env, "=iter_num(ref_id=%d,state=%s,depth=%u)", (int)s->reg.ref,
		    s->reg.drained ? "drained" : "active", s->reg.depth);
		return;
	}
	say(env, "=%s", types);
	if (spilled)
		say_reg(env, f, &s->reg);
}

void pbv_log_state(struct env *env, const struct frame *f, bool all)
{
	if (log_none(env))
		return;
	if (f->number)
		say(env, " frame%d:", (int)f->number);
	for (int i = 0; i < 11; i++) {
		if (f->regs[i].type == NOT_INIT || !(all || env->touched_regs >> i & 1))
			continue;
		say(env, " R%d", i);
		say_live(env, f->regs[i].live);
		say(env, "=");
		say_reg(env, f, &f->regs[i]);
	}
	for (uint32_t i = 0; i < f->nr_slots; i++)
		if (all || env->touched_slots >> i & 1)
			say_slot(env, f, &f->slots[i], i);
	for (uint32_t i = 0; i < f->nr_refs; i++)
		say(env, i ? ",%d" : " refs=%d", (int)f->refs[i].id);
	say(env, "%s%s\n", f->in_callback ? " cb" : "", f->in_async ? " async_cb" : "");
	if (!all) {
		env->touched_regs = 0;
		env->touched_slots = 0;
	}
}

static const char *name_of_helper(void *arg, int32_t id)
{
	return pbv_helper_name(id);
}

static const char *name_of_kfunc(void *arg, int32_t id)
{
	const struct pb_bpf_kfunc *k = pb_bpf_kfunc_of(id);

	return k ? k->name : NULL;
}

void pbv_log_disasm(struct env *env, uint32_t insn)
{
	const struct pb_bpf_names names = { .helper = name_of_helper, .kfunc = name_of_kfunc,
					    .hide = !env->ptr_leaks };

	if (log_none(env))
		return;
	say(env, "%d: ", (int)insn);
	pb_bpf_disasm(env->v->log, &env->insns[insn], &names);
	say(env, "\n");
}

void pbv_log_insn(struct env *env)
{
	uint64_t before;

	if (!log_on(env))
		return;
	before = pb_bpf_text_at(env->v->log);
	pbv_log_disasm(env, env->insn);
	env->insn_log_at = pb_bpf_text_at(env->v->log);
	env->insn_len = (uint32_t)(env->insn_log_at - before);
}

/* Logs the registers and slots that the instruction has accessed. If the log's last line shows the
 * instruction, the registers and slots are added to this line. */
void pbv_log_insn_state(struct env *env)
{
	struct pb_bpf_text *t = env->v->log;

	if (!log_on(env))
		return;
	if (t->len && env->insn_log_at == pb_bpf_text_at(t)) {
		uint32_t at = env->insn_len, column = at + 4 > 40 ? at + 4 : 40;

		t->len--;
		for (column = pb_align_up(column, 8u) - at - 1; column; column--)
			say(env, " ");
		say(env, ";");
	} else {
		say(env, "%d:", (int)env->insn);
	}
	pbv_log_state(env, cur_frame(env), false);
}

void pbv_log_line(struct env *env, uint32_t insn, const char *prefix, ...)
{
	const struct pb_bpf_verify *v = env->v;
	size_t n = pb_bisect(i, 0, v->nr_lines, v->lines[i].insn <= insn);
	const char *text;
	va_list ap;

	if (!n || !v->log_level || log_none(env) || &v->lines[n - 1] == env->last_line)
		return;
	va_start(ap, prefix);
	pb_bpf_vprintf(v->log, prefix, ap);
	va_end(ap);
	for (text = v->lines[n - 1].text; *text == ' ' || *text == '\t'; text++)
		;
	say(env, "%s\n", text);
	env->last_line = &v->lines[n - 1];
}

void pbv_log_scalar(struct env *env, const struct reg *r, int min, int max, const char *where)
{
	log(env, "%s the register R0 has", where);
	if (r->wide.smin > INT64_MIN)
		log(env, " smin=%ld", r->wide.smin);
	if (r->wide.smax < INT64_MAX)
		log(env, " smax=%ld", r->wide.smax);
	if (r->wide.smin == INT64_MIN && r->wide.smax == INT64_MAX)
		log(env, " unknown scalar value");
	log(env, " should have been in [%d, %d]\n", min, max);
}

void pbv_log_stats(struct env *env)
{
	const struct pb_bpf_verify *v = env->v;

	if (v->log_level & 4) {
		log(env, "stack depth ");
		for (uint32_t i = 0; i < env->nr_subs; i++)
			log(env, i ? "+%d" : "%d", (int)pbv_counted_stack(&env->subs[i]) +
			    (pbv_has_may_goto(env, i) ? PB_BPF_COUNTER : 0));
		log(env, "\n");
	}
	log(env,
	    "processed %d insns (limit %d) max_states_per_insn %d total_states %d peak_states %d "
	    "mark_read %d\n", (int)env->processed, PB_BPF_COMPLEXITY,
	    (int)v->stats.max_states_per_insn, (int)v->stats.total_states,
	    (int)v->stats.peak_states, (int)v->stats.mark_read);
}
