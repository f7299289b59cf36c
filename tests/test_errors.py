"""What errors say."""

from __future__ import annotations

from routeprism.errors import nearest


def test_a_long_list_of_names_ends() -> None:
    assert nearest("replai", ["replay", "half-swap"]) == "Did you mean 'replay'?"
    assert nearest("zzz", ["b", "a"]) == "Known: a, b."
    text = nearest("zzz", [f"u{at:03}" for at in range(165)])
    assert text.startswith("Known: u000, u001, ")
    assert text.endswith("u038, u039 and 125 more.")
    assert nearest("zzz", []) == ""
