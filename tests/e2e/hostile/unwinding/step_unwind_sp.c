/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * step_unwind.c with functions that have no frame pointer. So the unwinder needs the right stack
 * pointer at each instruction. The first bytes of these functions, which a patch replaces, contain
 * a call. The copy of this call pushes the return address in several instructions.
 *
 * @flags -fomit-frame-pointer
 * @markers 1
 * @slow all none bpf
 */
#include "step_unwind.c"
