/* A program for Windows that says what it was told: it prints the file <its own path>.stdout and exits with the
 * number in <its own path>.exit. For tests only; tests/bench/windows.py writes these files beside a copy of it. */
#include <stdio.h>
#include <stdlib.h>
#include <windows.h>
#include <fcntl.h>
#include <io.h>

int main(void)
{
    char path[2 * MAX_PATH], beside[2 * MAX_PATH + 16], buffer[4096];
    size_t length;
    int code = 0;
    GetModuleFileNameA(NULL, path, sizeof path);
    _setmode(_fileno(stdout), _O_BINARY);
    snprintf(beside, sizeof beside, "%s.stdout", path);
    FILE *file = fopen(beside, "rb");
    while (file && (length = fread(buffer, 1, sizeof buffer, file)) > 0)
        fwrite(buffer, 1, length, stdout);
    snprintf(beside, sizeof beside, "%s.exit", path);
    file = fopen(beside, "r");
    if (file && fscanf(file, "%d", &code) != 1)
        code = 0;
    return code;
}
