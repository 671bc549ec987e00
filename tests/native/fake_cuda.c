/* A stand-in for libcuda.so.1 that plays the same scenario as fake_nvml.c. For tests only.
 *
 *     LD_LIBRARY_PATH=<folder of the library> FAKE_NVML=<scenario file> python -c "..."
 *
 * Keys of a scenario that it reads, besides count, gpu.name, gpu.cc and gpu.mem_total_mib of fake_nvml.c:
 *
 *   cuda = 12020              what cuDriverGetVersion says                                    [12040]
 *   cuda_init = 803           what cuInit answers: 100 no device, 804 forward compatibility ... [0]
 *   hang.cuInit = 60          cuInit sleeps so many seconds first
 *   cuda_context_mib = 416    what a context takes on the GPU, as fake_nvml.c then shows          [0]
 *   cuda_context = 2          what cuDevicePrimaryCtxRetain answers: 2 out of memory ...          [0]
 *
 * FAKE_CUDA_DRIVER, FAKE_CUDA_INIT and FAKE_CUDA_COUNT in the environment go before the scenario.
 * Only asking is played, and a context that takes memory: nothing can be allocated or started.
 */
#include "scenario.h"

typedef int Result;

enum { SUCCESS = 0, INVALID_VALUE = 1, NOT_INITIALIZED = 3, INVALID_DEVICE = 101, NOT_SUPPORTED = 801 };
enum { ATTRIBUTE_CC_MAJOR = 75, ATTRIBUTE_CC_MINOR = 76 };

static int initialised;

static int number(const char *variable, const char *key, const char *fallback)
{
    const char *value = getenv(variable);
    return (int)scenario_number(value ? value : scenario_get(key, fallback));
}
static int count(void) { return number("FAKE_CUDA_COUNT", "count", "1"); }

Result cuInit(unsigned flags)
{
    (void)flags;
    scenario_log(__func__);
    scenario_hang(__func__);
    Result result = number("FAKE_CUDA_INIT", "cuda_init", "0");
    initialised = result == SUCCESS;
    return result;
}
Result cuDriverGetVersion(int *version)
{
    *version = number("FAKE_CUDA_DRIVER", "cuda", "12040");
    return SUCCESS;
}
Result cuDeviceGetCount(int *out)
{
    if (!initialised)
        return NOT_INITIALIZED;
    *out = count();
    return SUCCESS;
}
Result cuDeviceGet(int *device, int ordinal)
{
    if (ordinal < 0 || ordinal >= count())
        return INVALID_DEVICE;
    *device = ordinal;
    return SUCCESS;
}
Result cuDeviceGetName(char *buffer, int size, int device)
{
    snprintf(buffer, (size_t)size, "%s", scenario_gpu(device, "name", "NVIDIA GeForce RTX 3090"));
    return SUCCESS;
}
Result cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    *bytes = (size_t)scenario_number(scenario_gpu(device, "mem_total_mib", "24576")) << 20;
    return SUCCESS;
}
Result cuDeviceGetAttribute(int *out, int attribute, int device)
{
    const char *cc = scenario_gpu(device, "cc", "8.6"), *dot = strchr(cc, '.');
    if (attribute == ATTRIBUTE_CC_MAJOR)
        *out = atoi(cc);
    else if (attribute == ATTRIBUTE_CC_MINOR)
        *out = dot ? atoi(dot + 1) : 0;
    else
        return INVALID_VALUE;
    return SUCCESS;
}

Result cuDeviceGetPCIBusId(char *text, int size, int device)
{
    int bus = (int)scenario_number(scenario_gpu(device, "bus", "0"));
    snprintf(text, (size_t)size, "0000:%02X:00.0", bus ? bus : device + 1); /* as fake_nvml.c does */
    return SUCCESS;
}
Result cuDevicePrimaryCtxRetain(void **context, int device)
{
    Result result = number("FAKE_CUDA_CONTEXT", "cuda_context", "0");
    if (!initialised)
        return NOT_INITIALIZED;
    if (result != SUCCESS)
        return result;
    *context = &initialised;
#ifndef _WIN32
    char variable[64]; /* the way to the other library in this process */
    snprintf(variable, sizeof variable, "FAKE_CONTEXT_ON_%d", device);
    setenv(variable, scenario_get("cuda_context_mib", "0"), 1);
#endif
    return SUCCESS;
}

/* ---- what the CUDA runtime needs to get as far as asking for devices ---- */

static Result not_supported(void) { return NOT_SUPPORTED; }

Result cuGetExportTable(const void **table, const void *id)
{
    (void)id;
    static const void *functions[256];
    functions[0] = (void *)sizeof functions;
    for (size_t i = 1; i < sizeof functions / sizeof *functions; i++)
        functions[i] = (void *)not_supported;
    *table = functions;
    return SUCCESS;
}

Result cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags, int *status);
Result cuGetProcAddress(const char *name, void **function, int version, unsigned long long flags)
{
    return cuGetProcAddress_v2(name, function, version, flags, NULL);
}
Result cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags, int *status)
{
    static const struct {
        const char *name;
        void *function;
    } known[] = {{"cuInit", (void *)cuInit},
                 {"cuDriverGetVersion", (void *)cuDriverGetVersion},
                 {"cuDeviceGetCount", (void *)cuDeviceGetCount},
                 {"cuDeviceGet", (void *)cuDeviceGet},
                 {"cuDeviceGetName", (void *)cuDeviceGetName},
                 {"cuDeviceTotalMem", (void *)cuDeviceTotalMem_v2},
                 {"cuDeviceGetAttribute", (void *)cuDeviceGetAttribute},
                 {"cuGetExportTable", (void *)cuGetExportTable}};
    (void)flags;
    if (status)
        *status = 0;
    *function = (void *)not_supported;
    if (!strcmp(name, "cuGetProcAddress"))
        *function = version >= 12000 ? (void *)cuGetProcAddress_v2 : (void *)cuGetProcAddress;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (!strcmp(name, known[i].name))
            *function = known[i].function;
    return SUCCESS;
}
