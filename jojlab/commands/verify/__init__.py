"""joj verify: compares results with what lies on the device. One file for each thing checked."""
