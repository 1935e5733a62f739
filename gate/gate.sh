#!/bin/sh
# Holds this checkout to a file of budgets, as a step of any CI server: gate.sh [BUDGETS]
#
# Writes gate.md (a summary), gate.xml (JUnit's form) and a line to gate-trend.jsonl beside where it
# runs, and ends with the gate's exit code: 1 where a limit is broken, 4 where one was not measured.
# Keep the trend and ~/.cache/jojlab from one run to the next: what did not change is not run again.
# JOJ names another joj than the one of PATH. Where GITHUB_STEP_SUMMARY is set, the summary goes
# there as well.
set -u
budgets=${1:-budgets.toml}
joj=${JOJ:-joj}
rm -f gate.md
$joj gate "$budgets" --junit gate.xml --markdown gate.md --trend gate-trend.jsonl
code=$?
if [ -f gate.md ] && [ -n "${GITHUB_STEP_SUMMARY:-}" ]; then
	cat gate.md >>"$GITHUB_STEP_SUMMARY"
fi
exit $code
