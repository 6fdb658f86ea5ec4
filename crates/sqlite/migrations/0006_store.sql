-- The name of this store: a random one, which a copy of the file shares.
INSERT OR IGNORE INTO meta (key, value) VALUES ('store', lower(hex(randomblob(16))));
