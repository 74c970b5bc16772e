/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Lets the injector's thread get a processor sooner while a thread of the process is stopped. From
 * Linux 6.12 on, a thread may ask for shorter slices of processor time. It doesn't get more time,
 * but it waits less. Context: any thread; the calling thread is changed.
 */
#ifndef PB_ATTACH_SHORT_SLICE_H
#define PB_ATTACH_SHORT_SLICE_H
#include <stdint.h>

/* Shortens the slices. Returns their former length for attach_slice_restore(); 0: nothing was
 * changed, because the kernel is older, or because the thread has a realtime policy. */
uint64_t attach_slice_shorten(void);
void attach_slice_restore(uint64_t former);
#endif
