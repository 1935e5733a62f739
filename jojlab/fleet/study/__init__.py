"""Answers the questions about a fleet: one SQL file each, by DuckDB or by Apache Spark.

dataset.py names the files, duckdb_engine.py and spark_engine.py run SQL over them, ask.py hands
them a question; study.py and device_day.py put answers together.
"""
