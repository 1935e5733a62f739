"""What every part of the report uses: numbers in words, templates, the terminal, charts."""
