// SPDX-License-Identifier: GPL-2.0-only
// Lets a module parameter choose the allocator of UBI's and UBIFS's large buffers, which is vmalloc
// in the kernel's own source: a semantic patch (spatch(1)) for drivers/mtd/ubi and fs/ubifs.
// chosen_buffers.c has the functions. The buffers are a list of names and no regular expression, as
// Debian 13's spatch is built without PCRE.

@allocate@
expression owner, bytes;
identifier buffer = {peb_buf, ileb_buf, lpt_buf, sbuf, orph_buf};
@@
- owner->buffer = vmalloc(bytes)
+ owner->buffer = chosen_buffer(buffer, bytes)

@release@
expression owner;
identifier buffer = {peb_buf, ileb_buf, lpt_buf, sbuf, orph_buf};
@@
- vfree(owner->buffer)
+ release_buffer(owner->buffer)
