"""What ships for tests, ours and a stranger's: fakes, loopback servers and contract suites."""
