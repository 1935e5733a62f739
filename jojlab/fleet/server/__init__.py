"""`joj fleet serve`: takes segments by HTTP, checks them, and acknowledges what is durable."""
