"""Writes the verdicts of a gate as JUnit's XML: a suite for each case, a test for each limit.

The form is that which Jenkins' xUnit plugin and GitLab read (testsuites, testsuite, testcase,
failure, error); it has no standard of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from jojlab.foundation.printable import printable
from jojlab.gate.check import Held, LimitVerdict
from jojlab.report.words import gate

# A limit that was not measured is an error of the test, not a failure of what it tests.
_ENDS = {Held.BROKEN: "failure", Held.NOT_MEASURED: "error"}


def junit(verdicts: Sequence[LimitVerdict], name: str) -> str:
    """Return the document; `name` is that of all suites together."""
    root = Element("testsuites", {"name": printable(name), **_counts(verdicts)})
    for case_id in dict.fromkeys(each.case_id for each in verdicts):
        own = [each for each in verdicts if each.case_id == case_id]
        suite = SubElement(root, "testsuite", {"name": printable(case_id), **_counts(own)})
        for each in own:
            test = SubElement(
                suite, "testcase", classname=printable(case_id), name=printable(each.limit.text)
            )
            if each.kept in _ENDS:
                ended = SubElement(test, _ENDS[each.kept], message=printable(gate.headline(each)))
                ended.text = printable("\n".join(gate.details(each)))
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _counts(verdicts: Sequence[LimitVerdict]) -> dict[str, str]:
    return {
        "tests": str(len(verdicts)),
        "failures": str(sum(each.kept is Held.BROKEN for each in verdicts)),
        "errors": str(sum(each.kept is Held.NOT_MEASURED for each in verdicts)),
    }
