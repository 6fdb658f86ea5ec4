-- A memory may be a document of the repository. Earlier versions can't read this kind, so they may not open the file any
-- more. The index of texts needs nothing: a group of kinds is a word in it.
UPDATE sessions SET noted = noted WHERE 0;
