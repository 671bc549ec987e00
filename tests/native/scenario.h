/* Reading a scenario: the file that tells the stand-in libraries which machine to play.
 *
 * The file is named by the environment variable FAKE_NVML. Each line is "key = value"; a line that
 * begins with '#' is a comment, and "  # ..." after a value is one too. The last line of a key wins.
 * The keys are described at the top of fake_nvml.c.
 */
#ifndef SCENARIO_H
#define SCENARIO_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <windows.h>
#else
#include <signal.h>
#include <unistd.h>
#endif

#define MAX_LINES 1024

static char *scenario_key[MAX_LINES], *scenario_value[MAX_LINES];
static int scenario_lines = -1;

static void scenario_load(void)
{
    if (scenario_lines >= 0)
        return;
    scenario_lines = 0;
    const char *path = getenv("FAKE_NVML");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (!file)
        return;
    char line[1024];
    while (scenario_lines < MAX_LINES && fgets(line, sizeof line, file)) {
        char *key = line;
        while (isspace((unsigned char)*key))
            key++;
        char *value = strchr(key, '=');
        if (*key == '#' || !value)
            continue;
        char *end = value;
        while (end > key && isspace((unsigned char)end[-1]))
            end--;
        *end = '\0';
        value++;
        while (isspace((unsigned char)*value))
            value++;
        char *comment = strstr(value, "  #");
        end = comment ? comment : value + strlen(value);
        while (end > value && isspace((unsigned char)end[-1]))
            end--;
        *end = '\0';
        scenario_key[scenario_lines] = strdup(key);
        scenario_value[scenario_lines++] = strdup(value);
    }
    fclose(file);
}

/* The value of a key; fallback where the scenario does not mention it. */
static const char *scenario_get(const char *key, const char *fallback)
{
    scenario_load();
    for (int i = scenario_lines - 1; i >= 0; i--)
        if (!strcmp(scenario_key[i], key))
            return scenario_value[i];
    return fallback;
}

/* gpu<index>.<field>, else gpu.<field>, else fallback. */
static const char *scenario_gpu(int index, const char *field, const char *fallback)
{
    char key[256];
    snprintf(key, sizeof key, "gpu%d.%s", index, field);
    const char *value = scenario_get(key, NULL);
    if (!value) {
        snprintf(key, sizeof key, "gpu.%s", field);
        value = scenario_get(key, NULL);
    }
    return value ? value : fallback;
}

static unsigned long long scenario_number(const char *text)
{
    return strtoull(text, NULL, 0); /* decimal or 0x... */
}

/* Sleep as long as hang.<function> says. With "hang_deaf = 1" only SIGKILL ends it sooner. */
static void scenario_hang(const char *function)
{
    char key[256];
    snprintf(key, sizeof key, "hang.%s", function);
    const char *value = scenario_get(key, NULL);
    if (!value)
        return;
    unsigned seconds = (unsigned)scenario_number(value);
#ifdef _WIN32
    Sleep(seconds * 1000);
#else
    if (scenario_number(scenario_get("hang_deaf", "0"))) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
    }
    while (seconds)
        seconds = sleep(seconds);
#endif
}

/* FAKE_NVML_LOG=<file>: one line for each call, the function's name. */
static void scenario_log(const char *function)
{
    const char *path = getenv("FAKE_NVML_LOG");
    FILE *file = path ? fopen(path, "a") : NULL;
    if (!file)
        return;
    fprintf(file, "%s\n", function);
    fclose(file);
}

#endif
