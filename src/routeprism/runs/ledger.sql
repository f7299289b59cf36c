-- The ledger of a run. Lists and maps are JSON. Question and route name the first comparison that
-- made a request, which others may share. `recorded` has the verdict and place that came with an
-- answer collected elsewhere, `marks` the parts of an answer that could not be stored unchanged.

CREATE TABLE IF NOT EXISTS models (
    settings_sha256 TEXT, model TEXT, settings TEXT,
    PRIMARY KEY (settings_sha256, model)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS prompts (sha256 TEXT PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS requests (
    submission INTEGER PRIMARY KEY, model TEXT NOT NULL, settings_sha256 TEXT NOT NULL,
    prompt_sha256 TEXT NOT NULL, batch TEXT NOT NULL, draw INTEGER NOT NULL,
    question TEXT, route TEXT,
    UNIQUE (prompt_sha256, draw, model, settings_sha256, batch));
CREATE TABLE IF NOT EXISTS answers (
    submission INTEGER PRIMARY KEY REFERENCES requests, outcome TEXT NOT NULL, answer TEXT,
    raw TEXT NOT NULL, scores TEXT, input_tokens INTEGER, output_tokens INTEGER, cost REAL,
    asked_at TEXT NOT NULL, latency REAL NOT NULL, attempts TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS failures (
    submission INTEGER REFERENCES requests, error TEXT NOT NULL, asked_at TEXT NOT NULL,
    latency REAL NOT NULL, attempts TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS recorded (
    submission INTEGER PRIMARY KEY REFERENCES requests, correct INTEGER, position INTEGER);
CREATE TABLE IF NOT EXISTS marks (
    submission INTEGER PRIMARY KEY REFERENCES requests, marks TEXT NOT NULL);
