/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of sqlite3.h that the VFSes of vfs/ use, for a header that is older than they are. With a
 * SQLite that lacks batch atomic writes no VFS is opened (jojlab/guest/image/own_sqlite.py), and
 * what is compiled here is not called.
 */
#ifndef JOJ_VFS_NAMES_H
#define JOJ_VFS_NAMES_H

#include <sqlite3.h>

#ifndef SQLITE_OPEN_SUPER_JOURNAL
#define SQLITE_OPEN_SUPER_JOURNAL SQLITE_OPEN_MASTER_JOURNAL
#endif
#ifndef SQLITE_IOCAP_BATCH_ATOMIC
#define SQLITE_IOCAP_BATCH_ATOMIC 0x00004000
#endif
#ifndef SQLITE_FCNTL_PDB
#define SQLITE_FCNTL_PDB 30
#endif
#ifndef SQLITE_MUTEX_STATIC_APP1
#define SQLITE_MUTEX_STATIC_APP1 8
#endif
#ifndef SQLITE_OK_LOAD_PERMANENTLY
#define SQLITE_OK_LOAD_PERMANENTLY (SQLITE_OK | (1 << 8))
#endif

#if SQLITE_VERSION_NUMBER < 3008007
void *sqlite3_realloc64(void *memory, sqlite3_uint64 length_bytes);
#endif

#endif
