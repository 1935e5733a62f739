"""Answers the questions about a fleet: one SQL file each, by DuckDB or by Apache Spark.

dataset.py names the files and asks a question, engines.py runs SQL over them; study.py and
device_day.py put answers together.
"""
