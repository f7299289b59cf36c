-- Built memories. Arrivals and snapshot are JSON; builds of one route are counted from 0.

CREATE TABLE IF NOT EXISTS states (
    policy TEXT, user TEXT, arrivals TEXT, build INTEGER, snapshot TEXT NOT NULL,
    PRIMARY KEY (policy, user, arrivals, build)) WITHOUT ROWID;
