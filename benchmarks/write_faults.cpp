// Stands before libc's calls that write, and lets one of them fail: for files under one folder, in this process alone.
// Loaded by LD_PRELOAD; silent until `arm` is called. Python's own writing goes through these names.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum Kind { COUNT, KILL, NO_SPACE, FAILS, INTERRUPTED, IN_PART, TORN, FULL };

static char under[PATH_MAX];
static int kind = COUNT, number = 0, calls = 0, log_file = -1, full_soon = 0;

// Fail call `which` under `folder` in the way `how`; every call is noted in `log`.
extern "C" void arm(const char *folder, int how, int which, const char *log) {
  snprintf(under, sizeof under, "%s", folder);
  kind = how, number = which, calls = 0, full_soon = 0;
  log_file = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
}

static int is_under(const char *path) { return under[0] && strncmp(path, under, strlen(under)) == 0; }

static int path_of(int file, char *path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t length = syscall(SYS_readlink, link, path, PATH_MAX - 1);
  path[length < 0 ? 0 : length] = 0;
  return length > 0;
}

// Room for a reply is taken before it is bought: a disk that fills up later refuses nothing there.
static int has_room(const char *path) {
  const char *room = "/arrived";
  size_t length = strlen(path);
  return length > strlen(room) && !strcmp(path + length - strlen(room), room);
}

// 0: go on; else the errno. `is_growth`: what a full disk refuses.
static int fault(const char *name, const char *path, int is_growth) {
  calls++;
  if (strcmp(name, "fallocate") && has_room(path)) is_growth = 0;
  char line[PATH_MAX + 64];
  int length = snprintf(line, sizeof line, "%d %s %s\n", calls, name, path + strlen(under));
  syscall(SYS_write, log_file, line, length);
  if (full_soon && is_growth) {
    full_soon = kind == FULL;
    return ENOSPC;
  }
  if (calls != number) return 0;
  switch (kind) {
    case KILL: syscall(SYS_kill, getpid(), SIGKILL); return 0;
    case NO_SPACE: return ENOSPC;
    case FAILS: return EIO;
    case INTERRUPTED: return EINTR;
    case FULL: full_soon = 1; return is_growth ? ENOSPC : 0;
    default: return 0;
  }
}

static int fault_of_file(const char *name, int file, int is_growth) {
  char path[PATH_MAX];
  if (!under[0] || !path_of(file, path) || !is_under(path)) return 0;
  return fault(name, path, is_growth);
}

static const char *absolute(const char *path, char *buffer) {
  if (path[0] == '/') return path;
  if (!getcwd(buffer, PATH_MAX / 2)) return path;
  strcat(buffer, "/");
  return strncat(buffer, path, PATH_MAX / 2 - 1);
}

static int fault_of_path(const char *name, const char *path, int is_growth) {
  char buffer[PATH_MAX];
  const char *whole = absolute(path, buffer);
  return under[0] && is_under(whole) ? fault(name, whole, is_growth) : 0;
}

#define REAL(name) ((decltype(&name))dlsym(RTLD_NEXT, #name))
#define OR_FAIL(check) if (int code = (check)) { errno = code; return -1; }

// How many of `size` bytes this write may write: half where it is to be done in part.
static size_t allowed(size_t size) {
  if (calls != number || !under[0] || (kind != IN_PART && kind != TORN) || size < 2) return size;
  full_soon = 1;
  return size / 2;
}

extern "C" ssize_t write(int file, const void *data, size_t size) {
  OR_FAIL(fault_of_file("write", file, 1))
  size_t part = allowed(size);
  ssize_t written = REAL(write)(file, data, part);
  if (part != size && kind == TORN) syscall(SYS_kill, getpid(), SIGKILL);
  return written;
}
extern "C" ssize_t pwrite64(int file, const void *data, size_t size, off64_t at) {
  OR_FAIL(fault_of_file("pwrite64", file, 1))
  return REAL(pwrite64)(file, data, size, at);
}
extern "C" int fsync(int file) { OR_FAIL(fault_of_file("fsync", file, 0)) return REAL(fsync)(file); }
extern "C" int fdatasync(int file) { OR_FAIL(fault_of_file("fdatasync", file, 0)) return REAL(fdatasync)(file); }
extern "C" int ftruncate64(int file, off64_t size) noexcept {
  OR_FAIL(fault_of_file("ftruncate", file, 0))
  return REAL(ftruncate64)(file, size);
}
extern "C" int posix_fallocate64(int file, off64_t at, off64_t size) {
  if (int code = fault_of_file("fallocate", file, 1)) return code;
  return REAL(posix_fallocate64)(file, at, size);
}
extern "C" int rename(const char *path, const char *to) noexcept {
  OR_FAIL(fault_of_path("rename", path, 0))
  return REAL(rename)(path, to);
}
extern "C" int link(const char *path, const char *to) noexcept {
  OR_FAIL(fault_of_path("link", path, 1))
  return REAL(link)(path, to);
}
extern "C" int linkat(int from, const char *path, int in, const char *to, int flags) noexcept {
  OR_FAIL(fault_of_path("link", path, 1))
  return REAL(linkat)(from, path, in, to, flags);
}
extern "C" int unlink(const char *path) noexcept {
  OR_FAIL(fault_of_path("unlink", path, 0))
  return REAL(unlink)(path);
}
extern "C" int unlinkat(int in, const char *path, int flags) noexcept {
  if (path[0] == '/') OR_FAIL(fault_of_path("unlink", path, 0))
  return REAL(unlinkat)(in, path, flags);
}
extern "C" int mkdir(const char *path, mode_t mode) noexcept {
  OR_FAIL(fault_of_path("mkdir", path, 1))
  return REAL(mkdir)(path, mode);
}
static int opens_to_write(int flags) { return (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT); }
extern "C" int open64(const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  if (opens_to_write(flags)) OR_FAIL(fault_of_path("open", path, (flags & O_CREAT) != 0))
  return REAL(open64)(path, flags, mode);
}
extern "C" int openat64(int in, const char *path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  mode_t mode = va_arg(rest, mode_t);
  va_end(rest);
  if (opens_to_write(flags) && path[0] == '/') OR_FAIL(fault_of_path("open", path, (flags & O_CREAT) != 0))
  return REAL(openat64)(in, path, flags, mode);
}
