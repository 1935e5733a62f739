// SPDX-License-Identifier: Apache-2.0
/*
 * A VFS for SQLite that keeps write-ahead logs when a database is closed, and fills them with zeros
 * ahead of their frames.
 *
 * A WAL that grows makes the filesystem commit its own journal with every COMMIT, since a file's
 * size is metadata that fdatasync(2) has to write. A WAL that is there, with blocks that have been
 * written before, costs one write and one flush.
 *
 * It is filled: zeros are no valid frame, as the page number of a frame is never 0, and no valid
 * header (https://www.sqlite.org/fileformat2.html, section 4.1), so that any SQLite reads and
 * recovers the database, with this VFS or without it, at any moment. Only a connection that holds
 * WAL_WRITE_LOCK writes to a WAL. All zeros are written there, in the call of xWrite that made the
 * file longer, and only beyond its end: no frame of another connection is overwritten. No sync is
 * added: that of the commit that made the file longer covers the size and the zeros too. Where a
 * power cut comes before it, the file is shorter, and grows again.
 *
 * It is kept: SQLite deletes a WAL when its last connection closes, after all its frames have been
 * copied and synced, and gets an empty WAL of the same size in place of that. It deletes the WAL in
 * the same way when a database leaves WAL mode; but then it asks next whether there is a WAL, since
 * one would put the database into WAL mode again (pagerOpenWalIfPresent, pager.c), or, with
 * locking_mode=EXCLUSIVE, writes to the database. A connection that closes does neither. So the
 * empty WAL is deleted where one of the two is seen. SQLITE_FCNTL_PERSIST_WAL is not used: it
 * leaves all frames valid, so that each first connection reads them again, and leaves them when the
 * database leaves WAL mode.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lower_vfs.h"
#include "wal_vfs.h"

SQLITE_EXTENSION_INIT1

#define WAL_SUFFIX "-wal"
#define WAL_SUFFIX_BYTES ((int)sizeof(WAL_SUFFIX) - 1)

/* fileformat2.html, section 4.1 */
#define WAL_HEADER_BYTES 32
#define FRAME_HEADER_BYTES 24

/* The first step, and where the doubling ends. SQLite checkpoints a WAL of 1,000 frames unless the
 * app changes that (SQLITE_DEFAULT_WAL_AUTOCHECKPOINT): 4,120,032 bytes with pages of 4 KiB.
 */
#define FIRST_STEP_BYTES (64 << 10)
#define MAX_FILL_BYTES (4 << 20)

/* Magic numbers that <linux/magic.h> of Debian 12 lacks. */
#define ZFS_MAGIC 0x2fc12fc1
#define BCACHEFS_MAGIC 0xca451a4e

struct wal_file {
	struct upper_file upper;
	/* SQLite keeps a file's path until the file is closed. */
	const char *path;
	/* The size as this connection saw it last. Another one may have made the file longer since,
	 * or, where it truncated the WAL, shorter.
	 */
	sqlite3_int64 size_bytes;
	/* A descriptor of the same file, for fdatasync(2); -1 where there is none. */
	int sync_fd;
	/* The header that xWrite wrote last, which shows that sync_fd is of the same file. */
	sqlite3_int64 witness_offset_bytes;
	unsigned char witness[FRAME_HEADER_BYTES];
	int has_witness;
	/* It may be new: SQLite's first sync of a file makes its name durable too (os_unix.c). */
	int must_sync_name;
	int is_filled;
	int fdatasync_is_sound;
};

struct database_file {
	struct upper_file upper;
	const char *path;
	struct database_file *next;
	/* SQLite deleted the WAL of this connection, and an empty one was left. */
	int has_empty_wal;
};

static sqlite3_vfs wal_vfs;
static const unsigned char zeros[FIRST_STEP_BYTES];

/* Fill the file with zeros from its end on, to twice its size. An error is no error of the write
 * that made it longer: the frame is there, and later commits cost what they cost without zeros.
 */
static void fill(struct wal_file *wal)
{
	sqlite3_int64 begin_bytes = wal->size_bytes, offset_bytes = begin_bytes, end_bytes;
	int rc = SQLITE_OK;

	end_bytes = 2 * begin_bytes - 2 * begin_bytes % FIRST_STEP_BYTES;
	if (end_bytes < FIRST_STEP_BYTES)
		end_bytes = FIRST_STEP_BYTES;
	if (end_bytes > MAX_FILL_BYTES)
		end_bytes = MAX_FILL_BYTES;
	while (offset_bytes < end_bytes && rc == SQLITE_OK) {
		sqlite3_int64 length_bytes = end_bytes - offset_bytes;

		if (length_bytes > FIRST_STEP_BYTES)
			length_bytes = FIRST_STEP_BYTES;
		rc = LOWER(wal, xWrite, zeros, (int)length_bytes, offset_bytes);
		offset_bytes += length_bytes;
	}
	if (rc == SQLITE_OK) {
		wal->size_bytes = offset_bytes;
		return;
	}
	/* A database without room needs the space more than its zeros do. */
	wal->is_filled = 0;
	LOWER(wal, xTruncate, begin_bytes);
	sqlite3_log(rc, "joj_wal: no room for zeros in %s; from here on commits cost what they do "
			"without this VFS", wal->path);
}

static int wal_write(sqlite3_file *base, const void *bytes, int length_bytes,
		     sqlite3_int64 offset_bytes)
{
	struct wal_file *wal = upper_of(&wal_vfs, base);
	sqlite3_int64 end_bytes = offset_bytes + length_bytes, size_bytes;
	int rc = LOWER(wal, xWrite, bytes, length_bytes, offset_bytes);

	if (rc != SQLITE_OK)
		return rc;
	/* Headers differ from any other's by salts and checksums; pages may be alike. */
	if (length_bytes == FRAME_HEADER_BYTES || length_bytes == WAL_HEADER_BYTES) {
		memcpy(wal->witness, bytes, FRAME_HEADER_BYTES);
		wal->witness_offset_bytes = offset_bytes;
		wal->has_witness = 1;
	}
	/* At 0 a new log begins, which another connection may have truncated before. */
	if (!wal->is_filled || (end_bytes <= wal->size_bytes && offset_bytes != 0))
		return SQLITE_OK;
	if (LOWER(wal, xFileSize, &size_bytes) != SQLITE_OK)
		return SQLITE_OK;
	wal->size_bytes = size_bytes;
	/* Where the file goes on behind this write, zeros or older frames are there. */
	if (size_bytes == end_bytes)
		fill(wal);
	return SQLITE_OK;
}

static int wal_truncate(sqlite3_file *base, sqlite3_int64 size_bytes)
{
	struct wal_file *wal = upper_of(&wal_vfs, base);

	wal->size_bytes = 0;
	return LOWER(wal, xTruncate, size_bytes);
}

/* Whether sync_fd is of the file that SQLite writes to: by now another one may have its name. */
static int open_sync_fd(struct wal_file *wal)
{
	unsigned char header[FRAME_HEADER_BYTES];
	ssize_t length_bytes;

	if (wal->sync_fd >= 0)
		return 1;
	if (!wal->fdatasync_is_sound || !wal->has_witness)
		return 0;
	wal->sync_fd = open(wal->path, O_RDONLY | O_CLOEXEC);
	if (wal->sync_fd < 0)
		return 0;
	length_bytes = pread(wal->sync_fd, header, sizeof(header), wal->witness_offset_bytes);
	if (length_bytes == sizeof(header) && memcmp(header, wal->witness, sizeof(header)) == 0)
		return 1;
	close(wal->sync_fd);
	wal->sync_fd = -1;
	wal->fdatasync_is_sound = 0;
	return 0;
}

/* Many SQLites are built to call fsync(2), which writes the inode's times too: one more commit of
 * the filesystem's journal (os_unix.c calls fdatasync(2) where HAVE_FDATASYNC is defined).
 */
static int wal_sync(sqlite3_file *base, int flags)
{
	struct wal_file *wal = upper_of(&wal_vfs, base);
	int rc;

	if (wal->must_sync_name || !open_sync_fd(wal)) {
		rc = LOWER(wal, xSync, flags);
		wal->must_sync_name = rc != SQLITE_OK;
		return rc;
	}
	do
		rc = fdatasync(wal->sync_fd);
	while (rc < 0 && errno == EINTR);
	if (rc == 0)
		return SQLITE_OK;
	sqlite3_log(SQLITE_IOERR_FSYNC, "joj_wal: fdatasync of %s: %s", wal->path, strerror(errno));
	return SQLITE_IOERR_FSYNC;
}

static int wal_close(sqlite3_file *base)
{
	struct wal_file *wal = upper_of(&wal_vfs, base);

	/* A WAL has no record locks (they are on the database and its -shm), which closing one of
	 * two descriptors would take away (fcntl_locking(2)).
	 */
	if (wal->sync_fd >= 0)
		close(wal->sync_fd);
	return LOWER(wal, xClose);
}

/* Whether zeros save anything on a filesystem: not where an overwrite gets new blocks. */
static int zeros_help(const struct statfs *filesystem)
{
	switch ((unsigned int)filesystem->f_type) {
	case BTRFS_SUPER_MAGIC:
	case NILFS_SUPER_MAGIC:
	case ZFS_MAGIC:
	case BCACHEFS_MAGIC:
		return 0;
	default:
		return 1;
	}
}

/* Of a file's mode, what a new WAL gets of its database. */
#define MODE_BITS 0777

/* SQLite makes a WAL with the mode and the owner of its database (findCreateFileMode(), os_unix.c).
 * One that is kept gets them again here, as the database's may have been changed since. Who may not
 * change them leaves them as they are.
 */
static void follow_database(const char *path)
{
	char *database_path = sqlite3_mprintf("%.*s", (int)strlen(path) - WAL_SUFFIX_BYTES, path);
	struct stat database, wal;
	int fd;

	if (database_path == NULL || stat(database_path, &database) != 0)
		goto out;
	/* Not through a link that somebody else may have put there. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		goto out;
	if (fstat(fd, &wal) == 0) {
		int is_other_owner = wal.st_uid != database.st_uid || wal.st_gid != database.st_gid;

		if (is_other_owner && fchown(fd, database.st_uid, database.st_gid) != 0)
			sqlite3_log(SQLITE_WARNING, "joj_wal: %s has another owner than its "
				    "database: %s", path, strerror(errno));
		if ((wal.st_mode ^ database.st_mode) & MODE_BITS &&
		    fchmod(fd, database.st_mode & MODE_BITS) != 0)
			sqlite3_log(SQLITE_WARNING, "joj_wal: %s has another mode than its "
				    "database: %s", path, strerror(errno));
	}
	close(fd);
out:
	sqlite3_free(database_path);
}

static void begin_wal(struct wal_file *wal, const char *path)
{
	struct statfs filesystem;
	sqlite3_int64 size_bytes;

	follow_database(path);
	wal->path = path;
	wal->sync_fd = -1;
	wal->must_sync_name = LOWER(wal, xFileSize, &size_bytes) != SQLITE_OK || size_bytes == 0;
	wal->upper.methods.xClose = wal_close;
	wal->upper.methods.xWrite = wal_write;
	wal->upper.methods.xTruncate = wal_truncate;
	wal->upper.methods.xSync = wal_sync;
	if (statfs(path, &filesystem) != 0)
		return;
	wal->is_filled = zeros_help(&filesystem);
	/* The magic number of ext4 is that of ext2 and ext3 too. */
	wal->fdatasync_is_sound = (unsigned int)filesystem.f_type == EXT4_SUPER_MAGIC ||
				  (unsigned int)filesystem.f_type == XFS_SUPER_MAGIC;
}

/*
 * Make the WAL of this path, which no connection has open, one without frames, and keep its size:
 * zeros in place of its header, synced, and its database's mode. Return 0 where it has to be
 * deleted: it is shorter than a header, cannot be opened, or zeros save nothing on its filesystem.
 */
static int empty_wal(const char *path)
{
	struct statfs filesystem;
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW), is_empty;

	if (fd < 0)
		return 0;
	/* Synced: a power cut must not bring the frames back after the database has left WAL
	 * mode, or they go over later commits.
	 */
	is_empty = fstatfs(fd, &filesystem) == 0 && zeros_help(&filesystem) &&
		   lseek(fd, 0, SEEK_END) >= WAL_HEADER_BYTES &&
		   pwrite(fd, zeros, WAL_HEADER_BYTES, 0) == WAL_HEADER_BYTES && fdatasync(fd) == 0;
	close(fd);
	if (is_empty)
		follow_database(path);
	return is_empty;
}

/* Databases that this process has open, and how many of them have an empty WAL; both guarded by
 * lock_databases(). The number is 0 as a rule, and spares each transaction a walk through the list.
 */
static struct database_file *databases;
static unsigned int empty_wals;

static sqlite3_mutex *lock_databases(void)
{
	sqlite3_mutex *mutex = sqlite3_mutex_alloc(SQLITE_MUTEX_STATIC_APP1);

	sqlite3_mutex_enter(mutex);
	return mutex;
}

/* Note of every connection to the database whether an empty WAL was left. Return, of one that was
 * left, whether there is a connection, and by was_empty whether one had such a WAL before.
 */
static int note_empty_wal(const char *path, int has_empty_wal, int *was_empty)
{
	sqlite3_mutex *mutex = lock_databases();
	struct database_file *database = has_empty_wal || empty_wals > 0 ? databases : NULL;
	int is_open = 0;

	*was_empty = 0;
	for (; database != NULL; database = database->next) {
		if (!has_suffix(path, database->path, WAL_SUFFIX))
			continue;
		*was_empty |= database->has_empty_wal;
		empty_wals += has_empty_wal - database->has_empty_wal;
		database->has_empty_wal = has_empty_wal;
		is_open = 1;
	}
	sqlite3_mutex_leave(mutex);
	return is_open;
}

/* Delete the WAL of this path if it was left empty: the database has left WAL mode. */
static int delete_empty_wal(const char *path)
{
	sqlite3_vfs *lower = lower_vfs(&wal_vfs);
	int was_empty, rc;

	note_empty_wal(path, 0, &was_empty);
	if (!was_empty)
		return SQLITE_OK;
	rc = lower->xDelete(lower, path, 0);
	return rc == SQLITE_IOERR_DELETE_NOENT ? SQLITE_OK : rc;
}

static int leave_wal_mode(struct database_file *database)
{
	char *path;
	int rc;

	if (!database->has_empty_wal)
		return SQLITE_OK;
	path = sqlite3_mprintf("%s" WAL_SUFFIX, database->path);
	rc = path != NULL ? delete_empty_wal(path) : SQLITE_NOMEM;
	sqlite3_free(path);
	return rc;
}

static int database_write(sqlite3_file *base, const void *bytes, int length_bytes,
			  sqlite3_int64 offset_bytes)
{
	struct database_file *database = upper_of(&wal_vfs, base);
	int rc = leave_wal_mode(database);

	return rc == SQLITE_OK ? LOWER(database, xWrite, bytes, length_bytes, offset_bytes) : rc;
}

static int database_truncate(sqlite3_file *base, sqlite3_int64 size_bytes)
{
	struct database_file *database = upper_of(&wal_vfs, base);
	int rc = leave_wal_mode(database);

	return rc == SQLITE_OK ? LOWER(database, xTruncate, size_bytes) : rc;
}

static int database_close(sqlite3_file *base)
{
	sqlite3_mutex *mutex = lock_databases();
	struct database_file *database = upper_of(&wal_vfs, base), **at;

	empty_wals -= database->has_empty_wal;
	for (at = &databases; *at != database; at = &(*at)->next)
		;
	*at = database->next;
	sqlite3_mutex_leave(mutex);
	return LOWER(database, xClose);
}

static void begin_database(struct database_file *database, const char *path)
{
	sqlite3_mutex *mutex = lock_databases();

	database->path = path;
	database->next = databases;
	databases = database;
	database->upper.methods.xClose = database_close;
	database->upper.methods.xWrite = database_write;
	database->upper.methods.xTruncate = database_truncate;
	sqlite3_mutex_leave(mutex);
}

static int vfs_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *base, int flags, int *out)
{
	struct upper_file *file = upper_of(vfs, base);
	int rc, was_empty;

	if (path == NULL || !(flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_DB)))
		return lower_vfs(vfs)->xOpen(lower_vfs(vfs), path, base, flags, out);
	rc = open_lower(vfs, path, base, flags, out);
	if (rc != SQLITE_OK)
		return rc;
	if (flags & SQLITE_OPEN_WAL) {
		note_empty_wal(path, 0, &was_empty);
		begin_wal((struct wal_file *)file, path);
	} else {
		begin_database((struct database_file *)file, path);
	}
	base->pMethods = &file->methods;
	return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *path, int sync_directory)
{
	int was_empty;

	/* Its one connection holds the database exclusively: nobody asks for the WAL meanwhile. */
	if (note_empty_wal(path, 1, &was_empty)) {
		if (empty_wal(path))
			return SQLITE_OK;
		note_empty_wal(path, 0, &was_empty);
	}
	return lower_vfs(vfs)->xDelete(lower_vfs(vfs), path, sync_directory);
}

static int vfs_access(sqlite3_vfs *vfs, const char *path, int flags, int *result)
{
	int rc = flags == SQLITE_ACCESS_EXISTS ? delete_empty_wal(path) : SQLITE_OK;

	if (rc != SQLITE_OK)
		return rc;
	return lower_vfs(vfs)->xAccess(lower_vfs(vfs), path, flags, result);
}

static sqlite3_vfs wal_vfs = {
	.zName = JOJ_WAL_VFS,
	.xOpen = vfs_open,
	.xDelete = vfs_delete,
	.xAccess = vfs_access,
};

int joj_wal_register(int make_default)
{
	union any_file {
		struct wal_file wal;
		struct database_file database;
	};

	return register_over_default(&wal_vfs, sizeof(union any_file), make_default);
}

#ifndef SQLITE_CORE
DEFINE_EXTENSION(sqlite3_jojwal_init, joj_wal_register, "joj_wal")
#endif
