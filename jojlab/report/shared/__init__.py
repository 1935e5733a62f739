"""The parts that the whole report uses: numbers in words, templates, the terminal, charts."""
