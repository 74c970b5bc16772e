/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Scans stacks that the test makes in its own memory. Each stack has the signal frame of a handler
 * that interrupted an idle system call. Each test changes something in this frame. The scan must
 * accept the stack only if the handler interrupted an idle system call, or has returned.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>
#include <unistd.h>
#include "attach/libc_map.h"
#include "attach/stack_scan.h"

#define SIZE		4096
#define FRAME		10	/* index of the frame's first word, the restorer's address */
#define RESTORER	0x7e5704e7

/* mov $SYS_pause, %eax; syscall */
static const uint8_t pause_code[] = { 0xb8, SYS_pause, 0, 0, 0, 0x0f, 0x05, 0xc3 };
/* mov $SYS_write, %eax; syscall */
static const uint8_t write_code[] = { 0xb8, SYS_write, 0, 0, 0, 0x0f, 0x05, 0xc3 };

static struct attach_subject subject;
static struct attach_libc libc = { .restore = RESTORER };
static uint64_t *words;
static greg_t *registers;	/* of the interrupted code, in the frame */

static uint64_t after_call(const uint8_t *code)
{
	return (uint64_t)code + 7;
}

/* Makes a frame of a handler that interrupted pause(). */
static int set_up(void **state)
{
	static char err[200];

	/* the second half separates the stack from other mappings */
	words = mmap(NULL, 2 * SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (words == MAP_FAILED || mprotect((char *)words + SIZE, SIZE, PROT_NONE))
		return -1;
	registers = ((ucontext_t *)(words + FRAME + 1))->uc_mcontext.gregs;
	attach_subject_init(&subject, getpid(), err, sizeof(err));
	subject.mem = open("/proc/self/mem", O_RDONLY);
	libc.loader = (struct attach_range) { 0 };
	words[FRAME] = RESTORER;
	registers[REG_RIP] = (greg_t)after_call(pause_code);
	registers[REG_RAX] = -4;
	registers[REG_RSP] = (greg_t)(words + 100);
	registers[REG_CSGSFS] = 0x33;
	return attach_maps_read(&subject);
}

static int tear_down(void **state)
{
	attach_subject_free(&subject);
	return munmap(words, 2 * SIZE);
}

static unsigned scan(void)
{
	return attach_stack_scan(&subject, &libc, (uint64_t)words);
}

static void idle(void **state)
{
	assert_int_equal(scan(), 0);
}

static void idle_is_restarted(void **state)
{
	registers[REG_RIP] = (greg_t)after_call(write_code) - ATTACH_SYSCALL_SIZE;
	registers[REG_RAX] = SYS_accept;
	assert_int_equal(scan(), 0);
	registers[REG_RAX] = SYS_write;
	assert_int_equal(scan(), ATTACH_IN_HANDLER);
}

static void other_call(void **state)
{
	registers[REG_RIP] = (greg_t)after_call(write_code);
	assert_int_equal(scan(), ATTACH_IN_HANDLER);
}

/* After the call, rax has the call's result, not its number. */
static void result_is_no_number(void **state)
{
	registers[REG_RIP] = (greg_t)after_call(write_code);
	registers[REG_RAX] = SYS_pause;
	assert_int_equal(scan(), ATTACH_IN_HANDLER);
}

static void no_call(void **state)
{
	registers[REG_RIP]--;
	assert_int_equal(scan(), ATTACH_IN_HANDLER);
	registers[REG_RIP] = 0;
	assert_int_equal(scan(), ATTACH_IN_HANDLER);
}

static void call_of_loader(void **state)
{
	uint64_t code = (uint64_t)pause_code;

	libc.loader = (struct attach_range) { code, code + sizeof(pause_code) };
	assert_int_equal(scan(), ATTACH_IN_HANDLER);
}

/* The interrupted stack isn't scanned, because it is below the frame or elsewhere. */
static void other_stack(void **state)
{
	registers[REG_RSP] = (greg_t)words;
	assert_int_equal(scan(), ATTACH_IN_HANDLER);
	registers[REG_RSP] = (greg_t)(words + SIZE / sizeof(*words));
	assert_int_equal(scan(), ATTACH_IN_HANDLER);
}

/* A handler interrupted another handler. */
static void two_frames(void **state)
{
	uint64_t *second = words + 200;

	memcpy(second, words + FRAME, sizeof(ucontext_t) + sizeof(*words));
	greg_t *r = ((ucontext_t *)(second + 1))->uc_mcontext.gregs;

	r[REG_RSP] = (greg_t)(words + 400);
	assert_int_equal(scan(), 0);
	r[REG_RIP] = (greg_t)after_call(write_code);
	assert_int_equal(scan(), ATTACH_IN_HANDLER);
}

static void no_frame(void **state)
{
	static const uint64_t overwritten[] = { 0, 1, 0x7ffc12345678, 0x7ffc1234567a };

	registers[REG_RIP] = (greg_t)after_call(write_code);
	for (size_t i = 0; i < sizeof(overwritten) / sizeof(overwritten[0]); i++) {
		registers[REG_CSGSFS] = (greg_t)overwritten[i];
		assert_int_equal(scan(), 0);
	}
}

/* The frame has the code segment of 32-bit code, the code segment of programs in a virtual machine
 * of Xen, or a code segment that is followed by other segments. */
static void other_segments(void **state)
{
	static const uint64_t segments[] = { 0x23, 0xe033, 0x002b000000000033 };

	registers[REG_RIP] = (greg_t)after_call(write_code);
	for (size_t i = 0; i < sizeof(segments) / sizeof(segments[0]); i++) {
		registers[REG_CSGSFS] = (greg_t)segments[i];
		assert_int_equal(scan(), ATTACH_IN_HANDLER);
	}
}

static void cut_off(void **state)
{
	words[FRAME] = 0;
	words[SIZE / sizeof(*words) - 10] = RESTORER;
	assert_int_equal(scan(), ATTACH_IN_HANDLER);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(idle), TEST(idle_is_restarted), TEST(other_call), TEST(result_is_no_number),
		TEST(no_call), TEST(call_of_loader), TEST(other_stack), TEST(two_frames),
		TEST(no_frame), TEST(other_segments), TEST(cut_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
