"""Notes may arrive a place too early or too late: what is kept must not depend on it."""

from notes import Notes

from routeprism import Record

SAID = (
    ("2024-01-08", "home: has just moved to Lisbon"),
    ("2024-02-02", "work: teaches at a sailing school"),
    ("2024-03-11", "home: has found a flat in Porto"),
    ("2024-03-12", "home: keeps bees on the roof in Porto"),
    ("2024-04-30", "pets: adopted a deaf cat"),
)
POOL = [
    Record(id=f"note-{day}", position=at, text=text, timestamp=day)
    for at, (day, text) in enumerate(SAID)
]


def test_notes_do_not_depend_on_the_order_of_arrival(order_stability):
    """Every order in which each note is at most one place from its own keeps the same notes."""
    order_stability(Notes, [POOL], arrival="jitter:w=1", questions=["Where is home?"])
