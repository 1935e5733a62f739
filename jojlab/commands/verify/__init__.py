"""joj verify: what is said against what lies on the device, one file for each thing checked."""
