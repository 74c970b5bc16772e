# SPDX-License-Identifier: LGPL-2.1-or-later
# The workload of the Python bench: dictionaries, sorting, json, regular expressions.
import json
import re

rows = [{"id": i, "name": f"name {i * 7919 % 3000}", "tags": [i % 7, i % 11]} for i in range(3000)]
rows.sort(key=lambda row: row["name"])
text = json.dumps(rows)
back = json.loads(text)
words = re.findall(r"name (\d+)", text)
count = {}
for word in words:
    count[word[:2]] = count.get(word[:2], 0) + 1
print(len(text), len(back), len(words), sorted(count.items())[:5])
