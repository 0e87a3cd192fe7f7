/* What the launch benchmark starts: writes the time of its first instructions, CLOCK_MONOTONIC in
 * milliseconds as one double, to standard output. With an argument it then waits for the end of
 * standard input, so that the processes around it can be looked at. */
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct timespec now;
    double milliseconds;
    char byte;

    (void)argv;
    clock_gettime(CLOCK_MONOTONIC, &now);
    milliseconds = now.tv_sec * 1e3 + now.tv_nsec / 1e6;
    if (write(1, &milliseconds, sizeof milliseconds) != sizeof milliseconds)
        return 1;
    while (argc > 1 && read(0, &byte, 1) > 0)
        ;
    return 0;
}
