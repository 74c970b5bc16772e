/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The verifier's log. It describes states, instructions and refusals in the kernel's words. */
#ifndef PB_BPF_VERIFIER_LOG_H
#define PB_BPF_VERIFIER_LOG_H
#include "bpf/verifier/env.h"

void pbv_log_text(struct env *env, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define log(env, ...) pbv_log_text(env, __VA_ARGS__)
/* Logs the reason for a refusal. The macro's value is -err. */
#define refuse(env, err, ...) (pbv_log_text(env, __VA_ARGS__), -(err))

static inline bool log_none(const struct env *env)
{
	return !env->v->log || !env->v->log->buf;
}

static inline bool log_on(const struct env *env)
{
	return env->v->log_level & 3 && !log_none(env);
}

struct type_text { char s[64]; };
struct type_text pbv_log_type_name(unsigned type, unsigned flags);
#define type_name(r) (pbv_log_type_name((r)->type, (r)->flags).s)
struct tnum_text { char s[48]; };
struct tnum_text pbv_log_tnum_text(struct tnum t);
#define tnum_text(t) (pbv_log_tnum_text(t).s)

void pbv_log_state(struct env *env, const struct frame *f, bool all);
void pbv_log_disasm(struct env *env, uint32_t insn);
void pbv_log_insn(struct env *env);
void pbv_log_insn_state(struct env *env);
void pbv_log_line(struct env *env, uint32_t insn, const char *prefix, ...);
/* Logs that R0 is outside of min ... max. `where` is the place that requires this range, for
 * example "At program exit". */
void pbv_log_scalar(struct env *env, const struct reg *r, int min, int max, const char *where);
void pbv_log_stats(struct env *env);
const char *pbv_helper_name(int32_t id);

static inline void touch_all(struct env *env)
{
	env->touched_regs = ~0u;
	env->touched_slots = ~0ull;
}

static inline void touch_slot(struct env *env, int slot)
{
	env->touched_slots |= 1ull << slot;
}
#endif
