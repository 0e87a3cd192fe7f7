/* Steps through a program and the processes it forks, until they start another program, one instruction at a time:
 *
 *     steps RESULT PROGRAM ARGUMENT…
 *
 * RESULT gets the address of each instruction of the program that was run, in hexadecimal, as its file has them, in the
 * order of their first time. */
#define _GNU_SOURCE
#include <elf.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_BYTES (512ul << 20) /* of a program */

/* How far from the addresses in its file a program is that has just been started. */
static int moved(const char *program, pid_t process, uint64_t *by)
{
    char place[64];
    unsigned long start = 0;
    Elf64_Ehdr header;
    FILE *file = fopen(program, "r");

    if (!file || fread(&header, sizeof header, 1, file) != 1 || fclose(file))
        return -1;
    if (header.e_type != ET_DYN) {
        *by = 0;
        return 0;
    }
    snprintf(place, sizeof place, "/proc/%d/maps", (int)process);
    if (!(file = fopen(place, "r")) || fscanf(file, "%lx", &start) != 1 || fclose(file))
        return -1;
    *by = start; /* its own first segment is the lowest of all */
    return 0;
}

int main(int argc, char **argv)
{
    const long wanted = PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK
        | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    uint8_t *seen = calloc(MOST_BYTES / 8, 1);
    FILE *result = argc > 2 ? fopen(argv[1], "w") : NULL;
    int status, code = 1;
    pid_t first, stopped;
    uint64_t by;

    if (!seen || !result || (first = fork()) < 0)
        return 1;
    if (first == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        execv(argv[2], argv + 2);
        _exit(127);
    }
    if (waitpid(first, &status, 0) != first || ptrace(PTRACE_SETOPTIONS, first, NULL, wanted)
        || moved(argv[2], first, &by))
        return 1;
    ptrace(PTRACE_SINGLESTEP, first, NULL, NULL);
    while ((stopped = waitpid(-1, &status, __WALL)) > 0) {
        int signal = WSTOPSIG(status), event = status >> 16;

        if (!WIFSTOPPED(status)) {
            if (stopped == first)
                code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
            continue;
        }
        if (event == PTRACE_EVENT_EXEC) {
            ptrace(PTRACE_DETACH, stopped, NULL, NULL);
            continue;
        }
        if (signal == SIGTRAP && !event) {
#if defined(__x86_64__)
            size_t place = offsetof(struct user_regs_struct, rip);
            uint64_t at = ptrace(PTRACE_PEEKUSER, stopped, place, NULL) - by;
#else
#error "where does this processor keep the address of the next instruction?"
#endif
            if (at < MOST_BYTES && !(seen[at / 8] >> at % 8 & 1)) {
                seen[at / 8] |= 1 << at % 8;
                fprintf(result, "%lx\n", (unsigned long)at);
            }
        }
        if (event || signal == SIGTRAP || signal == SIGSTOP)
            signal = 0;
        ptrace(PTRACE_SINGLESTEP, stopped, NULL, (long)signal);
    }
    return fclose(result) || code;
}
