"""Programs behind the measured figures; run by hand, never by the test suite."""
