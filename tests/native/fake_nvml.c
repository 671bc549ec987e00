/* A stand-in for libnvidia-ml.so.1 (nvml.dll on Windows) that plays a scenario. For tests only.
 *
 * The real nvidia-ml-py and the real nvidia-smi load it in place of NVIDIA's library:
 *
 *     LD_LIBRARY_PATH=<folder of the library> FAKE_NVML=<scenario file> nvidia-smi
 *
 * Keys of a scenario ("key = value", see scenario.h; what is not mentioned has the default in brackets):
 *
 *   driver_version = 535.183.01     what nvmlSystemGetDriverVersion says       [550.163.01]
 *   nvml_version = 12.535.183.01    what nvmlSystemGetNVMLVersion says         [12.550.163.01]
 *   cuda = 12020                    newest CUDA that the driver serves, 1000 * major + 10 * minor [12040]
 *   count = 2                       number of GPUs, at most 64                 [1]
 *   proc.4242 = /usr/bin/python3    name of a process                          [python]
 *
 *   gpu.<field> = ...               a field of every GPU
 *   gpu1.<field> = ...              the same of one GPU; goes before gpu.<field>
 *     name, uuid, serial, vbios, gsp, brand, arch, bus (number), pci_id, pci_sub
 *     cc                            compute capability, as 8.6
 *     mem_total_mib, mem_used_mib, mem_reserved_mib, bar1_mib
 *     temp, temp_shutdown, temp_slowdown, temp_max (degrees C), fan (percent), fans
 *     pstate, power_mw, power_limit_mw, power_default_mw, power_min_mw, power_max_mw
 *     throttle                      bit mask of the clock event reasons
 *     util, util_mem (percent), clk_sm, clk_mem, clk_sm_max, clk_mem_max (MHz)
 *     pcie_gen, pcie_gen_max, pcie_gen_gpu_max, pcie_width, pcie_width_max, pcie_replay
 *     ecc, ecc_pending, ecc_corrected, ecc_uncorrected, retired_pending
 *     remap_corr, remap_uncorr, remap_pending, remap_failed
 *     mig, mig_pending, mig_max, mig_devices = 1g.10gb:9728,2g.20gb:19968 (profile:MiB)
 *     persistence, compute_mode, display_mode, display_active
 *     driver_model                  Windows: 0 WDDM, 1 TCC, 2 MCDM
 *     fabric, fabric_status         registration with the NVLink fabric: 1 not started, 2 in progress, 3 completed
 *     procs, gprocs, mprocs = 4242:69000,4243:na   (pid:MiB) compute, graphics, MPS processes
 *     field.<id>                    one value of nvmlDeviceGetFieldValues
 *     nvlink0, nvlink1, ...         1 for a link that is up, 0 for one that is down [na: there is no such link]
 *   The value "na" of a field makes its function answer NVML_ERROR_NOT_SUPPORTED (3).
 *
 *   err.<function> = 18             that function answers this code, e.g. err.nvmlInit_v2 = 18
 *   gpu1.err.<function> = 15        the same for one GPU; gpu1.err.* = 15 for all of its functions
 *   hang.<function> = 60            that function sleeps so many seconds first
 *   hang_deaf = 1                   ... and does not hear SIGTERM meanwhile (SIGKILL ends it)
 *   missing = <function>,...        read by the build (tests/bench/native.py): a library without these functions
 *
 * FAKE_NVML_LOG=<file> writes the name of each function that is called.
 *
 * Structures and numbers follow NVML's public documentation; only what the tests need is here. Every other
 * name that nvidia-ml-py or nvidia-smi looks up is a stub that answers "not supported" (stubs.h, which the
 * build makes from nvml_names.txt).
 */
#include "scenario.h"

#ifdef _WIN32
#define strncasecmp _strnicmp
#endif

typedef int Return;
typedef unsigned int u32;
typedef unsigned long long u64;

enum {
    SUCCESS = 0,
    UNINITIALIZED = 1,
    INVALID_ARGUMENT = 2,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7,
    TIMEOUT = 10
};

/* A device handle points to one of these. mig is -1 for a whole GPU, else the number of its MIG device. */
typedef struct {
    int gpu;
    int mig;
} Device;

#define MAX_GPUS 64
#define MAX_MIG 8
static Device gpus[MAX_GPUS];
static Device mig_devices[MAX_GPUS][MAX_MIG];
static int initialised;

static int gpu_count(void)
{
    int count = (int)scenario_number(scenario_get("count", "1"));
    return count > MAX_GPUS ? MAX_GPUS : count;
}

static void number_devices(void)
{
    for (int i = 0; i < MAX_GPUS; i++) {
        gpus[i].gpu = i;
        gpus[i].mig = -1;
        for (int m = 0; m < MAX_MIG; m++) {
            mig_devices[i][m].gpu = i;
            mig_devices[i][m].mig = m;
        }
    }
}

static const char *field(const Device *device, const char *name, const char *fallback)
{
    return scenario_gpu(device->gpu, name, fallback);
}

/* ---- what every function does first: log, hang, answer an error that the scenario asks for ---- */

static const char *asked_error(const Device *device, const char *function)
{
    char key[256];
    snprintf(key, sizeof key, "err.%s", function);
    const char *value = device ? field(device, key, NULL) : NULL;
    if (!value)
        value = scenario_get(key, NULL);
    if (!value && device)
        value = field(device, "err.*", NULL);
    return value;
}

static Return enter(const char *function, const Device *device)
{
    scenario_log(function);
    scenario_hang(function);
    const char *error = asked_error(device, function);
    if (error)
        return (Return)scenario_number(error);
    /* The real library answers these two without nvmlInit. */
    int needs_init = strncmp(function, "nvmlInit", 8) && strcmp(function, "nvmlSystemGetNVMLVersion");
    return needs_init && !initialised ? UNINITIALIZED : SUCCESS;
}

#define ENTER(device)                              \
    do {                                           \
        Return error_ = enter(__func__, (device)); \
        if (error_)                                \
            return error_;                         \
    } while (0)

/* ---- giving values back ---- */

static Return give_text(char *buffer, u32 size, const char *text)
{
    if (!text || !strcmp(text, "na"))
        return NOT_SUPPORTED;
    if (strlen(text) + 1 > size)
        return INSUFFICIENT_SIZE;
    strcpy(buffer, text);
    return SUCCESS;
}

static Return give_u64(const Device *device, const char *name, const char *fallback, u64 *out)
{
    const char *value = field(device, name, fallback);
    if (!value || !strcmp(value, "na"))
        return NOT_SUPPORTED;
    *out = scenario_number(value);
    return SUCCESS;
}

static Return give(const Device *device, const char *name, const char *fallback, u32 *out)
{
    u64 wide;
    Return error = give_u64(device, name, fallback, &wide);
    if (!error)
        *out = (u32)wide;
    return error;
}

/* A function that gives one number of a device. */
#define NUMBER(function, name, fallback)          \
    Return function(Device *device, u32 *out)     \
    {                                             \
        ENTER(device);                            \
        return give(device, name, fallback, out); \
    }

/* ---- library and system ---- */

Return nvmlInit_v2(void)
{
    number_devices();
    ENTER(NULL);
    initialised = 1;
    return SUCCESS;
}
Return nvmlInit(void) { return nvmlInit_v2(); }
Return nvmlInitWithFlags(u32 flags)
{
    (void)flags;
    return nvmlInit_v2();
}
Return nvmlShutdown(void)
{
    ENTER(NULL);
    initialised = 0;
    return SUCCESS;
}

const char *nvmlErrorString(Return code)
{
    static const char *text[] = {
        "Success", "Uninitialized", "Invalid Argument", "Not Supported", "Insufficient Permissions",
        "Already Initialized", "Not Found", "Insufficient Size", "Insufficient External Power",
        "Driver Not Loaded", "Timeout", "Interrupt Request Issue", "NVML Shared Library Not Found",
        "Function Not Found", "Corrupted infoROM", "GPU is lost", "GPU requires reset",
        "GPU access blocked by the operating system", "Driver/library version mismatch",
        "In use by another client", "Insufficient Memory", "No data"};
    return code >= 0 && code < (Return)(sizeof text / sizeof *text) ? text[code] : "Unknown Error";
}

Return nvmlSystemGetDriverVersion(char *buffer, u32 size)
{
    ENTER(NULL);
    return give_text(buffer, size, scenario_get("driver_version", "550.163.01"));
}
Return nvmlSystemGetNVMLVersion(char *buffer, u32 size)
{
    ENTER(NULL);
    return give_text(buffer, size, scenario_get("nvml_version", "12.550.163.01"));
}
Return nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    ENTER(NULL);
    *version = (int)scenario_number(scenario_get("cuda", "12040"));
    return SUCCESS;
}
Return nvmlSystemGetCudaDriverVersion(int *version) { return nvmlSystemGetCudaDriverVersion_v2(version); }
Return nvmlSystemGetProcessName(u32 pid, char *buffer, u32 size)
{
    ENTER(NULL);
    char key[32];
    snprintf(key, sizeof key, "proc.%u", pid);
    return give_text(buffer, size, scenario_get(key, "python"));
}
Return nvmlUnitGetCount(u32 *count)
{
    ENTER(NULL);
    *count = 0;
    return SUCCESS;
}

/* ---- finding devices ---- */

static void bus_id(const Device *device, char *buffer, const char *domain)
{
    u32 bus = (u32)scenario_number(field(device, "bus", "0"));
    sprintf(buffer, "%s:%02X:00.0", domain, bus ? bus : 1 + (u32)device->gpu);
}
static void uuid(const Device *device, char *buffer)
{
    const char *given = field(device, "uuid", NULL);
    if (device->mig >= 0)
        sprintf(buffer, "MIG-%08x-0000-4000-8000-%012x", 0xfa5e0000 + device->gpu, device->mig);
    else if (given)
        strcpy(buffer, given);
    else
        sprintf(buffer, "GPU-%08x-0000-4000-8000-%012x", 0xfa5e0000 + device->gpu, device->gpu);
}

Return nvmlDeviceGetCount_v2(u32 *count)
{
    ENTER(NULL);
    *count = (u32)gpu_count();
    return SUCCESS;
}
Return nvmlDeviceGetCount(u32 *count) { return nvmlDeviceGetCount_v2(count); }

Return nvmlDeviceGetHandleByIndex_v2(u32 index, Device **out)
{
    if (index >= (u32)gpu_count())
        return INVALID_ARGUMENT;
    ENTER(&gpus[index]);
    *out = &gpus[index];
    return SUCCESS;
}
Return nvmlDeviceGetHandleByIndex(u32 index, Device **out) { return nvmlDeviceGetHandleByIndex_v2(index, out); }

Return nvmlDeviceGetHandleByPciBusId_v2(const char *wanted, Device **out)
{
    ENTER(NULL);
    for (int i = 0; i < gpu_count(); i++) {
        char wide[32], narrow[32];
        bus_id(&gpus[i], wide, "00000000");
        bus_id(&gpus[i], narrow, "0000");
        if (!strncasecmp(wanted, wide, sizeof wide) || !strncasecmp(wanted, narrow, sizeof narrow)) {
            *out = &gpus[i];
            return SUCCESS;
        }
    }
    return NOT_FOUND;
}
Return nvmlDeviceGetHandleByUUID(const char *wanted, Device **out)
{
    ENTER(NULL);
    for (int i = 0; i < gpu_count(); i++) {
        char found[96];
        uuid(&gpus[i], found);
        if (!strcmp(found, wanted)) {
            *out = &gpus[i];
            return SUCCESS;
        }
    }
    return NOT_FOUND;
}

/* ---- identity ---- */

/* mig_devices = profile:MiB,profile:MiB ; 0 where there is no MIG device of this number. */
static int mig_device(const Device *gpu, int number, char *profile, u64 *mib)
{
    const char *entry = field(gpu, "mig_devices", "");
    for (int i = 0; *entry; i++) {
        size_t length = strcspn(entry, ",");
        if (i == number) {
            size_t name = strcspn(entry, ":,");
            snprintf(profile, 32, "%.*s", (int)name, entry);
            *mib = entry[name] == ':' ? strtoull(entry + name + 1, NULL, 10) : 0;
            return 1;
        }
        entry += length + (entry[length] == ',');
    }
    return 0;
}

Return nvmlDeviceGetName(Device *device, char *buffer, u32 size)
{
    ENTER(device);
    const char *name = field(device, "name", "NVIDIA GeForce RTX 3090");
    char profile[32], whole[160];
    u64 mib;
    if (device->mig < 0 || !mig_device(device, device->mig, profile, &mib))
        return give_text(buffer, size, name);
    snprintf(whole, sizeof whole, "%s MIG %s", name, profile);
    return give_text(buffer, size, whole);
}
Return nvmlDeviceGetUUID(Device *device, char *buffer, u32 size)
{
    ENTER(device);
    char text[96];
    uuid(device, text);
    return give_text(buffer, size, text);
}
Return nvmlDeviceGetSerial(Device *device, char *buffer, u32 size)
{
    ENTER(device);
    return give_text(buffer, size, field(device, "serial", NULL));
}
Return nvmlDeviceGetVbiosVersion(Device *device, char *buffer, u32 size)
{
    ENTER(device);
    return give_text(buffer, size, field(device, "vbios", "94.02.26.08.AA"));
}
Return nvmlDeviceGetGspFirmwareVersion(Device *device, char *buffer)
{
    ENTER(device);
    return give_text(buffer, 64, field(device, "gsp", NULL));
}
Return nvmlDeviceGetGspFirmwareMode(Device *device, u32 *enabled, u32 *by_default)
{
    ENTER(device);
    *enabled = *by_default = field(device, "gsp", NULL) != NULL;
    return SUCCESS;
}
Return nvmlDeviceGetCudaComputeCapability(Device *device, int *major, int *minor)
{
    ENTER(device);
    const char *value = field(device, "cc", "8.6");
    if (!strcmp(value, "na"))
        return NOT_SUPPORTED;
    const char *dot = strchr(value, '.');
    *major = atoi(value);
    *minor = dot ? atoi(dot + 1) : 0;
    return SUCCESS;
}
Return nvmlDeviceGetIndex(Device *device, u32 *out)
{
    ENTER(device);
    *out = (u32)device->gpu;
    return SUCCESS;
}
Return nvmlDeviceGetMinorNumber(Device *device, u32 *out)
{
    ENTER(device);
    *out = (u32)device->gpu;
    return SUCCESS;
}
Return nvmlDeviceGetMultiGpuBoard(Device *device, u32 *out)
{
    ENTER(device);
    *out = 0;
    return SUCCESS;
}
Return nvmlDeviceGetBoardId(Device *device, u32 *out)
{
    ENTER(device);
    *out = 0x100 * (1 + (u32)device->gpu);
    return SUCCESS;
}
Return nvmlDeviceGetVirtualizationMode(Device *device, u32 *out)
{
    ENTER(device);
    *out = 0;
    return SUCCESS;
}
NUMBER(nvmlDeviceGetBrand, "brand", "5")
NUMBER(nvmlDeviceGetArchitecture, "arch", "7")

typedef struct {
    char legacy_bus_id[16];
    u32 domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
} PciInfo;

Return nvmlDeviceGetPciInfo_v3(Device *device, PciInfo *pci)
{
    ENTER(device);
    memset(pci, 0, sizeof *pci);
    bus_id(device, pci->bus_id, "00000000");
    bus_id(device, pci->legacy_bus_id, "0000");
    pci->bus = (u32)strtoul(pci->legacy_bus_id + 5, NULL, 16);
    pci->pci_device_id = (u32)scenario_number(field(device, "pci_id", "0x220410de"));
    pci->pci_subsystem_id = (u32)scenario_number(field(device, "pci_sub", "0x147d10de"));
    return SUCCESS;
}
Return nvmlDeviceGetPciInfo_v2(Device *device, PciInfo *pci) { return nvmlDeviceGetPciInfo_v3(device, pci); }
Return nvmlDeviceGetPciInfo(Device *device, PciInfo *pci) { return nvmlDeviceGetPciInfo_v3(device, pci); }

/* ---- memory (bytes) ---- */

typedef struct {
    u64 total, free, used;
} Memory;
typedef struct {
    u32 version;
    u64 total, reserved, free, used;
} Memory2;

/* What fake_cuda.c has made in this process. */
static u64 context_mib(const Device *device)
{
    char variable[64];
    snprintf(variable, sizeof variable, "FAKE_CONTEXT_ON_%d", device->gpu);
    const char *value = getenv(variable);
    return value ? scenario_number(value) : 0;
}

static Return memory(const Device *device, Memory2 *out)
{
    char profile[32];
    u64 mib;
    Return error = give_u64(device, "mem_total_mib", "24576", &out->total);
    if (error)
        return error;
    out->reserved = scenario_number(field(device, "mem_reserved_mib", "0")) << 20;
    out->used = (scenario_number(field(device, "mem_used_mib", "300")) + context_mib(device)) << 20;
    out->total <<= 20;
    if (device->mig >= 0 && mig_device(device, device->mig, profile, &mib)) {
        out->total = mib << 20;
        out->used = out->reserved = 0;
    }
    out->free = out->total - out->reserved - out->used;
    return SUCCESS;
}
Return nvmlDeviceGetMemoryInfo_v2(Device *device, Memory2 *out)
{
    ENTER(device);
    return memory(device, out);
}
Return nvmlDeviceGetMemoryInfo(Device *device, Memory *out)
{
    ENTER(device);
    Memory2 all;
    Return error = memory(device, &all);
    if (error)
        return error;
    out->total = all.total;
    out->free = all.free;
    out->used = all.used + all.reserved; /* as the first version of this function counts it */
    return SUCCESS;
}
Return nvmlDeviceGetBAR1MemoryInfo(Device *device, Memory *out)
{
    ENTER(device);
    out->total = scenario_number(field(device, "bar1_mib", "256")) << 20;
    out->used = 1 << 20;
    out->free = out->total - out->used;
    return SUCCESS;
}

/* ---- temperature, fan, power, clocks ---- */

Return nvmlDeviceGetTemperature(Device *device, int sensor, u32 *out)
{
    (void)sensor;
    ENTER(device);
    return give(device, "temp", "45", out);
}
typedef struct {
    u32 version;
    int sensor, temperature;
} Temperature;
Return nvmlDeviceGetTemperatureV(Device *device, Temperature *out)
{
    ENTER(device);
    return give(device, "temp", "45", (u32 *)&out->temperature);
}
Return nvmlDeviceGetTemperatureThreshold(Device *device, int which, u32 *out)
{
    ENTER(device);
    if (which == 0)
        return give(device, "temp_shutdown", "98", out);
    if (which == 1)
        return give(device, "temp_slowdown", "95", out);
    return give(device, "temp_max", "93", out);
}
NUMBER(nvmlDeviceGetFanSpeed, "fan", "30")
NUMBER(nvmlDeviceGetNumFans, "fans", "1")
NUMBER(nvmlDeviceGetPerformanceState, "pstate", "8")
NUMBER(nvmlDeviceGetPowerState, "pstate", "8")
NUMBER(nvmlDeviceGetPowerUsage, "power_mw", "30500")
NUMBER(nvmlDeviceGetPowerManagementLimit, "power_limit_mw", "350000")
NUMBER(nvmlDeviceGetEnforcedPowerLimit, "power_limit_mw", "350000")
NUMBER(nvmlDeviceGetPowerManagementDefaultLimit, "power_default_mw", "350000")
Return nvmlDeviceGetPowerManagementMode(Device *device, u32 *out)
{
    ENTER(device);
    *out = 1;
    return SUCCESS;
}
Return nvmlDeviceGetPowerManagementLimitConstraints(Device *device, u32 *least, u32 *most)
{
    ENTER(device);
    Return error = give(device, "power_min_mw", "100000", least);
    return error ? error : give(device, "power_max_mw", "350000", most);
}
/* The same reasons under their old and their new name (535 and newer). */
Return nvmlDeviceGetCurrentClocksThrottleReasons(Device *device, u64 *out)
{
    ENTER(device);
    return give_u64(device, "throttle", "0x1", out);
}
Return nvmlDeviceGetCurrentClocksEventReasons(Device *device, u64 *out)
{
    ENTER(device);
    return give_u64(device, "throttle", "0x1", out);
}
Return nvmlDeviceGetSupportedClocksThrottleReasons(Device *device, u64 *out)
{
    ENTER(device);
    *out = 0x1ff;
    return SUCCESS;
}
Return nvmlDeviceGetSupportedClocksEventReasons(Device *device, u64 *out)
{
    ENTER(device);
    *out = 0x1ff;
    return SUCCESS;
}
Return nvmlDeviceGetUtilizationRates(Device *device, u32 *out)
{
    ENTER(device);
    Return error = give(device, "util", "0", &out[0]);
    return error ? error : give(device, "util_mem", "0", &out[1]);
}
enum { CLOCK_MEMORY = 2 };
Return nvmlDeviceGetClockInfo(Device *device, int type, u32 *out)
{
    ENTER(device);
    return type == CLOCK_MEMORY ? give(device, "clk_mem", "405", out) : give(device, "clk_sm", "210", out);
}
Return nvmlDeviceGetMaxClockInfo(Device *device, int type, u32 *out)
{
    ENTER(device);
    return type == CLOCK_MEMORY ? give(device, "clk_mem_max", "9751", out) : give(device, "clk_sm_max", "2100", out);
}

/* ---- PCIe link ---- */

NUMBER(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_gen", "4")
NUMBER(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_gen_max", "4")
NUMBER(nvmlDeviceGetGpuMaxPcieLinkGeneration, "pcie_gen_gpu_max", "4")
NUMBER(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width", "16")
NUMBER(nvmlDeviceGetMaxPcieLinkWidth, "pcie_width_max", "16")
NUMBER(nvmlDeviceGetPcieReplayCounter, "pcie_replay", "0")

/* ---- ECC and memory repair ---- */

Return nvmlDeviceGetEccMode(Device *device, u32 *current, u32 *pending)
{
    ENTER(device);
    Return error = give(device, "ecc", "na", current);
    return error ? error : give(device, "ecc_pending", field(device, "ecc", "0"), pending);
}
Return nvmlDeviceGetTotalEccErrors(Device *device, int uncorrected, int counter, u64 *out)
{
    (void)counter;
    ENTER(device);
    const char *fallback = field(device, "ecc", NULL) ? "0" : "na";
    return give_u64(device, uncorrected ? "ecc_uncorrected" : "ecc_corrected", fallback, out);
}
NUMBER(nvmlDeviceGetRetiredPagesPendingStatus, "retired_pending", "na")
Return nvmlDeviceGetRemappedRows(Device *device, u32 *corrected, u32 *uncorrected, u32 *pending, u32 *failed)
{
    ENTER(device);
    Return error = give(device, "remap_corr", "na", corrected);
    if (error)
        return error;
    give(device, "remap_uncorr", "0", uncorrected);
    give(device, "remap_pending", "0", pending);
    give(device, "remap_failed", "0", failed);
    return SUCCESS;
}

/* ---- MIG ---- */

Return nvmlDeviceGetMigMode(Device *device, u32 *current, u32 *pending)
{
    ENTER(device);
    Return error = give(device, "mig", "na", current);
    return error ? error : give(device, "mig_pending", field(device, "mig", "0"), pending);
}
NUMBER(nvmlDeviceGetMaxMigDeviceCount, "mig_max", "0")
Return nvmlDeviceIsMigDeviceHandle(Device *device, u32 *out)
{
    ENTER(device);
    *out = device->mig >= 0;
    return SUCCESS;
}
Return nvmlDeviceGetMigDeviceHandleByIndex(Device *device, u32 index, Device **out)
{
    ENTER(device);
    char profile[32];
    u64 mib;
    if (index >= MAX_MIG || !mig_device(device, (int)index, profile, &mib))
        return NOT_FOUND;
    *out = &mig_devices[device->gpu][index];
    return SUCCESS;
}
Return nvmlDeviceGetDeviceHandleFromMigDeviceHandle(Device *device, Device **out)
{
    ENTER(device);
    if (device->mig < 0)
        return INVALID_ARGUMENT;
    *out = &gpus[device->gpu];
    return SUCCESS;
}
Return nvmlDeviceGetGpuInstanceId(Device *device, u32 *out)
{
    ENTER(device);
    if (device->mig < 0)
        return INVALID_ARGUMENT;
    *out = 7 + (u32)device->mig; /* real ids begin somewhere above 0, too */
    return SUCCESS;
}
Return nvmlDeviceGetComputeInstanceId(Device *device, u32 *out)
{
    ENTER(device);
    if (device->mig < 0)
        return INVALID_ARGUMENT;
    *out = 0;
    return SUCCESS;
}

/* ---- modes ---- */

NUMBER(nvmlDeviceGetPersistenceMode, "persistence", "0")
NUMBER(nvmlDeviceGetComputeMode, "compute_mode", "0")
NUMBER(nvmlDeviceGetDisplayMode, "display_mode", "0")
NUMBER(nvmlDeviceGetDisplayActive, "display_active", "0")
Return nvmlDeviceGetDriverModel_v2(Device *device, u32 *current, u32 *pending)
{
    ENTER(device);
    Return error = give(device, "driver_model", "na", current);
    return error ? error : give(device, "driver_model", "na", pending);
}
Return nvmlDeviceGetDriverModel(Device *device, u32 *current, u32 *pending)
{
    return nvmlDeviceGetDriverModel_v2(device, current, pending);
}

typedef struct {
    unsigned char cluster[16];
    u32 status, clique;
    unsigned char state;
} FabricInfo;

Return nvmlDeviceGetGpuFabricInfo(Device *device, FabricInfo *out)
{
    ENTER(device);
    u32 state;
    Return error = give(device, "fabric", "na", &state);
    if (error)
        return error;
    memset(out, 0, sizeof *out);
    out->state = (unsigned char)state;
    return give(device, "fabric_status", "0", &out->status);
}

Return nvmlDeviceGetNvLinkState(Device *device, u32 link, u32 *active)
{
    ENTER(device);
    char key[32];
    snprintf(key, sizeof key, "nvlink%u", link);
    return give(device, key, "na", active);
}

typedef struct {
    u32 id, scope;
    long long timestamp, latency;
    u32 type;
    Return result;
    u64 value;
} FieldValue;

Return nvmlDeviceGetFieldValues(Device *device, int count, FieldValue *values)
{
    /* NVML_FI_DEV_POWER_*: nvidia-smi since 535 asks for power this way. */
    static const struct {
        u32 id;
        const char *name;
    } power[] = {{185, "power_mw"}, {186, "power_mw"}, {187, "power_min_mw"}, {188, "power_max_mw"},
                 {189, "power_default_mw"}, {190, "power_limit_mw"}, {192, "power_limit_mw"}};
    ENTER(device);
    for (int i = 0; i < count; i++) {
        char key[32];
        const char *name = key;
        snprintf(key, sizeof key, "field.%u", values[i].id);
        for (size_t p = 0; p < sizeof power / sizeof *power; p++)
            if (power[p].id == values[i].id && !field(device, key, NULL))
                name = power[p].name;
        values[i].type = 1; /* unsigned int */
        values[i].value = 0;
        u32 number;
        values[i].result = give(device, name, "na", &number);
        if (!values[i].result)
            values[i].value = number;
    }
    return SUCCESS;
}

/* ---- processes: "pid:MiB,pid:MiB"; MiB may be "na", as under Windows ---- */

typedef struct {
    u32 pid;
    u64 used; /* bytes; all ones: not available */
    u32 gpu_instance, compute_instance;
} Process;

static Return processes(const Device *device, const char *name, u32 *count, Process *out)
{
    const char *at = field(device, name, "");
    u32 found = 0;
    while (*at) {
        char *end;
        u32 pid = (u32)strtoul(at, &end, 10);
        u64 used = ~0ULL;
        if (*end == ':' && isdigit((unsigned char)end[1]))
            used = strtoull(end + 1, &end, 10) << 20;
        end += strcspn(end, ",");
        if (out && found < *count)
            out[found] = (Process){pid, used, ~0u, ~0u};
        found++;
        at = *end == ',' ? end + 1 : end;
    }
    Return result = found > *count || (found && !out) ? INSUFFICIENT_SIZE : SUCCESS;
    *count = found;
    return result;
}

#define PROCESSES(function, name)                               \
    Return function(Device *device, u32 *count, Process *out) \
    {                                                           \
        ENTER(device);                                          \
        return processes(device, name, count, out);             \
    }
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v3, "procs")
PROCESSES(nvmlDeviceGetComputeRunningProcesses_v2, "procs")
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v3, "gprocs")
PROCESSES(nvmlDeviceGetGraphicsRunningProcesses_v2, "gprocs")
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v3, "mprocs")
PROCESSES(nvmlDeviceGetMPSComputeRunningProcesses_v2, "mprocs")

/* ---- what nvidia-smi needs besides: events that never come, and a table of undocumented functions ---- */

Return nvmlEventSetCreate(void **set)
{
    ENTER(NULL);
    *set = &gpus;
    return SUCCESS;
}
Return nvmlEventSetFree(void *set)
{
    (void)set;
    ENTER(NULL);
    return SUCCESS;
}
Return nvmlDeviceRegisterEvents(Device *device, u64 types, void *set)
{
    (void)types;
    (void)set;
    ENTER(device);
    return SUCCESS;
}
Return nvmlDeviceGetSupportedEventTypes(Device *device, u64 *types)
{
    ENTER(device);
    *types = 0;
    return SUCCESS;
}
Return nvmlEventSetWait_v2(void *set, void *event, u32 milliseconds)
{
    (void)set;
    (void)event;
    (void)milliseconds;
    ENTER(NULL);
    return TIMEOUT;
}

static Return not_supported(void) { return NOT_SUPPORTED; }

Return nvmlInternalGetExportTable(const void **table, const void *id)
{
    (void)id;
    static const void *functions[512];
    scenario_log(__func__);
    functions[0] = (void *)sizeof functions; /* a table begins with its own size */
    for (size_t i = 1; i < sizeof functions / sizeof *functions; i++)
        functions[i] = (void *)not_supported;
    *table = functions;
    return SUCCESS;
}

#define STUB(function)                          \
    Return function(void)                       \
    {                                           \
        Return error_ = enter(#function, NULL); \
        return error_ ? error_ : NOT_SUPPORTED; \
    }
#include "stubs.h"
