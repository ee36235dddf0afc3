"""What the peer tests stand on: the real plane and real agents as child processes."""
