"""Random people, random blows, and an account of their own: what was acknowledged, compared with what the gateway shows afterwards.

The account knows nothing of the store and of the code that is tried: it keeps what HTTP answered, and judges what HTTP shows.
"""
