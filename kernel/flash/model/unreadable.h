/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The sectors of a slot that cannot be read, because the power went while they were programmed, in
 * a word: a byte for each record (../records.h), of the state that was chosen of it, and one of
 * what is left of these now, as a write makes a sector readable again. 0: all can be read.
 */
#ifndef FLASH_UNREADABLE_H
#define FLASH_UNREADABLE_H

#define FLASH_UNREADABLE_NOW 16		/* the place of the byte of now */
#define FLASH_UNREADABLE_BYTE 0xffUL

static inline unsigned long flash_unreadable_byte(unsigned long word, unsigned int place)
{
	return word >> place & FLASH_UNREADABLE_BYTE;
}

/* The state of a record, and with it that of now. */
static inline unsigned long flash_unreadable_state(unsigned long word, unsigned int record,
						   unsigned long sectors)
{
	word &= ~(FLASH_UNREADABLE_BYTE << 8 * record);
	word &= ~(FLASH_UNREADABLE_BYTE << FLASH_UNREADABLE_NOW);
	return word | sectors << 8 * record | sectors << FLASH_UNREADABLE_NOW;
}

/* A state is chosen of a record: these SECTORS cannot be read; those BELOW are as before it. */
static inline unsigned long flash_unreadable_choose(unsigned long word, unsigned int record,
						    unsigned long sectors, unsigned long below)
{
	unsigned long before = record ? flash_unreadable_byte(word, 0) & below : 0;

	return flash_unreadable_state(word, record, sectors | before);
}

/* The disk is as it was chosen of this record. */
static inline unsigned long flash_unreadable_restore(unsigned long word, unsigned int record)
{
	return flash_unreadable_state(word, record, flash_unreadable_byte(word, 8 * record));
}

/* The disk is as before this record. */
static inline unsigned long flash_unreadable_clear(unsigned long word, unsigned int record)
{
	unsigned long before = record ? flash_unreadable_byte(word, 0) : 0;

	return flash_unreadable_state(flash_unreadable_state(0, 0, before), 1, before);
}

/* These sectors are written. */
static inline unsigned long flash_unreadable_write(unsigned long word, unsigned long sectors)
{
	return word & ~(sectors << FLASH_UNREADABLE_NOW);
}

/* Those of now. */
static inline unsigned long flash_unreadable_now(unsigned long word)
{
	return flash_unreadable_byte(word, FLASH_UNREADABLE_NOW);
}

#endif
