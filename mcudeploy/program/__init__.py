"""From a plan to C: tape, records, templates' data. The only importer of Jinja."""
