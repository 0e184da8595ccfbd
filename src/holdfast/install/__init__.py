"""Running as a service of the operating system."""
