"""What is loaded for which model: nothing that the chosen wire does not need."""

import subprocess
import sys

HEAVY = {"aiohttp", "pydantic_ai", "pydantic", "openai", "anthropic"}


def loaded(code: str) -> set[str]:
    told = f"import sys\n{code}\nprint(*({HEAVY!r} & sys.modules.keys()))"
    return set(subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True).stdout.split())


def test_the_table_of_providers_loads_nothing() -> None:
    assert loaded("import holdfast.agents.wires.providers") == set()


def test_our_wires_load_no_framework_and_no_sdk() -> None:
    chosen = ("ollama:x", "openai:x", "anthropic:x")
    assert loaded(f"from holdfast.agents.wires import providers\nfor each in {chosen!r}: providers.client(each)") == {"aiohttp"}


def test_without_the_extra_another_provider_is_refused_with_what_to_install() -> None:
    code = (
        "sys.modules['pydantic_ai'] = None\nfrom holdfast.agents.wires import providers\nfrom holdfast.core.errors import BadInput\n"
        "try: providers.client('bedrock:x')\nexcept BadInput as error: assert 'extra `providers`' in str(error)\n"
        "else: raise AssertionError"
    )
    assert "pydantic_ai" in loaded(code)
