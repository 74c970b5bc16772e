/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The list of idle system calls, and the code that makes a system call (idle_call.h). */
#include "attach/idle_call.h"
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <syscall.h>
#include "attach/libc_map.h"

#define MOV_EAX	0xb8	/* mov $NUMBER, %eax */

bool attach_call_is_idle(long number, const uint64_t args[6])
{
	switch (number) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_poll:
	case SYS_ppoll:
	case SYS_select:
	case SYS_pselect6:
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_read:
	case SYS_accept:
	case SYS_accept4:
	case SYS_wait4:
	case SYS_waitid:
	case SYS_pause:
	case SYS_rt_sigtimedwait:
	case SYS_rt_sigsuspend:
	case SYS_flock:
		return true;
	case SYS_fcntl:
		return (int)args[1] == F_SETLKW || (int)args[1] == F_OFD_SETLKW;
	/* with MSG_WAITALL, an interrupted receive returns fewer bytes, so it isn't idle */
	case SYS_recvfrom:
		return !(args[3] & MSG_WAITALL);
	case SYS_recvmsg:
		return !(args[2] & MSG_WAITALL);
	default:
		return false;
	}
}

static bool is_syscall(const uint8_t code[ATTACH_SYSCALL_SIZE])
{
	return code[0] == 0x0f && code[1] == 0x05;
}

bool attach_call_precedes(const struct attach_subject *s, uint64_t pc)
{
	uint8_t code[ATTACH_SYSCALL_SIZE];

	return !attach_mem_read(s, pc - sizeof(code), code, sizeof(code)) && is_syscall(code);
}

long attach_call_number(const struct attach_subject *s, uint64_t pc)
{
	uint8_t code[5 + ATTACH_SYSCALL_SIZE];
	int32_t number;

	if (attach_mem_read(s, pc - sizeof(code), code, sizeof(code)) || code[0] != MOV_EAX ||
	    !is_syscall(code + 5))
		return -1;
	memcpy(&number, code + 1, sizeof(number));
	return number;
}
