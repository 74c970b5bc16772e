-- A workload that touches most of SQLite. Deterministic.
PRAGMA page_size=4096;
PRAGMA journal_mode=WAL;
CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT NOT NULL, price REAL, tag TEXT);
CREATE TABLE sale(id INTEGER PRIMARY KEY, item INTEGER REFERENCES item(id), n INTEGER, day TEXT);
CREATE TABLE log(what TEXT, at INTEGER);
CREATE TRIGGER logged AFTER UPDATE ON item BEGIN INSERT INTO log VALUES('update', new.id); END;
BEGIN;
WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i<5000)
  INSERT INTO item SELECT i, 'item ' || (i*7919 % 5003), (i*31 % 977)/7.0, char(65 + i%26) FROM c;
WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i<20000)
  INSERT INTO sale SELECT i, 1 + i*17 % 5000, i % 9, date('2020-01-01', '+' || (i%700) || ' days') FROM c;
COMMIT;
CREATE INDEX sale_item ON sale(item);
CREATE INDEX item_name ON item(name, price);
ANALYZE;
SELECT tag, count(*), round(sum(price),3), min(name), max(name) FROM item GROUP BY tag ORDER BY tag;
SELECT i.tag, sum(s.n) FROM sale s JOIN item i ON i.id=s.item WHERE s.day BETWEEN '2020-03-01' AND '2021-03-01' GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT 10;
SELECT name, price, rank() OVER (PARTITION BY tag ORDER BY price DESC, id) r FROM item WHERE id<200 ORDER BY tag, r, name LIMIT 40;
UPDATE item SET price = price*1.1 WHERE tag IN ('A','E','I');
DELETE FROM sale WHERE item % 7 = 0;
SELECT count(*), sum(at) FROM log;
SELECT json_extract(json_object('a', json_array(1,2,id)), '$.a[2]') FROM item WHERE id%1000=0;
CREATE VIRTUAL TABLE doc USING fts5(body);
INSERT INTO doc SELECT name || ' ' || tag FROM item;
SELECT count(*) FROM doc WHERE doc MATCH 'item AND A';
SELECT hex(group_concat(substr(name,1,3), '')) FROM item WHERE id<30;
SAVEPOINT s; DELETE FROM item; ROLLBACK TO s; RELEASE s;
SELECT count(*) FROM item;
SELECT 1/0, abs(-9223372036854775807), typeof(1.5), quote(x'00ff'), printf('%08.3f|%-5d|%s', 3.14159, 42, 'x');
INSERT INTO item VALUES(1,'again',0,'x');
VACUUM;
PRAGMA integrity_check;
.dump log
