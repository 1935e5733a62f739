"""One question per file; each reads only tables in schema/."""
