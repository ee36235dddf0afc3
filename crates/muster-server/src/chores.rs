//! What is done now and then: retention, left-over payloads, room on the disk.
