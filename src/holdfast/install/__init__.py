"""Living as a service of the operating system."""
