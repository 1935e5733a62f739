"""The section on what the memory of a core would add, by joj run --memory-model."""

from __future__ import annotations

from jojlab.analysis.run.summary import RunSummary
from jojlab.report.sections.experiment import table_rows
from jojlab.report.sections.template import Section, render
from jojlab.report.words import memory_model as words


def memory(summary: RunSummary) -> Section | None:
    """Each model: its cases, the touches of buffers, and the printed tables with its time."""
    if not summary.memory_models:
        return None
    models = [
        {
            "core": model.core,
            "title": words.title(model),
            "sources": model.sources,
            "columns": list(words.COLUMNS),
            "rows": list(words.rows(summary, model)),
            "touch_columns": ["buffer", *model.parts],
            "touches": list(words.touch_rows(model)),
            "tables": [
                row
                for part in summary.parts
                for row in table_rows(part.modelled_tables.get(model.core, ()))
            ],
        }
        for model in summary.memory_models
    ]
    html = render(
        "report/sections/memory.html", models=models, about=words.TOUCHES, limits=words.LIMITS
    )
    return Section("memory", html)
