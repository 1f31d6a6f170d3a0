/* cgroup_test.c - limits of control groups, read from folders that look like the kernel's. */
#define _GNU_SOURCE /* sched_setaffinity */
#include "base/cgroup.h"

#include <sched.h>

#include "base/cpu.h"
#include "tests/folder.h"

/* Stands for the kernel: "self" is the list of groups, "fs" the mount. */
static folder kernel;
static char root[300], self[300];

static int make_kernel(void **state) {
    (void)state;
    kernel = folder_new();
    folder_make(&kernel, "fs");
    snprintf(root, sizeof root, "%s/fs", kernel.path);
    snprintf(self, sizeof self, "%s/self", kernel.path);
    return 0;
}

static int remove_kernel(void **state) {
    (void)state;
    folder_remove(kernel.path);
    return 0;
}

static void groups(const char *lines) {
    folder_write(&kernel, "self", str_of(lines));
}

/* Writes the file at `path` below the mount, and the folders it stands in. */
static void limit(const char *path, const char *text) {
    char at[300];
    for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        snprintf(at, sizeof at, "fs/%.*s", (int)(slash - path), path);
        mkdir(folder_path(&kernel, at), 0777);
    }
    snprintf(at, sizeof at, "fs/%s", path);
    folder_write(&kernel, at, str_of(text));
}

static void cpus_are(double wanted) {
    assert_true(cgroup_cpus(root, self) == wanted);
}

/* ---- processors ---- */

static void the_least_quota_of_a_group_and_those_above_it_counts(void **state) {
    (void)state;
    groups("0::/user.slice/user-1.slice/run.service\n");
    cpus_are(0);
    limit("user.slice/user-1.slice/run.service/cpu.max", "300000 100000\n");
    cpus_are(3);
    limit("user.slice/user-1.slice/cpu.max", "max 100000\n");
    cpus_are(3);
    limit("user.slice/cpu.max", "75000 50000\n");
    cpus_are(1.5);
    limit("user.slice/user-1.slice/run.service/cpu.max", "max 100000\n");
    cpus_are(1.5);
    limit("user.slice/other.service/cpu.max", "1000 100000\n"); /* not above it */
    cpus_are(1.5);
}

static void a_container_that_sees_its_own_group_as_the_root_is_bounded(void **state) {
    (void)state;
    groups("0::/\n");
    limit("cpu.max", "50000 100000\n");
    cpus_are(0.5);
}

static void a_path_of_the_host_ends_at_the_mount(void **state) {
    (void)state;
    groups("0::/kubepods/pod1/abc\n");
    limit("cpu.max", "200000 100000\n");
    cpus_are(2);
}

static void version_1_has_the_quota_in_a_hierarchy_of_its_own(void **state) {
    (void)state;
    groups("9:name=systemd:/\n7:cpuset:/none\n4:cpu,cpuacct:/docker/abc\n3:memory:/none\n0::/\n");
    limit("cpu/docker/abc/cpu.cfs_quota_us", "-1\n");
    limit("cpu/docker/abc/cpu.cfs_period_us", "100000\n");
    cpus_are(0);
    limit("cpu/docker/cpu.cfs_quota_us", "250000\n");
    limit("cpu/docker/cpu.cfs_period_us", "100000\n");
    cpus_are(2.5);
    limit("cpu/docker/abc/cpu.cfs_quota_us", "25000\n");
    cpus_are(0.25);
    groups("4:cpuacct,cpu:/elsewhere\n");
    limit("cpu/cpu.cfs_quota_us", "400000\n");
    limit("cpu/cpu.cfs_period_us", "100000\n");
    cpus_are(4);
    groups("4:cpuset:/docker/abc\n5:cpuacct:/docker/abc\n"); /* not the hierarchy of quotas */
    cpus_are(0);
}

static void what_is_no_quota_sets_none(void **state) {
    (void)state;
    static const char *const texts[] = {"",      "max 100000\n", "max\n",    "100000\n",
                                        "x y\n", "-1 100000\n",  "0 1000\n", "100000 0\n"};
    groups("0::/\n");
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        limit("cpu.max", texts[i]);
        cpus_are(0);
    }
    limit("cpu.max", "50000 100000\n");
    static const char *const lines[] = {"", "\n", "0\n", "0:\n", "no line at all", "1:cpuset:/\n"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        groups(lines[i]);
        cpus_are(0);
    }
    assert_true(cgroup_cpus(root, "/no/such/file") == 0);
}

static void a_path_longer_than_any_buffer_is_walked(void **state) {
    (void)state;
    static char line[70000];
    memset(line, 'a', sizeof line - 1);
    line[0] = '0';
    line[1] = line[2] = ':';
    line[3] = '/';
    for (size_t i = 200; i < sizeof line - 1; i += 200) line[i] = '/';
    groups(line);
    limit("cpu.max", "100000 100000\n");
    cpus_are(1);
}

static void threads_are_the_quota_rounded_up_within_the_affinity(void **state) {
    (void)state;
    groups("0::/\n");
    limit("cpu.max", "max 100000\n");
    const unsigned all = cpu_count_at(root, self);
    static const struct {
        const char *quota;
        unsigned threads;
    } cases[] = {{"1000 100000\n", 1},
                 {"100000 100000\n", 1},
                 {"100001 100000\n", 2},
                 {"200000 100000\n", 2},
                 {"90000000 100000\n", 900}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        limit("cpu.max", cases[i].quota);
        assert_int_equal(cpu_count_at(root, self), cases[i].threads < all ? cases[i].threads : all);
    }
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++)
        if (CPU_ISSET(i, &before)) CPU_SET(i, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    const unsigned bound = cpu_count_at(root, self);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_int_equal(bound, 1);
}

/* ---- memory ---- */

static void memory_that_the_least_group_leaves_counts_its_cache_as_room(void **state) {
    (void)state;
    groups("0::/a/b\n");
    assert_true(cgroup_memory(root, self) == UINT64_MAX);
    limit("a/b/memory.max", "max\n");
    limit("a/b/memory.current", "5000\n");
    assert_true(cgroup_memory(root, self) == UINT64_MAX);
    limit("a/memory.max", "100000\n");
    limit("a/memory.current", "70000\n");
    assert_int_equal(cgroup_memory(root, self), 30000);
    limit("a/memory.stat", "anon 40000\nactive_file 10000\ninactive_file 20000\n");
    assert_int_equal(cgroup_memory(root, self), 60000);
    limit("a/b/memory.max", "5500\n");
    assert_int_equal(cgroup_memory(root, self), 500);
    limit("a/b/memory.max", "4000\n"); /* lowered below what is used */
    assert_int_equal(cgroup_memory(root, self), 0);
}

static void version_1_has_other_names_for_memory(void **state) {
    (void)state;
    groups("4:memory:/box\n");
    limit("memory/box/memory.limit_in_bytes", "9223372036854771712\n"); /* none */
    limit("memory/box/memory.usage_in_bytes", "1000\n");
    assert_true(cgroup_memory(root, self) > INT64_MAX / 2);
    limit("memory/memory.limit_in_bytes", "8000\n");
    limit("memory/memory.usage_in_bytes", "3000\n");
    limit("memory/memory.stat", "active_file 1\ntotal_active_file 100\ntotal_inactive_file 200\n");
    assert_int_equal(cgroup_memory(root, self), 5300);
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_kernel, remove_kernel)
    const struct CMUnitTest tests[] = {
        TEST(the_least_quota_of_a_group_and_those_above_it_counts),
        TEST(a_container_that_sees_its_own_group_as_the_root_is_bounded),
        TEST(a_path_of_the_host_ends_at_the_mount),
        TEST(version_1_has_the_quota_in_a_hierarchy_of_its_own),
        TEST(what_is_no_quota_sets_none),
        TEST(a_path_longer_than_any_buffer_is_walked),
        TEST(threads_are_the_quota_rounded_up_within_the_affinity),
        TEST(memory_that_the_least_group_leaves_counts_its_cache_as_room),
        TEST(version_1_has_other_names_for_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
