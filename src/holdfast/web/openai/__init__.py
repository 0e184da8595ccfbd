"""The OpenAI-compatible door: clients and SDKs that speak that protocol talk to conversations here. docs/doors.md says what they see."""
