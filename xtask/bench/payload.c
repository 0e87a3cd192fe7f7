/* What the launch benchmark starts: the time of its very first instructions, CLOCK_MONOTONIC in milliseconds as one
 * double, to standard output. It begins where the kernel does, without the start of a C library: that asks the processor
 * what it is, which costs a virtual machine more than half a millisecond and says nothing about a launcher. With an
 * argument it then waits for the end of standard input, so that the processes around it can be looked at. */
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(__x86_64__)
__asm__(".globl _start\n_start:\n mov %rsp, %rdi\n and $-16, %rsp\n call begin\n");
#elif defined(__aarch64__)
__asm__(".globl _start\n_start:\n mov x0, sp\n bl begin\n");
#else
#error "no entry point for this processor"
#endif

void begin(const long *argument_count)
{
    struct timespec now;
    double milliseconds;
    char byte;

    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    milliseconds = now.tv_sec * 1e3 + now.tv_nsec / 1e6;
    if (syscall(SYS_write, 1, &milliseconds, sizeof milliseconds) != sizeof milliseconds)
        syscall(SYS_exit_group, 1);
    while (*argument_count > 1 && syscall(SYS_read, 0, &byte, 1) > 0)
        ;
    syscall(SYS_exit_group, 0);
    __builtin_unreachable();
}
