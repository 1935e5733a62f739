"""joj verify: checks the measuring itself, one file for each thing that is checked."""
