/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Runs the stages of an analysis in their order (stages.h), and frees the memory of all stages.
 * Checks the finished analysis with pb_analysis_check(), as the agent will. If the check fails, the
 * result is an error, and there is no analysis.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "abi/agent_name.h"
#include "abi/analysis_check.h"
#include "base/base.h"
#include "base/clean_text.h"
#include "module/analysis/analyse.h"
#include "module/analysis/stages.h"
#include "module/elf/runtimes.h"

static bool starts_with(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

static void read_identity(struct pb_an *an)
{
	struct pb_elf *e = &an->elf;
	struct pb_elf_strings strings;
	uint64_t v;
	const char *slash = strrchr(an->path, '/'), *name = NULL;
	bool interp = false;

	pb_elf_dynamic_strings(e, &strings);
	if (pb_elf_dynamic(e, DT_SONAME, &v))
		name = pb_elf_string(&strings, v);
	an->soname = name && *name && pb_text_printable(name) ? name : slash ? slash + 1 : an->path;
	an->is_agent = pb_is_agent_name(an->soname);
	an->is_loader = starts_with(an->soname, "ld-linux") || starts_with(an->soname, "ld-musl") ||
			starts_with(an->soname, "ld.so");
	for (unsigned i = 0; i < e->nr_ph; i++)
		interp |= e->ph[i].p_type == PT_INTERP;
	if (e->eh->e_type == ET_DYN)
		an->an_flags |= PB_AN_PIE;
	if (!interp && !e->nr_dyn)
		an->an_flags |= PB_AN_STATIC;
}

static int run_stages(struct pb_an *an, const char **why)
{
	static int (*const stages[])(struct pb_an *, const char **) = {
		pb_symbols_read, pb_imports_read, pb_depths_find, pb_lsda_read,
		pb_sequences_read, pb_sweep, pb_functions_make, pb_records_read, pb_sites_make,
		pb_exits_make, pb_exit_tables_make,
	};
	int err = pb_ranges_read(an, why);

	read_identity(an);
	an->runtimes = pb_runtimes_find(&an->elf);
	for (unsigned i = 0; i < an->nr_debug; i++)
		an->runtimes |= pb_runtimes_find(&an->debug[i]);
	*why = err ? *why : "no memory";
	if (!err && !pb_cfi_read(&an->cfi, &an->elf))
		err = -ENOMEM;
	for (size_t i = 0; !err && i < pb_array_size(stages); i++)
		err = stages[i](an, why);
	return err;
}

static int make(struct pb_an *an, uint8_t **blob, size_t *size, const char **why)
{
	int err = run_stages(an, why);

	if (!err)
		err = pb_emit(an, blob, size, why);
	if (!err && pb_analysis_check(*blob, *size)) {
		/* this is a defect of Patchbay */
		*why = "its analysis came out inconsistent (a fault of Patchbay)";
		free(*blob);
		err = -EINVAL;
	}
	return err;
}

static void free_all(struct pb_an *an)
{
	for (size_t i = 0; i < an->ranges.n; i++) {
		free(an->ranges.v[i].reached);
		free(an->ranges.v[i].called);
		free(an->ranges.v[i].starts);
		free(an->ranges.v[i].branched);
		free(an->ranges.v[i].used);
		free(an->ranges.v[i].otherwise);
		free(an->ranges.v[i].direct);
	}
	pb_vec_free(&an->ranges);
	pb_cfi_free(&an->cfi);
	pb_vec_free(&an->cands);
	pb_vec_free(&an->labels);
	pb_vec_free(&an->hook_slots);
	pb_vec_free(&an->hook_stubs);
	pb_vec_free(&an->ifuncs);
	pb_vec_free(&an->records);
	pb_vec_free(&an->sequence_sections);
	pb_vec_free(&an->words);
	pb_vec_free(&an->textrels);
	pb_vec_free(&an->sequences);
	pb_vec_free(&an->hook_calls);
	pb_vec_free(&an->ra_reads);
	pb_vec_free(&an->below_stack);
	pb_vec_free(&an->gaps);
	pb_vec_free(&an->cross_jumps);
	pb_vec_free(&an->tables);
	pb_vec_free(&an->arrays);
	pb_vec_free(&an->fns);
	pb_vec_free(&an->barriers);
	pb_vec_free(&an->nops);
	pb_vec_free(&an->recipes);
	pb_vec_free(&an->exits);
	pb_vec_free(&an->lags);
	pb_vec_free(&an->restores);
	pb_vec_free(&an->stray_jumps);
	pb_vec_free(&an->depth_rows);
	pb_vec_free(&an->edges);
	pb_vec_free(&an->pads);
	pb_vec_free(&an->exit_windows);
	pb_vec_free(&an->exit_tables.windows);
	pb_vec_free(&an->exit_tables.exits);
	pb_vec_free(&an->exit_tables.leaves);
	pb_vec_free(&an->exit_tables.left_by);
	free(an->units);
	free(an->goes_on);
	for (unsigned i = 0; i < an->nr_debug; i++)
		pb_elf_close(&an->debug[i]);
	if (an->debug_fd >= 0)
		close(an->debug_fd);
	pb_elf_close(&an->elf);
}

int pb_analyse(int fd, const char *path, unsigned flags, uint8_t **blob, size_t *size,
	       const char **why)
{
	struct pb_an an = { .path = path, .flags = flags, .debug_fd = -1 };
	int err = pb_elf_open(&an.elf, fd, false, why);

	if (err)
		return err;
	pb_debug_files_open(&an);
	err = make(&an, blob, size, why);
	free_all(&an);
	return err;
}

int pb_analyse_memory(uint8_t *bytes, size_t len, const char *path, unsigned flags,
		      uint8_t **blob, size_t *size, const char **why)
{
	struct pb_an an = { .path = path, .flags = flags, .debug_fd = -1 };
	int err = pb_elf_open_memory(&an.elf, bytes, len, false, why);

	if (err)
		return err;
	err = make(&an, blob, size, why);
	free_all(&an);
	return err;
}

int pb_analyse_visit(int fd, const char *path, unsigned flags,
		     void (*visit)(struct pb_an *an, void *arg), void *arg, const char **why)
{
	struct pb_an an = { .path = path, .flags = flags, .debug_fd = -1 };
	int err = pb_elf_open(&an.elf, fd, false, why);

	if (err)
		return err;
	pb_debug_files_open(&an);
	err = run_stages(&an, why);
	if (!err)
		visit(&an, arg);
	free_all(&an);
	return err;
}
