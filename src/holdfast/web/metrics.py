"""Metrics for Prometheus, collected on request. The library is loaded with the first request, so that a start need not wait for it."""

from collections.abc import Mapping
from typing import Any

from holdfast.gateway.gateway import Gateway

CONTENT_TYPE = b"text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """`responses` is the count of responses by status, kept by the envelope; `doors` that of messages by door and by how their conversation
    was found.
    """

    def __init__(self, gateway: Gateway, responses: Mapping[int, int], doors: Mapping[tuple[str, str], int]) -> None:
        self._gateway, self._responses, self._doors = gateway, responses, doors

    async def text(self) -> bytes:
        from prometheus_client import PROCESS_COLLECTOR, CollectorRegistry, generate_latest
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
        from prometheus_client.registry import Collector

        gateway = self._gateway
        counts, blobs = await gateway.counts(), await gateway.store.blob_usage()
        journal = await gateway.shipping.figures()
        gauges = (
            ("holdfast_sessions", "Sessions in the store.", counts.sessions),
            ("holdfast_inbox", "Accepted messages that no turn has taken yet.", counts.inbox),
            ("holdfast_outbox", "Replies that are not delivered yet.", counts.outbox),
            ("holdfast_running_turns", "Turns that run in any process on this store.", counts.running),
            ("holdfast_running_turns_here", "Turns that run in this process.", gateway.runner.running),
            ("holdfast_suspended_sessions", "Sessions whose next message starts a new one.", counts.suspended),
            ("holdfast_pending_sessions", "Sessions whose last turn was interrupted and not yet recovered.", counts.pending),
            ("holdfast_safe_mode", "1 while nothing is resumed automatically after several crashes.", int(gateway.safe_mode)),
            ("holdfast_blobs", "Attachments and other bytes that are kept in files.", blobs.count),
            ("holdfast_blob_bytes", "How many bytes those files have.", blobs.bytes),
            ("holdfast_spool_files", "Spools of turns whose events are not stored yet.", journal.files),
            ("holdfast_spool_bytes", "How many bytes those files have.", journal.bytes),
            ("holdfast_late_journals", "Journals of interrupted turns that are still looked for.", journal.late),
            ("holdfast_readers", "Open event streams.", gateway.feed.readers),
            ("holdfast_degraded", "1 while nothing can be stored.", int(gateway.store.degraded is not None)),
        )
        figures: list[Metric] = [GaugeMetricFamily(name, words, value=value) for name, words, value in gauges]
        counters: tuple[tuple[str, str, str, Mapping[Any, int]], ...] = (
            ("holdfast_http_answers", "Responses to HTTP requests.", "status", self._responses),
            ("holdfast_turns", "Turns that ended in this process.", "outcome", gateway.tally.turns),
            ("holdfast_recoveries", "Decisions about interrupted turns.", "rule", gateway.tally.rules),
        )
        for name, words, label, counted in counters:
            family = CounterMetricFamily(name, words, labels=[label])
            for value, count in sorted(counted.items()):
                family.add_metric([str(value)], count)
            figures.append(family)
        commits = gateway.store.commits
        figures.append(CounterMetricFamily("holdfast_commits", "Commits of this process.", value=commits.count))
        figures.append(CounterMetricFamily("holdfast_commit_seconds", "How long they took together.", value=commits.seconds))
        family = CounterMetricFamily("holdfast_door_messages", "Messages of OpenAI-compatible clients.", labels=["door", "conversation"])
        for labels, count in sorted(self._doors.items()):
            family.add_metric(labels, count)
        figures.append(family)

        class Figures(Collector):
            def collect(self) -> list[Metric]:
                return figures

        registry = CollectorRegistry()
        registry.register(Figures())
        registry.register(PROCESS_COLLECTOR)
        return generate_latest(registry)
