"""Test support that ships for our tests and third-party ones: fakes, contract suites and probes."""
