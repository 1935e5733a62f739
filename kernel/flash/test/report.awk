# SPDX-License-Identifier: GPL-2.0-only
# Adds up the lines "N passed, M failed" of the parts, which must be `due`; passes other lines on.
/^[0-9]+ passed, [0-9]+ failed$/ { parts++; passed += $1; failed += $3; next }
{ print }
END {
	if (parts != due) {	# one died before its report
		print "a part of the tests ended without a report"
		failed++
	}
	print passed + 0 " passed, " failed + 0 " failed"
	exit failed != 0
}
