/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files in memory in place of the system's: a source that is compiled with this header before all
 * others calls memory_files.c where it means to call the system.
 */
#ifndef JOJ_MEMORY_FILES_H
#define JOJ_MEMORY_FILES_H

#define close memory_close
#define closedir memory_closedir
#define fchmod memory_fchmod
#define fchown memory_fchown
#define fcntl memory_fcntl
#define fdatasync memory_fdatasync
#define fdopendir memory_fdopendir
#define fstat memory_fstat
#define fsync memory_fsync
#define ftruncate memory_ftruncate
#define getrandom memory_getrandom
#define mmap memory_mmap
#define munmap memory_munmap
#define open memory_open
#define openat memory_openat
#define pread memory_pread
#define pwrite memory_pwrite
#define readdir memory_readdir
#define stat(path, status) memory_stat(path, status)
#define statx memory_statx

/* Forget all files. Names that may appear: their number, and each once. */
void begin_memory_files(const char *const *names, unsigned int count);

#endif
