"""cell.py FILE TABLE COLUMN KEY=VALUE...: sum of a column over the rows of a table of a JSON report
that have these values, "none" when there is no such row. For end-to-end tests."""
import json
import sys

name, table, column = sys.argv[1:4]
wanted = [w.split("=", 1) for w in sys.argv[4:]]
with open(name, encoding="utf-8") as f:
    report = json.load(f)
found = [
    row[column]
    for t in report["tables"]
    if t["key"] == table
    for row in t["rows"]
    if all(str(row[k]) == v for k, v in wanted)
]
print(sum(found) if found else "none")
