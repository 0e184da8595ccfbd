"""Agents that are other programs and speak the Agent Client Protocol: a process for each conversation, with a keeper."""

from holdfast.agents.acp.agent import AcpAgent, Ground
from holdfast.agents.acp.kept import KeptAgents
from holdfast.agents.acp.session import Program, variables

__all__ = ["AcpAgent", "Ground", "KeptAgents", "Program", "variables"]
