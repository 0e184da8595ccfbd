"""Agents that Holdfast brings along."""
