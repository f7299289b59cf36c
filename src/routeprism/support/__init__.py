"""Which records carry the answer, and whether a pool may be reordered at all."""

from routeprism.support._cards import (
    Card,
    CardRecord,
    CompiledCard,
    ScreenCard,
    SupportCard,
    cards_for,
    compiled_cards,
)
from routeprism.support._contexts import RouteName, routes_of, stored_contexts
from routeprism.support._estimates import Comparison, compare, reading_rows
from routeprism.support._forms import read_sheet, write_sheet
from routeprism.support._gates import (
    RULES,
    Mask,
    Rule,
    admissible,
    combine,
    gate,
    intersect,
    mask_from_file,
    taxonomy,
)
from routeprism.support._label_files import with_label_file
from routeprism.support._labels import (
    Declaration,
    audited_labels,
    declare,
    with_labels,
    with_readings,
)
from routeprism.support._passes import check_reader, plan_pass, read_cards
from routeprism.support._readings import (
    CompiledReading,
    Passage,
    Reading,
    Readings,
    RecordReading,
    ScreenReading,
    SupportReading,
    same_cards,
)
from routeprism.support._rubrics import (
    COMPILED,
    LABELS,
    RUBRICS,
    SCREEN,
    SCREEN_GOLD,
    SUPPORT,
    UNREAD,
    Rubric,
    rubric_named,
)
from routeprism.support._sentences import sentences
from routeprism.support._stored import (
    load_readings,
    readings_from_json,
    readings_to_json,
    save_readings,
)
from routeprism.support._study import Study, plan_study, run_study

__all__ = [
    "COMPILED",
    "Card",
    "CardRecord",
    "Comparison",
    "CompiledCard",
    "CompiledReading",
    "Declaration",
    "LABELS",
    "Mask",
    "Passage",
    "RULES",
    "RUBRICS",
    "Reading",
    "Readings",
    "RecordReading",
    "RouteName",
    "Rubric",
    "Rule",
    "SCREEN",
    "SCREEN_GOLD",
    "SUPPORT",
    "ScreenCard",
    "ScreenReading",
    "Study",
    "SupportCard",
    "SupportReading",
    "UNREAD",
    "admissible",
    "audited_labels",
    "cards_for",
    "check_reader",
    "combine",
    "compare",
    "compiled_cards",
    "declare",
    "gate",
    "intersect",
    "load_readings",
    "mask_from_file",
    "plan_pass",
    "plan_study",
    "read_cards",
    "read_sheet",
    "reading_rows",
    "readings_from_json",
    "readings_to_json",
    "routes_of",
    "rubric_named",
    "run_study",
    "same_cards",
    "save_readings",
    "sentences",
    "stored_contexts",
    "taxonomy",
    "with_label_file",
    "with_labels",
    "with_readings",
    "write_sheet",
]
