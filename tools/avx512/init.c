/* init.c - the only program of the machine that tools/avx512/boot starts: runs /program on the
 * serial line, says how it ended, and switches the machine off. Linked statically. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

static int run_program(void) {
    const pid_t child = fork();
    if (child == 0) {
        execl("/program", "/program", (char *)NULL);
        _exit(127);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return 126;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(void) {
    mkdir("/proc", 0755);
    mount("proc", "/proc", "proc", 0, NULL);
    mkdir("/tmp", 0755);
    mkdir("/dev", 0755);
    if (mount("devtmpfs", "/dev", "devtmpfs", 0, NULL) == 0) {
        const int line = open("/dev/ttyS0", O_RDWR);
        for (int fd = 0; line >= 0 && fd <= 2; fd++) dup2(line, fd);
        puts("init: begin");
        fflush(stdout);
        printf("init: exit status %d\n", run_program());
        fflush(stdout);
        tcdrain(1);
    }
    reboot(RB_POWER_OFF);
    return 1;
}
