/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Programs that a test writes as instructions and runs without the verifier. A test chooses an
 * engine, makes a program for this engine, and runs the program.
 */
#ifndef TESTS_BPF_UNVERIFIED_H
#define TESTS_BPF_UNVERIFIED_H
#include <linux/bpf.h>
#include <stdint.h>

struct pb_bpf_prog;
struct pb_bpf_prog_spec;
struct pb_bpf_run;

enum engine { INTERPRETER, JIT, BLINDED, NR_ENGINES };

/* Programs that are made after this call use engine e. */
void choose(enum engine e);

/* Makes a program of nr instructions. Other properties are those of `from`. If special[i] isn't 0,
 * it is the opcode of instruction i. special may be NULL. */
struct pb_bpf_prog *make_of(const struct pb_bpf_prog_spec *from, const struct bpf_insn *insns,
			    uint32_t nr, const uint8_t *special);
#define MAKE(spec, insns, special) make_of(spec, insns, pb_array_size(insns), special)

uint64_t run_with(const struct pb_bpf_prog *p, void *ctx);

/* A helper that calls the callback func up to n times. Stops if the callback returns a value other
 * than 0. */
uint64_t loop(uint64_t n, uint64_t func, uint64_t ctx, uint64_t flags, uint64_t r5,
	      struct pb_bpf_run *run);

/* the tests of native.c */
void no_page_is_writable_and_executable(void **state);
void blinded_code_holds_no_constant(void **state);
void cap_bpf_exempts_from_blinding(void **state);
void code_is_shown_on_request(void **state);
void long_programs_get_native_code(void **state);
void frames_are_a_chain(void **state);
#endif
