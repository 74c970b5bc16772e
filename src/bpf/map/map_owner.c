/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Locks on single bytes of a map's file, by fcntl. */
#include <asm/errno.h>
#include <fcntl.h>
#include "base/sys.h"
#include "bpf/map/map_owner.h"

#define OWNERS_AT	(1ll << 56)	/* offset of the locks; no file is so long */

long pb_bpf_owner_lock(int fd, int cmd, short *type, uint32_t first, uint32_t nr)
{
	struct flock l = { .l_type = *type, .l_whence = 0, .l_start = OWNERS_AT + first,
		.l_len = nr };
	long err = pb_sys(SYS_fcntl, fd, cmd, &l);

	*type = l.l_type;
	return err;
}

int pb_bpf_become_owner(struct pb_bpf_map *map, int fd)
{
	uint32_t from = __atomic_fetch_add(&map->head->next_owner, 1, __ATOMIC_RELAXED);

	for (uint32_t i = 0; i < PB_BPF_MAX_OWNERS - 1; i++) {
		uint32_t owner = (from + i) % (PB_BPF_MAX_OWNERS - 1) + 1, bit = 1u << owner % 32;
		short type = F_WRLCK;
		long err = pb_bpf_owner_lock(fd, F_OFD_SETLK, &type, owner, 1);

		if (err == -EAGAIN || err == -EACCES)
			continue;
		if (err)
			return (int)err;
		map->owner = owner;
		/* if the bit was set, the previous owner of the number died, perhaps during an
		 * operation */
		if (__atomic_fetch_or(&map->head->owners[owner / 32], bit, __ATOMIC_ACQ_REL) &
		    bit && map->ops->repair)
			map->ops->repair(map, owner);
		return 0;
	}
	return -EUSERS;
}
