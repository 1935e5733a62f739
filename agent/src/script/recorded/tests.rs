//! Tests of plans of recordings.
