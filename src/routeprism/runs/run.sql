-- The tables of a run. Lists and maps are JSON; a block is [kind, SHA-256 of its text, source ids];
-- a context's id is the SHA-256 of its blocks, so that questions and routes that see the same share
-- one row. Values per question are lists by quantity, in the order of the user's question ids;
-- values per unit, where a pool counts once, are [sum, number], and as a third item the value of
-- each question by its id. A comparison names the prompt of each of its sides, and its draws. A
-- finding is a result about a pool or a question that is not a single number.

CREATE TABLE IF NOT EXISTS texts (sha256 TEXT PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS records (
    user TEXT, position INTEGER, id TEXT, timestamp TEXT, text_sha256 TEXT,
    PRIMARY KEY (user, position)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS questions (
    id TEXT PRIMARY KEY, user TEXT, text TEXT, options TEXT, gold TEXT, kind TEXT, detail TEXT,
    labels TEXT) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS traces (
    policy TEXT, interface TEXT, schedule TEXT, user TEXT, arrivals TEXT, retained TEXT,
    signature TEXT, events TEXT, stand_ins TEXT,
    PRIMARY KEY (policy, interface, schedule, user)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS exposures (
    policy TEXT, interface TEXT, schedule TEXT, question TEXT, context TEXT,
    PRIMARY KEY (policy, interface, schedule, question)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS route_counts (
    policy TEXT, interface TEXT, schedule TEXT, user TEXT, counts TEXT,
    PRIMARY KEY (policy, interface, schedule, user)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failed_routes (
    policy TEXT, interface TEXT, schedule TEXT, user TEXT, reason TEXT,
    PRIMARY KEY (policy, interface, schedule, user)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS contexts (
    id TEXT PRIMARY KEY, context_sha256 TEXT, context_chars INTEGER, sources TEXT, blocks TEXT);
CREATE TABLE IF NOT EXISTS per_question ({names}, user, quantities);
CREATE TABLE IF NOT EXISTS per_unit (interface, {names}, user, quantities);
CREATE TABLE IF NOT EXISTS comparisons (
    experiment TEXT, policy TEXT, schedule TEXT, question TEXT, filler TEXT, condition TEXT,
    side TEXT, prompt_sha256 TEXT, first_draw INTEGER, draws INTEGER, place TEXT,
    {side_parts},
    PRIMARY KEY (experiment, policy, schedule, question, filler, condition, side)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS findings (
    experiment TEXT, policy TEXT, interface TEXT, schedule TEXT, user TEXT, question TEXT,
    name TEXT, value TEXT,
    PRIMARY KEY (experiment, policy, interface, schedule, user, question, name)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS estimates ({columns});
