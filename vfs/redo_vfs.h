/* SPDX-License-Identifier: Apache-2.0 */
/* The VFS that commits by one write and one flush, for programs that link it: docs/cure.md. */
#ifndef JOJ_REDO_VFS_H
#define JOJ_REDO_VFS_H

/* The VFS's name, for sqlite3_open_v2() and URIs. */
#define JOJ_REDO_VFS "joj_redo"

/*
 * Register the VFS over SQLite's default one, and make it the default of later connections unless
 * make_default is 0. Return SQLITE_OK, or SQLITE_ERROR where SQLite has no VFS.
 */
int joj_redo_register(int make_default);

#endif
