/* peak FILE CMD...: runs CMD with its output in FILE, and prints the highest resident size that it, or a child it
   waited for, had. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    pid_t child = fork();
    if (child == 0) {
        int file = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (file < 0 || dup2(file, 1) < 0) _exit(126);
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    int status = 0;
    struct rusage usage;
    if (child < 0 || wait4(child, &status, 0, &usage) < 0) return 2;
    printf("peak_kb=%ld\n", usage.ru_maxrss);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
