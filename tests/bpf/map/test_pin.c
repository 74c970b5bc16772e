/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Pins follow the rules of the kernel's bpf file system. If the test may mount a bpf file system
 * (as root), it compares the results of random operations with the kernel's results. Other tests
 * check that pins share maps between processes. They also check when names and ids become invalid.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bpf/map/map_file.h"
#include "bpf/map/map_sys.h"
#include "bpf/map/pin.h"
#include "kernel.h"

static char base[64];
static struct pb_bpf_pins pins;
static uint64_t rng = 88172645463325252ull;

static uint32_t rnd(uint32_t below)
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return (uint32_t)((rng * 0x2545f4914f6cdd1dull >> 32) % below);
}

static const struct pb_bpf_map_spec spec = {
	.attr = { BPF_MAP_TYPE_HASH, 4, 8, 100, 0 }, .cpu_slots = 1,
	.types = { .spin_lock_off = -1, .timer_off = -1 } };

/* ---- the kernel's rules -------------------------------------------------------------- */

static char kernel_root[80];
static int kernel_fd;

static const char *in_kernel(const char *path, int which)
{
	static char buf[2][256];

	snprintf(buf[which], sizeof(buf[which]), "%s/%s", kernel_root, path);
	return buf[which];
}

static int ret_of(long ret)
{
	return ret < 0 ? -errno : 0;
}

static int kernel_obj(int cmd, const char *path, uint32_t fd, uint32_t flags)
{
	union bpf_attr a;
	long ret;

	memset(&a, 0, sizeof(a));
	a.pathname = (uintptr_t)in_kernel(path, 0);
	a.bpf_fd = fd;
	a.file_flags = flags;
	ret = kernel_bpf(cmd, &a);
	if (ret < 0)
		return -errno;
	if (cmd == BPF_OBJ_GET)
		close((int)ret);
	return 0;
}

static void some_path(char *path)
{
	static const char *const parts[] = { "a", "b", "c", "d", "a.b" };
	int depth = 1 + (int)rnd(3), n = 0;

	for (int i = 0; i < depth; i++)
		n += sprintf(path + n, "%s%s", i ? "/" : "", parts[rnd(25) ? rnd(4) : 4]);
}

static int kind_of(const char *path)
{
	struct stat st;

	return lstat(path, &st) ? 0 : S_ISDIR(st.st_mode) ? 1 : 2;
}

static void same_tree(const char *why)
{
	static const char *const parts[] = { "a", "b", "c", "d" };
	char path[64], mine[512];

	for (uint32_t i = 0; i < 4 + 16 + 64; i++) {
		uint32_t n = i < 4 ? i : i < 20 ? i - 4 : i - 20;

		snprintf(path, sizeof(path), "%s%s%s%s%s", parts[n % 4], i < 4 ? "" : "/",
			 i < 4 ? "" : parts[n / 4 % 4], i < 20 ? "" : "/",
			 i < 20 ? "" : parts[n / 16]);
		snprintf(mine, sizeof(mine), "%s/%s", pins.path, path);
		if (kind_of(in_kernel(path, 0)) != kind_of(mine))
			fail_msg("%s differs after %s", path, why);
	}
}

/* Returns whether two pins are links to one file. In Patchbay, all pins of a map are such links. In
 * the kernel, each pin is a separate file. So if one pin of a map is renamed to another pin of the
 * same map, the results differ. */
static bool same_file(const char *a, const char *b)
{
	char path[512];
	struct stat sa, sb;

	snprintf(path, sizeof(path), "%s/%s", pins.path, a);
	if (lstat(path, &sa))
		return false;
	snprintf(path, sizeof(path), "%s/%s", pins.path, b);
	return !lstat(path, &sb) && S_ISREG(sa.st_mode) && sa.st_ino == sb.st_ino;
}

static void one_operation(struct pb_bpf_map *map)
{
	char a[64], b[64], why[192];
	struct pb_bpf_map got;
	uint32_t flags = rnd(5) ? 0 : rnd(5) * BPF_F_RDONLY;
	int op = (int)rnd(7), kernel, ours;

	some_path(a);
	some_path(b);
	snprintf(why, sizeof(why), "operation %d on %s (%s), flags %#x", op, a, b, flags);
	switch (op) {
	case 0:
		kernel = ret_of(mkdir(in_kernel(a, 0), 0700));
		ours = pb_bpf_pins_mkdir(&pins, a);
		break;
	case 1:
		kernel = ret_of(rmdir(in_kernel(a, 0)));
		ours = pb_bpf_pins_rmdir(&pins, a);
		break;
	case 2:
		kernel = kernel_obj(BPF_OBJ_PIN, a, (uint32_t)kernel_fd, 0);
		ours = pb_bpf_obj_pin(&pins, map, a);
		break;
	case 3:
		kernel = kernel_obj(BPF_OBJ_GET, a, 0, flags);
		ours = pb_bpf_obj_get(&pins, &got, a, flags);
		if (!ours)
			pb_bpf_map_close(&got);
		break;
	case 4:
		kernel = ret_of(link(in_kernel(a, 0), in_kernel(b, 1)));
		ours = pb_bpf_pins_link(&pins, a, b);
		break;
	case 5:
		if (same_file(a, b))
			return;
		kernel = ret_of(rename(in_kernel(a, 0), in_kernel(b, 1)));
		ours = pb_bpf_pins_rename(&pins, a, b);
		break;
	default:
		kernel = ret_of(unlink(in_kernel(a, 0)));
		ours = pb_bpf_pins_unlink(&pins, a);
		break;
	}
	if (kernel != ours)
		fail_msg("%s: kernel %d, ours %d", why, kernel, ours);
	same_tree(why);
}

static void as_the_kernel(void **state)
{
	union bpf_attr a = { .map_type = BPF_MAP_TYPE_HASH, .key_size = 4, .value_size = 8,
		.max_entries = 100 };
	struct pb_bpf_map map;

	if (!kernel_is_there() || unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
		skip();
	snprintf(kernel_root, sizeof(kernel_root), "%s/kernel", base);
	assert_int_equal(mkdir(kernel_root, 0700), 0);
	if (mount("bpf", kernel_root, "bpf", 0, NULL)) {
		rmdir(kernel_root);
		skip();
	}
	kernel_fd = (int)kernel_bpf(BPF_MAP_CREATE, &a);
	assert_true(kernel_fd >= 0);
	assert_int_equal(pb_bpf_pins_create(&pins, &map, &spec), 0);
	for (int i = 0; i < 3000; i++)
		one_operation(&map);
	close(kernel_fd);
	pb_bpf_map_close(&map);
	umount(kernel_root);
	rmdir(kernel_root);
}

/* ---- our own ------------------------------------------------------------------------- */

static uint64_t value_at(struct pb_bpf_map *map, uint32_t key)
{
	uint64_t value = 0;

	return pb_bpf_map_lookup_elem(map, &key, &value, 0) ? UINT64_MAX : value;
}

static void shared(void **state)
{
	struct pb_bpf_map map, other;
	uint32_t key = 7;
	uint64_t value = 1;
	int status;
	pid_t pid;

	assert_int_equal(pb_bpf_pins_create(&pins, &map, &spec), 0);
	assert_int_equal(pb_bpf_obj_pin(&pins, &map, "shared"), 0);
	assert_int_equal(pb_bpf_map_update_elem(&map, &key, &value, 0), 0);
	pid = fork();
	if (!pid) {
		int bad = pb_bpf_obj_get(&pins, &other, "shared", 0) != 0 ||
			value_at(&other, 7) != 1;

		value = 2;
		bad |= pb_bpf_map_update_elem(&other, &key, &value, 0) != 0;
		_exit(bad);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(value_at(&map, 7), 2);
	/* opens a pin read-only */
	assert_int_equal(pb_bpf_obj_get(&pins, &other, "shared", BPF_F_RDONLY), 0);
	assert_int_equal(value_at(&other, 7), 2);
	assert_int_equal(pb_bpf_map_update_elem(&other, &key, &value, 0), -EPERM);
	pb_bpf_map_close(&other);
	/* the map outlives the mapping that created it */
	pb_bpf_map_close(&map);
	assert_int_equal(pb_bpf_obj_get(&pins, &other, "shared", 0), 0);
	assert_int_equal(value_at(&other, 7), 2);
	/* the map also outlives its last pin */
	assert_int_equal(pb_bpf_pins_unlink(&pins, "shared"), 0);
	assert_int_equal(pb_bpf_obj_get(&pins, &map, "shared", 0), -ENOENT);
	assert_int_equal(pb_bpf_obj_pin(&pins, &other, "again"), 0);
	assert_int_equal(pb_bpf_pins_unlink(&pins, "again"), 0);
	pb_bpf_map_close(&other);
}

static void ids_end(void **state)
{
	struct pb_bpf_map a, b, c;
	struct pb_bpf_pins again;
	uint32_t id_a, id_b;

	assert_int_equal(pb_bpf_pins_create(&pins, &a, &spec), 0);
	assert_int_equal(pb_bpf_pins_create(&pins, &b, &spec), 0);
	id_a = a.id;
	id_b = b.id;
	assert_int_not_equal(id_a, id_b);
	assert_int_equal(pb_bpf_obj_pin(&pins, &a, "kept"), 0);
	pb_bpf_map_close(&a);
	assert_int_equal(pb_bpf_pins_open(&again, pins.path), 0);
	assert_int_equal(pb_bpf_pins_get_id(&again, &c, id_a, PB_BPF_MAP_READ), 0);
	assert_int_equal(c.id, id_a);
	pb_bpf_map_close(&c);
	assert_int_equal(pb_bpf_pins_get_id(&again, &c, id_b, PB_BPF_MAP_READ), 0);
	pb_bpf_map_close(&c);
	pb_bpf_map_close(&b);
	pb_bpf_pins_close(&again);
	assert_int_equal(pb_bpf_pins_open(&again, pins.path), 0);
	assert_int_equal(pb_bpf_pins_get_id(&again, &c, id_b, PB_BPF_MAP_READ), -ENOENT);
	pb_bpf_pins_close(&again);
	assert_int_equal(pb_bpf_pins_unlink(&pins, "kept"), 0);
}

static struct pb_bpf_map *unpinned;

bool __real_pb_bpf_map_file_used(int fd);
bool __wrap_pb_bpf_map_file_used(int fd);

/* The linker makes calls of pb_bpf_map_file_used() in pin.c call this function. Before the file is
 * tested, another process pins the map and closes it. */
bool __wrap_pb_bpf_map_file_used(int fd)
{
	struct pb_bpf_map *map = unpinned;

	unpinned = NULL;
	if (map) {
		assert_int_equal(pb_bpf_obj_pin(&pins, map, "just_pinned"), 0);
		pb_bpf_map_close(map);
	}
	return __real_pb_bpf_map_file_used(fd);
}

/* While unused maps are searched, a map is pinned. Its id stays. */
static void ids_stay(void **state)
{
	struct pb_bpf_pins other;
	struct pb_bpf_map map;
	uint32_t id;

	assert_int_equal(pb_bpf_pins_create(&pins, &map, &spec), 0);
	id = map.id;
	unpinned = &map;
	assert_int_equal(pb_bpf_pins_open(&other, pins.path), 0);
	assert_null(unpinned);
	pb_bpf_pins_close(&other);
	assert_int_equal(pb_bpf_pins_get_id(&pins, &map, id, PB_BPF_MAP_READ), 0);
	pb_bpf_map_close(&map);
	assert_int_equal(pb_bpf_pins_unlink(&pins, "just_pinned"), 0);
}

static void ways_out(void **state)
{
	struct pb_bpf_map map;
	char path[512];

	assert_int_equal(pb_bpf_pins_create(&pins, &map, &spec), 0);
	snprintf(path, sizeof(path), "%s/out", pins.path);
	assert_int_equal(symlink("/tmp", path), 0);
	assert_int_equal(pb_bpf_obj_pin(&pins, &map, "out/x"), -EPERM);
	assert_int_equal(pb_bpf_obj_pin(&pins, &map, "../x"), -EPERM);
	assert_int_equal(pb_bpf_obj_pin(&pins, &map, "/tmp/x"), -EPERM);
	assert_int_equal(pb_bpf_pins_mkdir(&pins, "out/x"), -EPERM);
	unlink(path);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_int_equal(pb_bpf_obj_get(&pins, &map, "out", 0), -EPERM);
	unlink(path);
	/* an absolute path is accepted if it is inside the tree */
	snprintf(path, sizeof(path), "%s/in", pins.path);
	assert_int_equal(pb_bpf_obj_pin(&pins, &map, path), 0);
	assert_int_equal(pb_bpf_obj_pin(&pins, &map, "in"), -EEXIST);
	assert_int_equal(pb_bpf_pins_unlink(&pins, path), 0);
	pb_bpf_map_close(&map);
}

/* Opens files that aren't maps. */
static void no_maps(void **state)
{
	struct pb_bpf_map map;
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/junk", pins.path);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	assert_true(fd >= 0);
	assert_int_equal(pb_bpf_obj_get(&pins, &map, "junk", 0), -EACCES);
	assert_int_equal(ftruncate(fd, 100000), 0);
	assert_int_equal(pb_bpf_obj_get(&pins, &map, "junk", 0), -EACCES);
	close(fd);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_int_equal(pb_bpf_obj_get(&pins, &map, "junk", 0), -EACCES);
	unlink(path);
}

static int setup(void **state)
{
	char path[sizeof(base) + 4];

	snprintf(base, sizeof(base), "/dev/shm/pb-pin-XXXXXX");
	if (!mkdtemp(base)) {
		snprintf(base, sizeof(base), "/tmp/pb-pin-XXXXXX");
		if (!mkdtemp(base))
			return -1;
	}
	snprintf(path, sizeof(path), "%s/bpf", base);
	return pb_bpf_pins_open(&pins, path);
}

static int teardown(void **state)
{
	char command[96];

	pb_bpf_pins_close(&pins);
	if (*kernel_root)
		umount(kernel_root);
	snprintf(command, sizeof(command), "rm -rf %s", base);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shared), cmocka_unit_test(ids_end), cmocka_unit_test(ids_stay),
		cmocka_unit_test(ways_out), cmocka_unit_test(no_maps),
		cmocka_unit_test(as_the_kernel),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
