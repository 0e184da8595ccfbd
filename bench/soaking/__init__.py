"""The parts of the soak (`bench/soak.py`): what happens when, the processes it happens to, the clients that watch, what must be true."""
