"""What `joj gate` writes for others: JUnit's XML for a CI server, Markdown for a pull request."""
