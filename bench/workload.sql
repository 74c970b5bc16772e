-- The workload of the SQLite benches: bulk insert, indexes, joins, grouping, a window
-- function, updates, deletes and text search, all deterministic.
PRAGMA temp_store = memory;
CREATE TABLE customer(id INTEGER PRIMARY KEY, name TEXT, city TEXT);
CREATE TABLE bill(id INTEGER PRIMARY KEY, customer INT, day INT, cents INT, note TEXT);
BEGIN;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
  INSERT INTO customer SELECT i, 'customer ' || (i * 7919 % 5000), 'city ' || (i % 37) FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
  INSERT INTO bill SELECT i, 1 + i * 31 % 5000, i * 17 % 365, i * 7907 % 100000,
    'note ' || substr('alphabetagammadelta', 1 + i % 15, 5) FROM n;
COMMIT;
CREATE INDEX bill_customer ON bill(customer);
CREATE INDEX bill_day ON bill(day, cents);
SELECT city, count(*), sum(cents), max(note) FROM bill JOIN customer ON customer.id = bill.customer
  GROUP BY city ORDER BY 3 DESC;
SELECT day, sum(cents) FROM bill WHERE day BETWEEN 100 AND 200 GROUP BY day;
SELECT name FROM customer WHERE id IN (SELECT customer FROM bill WHERE cents > 99000) ORDER BY name;
SELECT count(*) FROM bill WHERE note LIKE '%gamma%' OR note LIKE 'note a%';
SELECT customer, rank() OVER (PARTITION BY customer ORDER BY cents) FROM bill WHERE customer < 100;
UPDATE bill SET cents = cents + 1, note = upper(note) WHERE day % 5 = 0;
DELETE FROM bill WHERE day % 11 = 3;
SELECT count(*), sum(cents), min(note), max(note) FROM bill;
SELECT a.id, b.id FROM bill a JOIN bill b ON a.customer = b.customer AND a.id < b.id WHERE a.day = 7;
