/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Unwinds a stopped thread's stack by libdwfl (stack_unwind.h). Each step must be proven by CFI.
 * libdwfl has a fallback for code without CFI, which follows frame pointers and may skip calls. So
 * before each step, the code's CFI is looked up. If there is none, the unwinding fails. Unwinding
 * is complete if it ends at code whose CFI says that it has no caller: _start, or the start of a
 * thread.
 */
#include "attach/stack_unwind.h"
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <elfutils/libdwfl.h>
#include "attach/mapped_file.h"

#define REGISTERS 17		/* of the psABI's numbers for CFI; the last is the return address */

struct attach_unwind {
	struct attach_subject *s;
	Dwfl *dwfl;
	const struct user_regs_struct *regs;
	uint64_t *calls;
	int nr;			/* -1: the innermost function's address comes next */
};

/* --- what libdwfl asks for ------------------------------------------------- */

/* The encodings that linkers use in .eh_frame_hdr. */
struct frame_header {
	uint8_t version, pointer, count, table;
	int32_t eh_frame;	/* relative to this field */
	uint32_t nr;
};

static bool is_table(const struct frame_header *h, uint64_t addr, const Elf64_Shdr *frame)
{
	return h && h->version == 1 && h->pointer == (DW_EH_PE_pcrel | DW_EH_PE_sdata4) &&
	       h->count == DW_EH_PE_udata4 && h->table == (DW_EH_PE_datarel | DW_EH_PE_sdata4) &&
	       h->nr && addr + 4 + (uint64_t)h->eh_frame == frame->sh_addr;
}

/* Whether libdw finds a table of the FDEs. Without a table, libdw searches the FDEs one by one, and
 * the thread is stopped meanwhile. So such a file's CFI isn't used. libdw looks at the sections in
 * their order: it uses .eh_frame_hdr only if this section comes before .eh_frame. */
static bool has_table(struct pb_elf *e)
{
	const struct frame_header *header = NULL;
	uint64_t addr = 0;

	for (unsigned i = 1; i < e->nr_sh; i++) {
		const Elf64_Shdr *sh = &e->sh[i];
		const char *name = pb_elf_section_name(e, sh);

		if (!strcmp(name, ".eh_frame_hdr")) {
			header = sh->sh_size < sizeof(*header) ? NULL : pb_elf_section_bytes(e, sh);
			addr = sh->sh_addr;
		} else if (!strcmp(name, ".eh_frame")) {
			return is_table(header, addr, sh);
		}
	}
	return false;
}

static int find_elf(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
		    char **file_name, Elf **elf)
{
	struct attach_unwind *u = *userdata;
	const struct record_map *m = u ? attach_map_at(u->s, base) : NULL;
	struct pb_elf e;

	if (m && !strncmp(name, "[vdso", 5))	/* it is in memory only */
		return dwfl_linux_proc_find_elf(mod, userdata, name, base, file_name, elf);
	int fd = m ? attach_mapped_open(u->s, m, &e) : -1;
	bool fast = fd >= 0 && has_table(&e);

	if (fd < 0)
		return -1;
	pb_elf_close(&e);
	if (!fast) {
		close(fd);
		return -1;
	}
	*file_name = strdup(m->path);
	return fd;
}

/* CFI is in the module itself. */
static int find_debuginfo(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
			  const char *file_name, const char *link, GElf_Word crc, char **debug)
{
	return -1;
}

static const Dwfl_Callbacks files = {
	.find_elf = find_elf, .find_debuginfo = find_debuginfo,
};

/* libdwfl requires this function, but calls it only to list threads. The stopped thread is looked
 * up by its number: get_thread(). */
static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread)
{
	return 0;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread)
{
	*thread = arg;
	return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr addr, Dwarf_Word *word, void *arg)
{
	const struct attach_unwind *u = arg;

	return !attach_mem_read(u->s, addr, word, sizeof(*word));
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	const struct user_regs_struct *r = ((const struct attach_unwind *)arg)->regs;
	const Dwarf_Word regs[REGISTERS] = {
		r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp, r->r8, r->r9,
		r->r10, r->r11, r->r12, r->r13, r->r14, r->r15, r->rip,
	};

	return dwfl_thread_state_registers(thread, 0, REGISTERS, regs);
}

static const Dwfl_Thread_Callbacks threads = {
	.next_thread = next_thread, .get_thread = get_thread, .memory_read = read_memory,
	.set_initial_registers = set_registers,
};

/* --- the interface --------------------------------------------------------- */

static int give_userdata(Dwfl_Module *mod, void **userdata, const char *name, Dwarf_Addr base,
			 void *arg)
{
	*userdata = arg;
	return DWARF_CB_OK;
}

struct attach_unwind *attach_unwind_begin(struct attach_subject *s)
{
	struct attach_unwind *u = calloc(1, sizeof(*u));

	if (!u)
		return NULL;
	u->s = s;
	u->dwfl = dwfl_begin(&files);
	if (u->dwfl && !dwfl_linux_proc_report(u->dwfl, s->pid) &&
	    !dwfl_report_end(u->dwfl, NULL, NULL) &&
	    dwfl_getmodules(u->dwfl, give_userdata, u, 0) == 0 &&
	    dwfl_attach_state(u->dwfl, NULL, s->pid, &threads, u))
		return u;
	attach_unwind_end(u);
	return NULL;
}

void attach_unwind_end(struct attach_unwind *u)
{
	if (u && u->dwfl)
		dwfl_end(u->dwfl);
	free(u);
}

static bool has_cfi(const struct attach_unwind *u, Dwarf_Addr pc)
{
	Dwarf_Addr bias;
	Dwfl_Module *mod = dwfl_addrmodule(u->dwfl, pc);
	Dwarf_CFI *cfi = mod ? dwfl_module_eh_cfi(mod, &bias) : NULL;
	Dwarf_Frame *frame;

	if (!cfi || dwarf_cfi_addrframe(cfi, pc - bias, &frame))
		return false;
	free(frame);
	return true;
}

static int add_call(Dwfl_Frame *frame, void *arg)
{
	struct attach_unwind *u = arg;
	bool innermost = u->nr < 0;
	Dwarf_Addr pc;
	bool interrupted;

	/* The pc of an outer frame is after a call instruction, perhaps at the beginning of another
	 * function. If dwfl_frame_pc() is asked whether the frame was interrupted, it unwinds the
	 * frame. So has_cfi() must come before this question. */
	if (!dwfl_frame_pc(frame, &pc, NULL) || u->nr >= ATTACH_UNWIND_MAX ||
	    !has_cfi(u, pc - !innermost) || !dwfl_frame_pc(frame, &pc, &interrupted) ||
	    (interrupted && !innermost))
		return DWARF_CB_ABORT;
	if (!innermost)
		u->calls[u->nr] = pc;
	u->nr++;
	return DWARF_CB_OK;
}

int attach_unwind(struct attach_unwind *u, const struct user_regs_struct *r, uint64_t *calls)
{
	u->regs = r;
	u->calls = calls;
	u->nr = -1;
	return dwfl_getthread_frames(u->dwfl, u->s->pid, add_call, u) ? -ENODATA : u->nr;
}
