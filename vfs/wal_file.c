// SPDX-License-Identifier: Apache-2.0
/*
 * A write-ahead log that does not grow while an app commits.
 *
 * Zeros are no valid frame, as the page number of a frame is never 0, and no valid header
 * (https://www.sqlite.org/fileformat2.html, section 4.1): any SQLite reads and recovers the
 * database, with this VFS or without it, at any moment.
 *
 * Only a connection that holds WAL_WRITE_LOCK writes to a WAL. All zeros are written there, in the
 * call of xWrite that made the file longer, and only beyond its end: no frame of another connection
 * is overwritten. No sync is added: that of the commit that made the file longer covers the size
 * and the zeros too. Where a power cut comes before it, the file is shorter, and grows again.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "wal_file.h"

SQLITE_EXTENSION_INIT3

/* The first step, and where the doubling ends. SQLite checkpoints a WAL of 1,000 frames unless the
 * app changes that (SQLITE_DEFAULT_WAL_AUTOCHECKPOINT): 4,120,032 bytes with pages of 4 KiB.
 */
#define FIRST_STEP_BYTES (64 << 10)
#define MAX_FILL_BYTES (4 << 20)

/* Magic numbers that <linux/magic.h> of Debian 12 lacks. */
#define ZFS_MAGIC 0x2fc12fc1
#define BCACHEFS_MAGIC 0xca451a4e

static const unsigned char zeros[FIRST_STEP_BYTES];

/* Fill the file with zeros from its end on, to twice its size. An error is no error of the write
 * that made it longer: the frame is there, and later commits cost what they cost without zeros.
 */
static void fill(struct wal_file *wal)
{
	sqlite3_file *file = &wal->upper.base;
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
		rc = pass_write(file, zeros, (int)length_bytes, offset_bytes);
		offset_bytes += length_bytes;
	}
	if (rc == SQLITE_OK) {
		wal->size_bytes = offset_bytes;
		return;
	}
	/* A database without room needs the space more than its zeros do. */
	wal->is_filled = 0;
	pass_truncate(file, begin_bytes);
	sqlite3_log(rc, "joj_wal: no room for zeros in %s; from here on commits cost what they do "
			"without this VFS", wal->path);
}

static int wal_write(sqlite3_file *file, const void *bytes, int length_bytes,
		     sqlite3_int64 offset_bytes)
{
	struct wal_file *wal = (struct wal_file *)file;
	sqlite3_int64 end_bytes = offset_bytes + length_bytes, size_bytes;
	int rc = pass_write(file, bytes, length_bytes, offset_bytes);

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
	if (pass_file_size(file, &size_bytes) != SQLITE_OK)
		return SQLITE_OK;
	wal->size_bytes = size_bytes;
	/* Where the file goes on behind this write, zeros or older frames are there. */
	if (size_bytes == end_bytes)
		fill(wal);
	return SQLITE_OK;
}

static int wal_truncate(sqlite3_file *file, sqlite3_int64 size_bytes)
{
	((struct wal_file *)file)->size_bytes = 0;
	return pass_truncate(file, size_bytes);
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
static int wal_sync(sqlite3_file *file, int flags)
{
	struct wal_file *wal = (struct wal_file *)file;
	int rc;

	if (!open_sync_fd(wal))
		return pass_sync(file, flags);
	do
		rc = fdatasync(wal->sync_fd);
	while (rc < 0 && errno == EINTR);
	if (rc == 0)
		return SQLITE_OK;
	sqlite3_log(SQLITE_IOERR_FSYNC, "joj_wal: fdatasync of %s: %s", wal->path, strerror(errno));
	return SQLITE_IOERR_FSYNC;
}

static int wal_close(sqlite3_file *file)
{
	struct wal_file *wal = (struct wal_file *)file;

	/* A WAL has no record locks (they are on the database and its -shm), which closing one of
	 * two descriptors would take away (fcntl_locking(2)).
	 */
	if (wal->sync_fd >= 0)
		close(wal->sync_fd);
	return pass_close(file);
}

/* Version 1: SQLite calls no later method on a WAL. */
const sqlite3_io_methods wal_file_methods = {
	.iVersion = 1,
	.xClose = wal_close,
	.xRead = pass_read,
	.xWrite = wal_write,
	.xTruncate = wal_truncate,
	.xSync = wal_sync,
	.xFileSize = pass_file_size,
	.xLock = pass_lock,
	.xUnlock = pass_unlock,
	.xCheckReservedLock = pass_check_reserved_lock,
	.xFileControl = pass_file_control,
	.xSectorSize = pass_sector_size,
	.xDeviceCharacteristics = pass_device_characteristics,
};

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

void wal_file_begin(struct wal_file *wal, const char *path)
{
	struct statfs filesystem;

	follow_database(path);
	wal->sync_fd = -1;
	wal->path = path;
	if (statfs(path, &filesystem) != 0)
		return;
	wal->is_filled = zeros_help(&filesystem);
	/* The magic number of ext4 is that of ext2 and ext3 too. */
	wal->fdatasync_is_sound = (unsigned int)filesystem.f_type == EXT4_SUPER_MAGIC ||
				  (unsigned int)filesystem.f_type == XFS_SUPER_MAGIC;
}

int wal_file_empty(const char *path)
{
	struct statfs filesystem;
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW), is_empty;

	if (fd < 0)
		return SQLITE_IOERR;
	/* Synced: a power cut must not bring the frames back after the database has left WAL
	 * mode, or they go over later commits.
	 */
	is_empty = fstatfs(fd, &filesystem) == 0 && zeros_help(&filesystem) &&
		   lseek(fd, 0, SEEK_END) >= WAL_HEADER_BYTES &&
		   pwrite(fd, zeros, WAL_HEADER_BYTES, 0) == WAL_HEADER_BYTES && fdatasync(fd) == 0;
	close(fd);
	if (!is_empty)
		return SQLITE_IOERR;
	follow_database(path);
	return SQLITE_OK;
}
