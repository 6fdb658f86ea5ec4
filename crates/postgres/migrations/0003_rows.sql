-- The second wall: a transaction sees and changes only rows of the owners that it names in `tiro.owners`, even if a
-- statement forgets to say so. The program uses a role that is no superuser, so the wall holds for it too.

DO $$
DECLARE
    name text;
BEGIN
    FOR name IN SELECT c.table_name FROM information_schema.columns c JOIN information_schema.tables t
            ON t.table_schema = c.table_schema AND t.table_name = c.table_name
        WHERE c.table_schema = current_schema() AND c.column_name = 'owner' AND t.table_type = 'BASE TABLE'
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY of_owners ON %I USING (owner = ANY (
            string_to_array(current_setting(''tiro.owners'', true), '','')::bigint[]))', name);
    END LOOP;
END $$;
