# SPDX-License-Identifier: LGPL-2.1-or-later
"""A program for the README, with a query that lacks an index.

  shop.py create      makes shop.db
  shop.py             runs the query; record this
  shop.py index       adds the index
"""
import sqlite3
import sys

shop = sqlite3.connect("shop.db")
if sys.argv[1:] == ["create"]:
    shop.executescript("""
        create table customer(id integer primary key, name text);
        create table orders(id integer primary key, customer integer, total real);
        with recursive n(i) as (select 1 union all select i+1 from n where i<2000)
            insert into customer select i, 'c'||i from n;
        with recursive n(i) as (select 1 union all select i+1 from n where i<2000)
            insert into orders select i, i%2000+1, i*1.5 from n;""")
elif sys.argv[1:] == ["index"]:
    shop.execute("create index by_customer on orders(customer)")
else:
    for (name,) in shop.execute("""select name from customer where
            (select sum(total) from orders where orders.customer = customer.id) > 2990"""):
        print(name)
