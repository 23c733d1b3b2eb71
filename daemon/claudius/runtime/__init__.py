"""The daemon's runtime: lanes, delivery, scheduled jobs, the control socket and the life of the process."""
