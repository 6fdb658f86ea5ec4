-- Sums by which damage inside a memory's row or a vector is noticed. A row without a sum was written or changed by a program
-- that knows of no sums; its sum is computed later. Triggers remove a sum when what it covers changes, whatever program
-- writes.
CREATE TABLE memory_sums (
    memory INTEGER PRIMARY KEY REFERENCES memories ON DELETE CASCADE,
    sum    BLOB NOT NULL
) STRICT;
CREATE TRIGGER memory_sum_is_over AFTER UPDATE ON memories BEGIN
    DELETE FROM memory_sums WHERE memory = NEW.seq;
END;

CREATE TABLE vector_sums (
    chunk INTEGER PRIMARY KEY REFERENCES vectors ON DELETE CASCADE,
    sum   BLOB NOT NULL
) STRICT;
CREATE TRIGGER vector_sum_is_replaced AFTER INSERT ON vectors BEGIN
    DELETE FROM vector_sums WHERE chunk = NEW.chunk;
END;
CREATE TRIGGER vector_sum_is_over AFTER UPDATE ON vectors BEGIN
    DELETE FROM vector_sums WHERE chunk = NEW.chunk;
END;
